"""What a claim is, what answers it, and the list to which each file of this package adds its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ncdlib.evidence.paper import TABLES

if TYPE_CHECKING:
    from ncdlib.evidence.claims.view import View

HOLDS, IN_PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "cannot be judged here"
VERDICTS = (HOLDS, IN_PART, FAILS, UNKNOWN)

ALL_VIEWS = ("published", "searched", "mended")
PUBLISHED = ("published",)  # also where there is nothing to tune
SEARCHED = ("searched",)
BOTH = ("published", "searched")
INSIDE_PAPER = ("paper",)


class Finding(NamedTuple):
    """An answer: how it bears on the claim, the numbers, and in a word or two the number that tells most.

    Examples
    --------
    >>> from ncdlib.evidence.claims import HOLDS, Finding
    >>> Finding(HOLDS, "PBN 82.8, Baseline 46.1", "+36.7").outcome
    'holds'
    """

    outcome: str
    text: str
    short: str = ""


Judge = Callable[["View"], Finding]


class NotMeasured(Exception):
    """What a claim needs and `results/` does not hold."""


@dataclass(frozen=True)
class Claim:
    """Something the paper says, where it says it, and the function that answers it.

    Attributes
    ----------
    id : str
    place : str
        Section, and the table or figure that it refers to.
    says : str
        The claim in our words.
    judge : callable
        From a `View` of the tables to a `Finding`.
    table : str
        The label of the table or figure that it rests on.
    views : tuple of str
        With which hyperparameters it is judged; ("paper",) for the arithmetic inside the paper.
    about : str
        What else a reader may look for it by: an algorithm of the paper, the name of a test.

    Examples
    --------
    >>> from ncdlib.evidence import CLAIMS
    >>> from ncdlib.evidence.claims.claim import places_of
    >>> claim = CLAIMS[0]
    >>> claim.says, claim.full_place, claim.chapter
    ('NCD k-means is never worse than k-means.', 'Section 7.2.1, Table 3', 'known_k')
    >>> claim.about, places_of(claim.full_place)
    ('Algorithm 2', ['Section 7.2.1', 'Table 3'])
    """

    id: str
    place: str
    says: str
    judge: Judge
    table: str
    views: tuple[str, ...] = ALL_VIEWS
    about: str = ""

    @property
    def chapter(self) -> str:
        """The chapter of the book that shows what it is judged by."""
        return "unreported" if self.views == INSIDE_PAPER else TABLES[self.table].chapter

    @property
    def full_place(self) -> str:
        """Its place with the number of the table."""
        return f"{self.place}, {TABLES[self.table].number}"


def places_of(text: str) -> list[str]:
    """Take a place of the paper apart into its sections, tables and figures, each by its full name.

    Examples
    --------
    >>> from ncdlib.evidence.claims.claim import places_of
    >>> places_of("Abstract and Sections 7.2.1 and 8, Appendices B and E, Table 4")
    ['Abstract', 'Section 7.2.1', 'Section 8', 'Appendix B', 'Appendix E', 'Table 4']
    """
    places, kind = [], ""
    for part in re.split(r", | and ", text):
        named = re.fullmatch(r"(Sections?|Appendix|Appendices|Table|Figure|Algorithm) (\S+)", part)
        if named:
            kind = {"Sections": "Section", "Appendices": "Appendix"}.get(named[1], named[1])
        numbered = re.fullmatch(r"[A-Z]|\d[\d.]*", part)
        places.append(f"{kind} {named[2]}" if named else f"{kind} {part}" if numbered else part)
    return places


class ClaimList(list[Claim]):
    """The claims about one table or figure, most of them from the same section of the paper.

    Parameters
    ----------
    table, place : str
        What a claim rests on and where the paper makes it, unless it says otherwise.
    views : tuple of str
        With which hyperparameters a claim is judged, unless it says otherwise.
    about : str
        What else a reader may look for a claim by, unless it says otherwise.

    Examples
    --------
    >>> from ncdlib.evidence.claims import HOLDS, Finding
    >>> from ncdlib.evidence.claims.claim import ClaimList
    >>> claims = ClaimList("ncd", "Section 7.2.1")
    >>> @claims.add("own", "An example.")
    ... def example(view):
    ...     return Finding(HOLDS, "what it says")
    >>> claims[0].full_place
    'Section 7.2.1, Table 4'
    """

    def __init__(self, table: str, place: str, views: tuple[str, ...] = ALL_VIEWS, about: str = "") -> None:
        super().__init__()
        self.table, self.place, self.views, self.about = table, place, views, about

    def add(self, id: str, says: str, judge: Judge | None = None, **other: str | tuple[str, ...]):
        """Add a claim. Without `judge` this decorates the function that answers it.

        `other` may be its place, table, views or about, where they are not those of the list.
        """
        if judge is None:
            return partial(self.add, id, says, **other)
        usual = {"table": self.table, "place": self.place, "views": self.views, "about": self.about}
        self.append(Claim(id=id, says=says, judge=judge, **usual | other))
        return judge


def combine(outcomes: Collection[str]) -> str:
    """Return what several judgements agree on.

    Examples
    --------
    >>> from ncdlib.evidence.claims import combine
    >>> combine(["holds", "holds"]), combine(["holds", "does not hold"]), combine([])
    ('holds', 'holds in part', 'cannot be judged here')
    """
    outcomes = set(outcomes)
    return UNKNOWN if not outcomes else outcomes.pop() if len(outcomes) == 1 else IN_PART
