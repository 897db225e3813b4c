"""The paper measured again: its tables and figures as experiments, their results, and a verdict on each claim."""

from ncdlib.evidence.claims import CLAIMS, ledger
from ncdlib.evidence.paper import PAPER_NUMBER, paper_results, published_hyperparameters, published_params
from ncdlib.evidence.store import best_params, load_results, load_trials
from ncdlib.evidence.tables import (
    compare_with_paper,
    effect_of_choices,
    hidden_and_novel_ari,
    show_table,
    within_tolerance,
)

__all__ = [
    "CLAIMS",
    "PAPER_NUMBER",
    "best_params",
    "compare_with_paper",
    "effect_of_choices",
    "hidden_and_novel_ari",
    "ledger",
    "load_results",
    "load_trials",
    "paper_results",
    "published_hyperparameters",
    "published_params",
    "show_table",
    "within_tolerance",
]
