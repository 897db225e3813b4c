"""Files that other processes see whole or not at all, and locks that the kernel drops when a process dies."""

from __future__ import annotations

import glob
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

PART = ".part"


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write beside `path`, and move it there at the end; on an error it is removed.

    A link stays one: what it leads to is replaced. A pipe or a device is written to as it is. What a killed process
    left of an earlier write to `path` is removed after an hour.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ncdlib._io.files import atomic_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "hello.txt") as file:
    ...         n_bytes = file.write(b"hello")
    ...     (Path(folder) / "hello.txt").read_text()
    'hello'
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    for left in path.parent.glob(f".{glob.escape(path.name)}.*{PART}"):
        with suppress(FileNotFoundError):  # another writer has just finished with it
            if left.stat().st_mtime < time.time() - 3600:
                left.unlink()
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}")
    try:
        with open(part, "xb") as file:
            if path.exists():  # who may read it stays as it was
                part.chmod(stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename is None:  # a full disk does not say which file
            error.filename = os.fspath(path)
        raise


def remove_parts(folder: Path) -> None:
    """Remove what killed processes left of unfinished writes; call it with the lock of all writers held."""
    for part in folder.rglob(f".*{PART}"):
        part.unlink()


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock file `path`; yield True, or False if another process has it and `wait` is False.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ncdlib._io.files import locked
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with locked(Path(folder) / ".lock") as mine, locked(Path(folder) / ".lock", wait=False) as too:
    ...         mine, too
    (True, False)
    """
    lock = FileLock(path, thread_local=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=wait)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        if os.name == "posix":  # elsewhere a locked file cannot be removed, and the release removes it
            path.unlink(missing_ok=True)
        lock.release()


def file_state(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file does, for caches of what was read from it; None where there is no file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from ncdlib._io.files import file_state
    >>> file_state(Path("nowhere.csv")) is None
    True
    """
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
