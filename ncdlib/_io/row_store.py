"""A table of measurements that grows by one row at a time, and survives crashes and several writers."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ncdlib._io.files import atomic_write, locked


class RowStore:
    """A CSV file to which several processes may append rows, each row at most once.

    Parameters
    ----------
    path : path
        The CSV file. The first row that is appended makes it, with its keys as the columns.
    key : sequence of str
        The columns whose values tell rows apart.

    Examples
    --------
    >>> import tempfile
    >>> from ncdlib._io.row_store import RowStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = RowStore(f"{folder}/runs.csv", key=["data", "seed"])
    ...     with store.claim({"data": "digits", "seed": 0}) as mine:
    ...         first = mine and store.append({"data": "digits", "seed": 0, "acc": 0.75})
    ...     again = store.append({"data": "digits", "seed": 0, "acc": 0.5})
    ...     first, again, store.rows()["acc"].tolist()
    (True, False, [0.75])
    """

    def __init__(self, path: str | os.PathLike, key: Sequence[str]) -> None:
        self.path = Path(path)
        self.key = tuple(key)

    def __repr__(self) -> str:
        return f"RowStore({os.fspath(self.path)!r}, key={list(self.key)!r})"

    def __contains__(self, row: Mapping[str, Any]) -> bool:
        """Tell whether there is a row with these values in the key columns."""
        return self._key_of(row) in self._parse(self._read())[1]

    def rows(self) -> pd.DataFrame:
        """Return all rows; a last line that was cut short by a crash is left out.

        Examples
        --------
        >>> from ncdlib._io.row_store import RowStore
        >>> RowStore("nowhere.csv", key=["seed"]).rows().shape
        (0, 1)
        """
        text = self._read()
        if not text:
            return pd.DataFrame(columns=list(self.key))
        return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])

    def append(self, row: Mapping[str, Any]) -> bool:
        """Add a row, on the disk when this returns; return False if there is one with the same key already.

        Parameters
        ----------
        row : dict
            Strings, numbers, booleans or None, for exactly the columns that the file has.

        Raises
        ------
        ValueError
            When the columns are not those of the file, or a value does not fit into a cell.
        OSError
            When the file cannot be written; the rows in it stay as they are.
        """
        key = self._key_of(row)
        with self._locked("append"):
            text = self._read()
            header, keys = self._parse(text)
            if key in keys:
                return False
            if header:
                self._check_columns(row, header)
                line = _line(row[column] for column in header)
            else:
                line = _line(row) + _line(row.values())
            self._write(len(text.encode()), line.encode())
        return True

    def remove(self, wanted: Callable[[Mapping[str, str]], bool]) -> int:
        """Take out the rows of which `wanted` says so, to measure them again; return how many they were.

        Examples
        --------
        >>> import tempfile
        >>> from ncdlib._io.row_store import RowStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = RowStore(f"{folder}/runs.csv", key=["seed"])
        ...     _ = store.append({"seed": 0}), store.append({"seed": 1})
        ...     store.remove(lambda row: row["seed"] == "1"), len(store.rows())
        (1, 1)
        """
        with self._locked("append"):
            rows = list(csv.DictReader(io.StringIO(self._read())))
            kept = [row for row in rows if not wanted(row)]
            if len(kept) < len(rows):
                with atomic_write(self.path) as file:
                    file.write("".join([_line(rows[0]), *(_line(row.values()) for row in kept)]).encode())
        return len(rows) - len(kept)

    def change_columns(
        self, *, rename: Mapping[str, str] | None = None, add: Mapping[str, Any] | None = None
    ) -> list[str]:
        """Rename columns, or add some with one value for all rows there are; return the columns of the file then.

        What is so already is left as it is, so that the same call may be repeated.

        Examples
        --------
        >>> import tempfile
        >>> from ncdlib._io.row_store import RowStore
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = RowStore(f"{folder}/runs.csv", key=["seed"])
        ...     _ = store.append({"seed": 0, "acc": 0.75})
        ...     store.change_columns(rename={"acc": "accuracy"}, add={"note": None})
        ['seed', 'accuracy', 'note']
        """
        rename, add = dict(rename or {}), dict(add or {})
        with self._locked("append"):
            text = self._read()
            if not text:
                raise ValueError(f"{self.path} has no rows: there are no columns to change")
            header, *rows = csv.reader(io.StringIO(text))
            if unknown := [old for old, new in rename.items() if old not in header and new not in header]:
                raise ValueError(f"{self.path} has no column {', '.join(unknown)}; its columns are {', '.join(header)}")
            renamed = [rename.get(column, column) for column in header]
            if len(set(renamed)) < len(renamed):
                raise ValueError(f"{self.path} would have a column twice: {', '.join(renamed)}")
            added = {column: value for column, value in add.items() if column not in renamed}
            columns = [*renamed, *added]
            if columns != header:
                with atomic_write(self.path) as file:
                    file.write(_line(columns).encode())
                    file.writelines(_line([*row, *added.values()]).encode() for row in rows)
        return columns

    @contextmanager
    def claim(self, key_values: Mapping[str, Any]) -> Iterator[bool]:
        """Reserve a row while it is computed; yield False if it is there, or another process is computing it.

        A claim ends with its ``with`` block or with the process, even when that is killed.

        Parameters
        ----------
        key_values : dict
            At least the key columns.
        """
        digest = hashlib.sha256(_line(self._key_of(key_values)).encode()).hexdigest()[:16]
        with self._locked(digest, wait=False) as mine:
            yield mine and key_values not in self

    @contextmanager
    def _locked(self, what: str, wait: bool = True) -> Iterator[bool]:
        with ExitStack() as stack:
            try:
                path = self.path.with_name(f".{self.path.name}.{what}.lock")
                mine = stack.enter_context(locked(path, wait=wait))
            except OSError as error:
                raise self._clear(error) from error
            yield mine

    def _read(self) -> str:
        """Return the whole lines of the file."""
        if not self.path.is_file():
            return ""
        text = self.path.read_bytes()
        return text[: text.rfind(b"\n") + 1].decode()

    def _write(self, n_whole: int, line: bytes) -> None:
        """Put a line behind the whole ones, over what a crash may have left; undo it if it does not fit."""
        try:
            with open(self.path, "ab") as file:
                file.truncate(n_whole)
                try:
                    if os.write(file.fileno(), line) < len(line):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(n_whole)
                    raise
        except OSError as error:
            raise self._clear(error) from error

    def _clear(self, error: OSError) -> OSError:
        return OSError(error.errno, f"cannot write to {self.path} ({error.strerror}); the rows in it are safe")

    def _parse(self, text: str) -> tuple[list[str], set[tuple[str, ...]]]:
        """Return the columns and the keys of all rows."""
        if not text:
            return [], set()
        header, *rows = csv.reader(io.StringIO(text))
        missing = [column for column in self.key if column not in header]
        if missing:
            raise ValueError(f"{self.path} has no column {', '.join(missing)}; its columns are {', '.join(header)}")
        positions = [header.index(column) for column in self.key]
        return header, {tuple(row[position] for position in positions) for row in rows}

    def _key_of(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        missing = [column for column in self.key if column not in row]
        if missing:
            raise ValueError(f"the row has no {', '.join(missing)}, which is part of the key of {self.path}")
        return tuple(_cell(row[column]) for column in self.key)

    def _check_columns(self, row: Mapping[str, Any], header: list[str]) -> None:
        missing, unknown = sorted(set(header) - set(row)), sorted(set(row) - set(header))
        if missing or unknown:
            raise ValueError(
                f"the row does not have the columns of {self.path}: "
                f"missing {', '.join(missing) or 'none'}; unknown {', '.join(unknown) or 'none'}"
            )


def _cell(value: Any) -> str:
    """Write a value so that it reads back the same; a number has one spelling, so that keys compare."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    if not isinstance(value, str | int | float):
        raise ValueError(f"a cell holds a string, a number, a boolean or None, not a {type(value).__name__}")
    text = str(value)
    if "\n" in text or "\r" in text:
        raise ValueError(f"a cell cannot hold several lines: {text!r}")
    return text


def _line(values: Iterable[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow([_cell(value) for value in values])
    return buffer.getvalue()
