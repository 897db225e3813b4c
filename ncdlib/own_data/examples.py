"""Rows that show what a class is: typical ones, and those at its border."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ncdlib.own_data.rows import OUTLIER
from ncdlib.problem import UNLABELED

if TYPE_CHECKING:
    from ncdlib.own_data.explain import ClassProfile
    from ncdlib.own_data.result import Discovery

N_ROWS = 3


def examples(found: Discovery, profile: ClassProfile, n_rows: int = N_ROWS) -> tuple[NDArray, NDArray]:
    """Return the positions of the most typical rows of a class, and of those that hardly belong to it.

    By the confidence of each row, where the result has one; else by how much nearer a row is to the mean of its own
    class than to that of the nearest other class. Of rows with the same confidence, this decides as well.

    Examples
    --------
    >>> from ncdlib import discover, make_ncd_blobs
    >>> from ncdlib.own_data.examples import examples
    >>> problem = make_ncd_blobs(random_state=0)
    >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
    >>> typical, borderline = examples(found, found.profiles[0])
    >>> len(typical), len(borderline), len({*typical, *borderline})
    (3, 3, 6)
    """
    members = np.flatnonzero(found.labels == profile.cluster)
    others = found.labels != OUTLIER
    others[members] = False
    _, group = np.unique(
        [
            str(c) if label == UNLABELED else label
            for c, label in zip(found.known[others], found.labels[others], strict=True)
        ],
        return_inverse=True,
    )
    sums = np.zeros((group.max() + 1, found.numbers.shape[1]))
    np.add.at(sums, group, found.numbers[others])
    means = sums / np.bincount(group)[:, None]
    rows = found.numbers[members]
    own = np.linalg.norm(rows - rows.mean(axis=0), axis=1)
    other = np.min([np.linalg.norm(rows - mean, axis=1) for mean in means], axis=0)
    frame = found.to_frame()
    confidence = frame["confidence"].to_numpy()[members] if "confidence" in frame else np.zeros(len(members))
    order = members[np.lexsort([own - other, -confidence])]  # the most typical first
    n_typical = min(n_rows, (len(order) + 1) // 2)
    return order[:n_typical], order[n_typical:][::-1][:n_rows]
