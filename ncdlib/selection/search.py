"""Tuning without a novel label: random search scored on hidden known classes (Sections 4 and 7.1, Algorithm 1)."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from ncdlib._io.checks import check_index, check_positive, check_rows, check_seed, encode_labels
from ncdlib._io.processes import as_they_come, one_thread
from ncdlib.clustering.validity import INDICES
from ncdlib.problem import UNLABELED
from ncdlib.selection.hidden_classes import HiddenClassFold, HiddenClassKFold
from ncdlib.selection.race import DOZEN_THEN_FOUR, Race, Vote, best_trials, check_race, judged, vote
from ncdlib.selection.scoring import ALONE, SETTINGS, Scoring, check_scoring, column_of
from ncdlib.selection.search_results import SearchResults
from ncdlib.selection.worker import (
    REFIT,
    Protocol,
    Trial,
    can_cluster_alone,
    collapse_is_no_news,
    configure,
    run_unit,
    seed_of,
)


def _refitted_has(name: str) -> Callable[[HiddenClassSearchCV], bool]:
    return lambda search: hasattr(getattr(search, "best_estimator_", search.estimator), name)


class HiddenClassSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Random search for the hyperparameters that best tell hidden known classes apart.

    In each fold some known classes are hidden: their rows become unlabelled. The estimator is trained, unlabelled
    rows are clustered in the space that it has learned, and the clusters are scored on the hidden rows, whose classes
    are known. No label of a novel class is used: none is even passed.

    One training with one seed says little: of networks, the highest of forty such scores is often a lucky one. So the
    search is a race. All trials are run with one seed, the best of them with more, and the winner is chosen without
    the first seed, by which it came that far. `paper` makes the search of the paper, which has no race.

    An estimator whose training does not depend on the number of clusters has a method ``cluster(X,
    n_clusters, random_state)`` and ``estimate_n_clusters(X, index, k_range, random_state, n_runs)``. One training
    then serves both settings: the number of novel classes known, and estimated in the fold from the novel
    rows. For other estimators, the number is estimated once from the novel rows as they are, and only the
    ranked setting is scored. An estimator with a method ``fit_many`` is trained in stacks.

    Parameters
    ----------
    estimator : estimator
        With ``fit(X, y)`` where -1 marks unlabelled rows, ``labels_``, and the parameter ``n_clusters``.
    param_distributions : dict
        Names of hyperparameters, and for each a scipy distribution or a list, as in scikit-learn's
        RandomizedSearchCV. Methods offer theirs as ``search_space(n_features)``.
    n_iter : int, default=40
        Number of hyperparameter sets (trials). Trial i depends on `random_state` and i alone, so that a
        larger `n_iter` extends the same sequence.
    cv : HiddenClassKFold, int or None
        The folds, or their number; by default five, hiding half of the known classes.
    n_clusters : int or None
        The number of novel classes, if it is known.
    index : str or None
        The validity index that estimates the number of novel classes; by default the estimator's
        ``n_clusters`` if that is a name, or else "silhouette".
    k_range : iterable of int or None
        Candidates for the number of novel classes; see `estimate_n_clusters`.
    setting : {"known", "estimated"} or None
        Which score ranks the trials; by default "known" if `n_clusters` is given.
    both_settings : bool, default=True
        With `n_clusters` given, score the estimated number too where one training serves both. Estimating takes
        longer than training small networks: False saves it.
    scoring : str, callable or None
        What ranks the trials. "ari", "acc" and "nmi" score the hidden rows where they are clustered with the novel
        ones, as in the paper; "ari_alone", "acc_alone" and "nmi_alone" where they are clustered by themselves, into as
        many clusters as there are hidden classes; that needs an estimator with `cluster` or `transform`. A callable
        gets the true classes and the joint clusters of the hidden rows. By default "ari_alone", which chose better
        wherever the two were compared, or "ari" if the estimator can not do that. All of them are stored.
    race : sequence of (trials, seeds) or None, default=((12, 5), (4, 10))
        The rounds that follow the first: so many of the best trials go on, until they have been run with so many
        seeds in each fold. None chooses by the first seed.
    vote : bool, default=True
        With the number of novel classes estimated: the best quarter of the trials vote for the number that each counts
        in most folds, and the winner is chosen among those that agree with the majority. False lets every trial have
        its own number; a lucky one may then win that counts wrongly.
    refit : bool, default=True
        Fit the best trial on all rows, as ``best_estimator_``.
    n_jobs : int or None
        Processes, as in scikit-learn; each uses one thread. ``joblib.parallel_config(backend="dask")``
        spreads the search over a Dask cluster.
    random_state : int or None, default=0
        The same seed gives the same scores and the same fitted model to the last bit, whatever `n_jobs` and the
        number of threads.
    store : path or None
        A CSV file for the result of each fold of each trial, as soon as it is there. The same search with
        the same file goes on where it was stopped.
    stack_size : int, default=20
        Trials that are trained together, where the estimator can. A unit of work is one fold of so many
        trials; later in the race, one fold and the new seeds of one trial.
    verbose : bool, default=True
        Show a progress bar with the best score so far.

    Attributes
    ----------
    best_params_ : dict
    best_score_ : float
        Mean score of the best trial over the folds and the seeds that judge it, on hidden classes.
    best_index_ : int
    best_estimator_ : estimator
        Fitted on all rows (with ``refit=True``).
    labels_ : array of shape (n_rows,)
        Its cluster of each unlabelled row, -1 for labelled rows (with ``refit=True``).
    n_clusters_ : int
        Its number of clusters (with ``refit=True``).
    vote_ : Vote or None
        The number of classes that was voted for (``n_clusters``), and the ballots (``votes``).
    scoring_ : str or callable
        What ranked the trials.
    cv_results_ : dict of arrays
        As in scikit-learn: "params", "param_<name>", "split<i>_test_score", "mean_test_score", "std_test_score" (over
        folds), "rank_test_score", "mean_fit_time". A trial that failed has NaN scores, and its "error".

        - The race: "n_seeds"; where these are more than one, scores are means without the first.
          "standard_error_test_score" is that of the mean, from the seeds (NaN with fewer than three).
          "chance_to_be_best" is the share of 2,000 redraws of the folds, and of a seed in each, in which a trial comes
          first of those in the last round. "total_fit_time" is what the trial cost, in seconds.
        - The readings: "mean_<metric>_known", "mean_<metric>_estimated" and "mean_<metric>_alone"; the one that was
          asked for as "split<i>_score_known", "split<i>_score_estimated", and their means. "mean_visible_acc" is the
          share of visible rows nearest to the mean of their own class in the learned space.
        - "split<i>_n_clusters", the estimates, and "agrees_on_n_clusters"; "split<i>_random_state", the first seed of
          that training and its clustering.
    hidden_classes_ : list of arrays
        The classes that each fold hides.
    n_splits_ : int
    classes_ : array
        The known classes.

    Examples
    --------
    >>> from ncdlib import HiddenClassSearchCV, NCDKMeans, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> search = HiddenClassSearchCV(NCDKMeans(), {"draw_power": [1, 2]}, n_iter=2, n_clusters=3, verbose=False)
    >>> search.fit(problem.X, problem.y).best_params_["draw_power"] in (1, 2)
    True
    >>> search.predict(problem.X_test_novel).shape == problem.y_test_novel.shape
    True
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        param_distributions: Mapping[str, Any],
        *,
        n_iter: int = 40,
        cv: HiddenClassKFold | int | None = None,
        n_clusters: int | None = None,
        index: str | None = None,
        k_range: Iterable[int] | None = None,
        setting: Literal["known", "estimated"] | None = None,
        both_settings: bool = True,
        scoring: Scoring | None = None,
        race: Race | None = DOZEN_THEN_FOUR,
        vote: bool = True,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: int | None = 0,
        store: str | os.PathLike | None = None,
        stack_size: int = 20,
        verbose: bool = True,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.cv = cv
        self.n_clusters = n_clusters
        self.index = index
        self.k_range = k_range
        self.setting = setting
        self.both_settings = both_settings
        self.scoring = scoring
        self.race = race
        self.vote = vote
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.store = store
        self.stack_size = stack_size
        self.verbose = verbose

    @classmethod
    def paper(cls, estimator: BaseEstimator, param_distributions: Mapping[str, Any], **options: Any) -> Self:
        """Make the search of the paper's Algorithm 1: joint ARI, one seed for each fold, every trial its own count.

        Parameters
        ----------
        estimator, param_distributions, **options
            As in the class; an option given here is taken.

        Examples
        --------
        >>> from ncdlib import HiddenClassSearchCV, NCDKMeans
        >>> search = HiddenClassSearchCV.paper(NCDKMeans(), {"draw_power": [1, 2]}, n_clusters=3)
        >>> search.scoring, search.race, search.vote
        ('ari', None, False)
        """
        return cls(estimator, param_distributions, **({"scoring": "ari", "race": None, "vote": False} | options))

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Search, then fit the best trial on all rows.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
        y : array of shape (n_rows,)
            Known classes, and -1 (or None, NaN) for the rows to discover classes in.
        """
        protocol = self._check_parameters()
        X_checked = check_rows(X, self)
        codes, self.classes_ = encode_labels(y)
        check_consistent_length(X_checked, codes)
        if not np.any(codes == UNLABELED):
            raise ValueError("y has no unlabelled row: mark the rows to discover classes in with -1")
        cv = self.cv if isinstance(self.cv, HiddenClassKFold) else HiddenClassKFold(self.cv)
        folds = list(cv.split(X_checked, codes))
        self.n_splits_ = len(folds)
        self.hidden_classes_ = [self.classes_[fold.classes] for fold in folds]
        self.scoring_ = protocol.scoring
        seed = check_seed(self.random_state)
        trials = [Trial.draw(number, self.param_distributions, seed) for number in range(self.n_iter)]

        fingerprint = self._fingerprint(protocol, X_checked, codes, folds)
        results = SearchResults(self.store, *fingerprint, self.n_iter, len(folds), protocol.scoring)
        if results.is_old and check_race(self.race):
            raise ValueError(f"{self.store} was written before there were races: give another file, or race=None")
        n_seeds = self._run(X_checked, codes, protocol, folds, trials, results)
        self.cv_results_ = results.table(trials, n_seeds, protocol.setting, self.vote_)
        scores = self.cv_results_["mean_test_score"]
        failed = np.isnan(scores)
        if failed.all():
            first = self.cv_results_["error"][0]
            raise ValueError(f"all {self.n_iter} trials failed; the first one: {first}")
        if failed.any():
            warnings.warn(f"{failed.sum()} of {self.n_iter} trials failed: see cv_results_['error']", stacklevel=2)
        self.best_index_ = int(np.argmin(self.cv_results_["rank_test_score"]))
        self.best_score_ = float(scores[self.best_index_])
        self.best_params_ = trials[self.best_index_].params
        if self.refit:
            self._refit(protocol, X, y, X_checked, codes)
        return self

    def _run(
        self,
        X: NDArray,
        codes: NDArray,
        protocol: Protocol,
        folds: Sequence[HiddenClassFold],
        trials: Sequence[Trial],
        results: SearchResults,
    ) -> NDArray[np.int64]:
        """Run the rounds, the vote after the first; return the number of seeds that each trial was run with."""
        blocks = [trials[start : start + self.stack_size] for start in range(0, self.n_iter, self.stack_size)]
        units = [[(trial, 0) for trial in block] for block in blocks]
        n_seeds = np.ones(len(trials), dtype=np.int64)
        self.vote_: Vote | None = None
        with (
            one_thread(),  # held here, too: of workers that are threads, the first to end would lift it for the others
            collapse_is_no_news(),
            tqdm(
                total=len(trials) * len(folds), initial=results.n_done(n_seeds), desc="search", disable=not self.verbose
            ) as progress,
        ):
            self._run_round(X, codes, protocol, folds, units, results, n_seeds, progress)
            scores = results.values(column_of(protocol.scoring, protocol.setting))
            alive = np.arange(len(trials))
            if self.vote and protocol.setting == "estimated":
                self.vote_ = vote(judged(scores, n_seeds).mean(axis=1), results.values("n_clusters")[:, :, 0])
                alive = np.flatnonzero(self.vote_.agrees)
            for n_trials, until in check_race(self.race):
                scores = results.values(column_of(protocol.scoring, protocol.setting), int(n_seeds.max()))
                alive = best_trials(judged(scores, n_seeds).mean(axis=1), alive, n_trials)
                if len(alive) < 2:  # nobody to race with
                    break
                # A trial is in a stack with itself alone: who else is in the race does not touch its last bits, and the
                # same file serves other readings of the score.
                new = [[(trials[t], s) for s in range(n_seeds[t], until)] for t in sorted(alive)]
                size = self.stack_size
                units = [unit[start : start + size] for unit in new for start in range(0, len(unit), size)]
                n_seeds[alive] = until
                progress.total = int(n_seeds.sum()) * len(folds)
                progress.n = results.n_done(n_seeds)
                self._run_round(X, codes, protocol, folds, units, results, n_seeds, progress)
        return n_seeds

    def _run_round(
        self,
        X: NDArray,
        codes: NDArray,
        protocol: Protocol,
        folds: Sequence[HiddenClassFold],
        units: Sequence[Sequence[tuple[Trial, int]]],
        results: SearchResults,
        n_seeds: NDArray,
        progress: tqdm,
    ) -> None:
        # A unit is trained whole even if only a part is missing: a model's last bits may depend on its stack.
        tasks = [
            (number, unit)
            for unit in units
            for number in range(len(folds))
            if not all(results.has(trial.number, number, repeat) for trial, repeat in unit)
        ]
        if tasks and not protocol.clusters_afresh:
            protocol.estimate_from_features(X, codes, check_seed(self.random_state))
        jobs = (delayed(run_unit)(X, codes, protocol, folds[number], number, unit) for number, unit in tasks)

        def show() -> None:
            scores = results.values(column_of(protocol.scoring, protocol.setting), int(n_seeds.max()))
            means = judged(scores, n_seeds).mean(axis=1)
            progress.set_postfix_str("" if np.isnan(means).all() else f"best score {np.nanmax(means):.3f}")

        show()
        with as_they_come(jobs, self.n_jobs) as done:
            for rows in done:
                progress.update(sum(results.add(row) for row in rows))
                show()

    def _refit(self, protocol: Protocol, X: ArrayLike, y: ArrayLike, X_checked: NDArray, codes: NDArray) -> None:
        seed = check_seed(self.random_state)
        if not protocol.clusters_afresh:  # the same estimate as in the folds
            protocol.estimate_from_features(X_checked, codes, seed)
        estimated = protocol.k_from_features or (self.vote_.n_clusters if self.vote_ else protocol.index)
        k = protocol.n_clusters if protocol.setting == "known" else estimated
        final = {"n_clusters": k, "random_state": seed_of(seed, REFIT)} | ({} if self.verbose else {"verbose": False})
        began = time.perf_counter()
        with one_thread():
            model = configure(clone(self.estimator), self.best_params_ | final).fit(X, y)
            if isinstance(k, str) and self.k_range is not None:
                # `fit` counts within the estimator's own range, the search within the one that was asked for
                novel = codes == UNLABELED
                k = protocol.estimate(model, X_checked, codes, novel, ~novel, final["random_state"])
                model = model if k == model.n_clusters_ else model.set_params(n_clusters=k).fit(X, y)
            self.best_estimator_ = model
        self.refit_time_ = time.perf_counter() - began
        self.labels_ = self.best_estimator_.labels_
        self.n_clusters_ = getattr(self.best_estimator_, "n_clusters_", k)

    @available_if(_refitted_has("predict"))
    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Assign rows to the clusters of ``best_estimator_``."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @available_if(_refitted_has("transform"))
    def transform(self, X: ArrayLike) -> NDArray:
        """Project rows with ``best_estimator_``."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.transform(X)

    def fit_predict(self, X: ArrayLike, y: ArrayLike) -> NDArray[np.int64]:
        """Search and fit; return ``labels_``."""
        return self.fit(X, y).labels_

    def _check_parameters(self) -> Protocol:
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "get_params"):
            raise ValueError(f"estimator must be an estimator such as PBN(), got {self.estimator!r}")
        if not isinstance(self.param_distributions, Mapping):
            raise ValueError(
                "param_distributions must be a dict from names of hyperparameters to lists or distributions, "
                f"got {self.param_distributions!r}"
            )
        for name in ("n_clusters", "random_state"):
            if name in self.param_distributions:
                raise ValueError(f"param_distributions must not hold {name}: give it to HiddenClassSearchCV itself")
        check_positive(n_iter=self.n_iter, stack_size=self.stack_size)
        check_seed(self.random_state)
        if not isinstance(self.cv, HiddenClassKFold | int | np.integer | None):
            raise ValueError(f"cv must be a HiddenClassKFold, a number of folds or None, got {self.cv!r}")
        k_range = tuple(self.k_range) if np.iterable(self.k_range) else (0,)
        if self.k_range is not None and not all(isinstance(k, int | np.integer) and k > 0 for k in k_range):
            raise ValueError(f"k_range must hold positive numbers of clusters, got {self.k_range!r}")
        check_scoring(self.scoring)
        check_race(self.race)
        setting = self.setting or ("estimated" if self.n_clusters is None else "known")
        if setting not in SETTINGS:
            raise ValueError(f"setting must be 'known' or 'estimated', got {setting!r}")
        if setting == "known" and self.n_clusters is None:
            raise ValueError("setting='known' needs the number of novel classes: pass n_clusters")
        if self.n_clusters is not None and not (isinstance(self.n_clusters, int | np.integer) and self.n_clusters > 0):
            raise ValueError(f"n_clusters must be a positive integer or None, got {self.n_clusters!r}")
        if self.store is not None and self.random_state is None:
            raise ValueError("a search that can be resumed needs an integer random_state")
        parameters = self.estimator.get_params()
        if "n_clusters" not in parameters:
            raise ValueError(f"{type(self.estimator).__name__} has no parameter n_clusters")
        can_alone = can_cluster_alone(self.estimator)
        scoring = self.scoring or ("ari_alone" if can_alone else "ari")
        if not callable(scoring) and scoring.endswith(ALONE) and not can_alone:
            raise ValueError(
                f"scoring={scoring!r} clusters the hidden rows by themselves, and {type(self.estimator).__name__} has "
                f"neither cluster nor transform: scoring={scoring.removesuffix(ALONE)!r} does without"
            )
        own = parameters["n_clusters"]
        index = self.index or (own if isinstance(own, str) else "silhouette")
        check_index(index, INDICES)
        clusters_afresh = hasattr(self.estimator, "cluster")
        both = clusters_afresh and self.both_settings and self.n_clusters is not None
        return Protocol(
            estimator=configure(clone(self.estimator), {"verbose": False}),
            clusters_afresh=clusters_afresh,
            n_clusters=self.n_clusters,
            index=index,
            k_range=None if self.k_range is None else k_range,
            setting=setting,
            settings=SETTINGS if both else (setting,),
            scoring=scoring,
        )

    def _fingerprint(
        self, protocol: Protocol, X: NDArray, codes: NDArray, folds: Sequence[HiddenClassFold]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """What a stored result depends on, in parts, so that a refusal can say what differs; and as it was once.

        Every named score is stored, so it does not matter which of them ranks; there, only that one was.
        """
        parameters = {name: value for name, value in self.estimator.get_params().items() if name != "verbose"}
        parts = {
            "data": [X.shape, str(X.dtype), X.tobytes(), codes.tobytes(), [str(c) for c in self.classes_]],
            "estimator": [type(self.estimator).__name__, sorted((k, repr(v)) for k, v in parameters.items())],
            "param_distributions": sorted((k, _text(v)) for k, v in self.param_distributions.items()),
            "cv": [fold.classes.tolist() for fold in folds],
            "random_state": self.random_state,
            "n_clusters": [protocol.n_clusters, protocol.index, protocol.k_range, protocol.settings],
        }
        name = _name(protocol.scoring)
        old = parts | {"scoring": name}
        return _digests(old if callable(protocol.scoring) else parts), _digests(old)


def _digests(parts: Mapping[str, Any]) -> dict[str, str]:
    return {name: hashlib.sha256(repr(part).encode()).hexdigest()[:12] for name, part in parts.items()}


def _name(scoring: Scoring) -> str:
    """A scoring as text that is the same in every process."""
    if not callable(scoring):
        return scoring
    return f"{getattr(scoring, '__module__', '')}.{getattr(scoring, '__qualname__', type(scoring).__qualname__)}"


def _text(distribution: Any) -> str:
    """A distribution as text that is the same in every process."""
    if hasattr(distribution, "dist"):  # a frozen distribution of scipy.stats
        return f"{distribution.dist.name} {distribution.args} {sorted(distribution.kwds.items())}"
    if hasattr(distribution, "rvs"):  # another kind, known by what it gives
        random = np.random.RandomState(0)
        return repr([distribution.rvs(random_state=random) for _ in range(16)])
    return repr(list(distribution))
