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


def pack(arrays: Arrays) -> Arrays:
    """Write every number as an integer, as small as it can be, where that loses nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.datasets.on_board import unpack
    >>> from ncdlib.datasets.pack import pack
    >>> packed = pack({"X": np.array([[0.25, 3.0], [-1.5, 7.0]])})
    >>> packed["X"].dtype, packed["decimals_of_X"]
    (dtype('int16'), array(2, dtype=int8))
    >>> unpack(packed)["X"].tolist()
    [[0.25, 3.0], [-1.5, 7.0]]
    """
    packed = {}
    for name, array in arrays.items():
        if array.dtype.kind == "f":
            decimals = next((n for n in range(10) if _same_bits(_scaled(array, n) / 10**n, array)), None)
            if decimals is not None:
                array = _scaled(array, decimals).astype(np.int64)
                packed[DECIMALS + name] = np.int8(decimals)
        if array.dtype.kind == "i":
            array = array.astype(np.result_type(np.min_scalar_type(array.min()), np.min_scalar_type(array.max())))
        packed[name] = np.asfortranarray(array)  # column by column, which compresses better
    return packed


def _scaled(array: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
    return np.rint(array * 10**decimals)


def _same_bits(array: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Unlike ==, tell 0.0 from -0.0."""
    return np.array_equal(array.view(np.int64), other.view(np.int64))


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
