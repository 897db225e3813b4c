"""The command line, ``ncd``.

A new command is a function with ``@app.command()``. Errors that a user can cause are ValueError or OSError,
raised by the package with a message for people: `main` shows that one line. Slow imports belong inside the
functions.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import ncdlib
from ncdlib.methods.registry import BEST, DISCOVERING, METHODS, get_method

if TYPE_CHECKING:
    import pandas as pd

    from ncdlib.datasets import DatasetInfo
    from ncdlib.evidence.plan import Job
    from ncdlib.own_data.result import Discovery

METHOD_HELP = (
    f"auto, the best one, which is {BEST}; "
    + "; ".join(f"{name}: {METHODS[name].description}" for name in DISCOVERING)
    + "."
)


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
    except OSError as error:  # without the number that str(error) begins with
        sys.exit("ncd: " + (": ".join(map(str, filter(None, (error.filename, error.strerror)))) or str(error)))
    except ValueError as error:
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
    """List the data sets: what comes with the package, which files are on this computer, what must be downloaded.

    With names, show what they are, whom to cite, and their licence. Files on this computer are used instead of what
    comes with the package.
    """
    from ncdlib.datasets import DATASETS, find_files, get_files, get_info, uses_board

    infos = [get_info(name) for name in names or DATASETS]
    for info in infos:
        typer.echo(info if names else f"{info.name}: {info.title}")
        if not info.files:
            typer.echo("  no file is needed" if names else f"  {info.source}")
        elif uses_board(info, data_home) and not (download and names and info.archive):
            typer.echo(f"  on board ({info.on_board.size:,} bytes), no file is needed")
        else:
            if info.on_board:
                typer.echo("  on board, but these files are used:")
            _show_files(info, get_files(info, data_home) if download else find_files(info, data_home))


def _show_files(info: DatasetInfo, paths: Mapping[str, Path | None]) -> None:
    from ncdlib.datasets import archive_url, cache_dir, identify

    for file in info.files:
        path = paths[file.name]
        state = "missing" if path is None else f"{path}: {identify(file, path)[1] or 'NOT THE ORIGINAL'}"
        typer.echo(f"  {file.name}  {state}")
    if None in paths.values():
        size = sum(file.size for file in info.files if paths[file.name] is None)
        what = f"the files of {archive_url(info)}" if info.archive else "all of these files"
        if info.archive:
            typer.echo(f"  to get what is missing ({size / 1e6:,.1f} MB unpacked): ncd data {info.name} --download")
        typer.echo(f"  {'or ' * bool(info.archive)}put {what} into {cache_dir() / info.home}")


def _check_writable(path: Path, others: list[Path]) -> None:
    """Refuse a file that cannot be written, or is needed for something else: before the work, not after it."""
    if str(path) == "-" or path.is_dir() or not os.access(path.parent, os.W_OK):
        raise PermissionError(f"cannot write {path}: give a file in a folder that exists and can be written")
    if any(path.resolve() == other.resolve() for other in others):
        raise ValueError(f"{path} is named twice: give each file a name of its own")


@app.command()
def discover(
    table: Annotated[Path, typer.Argument(help="A CSV or Parquet file.")],
    label_column: Annotated[str, typer.Option(help="The column with the known classes; missing or -1: to discover.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the table with labels here.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page that explains the classes here.")] = None,
    method: Annotated[str, typer.Option(help=METHOD_HELP)] = "auto",
    trials: Annotated[int, typer.Option(min=0, help="Hyperparameter sets to try.")] = 20,
    clusters: Annotated[int | None, typer.Option(min=1, help="The number of classes, if you know it.")] = None,
    index: Annotated[
        str | None,
        typer.Option(
            help="The validity index that estimates the number of classes, instead of the method's own count."
        ),
    ] = None,
    k_max: Annotated[int | None, typer.Option(min=2, help="The largest number of classes to try.")] = None,
    mixed: Annotated[
        bool | None,
        typer.Option(
            "--mixed/--no-mixed",
            help="Unlabelled rows may be of known classes, or are all new; by default it is tested.",
        ),
    ] = None,
    label_missing: Annotated[str | None, typer.Option(help="A label that stands for a missing one: unknown.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")] = None,
    keep: Annotated[list[str] | None, typer.Option(help="A column to take as it is; may be repeated.")] = None,
    store: Annotated[Path | None, typer.Option(help="A file to resume the search from.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one per core.")] = -1,
    max_rows: Annotated[
        int | None, typer.Option(min=1, help="Learn from a random sample of at most this many rows; 50,000 by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to spread the search over.")] = None,
    save: Annotated[Path | None, typer.Option(help="Save the result here, for ncd apply and ncd edit.")] = None,
    after: Annotated[
        Path | None, typer.Option(help="A saved result of the same rows: what was accepted there is known now.")
    ] = None,
) -> None:
    """Discover classes among the unlabelled rows of your own table, and say what they are."""
    from ncdlib.own_data.discover import MAX_ROWS, discover_file
    from ncdlib.own_data.read import OTHER_FILES

    files = [path for path in (table, output, report, store, save) if path is not None]
    for path in files[1:]:
        _check_writable(path, [other for other in files if other is not path])
    if output is not None and any(output.suffix.lower() in endings for endings in OTHER_FILES.values()):
        raise ValueError(f"cannot write {output}: give a name that ends in .csv or .parquet")
    _check_jobs(jobs)
    searched = get_method(method).searched
    with _one_line_when_stopped(lambda: _how_to_go_on(store) if searched else "nothing was written"):
        rows, found = discover_file(
            table,
            label_column,
            drop=drop or (),
            label_missing=label_missing,
            after=None if after is None else _load_result(after),
            dask=dask,
            method=method,
            n_trials=trials,
            n_clusters=clusters or index,
            k_max=k_max,
            unlabeled={None: "auto", True: "mixed", False: "new"}[mixed],
            keep=keep or (),
            store=store,
            n_jobs=None if dask else jobs,
            max_rows=max_rows or MAX_ROWS,
            random_state=seed,
        )
    if save is not None:
        found.save(save)
    _show(found)
    if output is not None:
        _write_labels(output, table, rows, found)
    if report is not None:
        found.report(report)


def _load_result(path: Path) -> Discovery:
    """Read a saved result; a saved model is none."""
    from ncdlib import Discovery, load

    found = load(path)
    if not isinstance(found, Discovery):
        raise ValueError(f"{path} is a saved {type(found).__name__}: give the result that ncd discover --save wrote")
    return found


@app.command()
def apply(
    result: Annotated[Path, typer.Argument(help="What ncd discover --save wrote.")],
    table: Annotated[Path, typer.Argument(help="A CSV or Parquet file with new rows, or a folder of Parquet files.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the table with labels here.")],
    reject: Annotated[
        float, typer.Option(min=0, max=0.5, help="The share of rows like the old ones that is turned away.")
    ] = 0.01,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to spread the work over.")] = None,
) -> None:
    """Label new rows: each gets its known class, a discovered one, or "neither", and how sure that is.

    The table is read piece by piece, so it may be larger than memory. The output is written as a whole or not at all.
    """
    from ncdlib.own_data.apply_file import apply_file
    from ncdlib.own_data.report import count

    _check_writable(output, [result, table])
    with _one_line_when_stopped(lambda: "nothing was written"):
        applied = apply_file(_load_result(result), table, output, reject=reject, dask=dask)
    sizes = ", ".join(f"{name} ({n:,})" for name, n in applied.sizes.most_common(12))
    typer.echo(f"{count(applied.n_rows, 'row', 'rows')}: {sizes}{', ...' if len(applied.sizes) > 12 else ''}")
    for note in applied.notes:
        typer.echo(f"note: {note}")


@app.command()
def edit(
    result: Annotated[Path, typer.Argument(help="What ncd discover --save wrote.")],
    action: Annotated[str, typer.Argument(help="rename, merge, split, accept, undo, log or report.")],
    names: Annotated[
        list[str] | None, typer.Argument(help="The classes; for rename the old name and the new one.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="A name for what is merged or accepted.")] = None,
    pieces: Annotated[int | None, typer.Option(min=2, help="Into how many classes to split; 2 by default.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The page that report writes.")] = None,
) -> None:
    """Rename, merge, split or accept the classes of a saved result; undo the last edit; show the log of all.

    merge with a known class makes the others rows of it. An accepted class is a known one for the next round
    (ncd discover --after RESULT), and ncd apply goes by the edited classes.
    """
    from ncdlib._io.files import locked
    from ncdlib.own_data.edit import edit as edit_result

    if (action == "report") != (output is not None):
        raise ValueError("report needs --output, and nothing else does: ncd edit RESULT report -o page.html")
    if output is not None:
        _check_writable(output, [result])
    if action in ("undo", "log", "report") and names:
        raise ValueError(f"{action} takes no class")
    if not os.path.exists(result):
        raise FileNotFoundError(f"there is no file {result}")
    names = names or []
    if action == "rename":
        if len(names) != 2 or name is not None:
            raise ValueError('rename takes the old name and the new one: ncd edit RESULT rename "new 1" "Stains"')
        names, name = names[:1], names[1]
    if pieces is not None and action != "split":
        raise ValueError("--pieces is for split")
    with locked(result.with_name(f".{result.name}.lock")):  # of two edits at once, none is lost
        found = _load_result(result)
        if action == "log":
            lines = [f"{entry.when}  {entry}" for entry in found.edits]
            typer.echo("\n".join(lines) or "no edit yet")
            return
        if output is not None:
            found.report(output)
            return
        found = edit_result(found, action, names, name=name, pieces=pieces or (2 if action == "split" else 0))
        found.save(result)
    _show_classes(found)


def _how_to_go_on(store: Path | None) -> str:
    if store is not None and store.exists():
        return "the same command goes on where the search was"
    if store is not None:
        return "nothing was finished yet: the same command starts again"
    return "with --store FILE, the same command would go on where the search was"


def _show(found: Discovery) -> None:
    """Print what was found: rows, notes, a line for each class."""
    from ncdlib.own_data.report import count

    known = found.to_frame()["label"][~found.unlabeled]
    unlabeled = count(int(found.unlabeled.sum()), "unlabelled row", "unlabelled rows")
    typer.echo(f"{unlabeled}; known classes: {_sizes(known)}")
    for note in found.notes:
        typer.echo(f"note: {note}")
    _show_classes(found)
    if found.profiles:
        sure = "" if math.isnan(found.confidence) else f"; confidence {found.confidence:.0%}"
        typer.echo(f"{count(found.n_clusters, 'class', 'classes')}; stability over seeds {found.stability:.2f}{sure}")


def _show_classes(found: Discovery) -> None:
    if not found.profiles:
        typer.echo("no class discovered")
        return
    typer.echo(f"chosen: {found.explanation}")
    typer.echo(_as_text(found.summary().dropna(axis="columns", how="all")))


def _write_labels(output: Path, table: Path, rows: pd.DataFrame, found: Discovery) -> None:
    """Write the table with the labels; a CSV file that was read is written cell for cell."""
    import pandas as pd

    from ncdlib._io.files import atomic_write
    from ncdlib.own_data.read import is_parquet, write_with_columns
    from ncdlib.own_data.result import RESULT_COLUMNS

    added = found.to_frame().set_axis(RESULT_COLUMNS, axis=1)
    with atomic_write(output) as file:
        if not is_parquet(output) and not is_parquet(table):
            write_with_columns(table, added, file)
        elif is_parquet(output):
            rows.assign(**added).to_parquet(file)
        else:
            rows.assign(**added).to_csv(file, index=not isinstance(rows.index, pd.RangeIndex))


def _sizes(labels: pd.Series) -> str:
    """Name the largest classes with their numbers of rows."""
    sizes = labels.value_counts().sort_index().sort_values(ascending=False, kind="stable")
    return ", ".join(f"{name} ({n:,})" for name, n in sizes.head(12).items()) + (", ..." if len(sizes) > 12 else "")


def _as_text(summary: pd.DataFrame) -> str:
    """Align the columns of a summary, except the rules: these have any length, and follow at the end."""
    aligned = summary.drop(columns="rule").to_string(index=False)
    lines = aligned.split("\n")  # not splitlines(): names may hold rarer line ends
    return "\n".join(f"{line}  {rule}" for line, rule in zip(lines, ["rule", *summary["rule"]], strict=True))


@contextmanager
def _one_line_when_stopped(message: Callable[[], str]) -> Iterator[None]:
    """Let Ctrl-C end the command with one line that says what is kept."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "[0-9]+ tasks .* have been cancelled")  # joblib's word for the same
            yield
    except KeyboardInterrupt:
        typer.echo(f"\nstopped; {message()}", err=True)
        raise typer.Exit(130) from None


def _check_jobs(jobs: int) -> None:
    if jobs == 0:
        raise typer.BadParameter("--jobs 0 would do nothing: -1 for one process per core, or a number")


@app.command()
def reproduce(
    what: Annotated[
        list[str] | None, typer.Argument(help='Tables ("Table 4", or clust, ncd, ...) or search; all by default.')
    ] = None,
    datasets: Annotated[str, typer.Option(help="Data sets, separated by commas.")] = "",
    methods: Annotated[str, typer.Option(help="Methods, separated by semicolons.")] = "",
    trials: Annotated[int | None, typer.Option(min=1, help="At most this many trials of each search.")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="At most this many runs of each cell.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one per core.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what is missing, and how long it may take.")] = False,
    budget: Annotated[float | None, typer.Option(min=0, help="Start nothing new after this many minutes.")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Forget the runs of the named tables and methods first.")
    ] = False,
    summary: Annotated[bool, typer.Option("--summary", help="Show how many figures of the paper agree.")] = False,
    dask: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler; its workers must see results/.")
    ] = None,
) -> None:
    """Measure what results/ does not hold yet of the paper's tables and figures. Stop and start again at any moment."""
    from ncdlib.evidence import load_results, plan
    from ncdlib.evidence.results import results_folder

    if summary:
        typer.echo(plan.summary().to_string(index=False))
        return
    _check_jobs(jobs)
    split = lambda names, mark: [name.strip() for name in names.split(mark) if name.strip()]  # noqa: E731
    chosen = (what or (), split(datasets, ","), split(methods, ";"))
    if again and (dry_run or budget is not None or not what):
        raise typer.BadParameter(
            "--again removes runs: name the tables to measure again, and leave out --dry-run and --budget"
        )
    if again:
        typer.echo(f"{plan.forget(*chosen, runs=runs)} runs forgotten")
    pending = partial(plan.pending_jobs, *chosen, runs=runs, trials=trials)
    if dry_run:
        typer.echo("\n".join(plan.in_words(pending(), load_results())))
        return
    n_rows = 0
    kept = f"all that was finished is in {results_folder()}: the same command goes on"
    with _one_line_when_stopped(lambda: kept):
        if first := pending():
            n_rows = _measure_all(first, pending, dask, jobs, budget, trials)
    typer.echo(f"{n_rows} rows measured, in {results_folder()}; what is missing now: ncd reproduce --dry-run")


def _measure_all(
    first: list[Job],
    pending: Callable[[], list[Job]],
    dask: str | None,
    jobs: int,
    budget: float | None,
    trials: int | None,
) -> int:
    """Measure until nothing is left: a search that is finished makes new cells possible."""
    from ncdlib._io.dask_cluster import dask_cluster
    from ncdlib.evidence.measure import reproduce

    deadline = None if budget is None else time.time() + 60 * budget
    n_rows, todo = 0, first
    with dask_cluster(dask):
        while n_new := reproduce(todo, n_jobs=jobs, deadline=deadline, trials=trials):
            n_rows, todo = n_rows + n_new, pending()
    return n_rows


@app.command()
def verify(
    table: Annotated[str, typer.Argument(help='A table of the paper: "Table 4", or its label: clust, ncd, ...')],
    dataset: Annotated[str, typer.Option(help="A data set.")],
    method: Annotated[str, typer.Option(help="A method, as the table names it.")],
    runs: Annotated[int | None, typer.Option(min=1, help="Measure this many runs; by default all of the cell.")] = None,
    variant: Annotated[str, typer.Option(help="Which problem, where a table has several on one data set.")] = "",
) -> None:
    """Measure one cell of a table again: what the paper says, what is stored, what comes out now."""
    from ncdlib.evidence.verify import verify

    cell = verify(table, dataset, method, runs=runs, variant=variant)
    typer.echo(cell.round(1).to_string(index=False, na_rep="-"))
    if cell.attrs["source"] != "original":
        typer.echo(f"data: {cell.attrs['source']}")


@app.command()
def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer repeats, smaller sizes; targets are for full sizes.")
    ] = False,
    only: Annotated[str, typer.Option(help="Only the groups whose name contains this: training, spectral, ...")] = "",
) -> None:
    """Measure the package's speed and memory against references in the same run."""
    script = Path(ncdlib.__file__).parents[1] / "benchmarks" / "run.py"
    if not script.is_file():
        raise FileNotFoundError("ncd bench needs the source tree, where benchmarks/ has the references")
    arguments = ["--quick"] * quick + ["--only", only] * bool(only)
    raise typer.Exit(subprocess.run([sys.executable, script, *arguments], check=False).returncode)
