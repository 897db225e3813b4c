"""The paper measured again: its tables and figures as experiments, their results, and a verdict on each claim."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "paper": ["TABLES", "paper_results", "published_hyperparameters", "published_params"],
        "results": ["best_params", "load_results", "load_trials"],
        "compare": [
            "compare_with_paper",
            "effect_of_choices",
            "hidden_and_novel_ari",
            "show_table",
            "within_tolerance",
        ],
        "confidence": ["load_confidence", "reliability"],
        "searches": ["search_summary"],
        "beside_peers": ["STATEMENTS", "beyond", "statements"],
        "claims": ["CLAIMS", "ledger"],
    },
)
