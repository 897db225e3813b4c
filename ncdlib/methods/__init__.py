"""The methods of the paper, as estimators."""

from ncdlib.methods.baseline import Baseline
from ncdlib.methods.kmeans import NCDKMeans
from ncdlib.methods.pbn import PBN
from ncdlib.methods.spectral import NCDSpectralClustering, SpectralClustering, spectral_embedding
from ncdlib.methods.tabularncd import TabularNCD

__all__ = [
    "PBN",
    "Baseline",
    "NCDKMeans",
    "NCDSpectralClustering",
    "SpectralClustering",
    "TabularNCD",
    "spectral_embedding",
]
