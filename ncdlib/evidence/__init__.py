"""The paper measured again: its tables and figures as experiments, their results, and a verdict on each claim."""

from ncdlib.evidence.paper import paper_results, published_hyperparameters, published_params
from ncdlib.evidence.store import best_params, load_results, load_trials
from ncdlib.evidence.tables import compare_with_paper, show_table

__all__ = [
    "best_params",
    "compare_with_paper",
    "load_results",
    "load_trials",
    "paper_results",
    "published_hyperparameters",
    "published_params",
    "show_table",
]
