"""TabularNCD, the method of Troisemaine et al. (2022), as the paper compares with it (Section 7.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from sklearn.preprocessing import normalize
from torch import Tensor

from ncdlib._io.checks import check_number
from ncdlib.clustering.validity import estimate_n_clusters
from ncdlib.methods import engine
from ncdlib.methods.deep import DeepNCD, Loss
from ncdlib.problem import UNLABELED

QUEUE_ROWS = 2000  # latest rows of each side that a view may move towards
MAX_NEIGHBORS = 100  # the largest k_neighbors of the paper's search
MASKED_SHARE = 0.3  # features replaced in the self-supervised training
RECONSTRUCTION_WEIGHT = 2  # of the features, against finding those that were replaced
PAIR_EPS = 1e-7  # keeps the logarithms of the pair loss finite


class TabularNCD(DeepNCD):
    """Joint classification of the known classes and clustering of the unlabelled rows from pseudo-labels.

    Two heads share the encoder. One classifies the known classes, and "unlabelled" as one more class. The other
    clusters the unlabelled rows of a batch: a pair is taken to be of the same class when one row is among the `top_k`
    nearest of the other in the latent space. Both must answer alike for a row and for its view, the row moved
    towards one of its `k_neighbors` nearest rows.
    ``loss = w1 * cross_entropy + (1 - w1) * consistency + w2 * pairs + (1 - w2) * consistency_of_clusters``.

    Parameters
    ----------
    n_clusters : int or str, default="silhouette"
        Number of novel classes, or the name of the validity index that estimates it in the original features: the
        network needs the number before it is trained.
    latent_dim : int, optional
        Size of the latent space; by default half the number of features, but at least 5.
    lr : float
        Learning rate of AdamW.
    dropout : float
        Dropout rate between layers, in [0, 1).
    k_neighbors : int
        A view moves towards one of this many nearest rows, 1 to 100. As in the authors' code, a side (labelled or
        not) of few rows has copies of the row itself among them, and hardly anything else where
        ``n_rows * k_neighbors <= 2000``.
    top_k : float
        Fraction of the unlabelled rows of a batch that each row is paired with, in [0, 1]. The authors' code divides
        its `top_k` by 100 once more: for its published values, pass ``top_k / 100``.
    w1, w2 : float
        Weights of the classification and of the pair loss against the consistency of views, in [0, 1].
    epochs, batch_size : int
        Length and batch size of the training.
    pretrain_epochs : int
        Epochs of self-supervised training before: tell which features of a row were replaced by those of other rows,
        and what they were. The paper describes it; its experiments do without.
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
    classes_ : array
        The known classes.
    history_ : dict of arrays
        Mean loss of each epoch: "loss" and its four terms.
    weights_ : dict of arrays

    Examples
    --------
    >>> from ncdlib import TabularNCD, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> model = TabularNCD(n_clusters=3, epochs=30, random_state=0).fit(problem.X, problem.y)
    >>> set(model.labels_[problem.y != -1].tolist())
    {-1}
    """

    _shared: ClassVar = (*DeepNCD._shared, "pretrain_epochs")

    def __init__(
        self,
        n_clusters: int | str = "silhouette",
        *,
        latent_dim: int | None = None,
        lr: float = 1e-3,
        dropout: float = 0.1,
        k_neighbors: int = 10,
        top_k: float = 0.1,
        w1: float = 0.5,
        w2: float = 0.8,
        epochs: int = 200,
        batch_size: int = 512,
        pretrain_epochs: int = 0,
        shuffle_batches: bool = False,
        device: str = "cpu",
        verbose: bool = True,
        random_state: int | None = None,
    ):
        self.n_clusters = n_clusters
        self.latent_dim = latent_dim
        self.lr = lr
        self.dropout = dropout
        self.k_neighbors = k_neighbors
        self.top_k = top_k
        self.w1 = w1
        self.w2 = w2
        self.epochs = epochs
        self.batch_size = batch_size
        self.pretrain_epochs = pretrain_epochs
        self.shuffle_batches = shuffle_batches
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    @classmethod
    def search_space(cls, n_features: int) -> dict[str, Any]:
        """Return distributions of the hyperparameters searched in the paper's appendix, with top_k a true fraction.

        For the authors' unit, replace ``top_k`` by ``scipy.stats.uniform(0, 0.01)``.
        """
        # NOTE[DIFF]: the paper searches top_k in [0, 1], and its code divides by 100. As a true fraction, more than
        # half of the unlabelled rows as positives makes no sense with two or more novel classes.
        return super().search_space(n_features) | {
            "k_neighbors": stats.randint(2, MAX_NEIGHBORS + 1),
            "top_k": stats.uniform(0, 0.5),
            "w1": stats.uniform(0, 1),
            "w2": stats.uniform(0, 1),
        }

    def _check_hyperparameters(self) -> None:
        super()._check_hyperparameters()
        check_number("k_neighbors", self.k_neighbors, f"[1, {MAX_NEIGHBORS}]", integer=True)
        check_number("pretrain_epochs", self.pretrain_epochs, "[0, inf)", integer=True)
        for name in ("top_k", "w1", "w2"):
            check_number(name, getattr(self, name), "[0, 1]")

    def _before_training(self, models: Sequence[Self], X: NDArray, codes: NDArray[np.int64]) -> None:
        estimates: dict[str, int] = {}  # models that ask for the same index share its estimate
        for model in models:
            if isinstance(model.n_clusters, str) and model.n_clusters not in estimates:
                known = codes != UNLABELED
                estimates[model.n_clusters] = estimate_n_clusters(
                    X[~known],
                    model.n_clusters,
                    X_known=X[known],
                    y_known=codes[known],
                    random_state=model._cluster_seed,
                ).n_clusters
            model.n_clusters_ = estimates.get(model.n_clusters, model.n_clusters)

    def _heads(self, models: Sequence[Self], n_features: int) -> list[engine.Mlp]:
        latent = np.array([m.latent_dim_ for m in models])
        with_unlabeled = np.full(len(models), len(models[0].classes_) + 1)
        n_clusters = np.array([m.n_clusters_ for m in models])
        # NOTE[DIFF]: by the paper's text, the classifier learns the known classes only; "unlabelled" is the authors'.
        heads = [
            engine.Mlp("classifier", [latent, with_unlabeled]),
            engine.Mlp("cluster_head", [latent, n_clusters]),
        ]
        if self.pretrain_epochs:
            features = np.full(len(models), n_features)
            heads += [engine.Mlp("mask_head", [latent, features]), engine.Mlp("feature_head", [latent, features])]
        return heads

    @property
    def _n_epochs(self) -> int:
        return self.pretrain_epochs + self.epochs

    def _phases(self, models: Sequence[Self], stack: engine.Stack, dropout: engine.Dropout) -> list[tuple[Loss, int]]:
        # NOTE[DIFF]: the paper says that TabularNCD is pre-trained; the authors' code leaves this out.
        joint = super()._phases(models, stack, dropout)
        return [(self_supervised_loss(stack, dropout), self.pretrain_epochs), *joint] if self.pretrain_epochs else joint

    def _make_batches(self, X: NDArray, codes: NDArray, device: torch.device, epoch: int) -> list[TabularBatch]:
        data = torch.from_numpy(X).to(device)
        return [
            TabularBatch.extend(batch, nearest, data)
            for batch, nearest in with_nearest_rows(super()._make_batches(X, codes, device, epoch), X)
        ]

    def _loss(self, models: Sequence[Self], stack: engine.Stack, dropout: engine.Dropout) -> Loss:
        def column(values: Sequence[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float32, device=stack.device)

        w1, w2 = column([m.w1 for m in models]), column([m.w2 for m in models])
        n_clusters = column([m.n_clusters_ for m in models])
        # -inf for the clusters that a model with fewer of them does not have
        absent = torch.arange(int(n_clusters.max()), device=stack.device)[None, :, None] >= n_clusters[:, None, None]
        absent = torch.zeros(absent.shape, device=stack.device).masked_fill_(absent, -torch.inf)
        k_neighbors = torch.tensor([m.k_neighbors for m in models], device=stack.device)
        top_k = [m.top_k for m in models]

        def loss(batch: TabularBatch) -> dict[str, Tensor]:
            n_labeled, n_rows = batch.n_labeled, batch.x.shape[1]
            n_unlabeled = n_rows - n_labeled
            views = make_views(batch, stack, k_neighbors)
            z = engine.forward(stack, "encoder", batch.x, dropout)
            # Views of unlabelled and of labelled rows pass apart, each with their own batch statistics.
            groups = [slice(n_labeled, n_rows), slice(0, n_labeled)]
            z_views = {
                g.start: engine.forward(stack, "encoder", views[:, :, g], dropout)
                for g in groups
                if g.stop > g.start + 1
            }
            # NOTE[DIFF]: a single row of a side has no batch statistics; it is its own view.
            z_views |= {g.start: z[:, :, g] for g in groups if g.stop == g.start + 1}
            z_view = torch.cat([z_views[start] for start in sorted(z_views)], dim=2)

            logits = engine.forward(stack, "classifier", z, dropout)
            logits_view = engine.forward(stack, "classifier", z_view, dropout)
            cross_entropy = engine.SoftmaxCrossEntropy.apply(logits, batch.targets)
            consistency = engine.SquaredError.apply(logits, logits_view, n_rows * logits.shape[1])
            total = w1 * cross_entropy + (1 - w1) * consistency
            pairs = cluster_consistency = torch.zeros_like(total)
            if n_unlabeled > 1:
                z_unlabeled = z[:, :, n_labeled:]
                cluster_logits = engine.forward(stack, "cluster_head", z_unlabeled, dropout)
                # As in the authors' code, the unlabelled views pass once more: with dropout of their own, and with a
                # larger share in the running statistics.
                z_again = engine.forward(stack, "encoder", views[:, :, n_labeled:], dropout)
                cluster_logits_view = engine.forward(stack, "cluster_head", z_again, dropout)
                cluster_consistency = engine.SquaredError.apply(
                    cluster_logits, cluster_logits_view, n_unlabeled * n_clusters
                )
                p = torch.softmax(cluster_logits + absent, dim=1)
                pairs = PairLoss.apply(p, z_unlabeled.detach(), top_k)
                total = total + w2 * pairs + (1 - w2) * cluster_consistency
            return {
                "loss": total,
                "cross_entropy": cross_entropy,
                "consistency": consistency,
                "pairs": pairs,
                "cluster_consistency": cluster_consistency,
            }

        return loss

    def _fit_clusters(self, X: NDArray, codes: NDArray[np.int64]) -> None:
        unlabeled = codes == UNLABELED
        self.labels_ = np.full(len(X), UNLABELED)
        self.labels_[unlabeled] = self._assign(X[unlabeled])

    def _assign(self, X: NDArray) -> NDArray[np.int64]:
        return engine.apply(self.weights_, "cluster_head", self._latent(X)).argmax(axis=1)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Assign rows to the discovered clusters: the largest output of the cluster head."""
        return self._assign(self._check_new(X))

    def _classifier_input(self, X: NDArray) -> NDArray[np.float32]:
        return self._latent(X)  # not normalised in this method


@dataclass
class TabularBatch(engine.Batch):
    """A batch, with what the views and the classification need."""

    rows_first: Tensor  # x as (rows, features)
    data: Tensor  # all training rows (n, features)
    nearest: Tensor  # (rows, neighbours): each row's most similar rows, as positions in `data`, nearest first
    targets: Tensor  # (known classes + 1, rows), one-hot; the last class is "unlabelled"

    @classmethod
    def extend(cls, batch: engine.Batch, nearest: NDArray[np.int64], data: Tensor) -> Self:
        n_classes, n_rows = len(batch.one_hot), batch.x.shape[1]
        targets = torch.zeros(n_classes + 1, n_rows, device=data.device)
        targets[:n_classes, : batch.n_labeled] = batch.one_hot
        targets[n_classes, batch.n_labeled :] = 1
        return cls(
            **vars(batch),
            rows_first=batch.x.T.contiguous(),
            data=data,
            nearest=torch.from_numpy(nearest).to(data.device),
            targets=targets,
        )


def with_nearest_rows(batches: Sequence[engine.Batch], X: NDArray) -> list[tuple[engine.Batch, NDArray[np.int64]]]:
    """Find each row's most cosine-similar rows of its own side, in its batch and the queue of the latest rows.

    The batches repeat, so from the second epoch on the queue holds the same rows each time a batch comes round: one
    table serves all epochs and all models. (Batches that are new in every epoch get a table each, as if they had come
    in this order before.) A side with fewer rows than the queue is in it several times, the row
    itself included, as in the authors' code.
    """
    # NOTE[DIFF]: the authors' queue fills up during the first epochs; ours is full from the start.
    unit = normalize(X)
    tables: list[list[NDArray]] = [[] for _ in batches]
    for parts in ([b.rows[: b.n_labeled] for b in batches], [b.rows[b.n_labeled :] for b in batches]):
        sequence = np.concatenate(parts)
        position = 0
        for table, rows in zip(tables, parts, strict=True):
            if len(rows):
                queue = sequence[(position - 1 - np.arange(QUEUE_ROWS)) % len(sequence)]
                pool = np.concatenate([rows, queue])
                similarity = unit[rows] @ unit[pool].T
                np.fill_diagonal(similarity, -np.inf)  # the row's own place in the batch
                nearest = torch.from_numpy(similarity).topk(MAX_NEIGHBORS, dim=1).indices.numpy()
                table.append(pool[nearest])
            position += len(rows)
    return [(batch, np.concatenate(table)) for batch, table in zip(batches, tables, strict=True)]


def make_views(batch: TabularBatch, stack: engine.Stack, k_neighbors: Tensor) -> Tensor:
    """Move each row a random fraction of the way to one of its nearest rows: (K, features, rows)."""
    n_rows = len(batch.rows_first)
    uniform = (stack.draw_noise(2 * n_rows).int() + 2**15).view(stack.n_models, 2, n_rows)  # integers below 2**16
    choice = (uniform[:, 0] * k_neighbors[:, None]) >> 16
    neighbours = batch.data[batch.nearest[torch.arange(n_rows, device=choice.device), choice]]  # (K, rows, features)
    fraction = (uniform[:, 1] * 2.0**-16).to(batch.data.dtype)[:, :, None]
    return torch.lerp(batch.rows_first.expand_as(neighbours), neighbours, fraction).transpose(1, 2)


def self_supervised_loss(stack: engine.Stack, dropout: engine.Dropout) -> Loss:
    """Return the loss of the pre-training: tell which features of a row were replaced, and what they were."""

    def loss(batch: engine.Batch) -> dict[str, Tensor]:
        corrupted = corrupt(batch.x, stack)
        z = engine.forward(stack, "encoder", corrupted, dropout)
        replaced = (corrupted != batch.x).to(z.dtype)
        detection = F.binary_cross_entropy_with_logits(
            engine.forward(stack, "mask_head", z, dropout), replaced, reduction="none"
        ).mean((1, 2))
        features = engine.forward(stack, "feature_head", z, dropout)
        reconstruction = engine.SquaredError.apply(features, batch.x, batch.x.numel())
        return {"loss": detection + RECONSTRUCTION_WEIGHT * reconstruction}

    return loss


def corrupt(x: Tensor, stack: engine.Stack) -> Tensor:
    """Replace some features of each row by those of other rows: (features, rows) -> (K, features, rows)."""
    uniform = (stack.draw_noise(2 * x.numel()).int() + 2**15).view(stack.n_models, 2, *x.shape)  # integers below 2**16
    donor = (uniform[:, 0].long() * x.shape[1]) >> 16
    x = x.expand_as(donor)
    return torch.where(uniform[:, 1] < MASKED_SHARE * 2**16, x.gather(2, donor), x)


def pseudo_labels(unit_z: Tensor, top_k: float) -> Tensor:
    """Return 1 where one row is among the other's top_k most similar, else 0: unit (latent, rows) -> (rows, rows)."""
    similarity = unit_z.T @ unit_z
    # NOTE[DIFF]: a row is not its own neighbour; in the authors' code it may be, where all others point away from it.
    similarity.fill_diagonal_(-torch.inf)
    n_rows = len(similarity)
    n_positive = min(int(top_k * n_rows), n_rows - 1)
    if n_positive == 0:
        return torch.zeros_like(similarity)
    # NumPy's partition is the fastest selection at hand: two to four times torch's kthvalue and topk
    threshold = np.partition(similarity.cpu().numpy(), n_rows - n_positive, axis=1)[:, n_rows - n_positive, None]
    linked = torch.empty_like(similarity)
    torch.ge(similarity, torch.from_numpy(threshold).to(unit_z.device), out=linked)
    return torch.maximum(linked, linked.T.contiguous())  # without the copy, half as fast


class PairLoss(torch.autograd.Function):
    """Mean binary cross-entropy over all pairs of different rows, in one cluster or not as the pseudo-labels say.

    From the cluster probabilities p (K, clusters, rows) and the latent z (K, latent, rows) to (K,). One network after
    the other, the gradient on the way: one (rows, rows) matrix stays in the processor's cache, K of them do not.
    """

    @staticmethod
    def forward(ctx, p: Tensor, z: Tensor, top_k: Sequence[float]) -> Tensor:
        unit_z = engine.unit_length(z)
        n_pairs = p.shape[2] * (p.shape[2] - 1)
        losses, gradient = p.new_empty(len(p)), torch.empty_like(p)
        for k, fraction in enumerate(top_k):
            negative = 1 - pseudo_labels(unit_z[k], fraction)
            # q, the probability of one cluster, for a positive pair, and -(1 - q) for a negative one; both off zero
            signed = (p[k].T @ p[k]).sub_(negative, alpha=1 + 2 * PAIR_EPS).add_(PAIR_EPS).fill_diagonal_(1)
            losses[k] = signed.abs().log_().sum() / -n_pairs
            torch.mm(p[k], signed.reciprocal_().fill_diagonal_(0), out=gradient[k])
        ctx.save_for_backward(gradient.mul_(-2 / n_pairs))
        return losses

    @staticmethod
    def backward(ctx, grad: Tensor):
        (gradient,) = ctx.saved_tensors
        return gradient * grad[:, None, None], None, None
