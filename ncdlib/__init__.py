"""Novel class discovery in tabular data."""

from importlib.metadata import version

import lazy_loader

# Import what is asked for, when it is: torch and scikit-learn take seconds, and ``ncd --help`` needs neither.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "problem": ["NCDProblem"],
        "metrics": ["clustering_accuracy", "evaluate"],
        "datasets": ["DATASETS", "load_dataset", "make_ncd_blobs"],
        "clustering.validity": ["KEstimate", "estimate_n_clusters"],
        "methods.base": ["load"],
        "methods.kmeans": ["NCDKMeans"],
        "methods.spectral": ["NCDSpectralClustering", "SpectralClustering", "spectral_embedding"],
        "methods.baseline": ["Baseline"],
        "methods.pbn": ["PBN"],
        "methods.tabularncd": ["TabularNCD"],
        "selection.hidden_classes": ["HiddenClassKFold"],
        "selection.search": ["HiddenClassSearchCV"],
        "own_data.discover": ["discover"],
        "own_data.result": ["Discovery"],
    },
)

__version__ = version("ncdlib")
