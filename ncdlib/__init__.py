"""Novel class discovery in tabular data."""

from importlib.metadata import version

from ncdlib.datasets import DATASETS, load_dataset, make_ncd_blobs
from ncdlib.metrics import clustering_accuracy, evaluate
from ncdlib.problem import NCDProblem
from ncdlib.selection.hidden_classes import HiddenClassKFold
from ncdlib.selection.search import HiddenClassSearchCV
from ncdlib.selection.validity import KEstimate, estimate_n_clusters

__all__ = [
    "DATASETS",
    "HiddenClassKFold",
    "HiddenClassSearchCV",
    "KEstimate",
    "NCDProblem",
    "clustering_accuracy",
    "estimate_n_clusters",
    "evaluate",
    "load_dataset",
    "make_ncd_blobs",
]

__version__ = version("ncdlib")
