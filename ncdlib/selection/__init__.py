"""Choosing hyperparameters and the number of classes without any label of a novel class."""

from ncdlib.selection.hidden_classes import HiddenClassFold, HiddenClassKFold
from ncdlib.selection.search import HiddenClassSearchCV
from ncdlib.selection.validity import INDICES, KEstimate, dunn_scores, estimate_n_clusters, silhouette_scores

__all__ = [
    "INDICES",
    "HiddenClassFold",
    "HiddenClassKFold",
    "HiddenClassSearchCV",
    "KEstimate",
    "dunn_scores",
    "estimate_n_clusters",
    "silhouette_scores",
]
