"""The baseline of Section 7.1: a classifier of the known classes, whose last hidden layer is clustered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ncdlib.clustering.embedding import S_MIN
from ncdlib.methods import engine
from ncdlib.methods.deep import Loss, ProjectionNCD


class Baseline(ProjectionNCD):
    """Classifier of the known classes; the unlabelled rows are clustered in its last hidden layer.

    The encoder never sees an unlabelled row, so what sets the novel classes apart may be lost on the way: this is the
    method that `PBN` mends with a reconstruction loss.

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
    epochs, batch_size : int
        Length and batch size of the training.
    clusterer : {"kmeans", "ncd_kmeans", "spectral"}
        What partitions the latent space.
    s_min, n_components, sigma_rule
        Hyperparameters of the spectral clusterer (see `SpectralClustering`).
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
        Mean loss of each epoch: "loss".
    weights_ : dict of arrays

    Examples
    --------
    >>> from ncdlib import Baseline, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> model = Baseline(n_clusters=3, lr=0.01, epochs=30, batch_size=64, random_state=0).fit(problem.X, problem.y)
    >>> model.score_known(problem.X_test_known, problem.y_test_known) > 0.9
    True
    """

    def __init__(
        self,
        n_clusters: int | str = "silhouette",
        *,
        latent_dim: int | None = None,
        lr: float = 1e-3,
        dropout: float = 0.1,
        epochs: int = 200,
        batch_size: int = 512,
        clusterer: str = "kmeans",
        s_min: float = S_MIN,
        n_components: int | None = None,
        sigma_rule: str = "paper",
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
        self.epochs = epochs
        self.batch_size = batch_size
        self.clusterer = clusterer
        self.s_min = s_min
        self.n_components = n_components
        self.sigma_rule = sigma_rule
        self.normalize_latent = normalize_latent
        self.shuffle_batches = shuffle_batches
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def _training_rows(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        return codes >= 0

    def _heads(self, models: Sequence[Self], n_features: int) -> list[engine.Mlp]:
        latent = np.array([m.latent_dim_ for m in models])
        return [engine.Mlp("classifier", [latent, np.full(len(models), len(models[0].classes_))])]

    def _loss(self, models: Sequence[Self], stack: engine.Stack, dropout: engine.Dropout) -> Loss:
        def loss(batch: engine.Batch) -> dict[str, Tensor]:
            # NOTE[DIFF]: the paper's formulas take the latent vector as it is; the authors' code scales it to length 1.
            z = engine.unit_length(engine.forward(stack, "encoder", batch.x, dropout))
            logits = engine.forward(stack, "classifier", z, dropout)
            return {"loss": engine.SoftmaxCrossEntropy.apply(logits, batch.one_hot)}

        return loss
