"""Novel class discovery in tabular data."""

from importlib.metadata import version

from ncdlib.datasets import DATASETS, load_dataset, make_ncd_blobs
from ncdlib.metrics import clustering_accuracy, evaluate
from ncdlib.problem import NCDProblem

__all__ = [
    "DATASETS",
    "NCDProblem",
    "clustering_accuracy",
    "evaluate",
    "load_dataset",
    "make_ncd_blobs",
]

__version__ = version("ncdlib")
