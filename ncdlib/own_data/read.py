"""Read a table from a file, and write it again with more columns, cell for cell as it was."""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import warnings
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from ncdlib._io.checks import shorten

HEAD_BYTES = 2**16  # what the encoding and the separator are guessed from
MISSING_LABELS = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "<NA>", "#N/A")
MISSING_VALUES = (*MISSING_LABELS, "None")  # as a label, "None" may well be a class: no fault
UNNAMED = "Unnamed: "  # what pandas calls a column without a name
ROWS_AT_ONCE = 100_000
OTHER_STARTS = {"HTML or XML": r"<(!|\?xml|html|table)", "JSON": r'[\[{]\s*["\[{]'}
OTHER_FILES = {
    "is compressed: unpack it first": (".gz", ".zip", ".bz2", ".xz", ".zst"),
    "is a spreadsheet: save it as CSV": (".xlsx", ".xls", ".ods"),
}


def read_table(path: str | os.PathLike, label_column: str | None = None) -> pd.DataFrame:
    """Read a Parquet file, or a CSV file with commas, semicolons, tabs or bars; columns are named by strings.

    The label column of a CSV file is read as text, so that codes such as 01 stay what they are.

    Raises
    ------
    OSError, ValueError
        With one line that says what is wrong with the file.
    """
    path = Path(path)
    check_file(path)
    if is_parquet(path):
        try:
            table = pd.read_parquet(path).rename(columns=str)
        except (ValueError, OSError) as error:
            raise ValueError(f"{path} is not a Parquet file that can be read: {_one_line(error)}") from error
    else:
        table = _read_csv(path, label_column)
    if len(table) == 0:
        raise ValueError(f"{path} has no rows")
    return table


def check_file(path: Path) -> None:
    """Raise an error that says what is wrong with a file that is no table, as far as its name tells."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a table")
    if not path.is_file():
        raise ValueError(f"{path} can be read only once: save the table to a file first")
    for reason, endings in OTHER_FILES.items():
        if path.suffix.lower() in endings:
            raise ValueError(f"{path} {reason}")


def is_parquet(path: Path) -> bool:
    """Tell by its name whether a file is Parquet."""
    return path.suffix.lower() in (".parquet", ".pq")


def _csv_format(path: Path) -> dict[str, Any]:
    """Say how pandas must read a CSV file: its encoding, its separator, and what stands before its header."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # the first begins as UTF-16 does
        encoding = "utf-32"
    elif head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif head.startswith(b"PAR1"):
        raise ValueError(f"{path} is a Parquet file: give it a name that ends in .parquet")
    elif b"\0" in head:
        raise ValueError(f"{path} is not a text file: give a CSV or a Parquet file")
    else:
        encoding = "utf-8" if _is_utf8(path) else "latin-1"
        encoding = "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else encoding
    text = head.decode(encoding, errors="replace")
    for kind, start in OTHER_STARTS.items():
        if re.match(start, text.lstrip("\ufeff \t\r\n"), re.IGNORECASE):
            raise ValueError(f"{path} is not a CSV file: it looks like {kind}")
    lines = re.split("\r\n?|\n", text)  # splitlines() would also split at characters that a cell may hold
    if len(head) == HEAD_BYTES and len(lines) > 1:
        lines.pop()  # which may be cut
    options = {"encoding": encoding, "skipinitialspace": True, "keep_default_na": False}
    if not any(line.strip("\ufeff \t") for line in lines):  # nothing, or nothing but a byte order mark
        raise ValueError(f"{path} is empty")
    if re.fullmatch("sep=.", lines[0]):  # as spreadsheets write it
        options |= {"sep": lines[0][-1], "skiprows": 1}
    else:
        # Without what is in quotes, which may hold anything, and over which the sniffer takes minutes.
        bare = re.sub(r'(?m)(^|[,;\t|]) *(?:"[^"]*")+', r"\1", "\n".join(lines))
        sample = re.sub("[\"']", "", "\n".join(bare.split("\n")[:20]))
        try:
            options["sep"] = csv.Sniffer().sniff(sample, delimiters=",;\t|").delimiter
        except csv.Error:  # one column, or irregular lines: the parser below says which
            options["sep"] = ","
    return options


def _read_csv(path: Path, label_column: str | None) -> pd.DataFrame:
    options = _csv_format(path)
    try:
        header = pd.read_csv(path, header=None, nrows=1, dtype=str, **options).iloc[0]
        names = [name or f"{UNNAMED}{i}" for i, name in enumerate(header)]
        options |= {"na_values": {n: MISSING_LABELS if n == label_column else MISSING_VALUES for n in names}}
        options |= {"dtype": {label_column: str} if label_column in names else None}
        with warnings.catch_warnings(record=True) as caught:
            # In one piece: read by pieces, a column may be numbers here and text there.
            table = pd.read_csv(path, low_memory=False, index_col=False, **options)
        if any(issubclass(warning.category, pd.errors.ParserWarning) for warning in caught):
            _refuse_longer_rows(path, len(names), options)
    except ValueError as error:
        raise ValueError(f"{path} is not a table that can be read: {_one_line(error)}") from error
    _refuse_twice(path, names)
    if options["sep"] != ",":
        features = table.columns.drop(label_column, errors="ignore")
        commas = [name for name in features if not pd.api.types.is_numeric_dtype(table[name])]
        points = [name for name in features if pd.api.types.is_float_dtype(table[name])]
        for name in commas:
            table[name] = _decimal_commas(table[name])
        if points and any(pd.api.types.is_numeric_dtype(table[name]) for name in commas):
            text = pd.read_csv(path, low_memory=False, index_col=False, usecols=points, **options | {"dtype": str})
            for name in points:
                _refuse_thousands(text[name], ".", ",")
    return table


def _refuse_twice(path: Path, names: list[str]) -> None:
    twice = pd.Index(names)[pd.Index(names).duplicated()]
    if len(twice):  # pandas would give the second one another name
        raise ValueError(f"{path} has two columns {twice[0]!r}: rename one")


def _refuse_longer_rows(path: Path, n_names: int, options: dict[str, Any]) -> None:
    """Raise a ValueError where rows have more fields than the header has names; a separator may end each row."""
    surplus = {"names": range(n_names + 1), "usecols": [n_names], "na_values": [""], "header": 0}
    message = f"its rows have more fields than its header has names ({n_names})"
    try:
        for rows in pd.read_csv(path, chunksize=ROWS_AT_ONCE, **options | surplus | {"dtype": str}):
            if rows.iloc[:, 0].notna().any():
                raise ValueError(message)
    except ValueError as error:  # also by two fields or more
        raise ValueError(message) from error


def column_names(path: Path) -> list[str]:
    """Return the names of a CSV file's columns."""
    header = pd.read_csv(path, header=None, nrows=1, dtype=str, **_csv_format(path)).iloc[0]
    names = [name or f"{UNNAMED}{i}" for i, name in enumerate(header)]
    _refuse_twice(path, names)
    return names


def read_pieces(
    path: Path, numeric: Collection[str], categories: Collection[str], rows_at_once: int
) -> Iterator[pd.DataFrame]:
    """Read some columns of a CSV file piece by piece, categories as text: a piece may look like numbers."""
    options = _csv_format(path)
    wanted = {*numeric, *categories}
    pieces = {"usecols": lambda name: name in wanted, "dtype": dict.fromkeys(categories, str), "low_memory": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.ParserWarning)  # `write_with_columns` looks into it
        reader = pd.read_csv(
            path, chunksize=rows_at_once, index_col=False, na_values=list(MISSING_VALUES), **pieces, **options
        )
    with reader:
        while True:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pd.errors.ParserWarning)
                rows = _next_rows(path, reader, rows_at_once)
            if len(rows) == 0:
                return
            for name in numeric if options["sep"] != "," else ():
                if name in rows and not pd.api.types.is_numeric_dtype(rows[name]):
                    rows[name] = _decimal_commas(rows[name])
            yield rows


def write_with_columns(path: Path, columns: pd.DataFrame | Iterable[pd.DataFrame], file: BinaryIO) -> None:
    """Write a CSV file again, cell for cell as it is, with more columns: as many rows as it has.

    The columns come in one piece, or in several, which are then asked for one by one.
    """
    options = _csv_format(path)
    header = pd.read_csv(path, header=None, nrows=1, dtype=str, **options).iloc[0]
    pieces = columns
    if isinstance(columns, pd.DataFrame):
        pieces = (columns.iloc[i : i + ROWS_AT_ONCE] for i in range(0, len(columns), ROWS_AT_ONCE))
    text = io.TextIOWrapper(file, encoding=options["encoding"], newline="")
    if "skiprows" in options:
        text.write(f"sep={options['sep']}\n")
    has_changed = f"{path} has changed since it was read: run the command again"
    first, longer = True, False
    with pd.read_csv(path, dtype=str, iterator=True, low_memory=False, index_col=False, **options) as reader:
        for new in pieces:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", pd.errors.ParserWarning)  # of a separator at the end of each row
                rows = _next_rows(path, reader, len(new))
            if len(rows) != len(new):
                raise ValueError(has_changed)
            if not longer and any(issubclass(warning.category, pd.errors.ParserWarning) for warning in caught):
                longer = True
                _refuse_longer_rows(path, len(header), options)
            kept = [i for i, name in enumerate(header) if name not in new]
            rows = rows.iloc[:, kept].set_axis([header[i] for i in kept], axis=1)
            both = pd.concat([rows.reset_index(drop=True), new.reset_index(drop=True)], axis=1)
            both.to_csv(text, sep=options["sep"], index=False, header=first)
            first = False
        if len(_next_rows(path, reader, 1)):
            raise ValueError(has_changed)
    text.detach()  # flushed, and left open


def _next_rows(path: Path, reader: Any, n_rows: int) -> pd.DataFrame:
    try:
        return reader.get_chunk(n_rows)
    except StopIteration:
        return pd.DataFrame()
    except ValueError as error:
        raise ValueError(f"{path} is not a table that can be read: {_one_line(error)}") from error


def _decimal_commas(column: pd.Series) -> pd.Series:
    """Return numbers, where a column of text is numbers with a decimal comma, as files with semicolons often have."""
    text = column.dropna().astype(str)
    if text.str.fullmatch(r"[+-]?\d{1,3}(?:\.\d{3})+,\d+").any():  # 1.234,56
        text = text.str.replace(".", "")
    numbers = pd.to_numeric(text.str.replace(",", "."), errors="coerce")
    if numbers.empty or numbers.isna().any():
        return column
    _refuse_thousands(text, ",", ".")
    return numbers.reindex(column.index)


def _refuse_thousands(text: pd.Series, mark: str, decimal: str) -> None:
    """Raise a ValueError where each `mark` in a column of numbers may stand between thousands, or before decimals."""
    with_mark = text[text.str.contains(mark, regex=False, na=False)]
    if len(with_mark) and with_mark.str.fullmatch(rf"[+-]?[1-9]\d{{0,2}}(?:{re.escape(mark)}\d{{3}})+").all():
        example = shorten(with_mark.iloc[0])
        name = {",": "comma", ".": "point"}[mark]
        raise ValueError(
            f"the column {text.name!r} has numbers like {example}: write {example.replace(mark, '')} if the {name} "
            f"marks thousands, {example.replace(mark, decimal)} if it is the decimal point"
        )


def as_labels(column: pd.Series) -> pd.Series:
    """Return the labels of a file, None where there is none: numbers as numbers, text without blanks around it.

    Codes such as 01 stay text, and so do different texts that are the same number, as 1.1 and 1.10 or long codes.

    Examples
    --------
    >>> import pandas as pd
    >>> from ncdlib.own_data.read import as_labels
    >>> as_labels(pd.Series(["1.0", " 2 ", "", "-1"])).tolist()
    [1, 2, None, -1]
    >>> as_labels(pd.Series(["01", "None", "?"])).tolist()
    ['01', 'None', None]
    """
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return column.convert_dtypes().astype(object)  # whole numbers stay whole beside missing ones
    try:
        column = column.astype("category")  # millions of labels, but few different ones
    except TypeError:
        raise ValueError(
            f"the column {column.name!r} has labels that are no single values, but lists or the like"
        ) from None
    text = pd.Series([str(value).strip() for value in column.cat.categories], dtype=object)
    missing = text.isin(MISSING_LABELS)
    numbers = pd.to_numeric(text.mask(missing), errors="coerce")
    whole = text.str.replace(
        r"^\+?(-?\d+)(?:\.0*)?$", r"\1", regex=True
    )  # 1.0 is 1, as pandas writes 1 beside missing ones
    codes = text.str.match(r"[+-]?0\d").any() or whole[~missing].nunique() > numbers.nunique()
    if numbers.notna().equals(~missing) and not codes:
        text = numbers.convert_dtypes().astype(object)
    values = [None if gone else value for value, gone in zip(text, missing, strict=True)]
    values = np.array([*values, None], dtype=object)  # the last one for the code -1
    return pd.Series(values[column.cat.codes], index=column.index, name=column.name, dtype=object)


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        try:
            while block := file.read(2**20):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _one_line(error: Exception) -> str:
    return shorten(" ".join(str(error).split()), 300)
