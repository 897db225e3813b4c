"""The command line, ``ncd``.

A new command is a function with ``@app.command()``. Errors that a user can cause are ValueError or OSError,
raised by the package with a message for people: `main` shows that one line. Slow imports belong inside the
functions.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import ncdlib

app = typer.Typer(
    help="Novel class discovery in tabular data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; show an error that a user can cause as one line."""
    try:
        app()
    except (ValueError, OSError) as error:
        sys.exit(f"ncd: {error}")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ncdlib {ncdlib.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def data(
    names: Annotated[list[str] | None, typer.Argument(help="Data sets; all of them by default.")] = None,
    download: Annotated[bool, typer.Option(help="Download the files that are missing.")] = False,
    data_home: Annotated[Path | None, typer.Option(help="A folder to look in first.")] = None,
) -> None:
    """List the data sets: which files they need, where these are, and whether they are the original."""
    from ncdlib.datasets import DATASETS, archive_url, cache_dir, find_files, get_files, get_info, identify

    infos = [get_info(name) for name in names or DATASETS]
    for info in infos:
        typer.echo(f"{info.name}: {info.title}")
        if not info.files:
            typer.echo(f"  {info.source}")
            continue
        paths = get_files(info, data_home) if download else find_files(info, data_home)
        for file in info.files:
            path = paths[file.name]
            state = "missing" if path is None else f"{path}: {identify(file, path)[1] or 'NOT THE ORIGINAL'}"
            typer.echo(f"  {file.name}  {state}")
        if None in paths.values():
            typer.echo(f"  to get what is missing: ncd data {info.name} --download")
            typer.echo(f"  or put the files of {archive_url(info)} into {cache_dir() / info.name}")
