"""Label the rows of a file: piece by piece, so that it may be larger than memory, and here or on a Dask cluster."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from ncdlib._io.checks import check_number, shorten
from ncdlib._io.files import atomic_write
from ncdlib.own_data.apply import Fit, Labeller
from ncdlib.own_data.prepare import as_frame, check_columns
from ncdlib.own_data.read import check_file, column_names, is_parquet, read_pieces, write_with_columns
from ncdlib.own_data.result import REJECT, Discovery

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

CELLS_AT_ONCE = 2_000_000
MAX_ROWS_AT_ONCE = 100_000
ADDED = ("ncd_label", "ncd_discovered", "ncd_confidence", "ncd_runner_up")
Piece = tuple[Any, pd.DataFrame]  # rows as they are written again, if they are kept, and what they are labelled by


@dataclass(frozen=True)
class Applied:
    """What became of the rows of a file.

    Attributes
    ----------
    n_rows : int
    sizes : Counter
        The number of rows with each label.
    notes : list of str
        What should be known, such as a drift.

    Examples
    --------
    >>> from collections import Counter
    >>> from ncdlib.own_data.apply_file import Applied
    >>> Applied(3, Counter({"grass": 2, "neither": 1}), []).sizes.most_common(1)
    [('grass', 2)]
    """

    n_rows: int
    sizes: Counter[str]
    notes: list[str]


def apply_file(
    found: Discovery,
    path: str | os.PathLike,
    output: str | os.PathLike,
    *,
    reject: float = REJECT,
    dask: str | None = None,
    verbose: bool = True,
) -> Applied:
    """Label the rows of a CSV file, a Parquet file or a folder of these, and write them with their labels.

    Neither file has to fit into memory. The output is there as a whole or not at all, whatever stops the work.

    Parameters
    ----------
    found : Discovery
    path, output : path
        A CSV file is written cell for cell as it is, as CSV; Parquet as Parquet or CSV, by the name of the output.
    reject : float, default=0.01
        The share of rows like the old ones that is turned away; see `Discovery.apply`.
    dask : str or None
        Address of the scheduler of a Dask cluster to spread the work over.
    verbose : bool, default=True
        Show a progress bar.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from ncdlib import discover, make_ncd_blobs
    >>> from ncdlib.own_data.apply_file import apply_file
    >>> problem = make_ncd_blobs(random_state=0)
    >>> table = pd.DataFrame(problem.X).add_prefix("feature_")
    >>> found = discover(table, problem.y, method="ncd_kmeans", verbose=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.to_csv(Path(folder, "new.csv"), index=False)
    ...     applied = apply_file(found, Path(folder, "new.csv"), Path(folder, "labelled.csv"), verbose=False)
    ...     labelled = pd.read_csv(Path(folder, "labelled.csv"))
    >>> applied.n_rows == len(labelled) == len(table)
    True
    """
    path, output = Path(path), Path(output)
    check_number("reject", reject, "[0, 1)")
    labeller = found.labeller
    read, write = (
        _parquet(path, output, labeller) if path.is_dir() or is_parquet(path) else _csv(path, output, labeller)
    )
    total, notes = Fit(np.zeros(len(labeller.names), dtype=np.int64)), _note_on_columns(read.names, labeller)
    with _workers(dask) as client, tqdm(unit=" rows", unit_scale=True, disable=not verbose) as bar:

        def labelled() -> Iterator[tuple[Any, pd.DataFrame]]:
            for rows, frame, fit in _label(labeller, read.pieces(), reject, client):
                total.add(fit)
                bar.update(len(frame))
                yield rows, frame.set_axis(ADDED, axis=1)

        with atomic_write(output) as file:
            write(labelled(), file)
            if not total.n_rows.sum():
                raise ValueError(f"{path} has no rows")
    return Applied(int(total.n_rows.sum()), total.labels, notes + labeller.notes(total, reject))


@contextmanager
def _workers(address: str | None) -> Iterator[Any]:
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError("a Dask cluster needs Dask: pip install 'dask[distributed]'") from error
    with Client(address, timeout=10) as client:
        yield client


def _label(
    labeller: Labeller, pieces: Iterable[Piece], reject: float, client: Any
) -> Iterator[tuple[Any, pd.DataFrame, Fit]]:
    """Label pieces in their order; on a cluster, as many at a time as keep its workers busy."""
    if client is None:
        for rows, table in pieces:
            yield rows, *labeller.label(table, reject)
        return
    there = client.scatter(labeller, broadcast=True, hash=False)
    at_once = 2 * max(sum(client.nthreads().values()), 1)
    waiting: deque[tuple[Any, Any]] = deque()
    for rows, table in pieces:
        waiting.append((rows, client.submit(Labeller.label, there, table, reject, pure=False)))
        if len(waiting) == at_once:
            rows, future = waiting.popleft()
            yield rows, *future.result()
    for rows, future in waiting:
        yield rows, *future.result()


def _note_on_columns(names: list[str], labeller: Labeller) -> list[str]:
    used = {feature.column for feature in labeller.preprocessor.features_}
    others = [name for name in names if name not in used]
    if not others:
        return []
    return [f"Not learned from, and kept as they are: {shorten(', '.join(others), 200)}."]


def _check_names(path: Path, names: list[str], labeller: Labeller) -> None:
    """Refuse a table without a column that is needed, or with one that is to be written."""
    check_columns(dict.fromkeys(feature.column for feature in labeller.preprocessor.features_), names, str(path))
    for name in ADDED:
        if name in names:
            raise ValueError(f"{path} has a column {name!r}, as a result has: rename it, or leave it out")


def _rows_at_once(n_columns: int) -> int:
    return min(MAX_ROWS_AT_ONCE, max(1, CELLS_AT_ONCE // n_columns))


@dataclass(frozen=True)
class _Source:
    names: list[str]
    pieces: Any  # a function that returns an iterator of pieces


def _csv(path: Path, output: Path, labeller: Labeller) -> tuple[_Source, Any]:
    check_file(path)
    if is_parquet(output):
        raise ValueError(f"{path} is CSV, and is written as CSV: give an output that ends in .csv")
    names = column_names(path)
    _check_names(path, names, labeller)
    numeric, categories = labeller.preprocessor.numeric_, labeller.preprocessor.categorical_

    def pieces() -> Iterator[Piece]:
        for table in read_pieces(path, numeric, categories, _rows_at_once(len(names))):
            yield None, table

    def write(labelled: Iterator[tuple[None, pd.DataFrame]], file: BinaryIO) -> None:
        write_with_columns(path, (frame for _, frame in labelled), file)

    return _Source(names, pieces), write


def _parquet(path: Path, output: Path, labeller: Labeller) -> tuple[_Source, Any]:
    dataset = _open_parquet(path, output, labeller)
    names = dataset.schema.names
    used = list(dict.fromkeys(feature.column for feature in labeller.preprocessor.features_))

    def pieces() -> Iterator[Piece]:
        options = {"batch_readahead": 1, "fragment_readahead": 1}  # else it reads ahead by gigabytes
        for batch in dataset.to_batches(batch_size=_rows_at_once(len(names)), **options):
            if batch.num_rows:
                yield batch, as_frame(batch.select(used).to_pandas())

    return _Source(names, pieces), _write_parquet if is_parquet(output) else _write_csv


def _open_parquet(path: Path, output: Path, labeller: Labeller) -> ds.Dataset:
    """Open a Parquet file, or all in a folder; each must have the columns that are needed."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if path.is_dir() and path.resolve() in output.resolve().parents:
        raise ValueError(f"{output} is in {path}, and would be read as a part of it: write it elsewhere")
    files = sorted(file for file in path.rglob("*") if is_parquet(file) and file.is_file()) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"the folder {path} has no Parquet file")
    check_file(files[0])
    try:
        dataset = ds.dataset([os.fspath(file) for file in files], format="parquet", partitioning="hive")
        schemas = {fragment.path: fragment.physical_schema for fragment in dataset.get_fragments()}
        in_files = {name for schema in schemas.values() for name in schema.names}
        from_folders = [name for name in dataset.schema.names if name not in in_files]
        for file, schema in schemas.items():
            _check_names(Path(file), [*schema.names, *from_folders], labeller)
        return dataset.replace_schema(
            pa.unify_schemas([*schemas.values(), dataset.schema], promote_options="permissive")
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise ValueError(f"{path} is not Parquet that can be read: {shorten(str(error), 300)}") from error


def _write_parquet(labelled: Iterator[tuple[pa.RecordBatch, pd.DataFrame]], file: BinaryIO) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"ncd_discovered": pa.bool_(), "ncd_confidence": pa.float64()}
    writer = None
    for rows, frame in labelled:
        for name in ADDED:
            rows = rows.append_column(name, pa.array(frame[name], kinds.get(name, pa.string()), from_pandas=True))
        if writer is None:
            writer = pq.ParquetWriter(file, rows.schema)
        writer.write_batch(rows)
    if writer is not None:
        writer.close()


def _write_csv(labelled: Iterator[tuple[pa.RecordBatch, pd.DataFrame]], file: BinaryIO) -> None:
    for i, (rows, frame) in enumerate(labelled):
        table = rows.to_pandas().reset_index(drop=True)
        pd.concat([table, frame.reset_index(drop=True)], axis=1).to_csv(file, index=False, header=i == 0)
