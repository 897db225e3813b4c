"""PBN, projection-based NCD: the method of Section 3.4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from ncdlib._io.checks import check_number
from ncdlib.clustering.embedding import S_MIN
from ncdlib.methods import engine
from ncdlib.methods.deep import DeepNCD, Loss, ProjectionNCD


class PBN(ProjectionNCD):
    """Projection-based novel class discovery.

    An encoder is trained to classify the known classes and, with a decoder, to reconstruct all rows; the unlabelled
    rows are then clustered in its latent space. ``loss = w * cross_entropy + (1 - w) * reconstruction``.

    Parameters
    ----------
    n_clusters : int or str, default="silhouette"
        Number of novel classes, or the name of the validity index that estimates it in the latent space.
    latent_dim : int, optional
        Size of the latent space; by default half the number of features, but at least 5.
    lr : float
        Learning rate of AdamW.
    dropout : float
        Dropout rate between layers, in [0, 1).
    w : float
        Weight of the classification against the reconstruction, in [0, 1].
    epochs, batch_size : int
        Length and batch size of the training.
    clusterer : {"kmeans", "ncd_kmeans", "spectral"}
        What partitions the latent space.
    s_min, n_components, sigma_rule
        Hyperparameters of the spectral clusterer (see `SpectralClustering`).
    reconstruction : {"sum", "mean"}
        Squared error summed over the features (the authors' code) or averaged (the paper's formula).
    normalize_latent : bool
        Cluster the L2-normalised latent instead of the latent itself.
    shuffle_batches : bool
        New batches in every epoch instead of the same ones.
    device : str
        Where torch trains.
    verbose : bool
        Show a progress bar when training takes longer than a few seconds.
    random_state : int, optional

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of each unlabelled row, -1 for labelled rows.
    n_clusters_ : int
    cluster_centers_ : array of shape (n_clusters, latent_dim)
        With ``clusterer="spectral"`` there is `clusterer_` instead, the fitted `SpectralClustering`.
    classes_ : array
        The known classes.
    history_ : dict of arrays
        Mean loss of each epoch: "loss", "cross_entropy", "reconstruction".
    weights_ : dict of arrays

    Examples
    --------
    >>> from ncdlib import PBN, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> model = PBN(n_clusters=3, epochs=30, random_state=0).fit(problem.X, problem.y)
    >>> model.predict(problem.X_test_novel).shape == problem.y_test_novel.shape
    True
    """

    _shared: ClassVar = (*DeepNCD._shared, "reconstruction")

    def __init__(
        self,
        n_clusters: int | str = "silhouette",
        *,
        latent_dim: int | None = None,
        lr: float = 1e-3,
        dropout: float = 0.1,
        w: float = 0.5,
        epochs: int = 200,
        batch_size: int = 512,
        clusterer: str = "kmeans",
        s_min: float = S_MIN,
        n_components: int | None = None,
        sigma_rule: str = "paper",
        reconstruction: str = "sum",
        normalize_latent: bool = False,
        shuffle_batches: bool = False,
        device: str = "cpu",
        verbose: bool = True,
        random_state: int | None = None,
    ):
        self.n_clusters = n_clusters
        self.latent_dim = latent_dim
        self.lr = lr
        self.dropout = dropout
        self.w = w
        self.epochs = epochs
        self.batch_size = batch_size
        self.clusterer = clusterer
        self.s_min = s_min
        self.n_components = n_components
        self.sigma_rule = sigma_rule
        self.reconstruction = reconstruction
        self.normalize_latent = normalize_latent
        self.shuffle_batches = shuffle_batches
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    @classmethod
    def search_space(cls, n_features: int) -> dict[str, Any]:
        """Return distributions of the four hyperparameters searched in the paper's appendix."""
        return super().search_space(n_features) | {"w": stats.uniform(0, 1)}

    def _check_hyperparameters(self) -> None:
        super()._check_hyperparameters()
        check_number("w", self.w, "[0, 1]")
        if self.reconstruction not in ("sum", "mean"):
            raise ValueError(f"reconstruction must be 'sum' or 'mean', got {self.reconstruction!r}")

    def _heads(self, models: Sequence[Self], n_features: int) -> list[engine.Mlp]:
        latent = np.array([m.latent_dim_ for m in models])
        wide, narrow = engine.hidden_widths(n_features)
        mirrored = [np.full(len(models), n) for n in (narrow, wide, n_features)]
        n_classes = np.full(len(models), len(models[0].classes_))
        return [engine.Mlp("decoder", [latent, *mirrored]), engine.Mlp("classifier", [latent, n_classes])]

    def _loss(self, models: Sequence[Self], stack: engine.Stack, dropout: engine.Dropout) -> Loss:
        w = torch.tensor([m.w for m in models], dtype=torch.float32, device=stack.device)

        def loss(batch: engine.Batch) -> dict[str, Tensor]:
            # NOTE[DIFF]: the paper's formulas take the latent vector as it is; the authors' code scales it to length 1.
            z = engine.unit_length(engine.forward(stack, "encoder", batch.x, dropout))
            n_features, n_rows = batch.x.shape
            # NOTE[DIFF]: the paper's formula averages over the features; the authors' code, and so its results, sum.
            divisor = n_rows * (n_features if self.reconstruction == "mean" else 1)
            reconstruction = engine.forward(stack, "decoder", z, dropout)
            reconstruction_error = engine.SquaredError.apply(reconstruction, batch.x, divisor)
            if batch.n_labeled:
                logits = engine.forward(stack, "classifier", z[:, :, : batch.n_labeled], dropout)
                cross_entropy = engine.SoftmaxCrossEntropy.apply(logits, batch.one_hot)
            else:
                cross_entropy = torch.zeros_like(reconstruction_error)
            return {
                "loss": w * cross_entropy + (1 - w) * reconstruction_error,
                "cross_entropy": cross_entropy,
                "reconstruction": reconstruction_error,
            }

        return loss
