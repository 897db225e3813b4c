"""The person in the loop: discovered classes are renamed, merged, split and accepted, and each edit can be undone.

A discovery is never changed: an edit returns another one, which remembers the original and the log of all edits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from ncdlib._io.checks import shorten
from ncdlib.methods.metric import KnownClassMetric
from ncdlib.own_data.explain import ClassProfile, describe
from ncdlib.own_data.rows import OUTLIER, Rows
from ncdlib.problem import UNLABELED

if TYPE_CHECKING:
    from ncdlib.own_data.result import Discovery

RESERVED = r"neither|outlier|outlier group \d+|new \(not in the sample\)"  # what other rows are called
SHRINKAGE = 0.1  # of the metric in which a class is split


@dataclass(frozen=True)
class Edit:
    """An entry of the log.

    Attributes
    ----------
    when : str
        Date and time, in UTC.
    action : str
        "rename", "merge", "split", "accept" or "undo".
    classes : list of str
        The classes that it was done to.
    name : str or None
        The new name that was given.
    pieces : int
        Into how many a class was split.

    Examples
    --------
    >>> from ncdlib import discover, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
    >>> [(entry.action, entry.name) for entry in found.rename("new 1", "stains").edits]
    [('rename', 'stains')]
    """

    when: str
    action: str
    classes: list[str]
    name: str | None = None
    pieces: int = 0

    def __str__(self) -> str:
        what = ", ".join(map(repr, self.classes))
        into = f" into {self.pieces}" if self.pieces else ""
        return f"{self.action} {what}{into}{f' as {self.name!r}' if self.name else ''}".strip()


def edit(
    found: Discovery, action: str, classes: Sequence[str] = (), *, name: str | None = None, pieces: int = 0
) -> Discovery:
    """Return the discovery after an edit, which its log then has.

    Examples
    --------
    >>> from ncdlib import discover, make_ncd_blobs
    >>> from ncdlib.own_data.edit import edit
    >>> problem = make_ncd_blobs(random_state=0)
    >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
    >>> first, second, third = (profile.name for profile in found.profiles)
    >>> merged = edit(found, "merge", [first, second], name="both")
    >>> [profile.name for profile in merged.profiles] == ["both", third]
    True
    >>> [profile.name for profile in edit(merged, "undo").profiles] == [first, second, third]
    True
    """
    entry = Edit(datetime.now(UTC).isoformat(" ", "seconds"), action, list(classes), name, pieces)
    original, log = found.original or found, [*found.edits, entry]
    if action == "undo":
        if not _in_force(found.edits):
            raise ValueError("there is no edit to undo")
        edited = original
        for earlier in _in_force(log):
            edited = _apply(edited, earlier)
    else:
        edited = _apply(found, entry)
    return replace(edited, original=original, edits=log)


def _in_force(log: Sequence[Edit]) -> list[Edit]:
    """Return the edits of a log that were not undone."""
    kept: list[Edit] = []
    for entry in log:
        if entry.action == "undo":
            kept.pop()
        else:
            kept.append(entry)
    return kept


def _apply(found: Discovery, entry: Edit) -> Discovery:
    actions = {"rename": _rename, "merge": _merge, "split": _split, "accept": _accept}
    if entry.action not in actions:
        raise ValueError(f"unknown edit {entry.action!r}: choose from {', '.join(actions)}, undo")
    return actions[entry.action](found, entry)


def _rename(found: Discovery, entry: Edit) -> Discovery:
    if len(entry.classes) != 1 or not entry.name:
        raise ValueError("rename takes a class and its new name")
    profile = _find(found, entry.classes[0])
    _check_name(found, entry.name, besides=[profile])
    return _with_profiles(found, [replace(p, name=entry.name) if p is profile else p for p in found.profiles])


def _merge(found: Discovery, entry: Edit) -> Discovery:
    """Make one class of several; if one of them is a known class, the others become rows of it."""
    known = [c for c in known_classes(found) if str(c) in entry.classes]
    profiles = [_find(found, name) for name in dict.fromkeys(entry.classes) if name not in map(str, known)]
    if len(profiles) + len(known) < 2:
        raise ValueError("merge takes two classes or more")
    if len(known) > 1:
        raise ValueError(f"{known[0]!r} and {known[1]!r} are both known: only discovered classes can be merged")
    clusters = [profile.cluster for profile in profiles]
    rows = np.isin(found.labels, clusters)
    if known:
        if entry.name:
            raise ValueError(f"merged with the known class {known[0]!r}, rows have its name: leave the new one out")
        return _make_known(found, rows, known[0], profiles)
    name = entry.name or profiles[0].name
    _check_name(found, name, besides=profiles)
    labels = np.where(rows, clusters[0], found.labels)
    return _with_labels(found, labels, {clusters[0]: name})


def _split(found: Discovery, entry: Edit) -> Discovery:
    """Part a class by k-means, in the metric of the known classes."""
    if len(entry.classes) != 1 or entry.name:
        raise ValueError("split takes one class")
    profile = _find(found, entry.classes[0])
    rows = np.flatnonzero(found.labels == profile.cluster)
    if not 2 <= entry.pieces <= len(rows):
        raise ValueError(
            f"a class of {len(rows)} rows can be split into 2 to {len(rows)} classes, not into {entry.pieces}"
        )
    known = np.array([c is not None for c in found.known])
    position = np.unique(found.known[known].astype(str), return_inverse=True)[1]
    metric = KnownClassMetric(SHRINKAGE).fit(found.numbers[known], position)
    pieces = KMeans(entry.pieces, n_init=10, random_state=0).fit_predict(metric.transform(found.numbers[rows]))
    size = np.bincount(pieces, minlength=entry.pieces)
    if size.min() == 0:
        raise ValueError(f"the rows of {profile.name!r} have fewer than {entry.pieces} different values")
    by_size = np.argsort(np.argsort(-size, kind="stable"))  # the largest is the first
    clusters = np.array([profile.cluster, *(found.labels.max() + np.arange(1, entry.pieces))])
    labels = found.labels.copy()
    labels[rows] = clusters[by_size[pieces]]
    names = {int(cluster): f"{profile.name}.{i}" for i, cluster in enumerate(clusters, start=1)}
    for name in names.values():
        _check_name(found, name)
    return _with_labels(found, labels, names)


def _accept(found: Discovery, entry: Edit) -> Discovery:
    """Make a discovered class a known one: the next round learns from its rows."""
    if len(entry.classes) != 1:
        raise ValueError("accept takes one class")
    profile = _find(found, entry.classes[0])
    name = entry.name or profile.name
    _check_name(found, name, besides=[profile])
    return _make_known(found, found.labels == profile.cluster, name, [profile])


def known_classes(found: Discovery) -> list[Any]:
    """Return the known classes in the order in which `discover` numbers them, then those that were accepted."""
    before = np.unique(np.array([c for c in (found.original or found).known if c is not None]))
    classes = before.tolist()
    return classes + sorted({c for c in found.known if c is not None} - set(classes), key=str)


def next_labels(found: Discovery) -> NDArray:
    """Return the labels of the next round: those that were given, and the accepted ones; None for all other rows."""
    labels = np.where(found.recognised, None, found.known)
    kinds = {type(label) for label in labels if label is not None}
    if len(kinds) > 1:  # numbers, and the names of what was accepted
        labels = np.array([None if label is None else str(label) for label in labels], dtype=object)
    return labels


def _find(found: Discovery, name: str) -> ClassProfile:
    for profile in found.profiles:
        if profile.name == name:
            return profile
    there = shorten(", ".join(profile.name for profile in found.profiles), 200) or "none"
    raise ValueError(f"there is no discovered class {name!r}: there is {there}")


def _check_name(found: Discovery, name: str, besides: Sequence[ClassProfile] = ()) -> None:
    taken = {p.name for p in found.profiles if p not in besides} | {str(c) for c in known_classes(found)}
    if name in taken:
        raise ValueError(f"there is a class {name!r} already: to make one of them, use merge")
    if not name.strip() or re.fullmatch(RESERVED, name):
        raise ValueError(f"a class cannot be named {name!r}")


def _with_profiles(found: Discovery, profiles: list[ClassProfile], **changes: Any) -> Discovery:
    return replace(found, profiles=profiles, n_clusters=len(profiles), **changes)


def _make_known(found: Discovery, rows: NDArray[np.bool_], label: Any, gone: list[ClassProfile]) -> Discovery:
    known = found.known.copy()
    known[rows] = label
    labels = np.where(rows, UNLABELED, found.labels)
    kept = [profile for profile in found.profiles if profile not in gone]
    n_rows = max(int(np.sum(labels >= 0)), 1)
    return _with_profiles(found, [replace(p, share=p.size / n_rows) for p in kept], labels=labels, known=known)


def _with_labels(found: Discovery, labels: NDArray[np.int64], names: dict[int, str]) -> Discovery:
    """Describe the classes that have changed; the others stay what they are."""
    classes = known_classes(found)
    position = {label: i for i, label in enumerate(classes)}
    codes = np.array([OUTLIER if c is None else position[c] for c in found.known])
    codes[labels >= 0] = UNLABELED
    objects = np.empty(len(classes), dtype=object)
    objects[:] = classes
    rows = Rows(
        found.preprocessor,
        objects,
        found.numbers,
        codes,
        np.arange(len(labels)),
        [],
        found.index,
        found.outliers,
        found.recognised,
        found.known_or_new,
    )
    before = {profile.cluster: profile for profile in found.profiles}
    profiles = []
    for profile in describe(labels, [], {}, rows):  # what a person made has no measured confidence
        if profile.cluster in names:
            profiles.append(replace(profile, name=names[profile.cluster]))
        elif profile.cluster in before:
            profiles.append(before[profile.cluster])
    return _with_profiles(found, profiles, labels=labels)
