"""The data sets: what is known of them, their files and the arrays on board, and what problems they make."""

from ncdlib.datasets.files import (
    DataFileError,
    archive_url,
    cache_dir,
    find_files,
    get_files,
    identify,
    is_here,
    uses_board,
)
from ncdlib.datasets.make import Table, load_dataset, load_table, make_ncd_blobs
from ncdlib.datasets.registry import DATASETS, DataFile, DatasetInfo, get_info

__all__ = [
    "DATASETS",
    "DataFile",
    "DataFileError",
    "DatasetInfo",
    "Table",
    "archive_url",
    "cache_dir",
    "find_files",
    "get_files",
    "get_info",
    "identify",
    "is_here",
    "load_dataset",
    "load_table",
    "make_ncd_blobs",
    "uses_board",
]
