"""Choosing hyperparameters and the number of classes without any label of a novel class."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "hidden_classes": ["HiddenClassFold", "HiddenClassKFold"],
        "portfolio": ["MetricNCD"],
        "search": ["HiddenClassSearchCV"],
    },
)
