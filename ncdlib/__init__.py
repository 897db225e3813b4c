"""Novel class discovery in tabular data."""

from importlib.metadata import version

import lazy_loader

from ncdlib.methods.registry import METHODS

_attributes = {
    "problem": ["NCDProblem"],
    "metrics": ["clustering_accuracy", "evaluate"],
    "datasets": ["DATASETS", "load_dataset", "load_table", "make_ncd_blobs"],
    "clustering.embedding": ["spectral_embedding"],
    "clustering.validity": ["KEstimate", "estimate_n_clusters"],
    "methods.metric": ["KnownClassMetric"],
    "methods.saving": ["load"],
    "selection.hidden_classes": ["HiddenClassKFold"],
    "selection.search": ["HiddenClassSearchCV"],
    "own_data.discover": ["discover"],
    "own_data.result": ["Discovery"],
}
for _method in METHODS.values():
    if _method.module.startswith("ncdlib."):
        _attributes.setdefault(_method.module.removeprefix("ncdlib."), []).append(_method.class_name)

# Import what is asked for, when it is: torch and scikit-learn take seconds, and ``ncd --help`` needs neither.
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs=_attributes)

__version__ = version("ncdlib")
