"""What ranks the trials of a search: the readings of "the score on the hidden rows", each with a name.

The paper leaves two things open: by which score (Algorithm 1 says ACC, Section 7 says ARI), and on which clusters. In
the paper, the hidden rows are clustered jointly with the novel ones, and the clusters that novel rows share count, too.
Alone, they are clustered into as many clusters as there are hidden classes: nothing then depends on the number of novel
classes, nor on how well an estimate of it happens to suit.
"""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import NDArray

from ncdlib.metrics import SCORES

ALONE = "_alone"
SETTINGS = ("known", "estimated")
READINGS = tuple(name + where for where in ("", ALONE) for name in SCORES)
Scoring = str | Callable[[NDArray, NDArray], float]
CUSTOM = "score"  # the column of a callable


def column_of(scoring: Scoring, setting: str) -> str:
    """Where a stored row has this score: alone, it is the same in both settings.

    Examples
    --------
    >>> from ncdlib.selection.scoring import column_of
    >>> column_of("ari", "known"), column_of("ari_alone", "known"), column_of(max, "known")
    ('ari_known', 'ari_alone', 'score_known')
    """
    if callable(scoring):
        return f"{CUSTOM}_{setting}"
    return scoring if scoring.endswith(ALONE) else f"{scoring}_{setting}"


def columns(scoring: Scoring) -> list[str]:
    """All scores that are stored: every reading in every setting, and a callable's."""
    names = {column_of(reading, setting): None for reading in READINGS for setting in SETTINGS}
    return list(names | {column_of(scoring, setting): None for setting in SETTINGS})


def check_scoring(scoring: Scoring | None) -> None:
    if not (scoring is None or callable(scoring) or scoring in READINGS):
        *names, last = map(repr, READINGS)
        raise ValueError(
            f"scoring must be {', '.join(names)} or {last}, or a callable(y_true, y_pred), got {scoring!r}"
        )
