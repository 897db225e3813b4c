"""Novel class discovery in tabular data."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncdlib.datasets import DATASETS, load_dataset, make_ncd_blobs
    from ncdlib.discovery import Discovery, discover
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


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is: torch and scikit-learn take seconds, and ``ncd --help`` needs neither."""
    if name in __all__:
        for module in ("datasets", "metrics", "problem", "selection", "methods", "methods.base", "discovery"):
            if hasattr(found := import_module(f"ncdlib.{module}"), name):
                return getattr(found, name)
    raise AttributeError(f"module 'ncdlib' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
