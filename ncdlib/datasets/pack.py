"""Write the arrays on board from the files of the data sets.

After a change of a reader, or for a new data set, put what this prints into the registry::

    python -m ncdlib.datasets.pack letter steel
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ncdlib.datasets.files import check_files, get_files
from ncdlib.datasets.on_board import DECIMALS, FOLDER, unpack
from ncdlib.datasets.readers import Arrays
from ncdlib.datasets.registry import DataFile, get_info

INTEGERS = (np.uint8, np.int8, np.uint16, np.int16, np.int32, np.int64)


def pack(arrays: Arrays) -> Arrays:
    """Write every number as an integer, as small as it can be, where that loses nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.datasets.on_board import unpack
    >>> from ncdlib.datasets.pack import pack
    >>> packed = pack({"X": np.array([[0.25, 3.0], [-1.5, 7.0]])})
    >>> packed["X"].tolist(), packed["X"].dtype, packed["decimals_of_X"].tolist()
    ([[25, 3], [-150, 7]], dtype('int16'), [2, 0])
    >>> unpack(packed)["X"].tolist()
    [[0.25, 3.0], [-1.5, 7.0]]
    """
    packed = {}
    for name, array in arrays.items():
        if array.dtype.kind == "f":
            decimals = [_decimals(column) for column in array.T]
            if None not in decimals:
                array = np.rint(array * 10 ** np.array(decimals)).astype(np.int64)
                packed[DECIMALS + name] = np.array(decimals, dtype=np.int8)
        if array.dtype.kind == "i":
            limits = ((dtype, np.iinfo(dtype)) for dtype in INTEGERS)
            array = array.astype(next(d for d, limit in limits if limit.min <= array.min() <= array.max() <= limit.max))
        packed[name] = np.asfortranarray(array)  # column by column, which compresses better
    return packed


def _decimals(column: NDArray[np.float64]) -> int | None:
    """Return how many decimals the numbers have, or None if they are not integers divided by a power of ten."""
    largest = float(np.abs(column).max())
    for decimals in range(10):
        if largest * 10**decimals < 2**53:  # up to here, every integer is a float
            integers = np.rint(column * 10**decimals).astype(np.int64)
            if (integers / 10**decimals).tobytes() == column.tobytes():  # unlike ==, this tells 0.0 from -0.0
                return decimals
    return None


def write(arrays: Arrays, path: Path) -> DataFile:
    """Write arrays; the same ones give the same bytes.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from ncdlib.datasets.pack import write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [Path(folder, name) for name in ("one.npz", "two.npz")]
    ...     first, second = (write({"y": np.arange(9)}, path).sha256 for path in paths)
    >>> first == second
    True
    """
    packed = pack(arrays)
    for name, array in arrays.items():
        if not np.array_equal(unpack(packed)[name], array):
            raise ValueError(f"{path.stem}: {name} would not come back as it is")
    np.savez_compressed(path, **dict(sorted(packed.items())))
    content = path.read_bytes()
    return DataFile(path.name, len(content), hashlib.sha256(content).hexdigest())


def main(names: list[str]) -> None:
    """Pack data sets from their files, and print what the registry must say of them."""
    FOLDER.mkdir(exist_ok=True)
    for info in map(get_info, names):
        paths = get_files(info)
        check_files(info, paths, allow_modified=False)
        file = write(info.read(paths), FOLDER / f"{info.name}.npz")
        print(f'    on_board=DataFile("{file.name}", {file.size:_}, "{file.sha256}"),')


if __name__ == "__main__":
    main(sys.argv[1:])
