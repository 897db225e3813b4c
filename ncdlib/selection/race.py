"""From noisy scores to a choice: which trials go on, what they vote for, who wins, and how sure that is.

All functions take arrays: scores (n_trials, n_folds, n_seeds), NaN where a training failed or was not run, and the
number of seeds that each trial was run with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ncdlib._io.checks import check_positive

Race = Sequence[tuple[int, int]]
DOZEN_THEN_FOUR: Race = ((12, 5), (4, 10))
GOOD_SHARE = 0.25  # of the trials: those that have a vote
N_REDRAWS = 2000


def check_race(race: Race | None) -> tuple[tuple[int, int], ...]:
    """Read a race as rounds of (trials, seeds), each with fewer trials and more seeds than the one before."""
    try:
        rounds = tuple((n_trials, n_seeds) for n_trials, n_seeds in race or ())
    except (TypeError, ValueError):
        raise ValueError(
            f"race must be None or pairs (trials, seeds) such as {DOZEN_THEN_FOUR}, got {race!r}"
        ) from None
    for n_trials, n_seeds in rounds:
        check_positive(trials=n_trials, seeds=n_seeds)
    for (more, fewer_seeds), (fewer, more_seeds) in zip([(np.inf, 1), *rounds], rounds, strict=False):
        if fewer > more or more_seeds <= fewer_seeds:
            raise ValueError(f"each round of a race has more seeds, and no more trials, than the last; got {race!r}")
    return rounds


def judged(scores: NDArray, n_seeds: NDArray) -> NDArray[np.float64]:
    """(n_trials, n_folds): the mean over seeds, without the first where there are more: it was lucky, or not here."""
    return np.array(
        [trial[:, min(1, n - 1) : n].mean(axis=1) for trial, n in zip(scores, n_seeds, strict=True)]
    ).reshape(scores.shape[:2])


def best_trials(means: NDArray, among: NDArray, n: int) -> NDArray[np.int64]:
    """Up to `n` trials with the highest means, the best first; none that failed."""
    among = np.asarray(among)[np.isfinite(means[among])]
    return among[np.argsort(-means[among], kind="stable")][:n]


@dataclass(frozen=True)
class Vote:
    """The number of classes that most of the good trials count.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.selection.race import Vote
    >>> Vote(3, {3: 2, 4: 1}, np.array([3, 4, 3])).agrees.tolist()
    [True, False, True]
    """

    n_clusters: int
    votes: dict[int, int]  # by number of classes, over the good trials
    counted: NDArray[np.int64]  # by each trial; 0 where it failed

    @property
    def agrees(self) -> NDArray[np.bool_]:
        return self.counted == self.n_clusters


def vote(means: NDArray, counts: NDArray) -> Vote:
    """Let the best quarter of the trials vote: each for the number that it counts in most folds.

    Parameters
    ----------
    means : array of shape (n_trials,)
    counts : array of shape (n_trials, n_folds)
        Estimated numbers of novel classes.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.selection.race import vote
    >>> counts = [[2, 2, 2], [5, 5, 4], [5, 5, 5]] + 9 * [[3, 3, 3]]
    >>> result = vote(np.array([0.9, 0.8, 0.7] + 9 * [0.1]), np.array(counts))
    >>> result.n_clusters, result.votes  # the winner counts 2, the good ones 5, the many bad ones do not matter
    (5, {2: 1, 5: 2})
    """
    counted = np.array([_most_frequent(row[np.isfinite(row)].astype(int).tolist()) or 0 for row in counts])
    good = best_trials(means, np.flatnonzero(counted), int(np.ceil(GOOD_SHARE * len(means))))
    ballots = counted[good].tolist()
    return Vote(_most_frequent(ballots) or 0, dict(Counter(ballots)), counted)


def _most_frequent(values: list[int]) -> int | None:
    """The first to come where several are."""
    return Counter(values).most_common(1)[0][0] if values else None


def ranks(means: NDArray, n_seeds: NDArray, agrees: NDArray) -> NDArray[np.int64]:
    """Who agrees on k comes first, then who got further in the race, then the higher mean; who failed comes last."""
    values = np.where(np.isfinite(means), means, -np.inf)
    keys = list(zip(np.isfinite(means), agrees, n_seeds, values, strict=True))
    return np.array([1 + sum(other > key for other in keys) for key in keys])


def chance_to_be_best(scores: NDArray, n_seeds: NDArray, eligible: NDArray) -> NDArray[np.float64]:
    """For each trial, the share of 2,000 redraws in which it comes first, among those of the last round.

    A redraw takes folds with replacement, the same for all trials, and in each fold one seed at random of those that
    judge the trial.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.selection.race import chance_to_be_best
    >>> scores = np.array([[[0.9], [0.8]], [[0.5], [0.4]]])  # two trials, two folds, one seed
    >>> chance_to_be_best(scores, np.array([1, 1]), np.array([True, True])).tolist()
    [1.0, 0.0]
    """
    chances = np.zeros(len(scores))
    complete = eligible & np.isfinite(judged(scores, n_seeds)).all(axis=1)
    if not complete.any():
        return chances
    finalists = np.flatnonzero(complete & (n_seeds == n_seeds[complete].max()))
    random = np.random.default_rng(0)
    n_folds = scores.shape[1]
    folds = random.integers(n_folds, size=(N_REDRAWS, n_folds))
    drawn = np.empty((len(finalists), N_REDRAWS))
    for i, trial in enumerate(finalists):
        n = n_seeds[trial]
        seeds = random.integers(min(1, n - 1), n, size=folds.shape)
        drawn[i] = scores[trial][folds, seeds].mean(axis=1)
    chances[finalists] = np.bincount(drawn.argmax(axis=0), minlength=len(finalists)) / N_REDRAWS
    return chances


def standard_errors(scores: NDArray, n_seeds: NDArray) -> NDArray[np.float64]:
    """Of each trial's mean, from how its seeds differ within the folds; NaN with fewer than two that judge it."""
    errors = np.full(len(scores), np.nan)
    for trial, n in enumerate(n_seeds):
        if n > 2:
            within = scores[trial, :, 1:n].var(axis=1, ddof=1) / (n - 1)
            errors[trial] = np.sqrt(within.sum()) / len(within)
    return errors
