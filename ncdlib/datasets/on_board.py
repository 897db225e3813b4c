"""The arrays on board: data sets that come with the package, as small integers, without pickle.

`pack` writes them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from ncdlib.datasets.files import DataFileError
from ncdlib.datasets.readers import Arrays
from ncdlib.datasets.registry import DataFile

FOLDER = Path(__file__).with_name("arrays")
DECIMALS = "decimals_of_"  # and the name of an array: its columns are integers, to be divided by 10 to these powers


def load(file: DataFile) -> Arrays:
    """Return arrays on board, after their checksum is found to be the recorded one.

    Examples
    --------
    >>> from ncdlib import DATASETS
    >>> from ncdlib.datasets.on_board import load
    >>> load(DATASETS["vowel"].on_board)["X"].shape
    (990, 9)
    """
    path = FOLDER / file.name
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise DataFileError(f"{path}, a part of the package, cannot be read: install ncdlib again") from error
    if digest != file.sha256:
        raise DataFileError(f"{path}, a part of the package, is damaged: install ncdlib again")
    with np.load(path, allow_pickle=False) as stored:
        return unpack(dict(stored))


def unpack(packed: Arrays) -> Arrays:
    """Give back what was packed: float64 where it was, int64 for the integers.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.datasets.on_board import unpack
    >>> from ncdlib.datasets.pack import pack
    >>> unpack(pack({"y": np.array([3, 1])}))
    {'y': array([3, 1])}
    """
    arrays = {name: array for name, array in packed.items() if not name.startswith(DECIMALS)}
    for name, array in arrays.items():
        if DECIMALS + name in packed:
            powers = 10 ** packed[DECIMALS + name].astype(np.int64)
            arrays[name] = np.ascontiguousarray(array, dtype=np.float64) / powers
        elif array.dtype.kind in "iu":
            arrays[name] = np.ascontiguousarray(array, dtype=np.int64)
    return arrays
