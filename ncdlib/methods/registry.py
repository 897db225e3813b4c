"""The one list of methods: what `discover`, the command line, the evidence, the figures and the package offer.

To read it takes no torch and no scikit-learn: a method's class is imported by `Method.load`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """A method as the rest of the package knows it.

    Attributes
    ----------
    name : str
        What `discover` and the command line call it.
    path : str
        Where its class is, as "module:class".
    label : str
        What the paper's tables and the figures call it.
    color : str
        Its colour in every figure. Methods that grow out of each other share a hue.
    description : str
        What it does, in one line.
    learns_from_known : bool
        Whether it learns from the known classes, which `discover` asks of a method.
    searched : bool
        Whether its hyperparameters are searched on hidden known classes: then its class has a ``search_space``.

    Examples
    --------
    >>> from ncdlib.methods.registry import METHODS
    >>> METHODS["pbn"].label, METHODS["pbn"].searched
    ('PBN', True)
    >>> METHODS["ncd_kmeans"].load().__name__
    'NCDKMeans'
    """

    name: str
    path: str
    label: str
    color: str
    description: str
    learns_from_known: bool = True
    searched: bool = False

    @property
    def module(self) -> str:
        """The module of its class."""
        return self.path.partition(":")[0]

    @property
    def class_name(self) -> str:
        """The name of its class."""
        return self.path.partition(":")[2]

    def load(self) -> type:
        """Import its class."""
        return getattr(importlib.import_module(self.module), self.class_name)


METHODS = {
    method.name: method
    for method in (
        Method(
            "metric",
            "ncdlib.selection.portfolio:MetricNCD",
            label="MetricNCD",
            color="#003c00",
            description="a consensus of clusterings in the metric of the known classes, weighed on hidden classes",
        ),
        Method(
            "pbn",
            "ncdlib.methods.pbn:PBN",
            label="PBN",
            color="#bc42e8",
            description="a network that classifies the known classes and reconstructs all rows; k-means in its space",
            searched=True,
        ),
        Method(
            "baseline",
            "ncdlib.methods.baseline:Baseline",
            label="Baseline",
            color="#a983d0",
            description="a network that classifies the known classes; k-means in its space",
            searched=True,
        ),
        Method(
            "tabularncd",
            "ncdlib.methods.tabularncd:TabularNCD",
            label="TabularNCD",
            color="#8f288a",
            description="a network that classifies the known classes and clusters the other rows by pseudo-labels",
            searched=True,
        ),
        Method(
            "ncd_kmeans",
            "ncdlib.methods.kmeans:NCDKMeans",
            label="NCD k-means",
            color="#48610e",
            description="k-means whose first centroids keep away from the known classes",
        ),
        Method(
            "ncd_sc",
            "ncdlib.methods.spectral:NCDSpectralClustering",
            label="NCD SC",
            color="#17543d",
            description="spectral clustering that tunes itself on the known classes",
        ),
        Method(
            "kmeans",
            "sklearn.cluster:KMeans",
            label="k-means",
            color="#65a21b",
            description="k-means, for comparison",
            learns_from_known=False,
        ),
        Method(
            "sc",
            "ncdlib.methods.spectral:SpectralClustering",
            label="SC",
            color="#2a9961",
            description="spectral clustering, for comparison",
            learns_from_known=False,
        ),
    )
}
"""All methods, by name.

:meta hide-value:
"""

DISCOVERING = tuple(method.name for method in METHODS.values() if method.learns_from_known)
"""Names of the methods that `discover` takes."""


BEST = "metric"
"""The method that "auto" stands for."""


def get_method(name: str) -> Method:
    """Return the method of this name, in upper or lower case, among those that learn from known classes.

    "auto" stands for the one that gives the best answers.

    Examples
    --------
    >>> from ncdlib.methods.registry import get_method
    >>> get_method("PBN").class_name
    'PBN'
    >>> get_method("auto").name
    'metric'
    >>> get_method("dbscan")
    Traceback (most recent call last):
    ValueError: unknown method 'dbscan': choose from auto, metric, pbn, baseline, tabularncd, ncd_kmeans, ncd_sc
    """
    method = BEST if name.lower() == "auto" else name.lower()
    if method not in DISCOVERING:
        raise ValueError(f"unknown method {name!r}: choose from auto, {', '.join(DISCOVERING)}")
    return METHODS[method]
