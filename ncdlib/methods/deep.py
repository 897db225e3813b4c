"""What Baseline, PBN and TabularNCD share: hyperparameters, stacked fitting, and clustering in the latent space."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances_argmin
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import Tensor
from tqdm import tqdm

from ncdlib._io.checks import check_n_clusters, check_number, encode_labels
from ncdlib.clustering.validity import KEstimate, estimate_n_clusters
from ncdlib.methods import engine
from ncdlib.methods.base import NCDEstimator
from ncdlib.methods.kmeans import NCDKMeans
from ncdlib.methods.spectral import SpectralClustering
from ncdlib.problem import UNLABELED

FLOATS_IN_A_STACK = 2**21  # activations of about this many floats keep a stack inside the processor's cache
CLUSTERERS = ("kmeans", "ncd_kmeans", "spectral")

Loss = Callable[[engine.Batch], dict[str, Tensor]]


class DeepNCD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NCDEstimator):
    """An encoder trained by a loss, whose latent space holds the novel classes.

    Examples
    --------
    >>> from ncdlib import PBN, TabularNCD, make_ncd_blobs
    >>> from ncdlib.methods.deep import DeepNCD
    >>> issubclass(PBN, DeepNCD), issubclass(TabularNCD, DeepNCD)
    (True, True)
    >>> problem = make_ncd_blobs(random_state=0)
    >>> method = PBN(3, epochs=2, verbose=False)
    >>> models = method.fit_many(problem.X, problem.y, [{"latent_dim": 2}, {"latent_dim": 4}], random_states=0)
    >>> [model.transform(problem.X_test_novel).shape[1] for model in models]
    [2, 4]
    """

    _precision = np.float32  # torch's

    # Hyperparameters that must be equal within one call of fit_many: they shape the training loop itself.
    _shared: ClassVar[tuple[str, ...]] = ("epochs", "batch_size", "shuffle_batches", "device", "verbose")

    # -- what each method defines ---------------------------------------------------------------------------------

    def _heads(self, models: Sequence[Self], n_features: int) -> list[engine.Mlp]:
        """Return the chains that follow the encoder."""
        raise TypeError(f"{type(self).__name__} must define its heads")

    def _loss(self, models: Sequence[Self], stack: engine.Stack, dropout: engine.Dropout) -> Loss:
        """Return a function from a batch to the losses of all models, each (K,)."""
        raise TypeError(f"{type(self).__name__} must define its loss")

    def _phases(self, models: Sequence[Self], stack: engine.Stack, dropout: engine.Dropout) -> list[tuple[Loss, int]]:
        """Return the losses to minimise one after the other, each with its epochs; the history of the last is kept."""
        return [(self._loss(models, stack, dropout), self.epochs)]

    @property
    def _n_epochs(self) -> int:
        """The number of epochs of all phases together."""
        return self.epochs

    def _training_rows(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which rows the network is trained on."""
        return np.ones(len(codes), dtype=bool)

    def _before_training(self, models: Sequence[Self], X: NDArray, codes: NDArray[np.int64]) -> None:
        """Learn from the data what the networks need before they are built."""

    # -- hyperparameters ------------------------------------------------------------------------------------------

    @classmethod
    def search_space(cls, n_features: int) -> dict[str, Any]:
        """Return distributions of the hyperparameters that the paper searches, for data with `n_features` columns."""
        return {
            "latent_dim": stats.randint(5, max(n_features, 5) + 1),
            "lr": stats.loguniform(1e-4, 1e-1),
            "dropout": stats.uniform(0, 0.6),
        }

    def _check_hyperparameters(self) -> None:
        if self.latent_dim is not None:
            check_number("latent_dim", self.latent_dim, "[1, inf)", integer=True)
        check_number("lr", self.lr, "(0, inf)")
        check_number("dropout", self.dropout, "[0, 1)")
        check_number("epochs", self.epochs, "[1, inf)", integer=True)
        check_number("batch_size", self.batch_size, "[2, inf)", integer=True)

    # -- fitting --------------------------------------------------------------------------------------------------

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Train on known and unlabelled rows, then cluster the unlabelled ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The known labels; -1 (or None, NaN) for the rows to discover classes in.
        """
        self._fit_models([self], X, y, fit_clusters=True)
        if self.diverged_:
            raise ValueError("training diverged (the loss is not finite): lower lr, or standardise X")
        return self

    def fit_many(
        self,
        X: ArrayLike,
        y: ArrayLike,
        params: Iterable[Mapping[str, Any]],
        random_states: int | None | Sequence[int | None] = None,
        *,
        fit_clusters: bool = True,
    ) -> list[Self]:
        """Fit many hyperparameter sets on the same rows at once, several times faster than one by one.

        Parameters
        ----------
        X, y : as in `fit`
        params : iterable of dict
            One set of hyperparameters for each model; what a set leaves out is this estimator's own value.
        random_states : int, None, or one for each set
            Seeds; by default this estimator's ``random_state`` for all.
        fit_clusters : bool
            False trains the networks only: there are no `labels_`, and `predict` works with `TabularNCD` alone, whose
            network clusters by itself.

        Returns
        -------
        list of fitted estimators, in the order of `params`
            A model whose training diverged has ``diverged_ = True`` and no clusters.

        Notes
        -----
        A model does not depend on which others are trained with it, except for rounding: products of another size are
        summed in another order. After a few epochs the difference is in the last digits; over hundreds of epochs it
        grows, as between two machines, and a row at the edge may fall into another cluster.
        """
        if isinstance(params, Mapping):
            raise ValueError("fit_many takes a list of hyperparameter sets, got a single one")
        params = [dict(p) for p in params]
        if np.ndim(random_states) == 0:
            random_states = [self.random_state if random_states is None else random_states] * len(params)
        if len(random_states) != len(params):
            raise ValueError(f"{len(params)} parameter sets but {len(random_states)} random states")
        names = {name for p in params for name in p}
        if "random_state" in names:
            raise ValueError("give the seeds as random_states, not among the hyperparameters")
        for name in sorted(names.intersection(self._shared)):
            raise ValueError(f"{name} must be the same for all models of fit_many: set it on the estimator itself")
        models = [clone(self).set_params(**p, random_state=seed) for p, seed in zip(params, random_states, strict=True)]
        for model in models:
            model.min_known_classes = self.min_known_classes
        if models:
            self._fit_models(models, X, y, fit_clusters=fit_clusters)
        return models

    def _fit_models(self, models: Sequence[Self], X: ArrayLike, y: ArrayLike, *, fit_clusters: bool) -> None:
        X, codes = models[0]._check_fit(X, y)
        for model in models:
            model._check_hyperparameters()
            model._check_n_clusters(int(np.sum(codes == UNLABELED)))
            for name in ("labels_", "n_clusters_", "cluster_centers_", "clusterer_"):  # of an earlier fit
                vars(model).pop(name, None)
            for name in ("classes_", "n_features_in_", "feature_names_in_"):
                if hasattr(models[0], name):
                    setattr(model, name, getattr(models[0], name))
        if np.sum(self._training_rows(codes)) < 2:
            raise ValueError(f"{type(self).__name__} is trained on labelled rows, and y has a single one: label more")
        X32 = X.astype(np.float32)
        for model in models:
            # No fewer than 5, as in the search, also for a table of one column: a latent of one dimension, scaled to
            # length one, is +1 or -1, and tells three classes badly.
            model.latent_dim_ = model.latent_dim or max(5, X32.shape[1] // 2)
            # One seed for the network and one for the clustering, both from random_state alone.
            seeds = check_random_state(model.random_state).randint(np.iinfo(np.int32).max, size=2)
            model._network_seed, model._cluster_seed = (int(s) for s in seeds)

        self._before_training(models, X32, codes)
        # Models of similar latent size share a stack, so that little of it is padding.
        order = sorted(range(len(models)), key=lambda i: models[i].latent_dim_)
        size = self.stack_size(X32.shape[1])
        total = len(models) * self._n_epochs
        bar = tqdm(total=total, desc=f"{type(self).__name__} epochs", delay=3) if self.verbose else nullcontext()
        with bar as progress:
            for start in range(0, len(models), size):
                stack = [models[i] for i in order[start : start + size]]
                try:
                    self._train_stack(stack, X32, codes, progress)
                except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:  # torch's words
                    widest = max(model.latent_dim_ for model in stack)
                    raise ValueError(
                        f"device={self.device!r} cannot be used for networks of {X32.shape[1]} features and latent_dim "
                        f"up to {widest}: {str(error).splitlines()[0]}"
                        + ("" if self.device == "cpu" else "; use device='cpu'")
                    ) from error
        for model in models:
            with np.errstate(over="ignore", invalid="ignore"):  # what diverged is found in the next line
                latent = model._latent(X32[codes == UNLABELED])
            model.diverged_ = not (np.all(np.isfinite(latent)) and np.all(np.isfinite(model.history_["loss"])))
            if fit_clusters and not model.diverged_:
                model._fit_clusters(X32, codes)

    def stack_size(self, n_features: int) -> int:
        """Return how many networks `fit_many` trains at once on data with `n_features` columns."""
        units = 4 * n_features  # encoder and decoder: 2 * (3/4 + 1/2) and the latent and output layers
        return int(np.clip(FLOATS_IN_A_STACK // (units * self.batch_size), 1, 20))

    def _train_stack(self, models: Sequence[Self], X: NDArray, codes: NDArray[np.int64], progress: tqdm | None) -> None:
        device = torch.device(self.device)
        rows = self._training_rows(codes)
        latent = np.array([m.latent_dim_ for m in models])
        encoder = engine.Mlp(
            "encoder",
            [np.full(len(models), n) for n in (X.shape[1], *engine.hidden_widths(X.shape[1]))] + [latent],
        )
        heads = self._heads(models, X.shape[1])
        stack = engine.Stack([encoder, *heads], [m._network_seed for m in models], device)
        dropout = engine.Dropout([m.dropout for m in models], device)
        fixed_batches = None if self.shuffle_batches else self._make_batches(X[rows], codes[rows], device, epoch=0)

        def batches_of_epoch(epoch: int) -> list[engine.Batch]:
            # NOTE[DIFF]: the paper does not say that the batches are the same in every epoch; the authors' code does.
            return fixed_batches or self._make_batches(X[rows], codes[rows], device, epoch)

        for loss, epochs in self._phases(models, stack, dropout):
            histories = engine.train(stack, batches_of_epoch, loss, [m.lr for m in models], epochs, progress)
        for k, model in enumerate(models):
            model.weights_ = stack.extract(k)
            model.history_ = histories[k]
            model._n_features_out = model.latent_dim_

    def _make_batches(self, X: NDArray, codes: NDArray, device: torch.device, epoch: int) -> list[engine.Batch]:
        n_classes = int(codes.max()) + 1
        return engine.make_batches(X, codes, n_classes, self.batch_size, device, shuffle_seed=epoch)

    # -- the latent space -----------------------------------------------------------------------------------------

    def _check_new(self, X: ArrayLike) -> NDArray:
        X = super()._check_new(X)
        if self.diverged_:
            raise NotFittedError(f"{type(self).__name__} has learned nothing: its training diverged")
        return X

    def _latent(self, X: NDArray) -> NDArray[np.float32]:
        return engine.apply(self.weights_, "encoder", X)

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Project rows into the latent space, as it is clustered: not normalised."""
        # In double precision: some processors round the last rows of a product differently, and where a row stands
        # among others must not matter.
        return engine.apply(self.weights_, "encoder", self._check_new(X), np.float64).astype(np.float32)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]  # what torch trains in
        return tags

    def score_known(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the accuracy of the classifier of the known classes on rows of known classes."""
        X = self._check_new(X)
        codes, classes = encode_labels(y)
        check_consistent_length(X, codes)
        unknown = np.setdiff1d(classes, self.classes_).tolist()
        if np.any(codes == UNLABELED) or unknown:
            raise ValueError(f"score_known takes rows of known classes only; got {unknown or 'unlabelled rows'}")
        logits = engine.apply(self.weights_, "classifier", self._classifier_input(X))[:, : len(self.classes_)]
        return float(np.mean(np.searchsorted(self.classes_, classes)[codes] == logits.argmax(axis=1)))

    def _classifier_input(self, X: NDArray) -> NDArray[np.float32]:
        return normalize(self._latent(X))  # the latent is L2-normalised in training


class ProjectionNCD(DeepNCD):
    """A latent space that is trained without regard to the number of clusters, then clustered (the paper's 3.4).

    Examples
    --------
    One training serves any number of clusters:

    >>> from ncdlib import PBN, TabularNCD, make_ncd_blobs
    >>> from ncdlib.methods.deep import ProjectionNCD
    >>> issubclass(PBN, ProjectionNCD), issubclass(TabularNCD, ProjectionNCD)
    (True, False)
    >>> problem = make_ncd_blobs(random_state=0)
    >>> model = PBN(3, epochs=2, verbose=False, random_state=0).fit(problem.X, problem.y)
    >>> [len(set(model.cluster(problem.X_test_novel, k, random_state=0))) for k in (2, 3, 4)]
    [2, 3, 4]
    """

    def _check_hyperparameters(self) -> None:
        super()._check_hyperparameters()
        if self.clusterer not in CLUSTERERS:
            raise ValueError(f"clusterer must be one of {', '.join(CLUSTERERS)}, got {self.clusterer!r}")
        self._spectral(1, None)._check_options()

    def _cluster_space(self, X: NDArray) -> NDArray[np.float64]:
        # NOTE[DIFF]: the text clusters "the latent space", which is normalised in training; the authors' code
        # clusters the latent as it is before the normalisation, and so do we unless asked.
        latent = self._latent(X).astype(np.float64)
        return normalize(latent) if self.normalize_latent else latent

    def _fit_clusters(self, X: NDArray, codes: NDArray[np.int64]) -> None:
        unlabeled = codes == UNLABELED
        self.n_clusters_ = self.n_clusters
        if isinstance(self.n_clusters, str):
            estimate = self._estimate(
                X[unlabeled], self.n_clusters, None, self._cluster_seed, X[~unlabeled], codes[~unlabeled]
            )
            self.n_clusters_ = estimate.n_clusters
        Z = self._cluster_space(X)
        self.labels_ = np.full(len(X), UNLABELED)
        if self.clusterer == "kmeans":
            clusterer = KMeans(self.n_clusters_, n_init=10, random_state=self._cluster_seed).fit(Z[unlabeled])
            self.labels_[unlabeled] = clusterer.labels_
        elif self.clusterer == "ncd_kmeans":
            clusterer = NCDKMeans(self.n_clusters_, random_state=self._cluster_seed).fit(Z, codes)
            self.labels_ = clusterer.labels_
        else:
            clusterer = self.clusterer_ = self._spectral(self.n_clusters_, self._cluster_seed).fit(Z[unlabeled])
            self.labels_[unlabeled] = clusterer.labels_
        if self.clusterer != "spectral":
            self.cluster_centers_ = clusterer.cluster_centers_

    def _spectral(self, n_clusters: int, random_state: int | None) -> SpectralClustering:
        return SpectralClustering(
            n_clusters,
            s_min=self.s_min,
            n_components=self.n_components,
            sigma_rule=self.sigma_rule,
            random_state=random_state,
        )

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Assign rows to the discovered clusters."""
        X = self._check_new(X)
        check_is_fitted(self, "labels_", msg="%(name)s has no clusters: it was trained with fit_clusters=False")
        Z = self._cluster_space(X)
        if self.clusterer == "spectral":
            return self.clusterer_.predict(Z)
        return pairwise_distances_argmin(Z, self.cluster_centers_)

    def cluster(self, X: ArrayLike, n_clusters: int, random_state: int | None = None) -> NDArray[np.int64]:
        """Partition just these rows, from scratch, in the learned space.

        The paper scores its methods so: the rows of the test set are clustered themselves.
        """
        Z = self._cluster_space(self._check_new(X))
        check_n_clusters(n_clusters, len(Z))
        if self.clusterer == "spectral":
            return self._spectral(n_clusters, random_state).fit(Z).labels_
        # NCD k-means differs from k-means by the known classes' means, which are not among these rows.
        return KMeans(n_clusters, n_init=10, random_state=random_state).fit(Z).labels_

    def estimate_n_clusters(
        self,
        X: ArrayLike,
        index: str = "silhouette",
        k_range: Iterable[int] | None = None,
        random_state: int | None = None,
        X_known: ArrayLike | None = None,
        y_known: ArrayLike | None = None,
        n_runs: int = 3,
    ) -> KEstimate:
        """Estimate how many classes these rows hold, from their projection (the paper's Section 5), L2-normalised."""
        X_known = None if X_known is None else self._check_new(X_known)
        return self._estimate(self._check_new(X), index, k_range, random_state, X_known, y_known, n_runs)

    def _estimate(self, X, index, k_range, random_state, X_known=None, y_known=None, n_runs=3) -> KEstimate:
        # NOTE[DIFF]: the text does not say that the projection is normalised here; the authors' code does so.
        arguments = {"n_runs": n_runs} | ({} if k_range is None else {"k_range": k_range})
        if X_known is not None:
            arguments |= {"X_known": normalize(self._latent(X_known)), "y_known": y_known}
        return estimate_n_clusters(normalize(self._latent(X)), index, random_state=random_state, **arguments)
