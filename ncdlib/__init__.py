"""Novel class discovery in tabular data."""

from importlib.metadata import version

from ncdlib.datasets import DATASETS, load_dataset, make_ncd_blobs
from ncdlib.discover import Discovery, discover
from ncdlib.methods.base import load
from ncdlib.methods.baseline import Baseline
from ncdlib.methods.kmeans import NCDKMeans
from ncdlib.methods.pbn import PBN
from ncdlib.methods.spectral import NCDSpectralClustering, SpectralClustering, spectral_embedding
from ncdlib.methods.tabularncd import TabularNCD
from ncdlib.metrics import clustering_accuracy, evaluate
from ncdlib.problem import NCDProblem
from ncdlib.selection.hidden_classes import HiddenClassKFold
from ncdlib.selection.search import HiddenClassSearchCV
from ncdlib.selection.validity import KEstimate, estimate_n_clusters

__all__ = [
    "DATASETS",
    "PBN",
    "Baseline",
    "Discovery",
    "HiddenClassKFold",
    "HiddenClassSearchCV",
    "KEstimate",
    "NCDKMeans",
    "NCDProblem",
    "NCDSpectralClustering",
    "SpectralClustering",
    "TabularNCD",
    "clustering_accuracy",
    "discover",
    "estimate_n_clusters",
    "evaluate",
    "load",
    "load_dataset",
    "make_ncd_blobs",
    "spectral_embedding",
]

__version__ = version("ncdlib")
