"""The files of the data sets: where they are, whether they are the originals, and how they are downloaded."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from urllib.parse import urlsplit

import numpy as np
import pooch
import requests

from ncdlib._io.files import atomic_write, locked, remove_parts
from ncdlib.datasets import readers
from ncdlib.datasets.registry import DATASETS, ORIGINAL, DataFile, DatasetInfo

UCI_URL = "https://archive.ics.uci.edu/static/public"
# Environment variables: a folder with data files, another cache folder, a mirror of the UCI archive.
DATA_VARIABLE, CACHE_VARIABLE, URL_VARIABLE = "NCDLIB_DATA", "NCDLIB_CACHE", "NCDLIB_UCI_URL"
LOCK = ".lock"


class DataFileError(OSError):
    """A data file is missing, damaged or not the original, or it cannot be downloaded or stored.

    Examples
    --------
    >>> from ncdlib import load_dataset
    >>> from ncdlib.datasets import DataFileError
    >>> try:
    ...     load_dataset("letter", data_home="no_such_folder")
    ... except DataFileError as error:
    ...     print(error)
    there is no folder no_such_folder, which data_home names
    """


def cache_dir() -> Path:
    """Return the folder for downloaded files and parsed arrays; everything in it can be made again.

    Examples
    --------
    >>> from ncdlib.datasets import cache_dir
    >>> isinstance(cache_dir(), Path)
    True
    """
    return Path(os.environ.get(CACHE_VARIABLE) or pooch.os_cache("ncdlib")).expanduser()


def archive_url(info: DatasetInfo) -> str:
    """Return the address of a data set's archive; ``NCDLIB_UCI_URL`` names a mirror of UCI's.

    Examples
    --------
    >>> from ncdlib import DATASETS
    >>> from ncdlib.datasets import archive_url
    >>> archive_url(DATASETS["letter"])
    'https://archive.ics.uci.edu/static/public/59/letter+recognition.zip'
    """
    return f"{(os.environ.get(URL_VARIABLE) or UCI_URL).rstrip('/')}/{info.archive}"


def find_files(info: DatasetInfo, data_home: str | os.PathLike | None = None) -> dict[str, Path | None]:
    """Return where each file of a data set is, or None for a file that is in none of the folders.

    Examples
    --------
    >>> from ncdlib import DATASETS
    >>> from ncdlib.datasets import find_files
    >>> list(find_files(DATASETS["pendigits"]))
    ['pendigits.tra', 'pendigits.tes']
    """
    return {file.name: _find(Path(info.home, file.name), data_home) for file in info.files}


def _find(file: Path, data_home: str | os.PathLike | None) -> Path | None:
    for origin, folder in (("data_home", data_home), (DATA_VARIABLE, os.environ.get(DATA_VARIABLE))):
        if folder and not Path(folder).expanduser().is_dir():
            raise DataFileError(f"there is no folder {folder}, which {origin} names")
        if folder and (path := Path(folder).expanduser() / file).is_file():
            return path
    path = cache_dir() / file
    return path if os.path.isfile(path) else None  # unlike Path.is_file, False where the folder cannot be read


def is_here(info: DatasetInfo, data_home: str | os.PathLike | None = None) -> bool:
    """Tell whether a data set can be loaded without a network.

    Examples
    --------
    >>> from ncdlib import DATASETS
    >>> from ncdlib.datasets import is_here
    >>> is_here(DATASETS["steel"])
    True
    """
    return all(find_files(info, data_home).values()) or uses_board(info, data_home)


def uses_board(info: DatasetInfo, data_home: str | os.PathLike | None = None) -> bool:
    """Tell whether a data set is loaded from the package: where it is on board, and no file of it is in a folder.

    Examples
    --------
    >>> from ncdlib import DATASETS
    >>> from ncdlib.datasets import uses_board
    >>> uses_board(DATASETS["census"])
    False
    """
    return info.on_board is not None and not any(find_files(info, data_home).values())


def get_files(
    info: DatasetInfo,
    data_home: str | os.PathLike | None = None,
    download: bool = True,
    allow_modified: bool = False,
) -> dict[str, Path]:
    """Return where each file of a data set is, after downloading those that are in none of the folders.

    Examples
    --------
    >>> from ncdlib import DATASETS
    >>> from ncdlib.datasets import get_files
    >>> get_files(DATASETS["digits"])
    {}
    """
    paths = find_files(info, data_home)
    missing = [file for file in info.files if paths[file.name] is None]
    if missing and not download:
        raise DataFileError(f"{_missing(info, missing)}, and download=False. {_by_hand(info)}")
    if missing and not info.archive:
        raise DataFileError(f"{_missing(info, missing)}, and no archive to download has it. {_by_hand(info)}")
    if missing:
        _download(info, missing, allow_modified)
        paths = find_files(info, data_home)
    return paths


def _missing(info: DatasetInfo, missing: Iterable[DataFile]) -> str:
    return f"data set {info.name}: there is no {', '.join(file.name for file in missing)} on this computer"


def _by_hand(info: DatasetInfo) -> str:
    """Say what can be done where nothing can be downloaded."""
    there = [other.name for other in DATASETS.values() if is_here(other)]
    what = f"Get {archive_url(info)} in another way, and put its" if info.archive else "Put its"
    return f"{what} files into {cache_dir() / info.home}. Data sets that work without a network: {', '.join(there)}"


def _download(info: DatasetInfo, files: list[DataFile], allow_modified: bool) -> None:
    """Put files of a data set into the cache folder; each appears there only once it is whole and checked."""
    folder, url = cache_dir() / info.home, archive_url(info)
    try:
        with locked(folder / LOCK), tempfile.TemporaryFile(dir=folder) as archive:
            remove_parts(folder)
            files = [file for file in files if not (folder / file.name).is_file()]  # another process may have been here
            if files:
                pooch.get_logger().info("Downloading data set %s from %s", info.name, url)
                _fetch(url, archive)
                with zipfile.ZipFile(archive) as opened:
                    _extract(info, files, opened, folder, allow_modified)
    except DataFileError:
        raise
    except requests.RequestException as error:
        reason = str(error) if isinstance(error, requests.HTTPError) else type(error).__name__
        raise DataFileError(
            f"{_missing(info, files)}, and {url} cannot be read ({reason}). {_by_hand(info)}"
        ) from None  # sixty lines of urllib3 would hide what to do
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # the last one: it has a password
        raise DataFileError(f"what {url} sends is not a whole zip archive ({error}). {_by_hand(info)}") from error
    except OSError as error:
        raise DataFileError(
            f"cannot store data set {info.name} in {folder}: {error.strerror or error}. "
            f"Set {CACHE_VARIABLE} to a folder with free space that can be written to"
        ) from error


def _fetch(url: str, file: BinaryIO) -> None:
    allowed = {"https", urlsplit(url).scheme}

    def refuse_insecure(response: requests.Response, **_: object) -> None:
        """A redirect must not lead from https to http."""
        if urlsplit(response.url).scheme not in allowed:
            raise DataFileError(f"{url} leads to {response.url}, which is not https")

    fetch = pooch.HTTPDownloader(progressbar=True, chunk_size=1 << 20, timeout=30, hooks={"response": refuse_insecure})
    fetch(url, file, None)


def _extract(
    info: DatasetInfo,
    files: list[DataFile],
    archive: zipfile.ZipFile,
    folder: Path,
    allow_modified: bool,
    is_inner: bool = False,
) -> None:
    """Extract the files of a data set from UCI's archive, or from the archive inside it.

    Only files of the registry are written, to names that the registry gives: no member can land elsewhere.
    """
    for name in archive.namelist():
        if name.startswith(("/", "\\")) or ".." in PurePosixPath(name.replace("\\", "/")).parts:
            raise DataFileError(f"{archive_url(info)} is refused: its member {name!r} points outside of its folder")
    members = {file.name: _member(archive, file.name) for file in files}
    nested = [member for member in archive.infolist() if member.filename.endswith(".zip")]
    if nested and not is_inner and not all(members.values()):
        with tempfile.TemporaryFile(dir=folder) as inner:
            with archive.open(nested[0]) as stream:
                shutil.copyfileobj(stream, inner)
            with zipfile.ZipFile(inner) as opened:
                return _extract(info, files, opened, folder, allow_modified, is_inner=True)
    for file in files:
        member = members[file.name]
        if member is None:
            raise DataFileError(f"{archive_url(info)} holds no {file.name}")
        if member.file_size != file.size and not allow_modified:
            raise DataFileError(
                f"{file.name} in {archive_url(info)} is not the original: it has {member.file_size} bytes, "
                f"and the original {file.size}; allow_modified=True takes it as it is"
            )
        with atomic_write(folder / file.name) as target:
            with archive.open(member) as stream:
                shutil.copyfileobj(stream, target)
            target.flush()
            if identify(file, Path(target.name))[1] != ORIGINAL and not allow_modified:
                raise DataFileError(
                    f"{file.name} in {archive_url(info)} is not the original: its checksum differs; "
                    "allow_modified=True takes it as it is"
                )


def _member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo | None:
    return next((m for m in archive.infolist() if f"/{m.filename}".endswith(f"/{name}")), None)


def check_files(info: DatasetInfo, paths: Mapping[str, Path], allow_modified: bool) -> tuple[list[str], str]:
    """Return the files' sha256 and what to say of their source; refuse files that are not the original."""
    digests, notes = [], []
    for file in info.files:
        path = paths[file.name]
        digest, note = identify(file, path)
        if note is None and not allow_modified:
            raise DataFileError(_difference(info, file, path, digest))
        digests.append(digest)
        notes.append(note or f"modified data: {file.name} is not the original")
    differing = dict.fromkeys(note for note in notes if note != ORIGINAL)
    return digests, "; ".join(differing) or info.source


def identify(file: DataFile, path: Path) -> tuple[str, str | None]:
    """Return the sha256 of a file, and "original", the sentence of a known variant, or None.

    Examples
    --------
    >>> import ncdlib
    >>> from ncdlib.datasets import DataFile, identify
    >>> identify(DataFile("own.py", size=1), Path(ncdlib.__file__))[1] is None
    True
    """
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    original = digest == file.sha256 if file.sha256 else path.stat().st_size == file.size
    return digest, ORIGINAL if original else file.variants.get(digest)


def _difference(info: DatasetInfo, file: DataFile, path: Path, digest: str) -> str:
    size = path.stat().st_size
    with open(path, "rb") as stream:
        start = stream.read(64).lstrip().lower()
    if start.startswith((b"<!doctype", b"<html")):
        what = "it is a web page"
    elif size < file.size:
        what = f"it has {size} bytes of {file.size}, and may be cut short"
    elif size > file.size:
        what = f"it has {size} bytes, and the original {file.size}"
    else:
        what = f"its sha256 is {digest}, and the original's {file.sha256}"
    instead = "use the arrays on board" if info.on_board else f"get the original from {archive_url(info)}"
    return (
        f"{path} is not the original file of data set {info.name}: {what}. "
        f"Remove it to {instead}, or pass allow_modified=True to use it as it is"
    )


def read_files(info: DatasetInfo, paths: Mapping[str, Path], digests: list[str]) -> readers.Arrays:
    """Read the files, or the arrays that an earlier call made of the same bytes with the same code."""
    if not info.files:
        return info.read(paths)
    key = hashlib.sha256("".join(digests).encode() + Path(readers.__file__).read_bytes()).hexdigest()[:16]
    cached = cache_dir() / info.home / f"parsed-{key}.npz"
    try:
        with np.load(cached, allow_pickle=False) as stored:
            return dict(stored)
    except FileNotFoundError:
        pass
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        warnings.warn(f"{cached} cannot be read ({error}): reading the data files again", stacklevel=3)
    try:
        arrays = info.read(paths)
        _check_arrays(info, arrays)
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        raise DataFileError(f"the files of data set {info.name} cannot be read: {error}") from error
    try:
        with locked(cached.with_name(LOCK)):
            remove_parts(cached.parent)
            with atomic_write(cached) as file:
                np.savez(file, **arrays)
    except OSError as error:
        _warn_once(
            f"cannot write to the cache folder {cache_dir()} ({error.strerror or error}): data sets load, "
            f"but slowly; set {CACHE_VARIABLE} to a folder that can be written to"
        )
    return arrays


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, stacklevel=4)  # of the caller of load_dataset


def _check_arrays(info: DatasetInfo, arrays: readers.Arrays) -> None:
    n_features = len(arrays["feature_names"])
    parts = [part for part in ("", "_test") if f"X{part}" in arrays]
    for part in parts:
        X, y = arrays[f"X{part}"], arrays[f"y{part}"]
        if X.shape != (len(y), n_features):
            raise ValueError(f"X{part} has shape {X.shape}, for {len(y)} labels and {n_features} feature names")
        if not np.all(np.isfinite(X)):
            raise ValueError(f"X{part} has missing or infinite values")
    found = [set(arrays[f"y{part}"].tolist()) for part in parts]
    if info.second_file != "test":  # each part has classes that the other one does not have
        found = [set().union(*found)]
    for part, classes in zip(parts, found, strict=False):
        if classes != set(info.class_names):
            raise ValueError(f"y{part} has the classes {sorted(classes)}, not {sorted(info.class_names)}")
