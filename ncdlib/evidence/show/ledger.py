"""The ledger of claims on a page: a table to unfold, sort, filter and link to."""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

import pandas as pd

from ncdlib.evidence.claims import ALL_VIEWS, FAILS, HOLDS, IN_PART, UNKNOWN, VERDICTS
from ncdlib.evidence.claims.claim import places_of
from ncdlib.evidence.paper import CORRELATION, TABLES

if TYPE_CHECKING:
    from IPython.display import HTML

SLIPS = "unreported.html#slips"  # claims that the paper's own figures answer


def claims_html(claims: pd.DataFrame, *, filters: bool = False, open_first: bool = False) -> HTML:
    """Show claims as a table: the paper's number, ours, the verdict; each unfolds to its runs and how to measure again.

    Parameters
    ----------
    claims : DataFrame
        Rows of `ledger`.
    filters : bool
        Put fields above the table that narrow it down (once on a page).
    open_first : bool
        Unfold the first claim.

    Examples
    --------
    >>> from ncdlib.evidence import ledger
    >>> from ncdlib.evidence.show import claims_html
    >>> page = claims_html(ledger().head(2), filters=True)
    >>> page.data.count("<tbody")
    2
    """
    from IPython.display import HTML

    style = f"<style>\n{_file('verdicts.css')}{_file('ledger.css')}</style>"
    script = f"<script>\n{_file('ledger.js')}</script>"
    head = "".join(f'<th scope="col">{name}</th>' for name in ("claim", *_COLUMNS, "verdict"))
    bodies = "".join(
        _claim(row, opened=open_first and i == 0, anchor=filters) for i, row in enumerate(claims.itertuples())
    )
    table = f"<div><table><thead><tr>{head}</tr></thead>{bodies}</table></div>"
    id_ = ' id="claims-ledger"' if filters else ""
    return HTML(f'{style}<div class="claims"{id_}>{_fields(claims) if filters else ""}{table}</div>{script}')


def _file(name: str) -> str:
    return files("ncdlib.evidence.show").joinpath(name).read_text(encoding="utf-8")


def _fields(claims: pd.DataFrame) -> str:
    """Make the fields of the filter, which the script shows and follows."""
    places = sorted({place for row in claims.itertuples() for place in places_in_paper(row)}, key=_order_of_place)
    choices = {
        "verdict": {verdict: verdict for verdict in VERDICTS},
        "chapter": {topic: _chapter(topic, "option") for topic in dict.fromkeys(claims["chapter"])},
        "place": dict.fromkeys(places),
    }
    labels = {"place": "in the paper"}
    selects = "".join(
        f'<label>{labels.get(name, name)} <select name="{name}"><option value="">all</option>'
        + "".join(
            text if name == "chapter" else f'<option value="{escape(value)}">{escape(value)}</option>'
            for value, text in options.items()
        )
        + "</select></label>"
        for name, options in choices.items()
    )
    return (
        '<div class="filters" hidden><label>words, or a &quot;phrase&quot; '
        f'<input name="words" type="search" autocomplete="off"></label>{selects}'
        f'<button type="button">show all</button><span role="status">{len(claims)} claims</span></div>'
    )


def _order_of_place(place: str) -> tuple:
    """Sort tables, figures and algorithms before sections, and 2 before 10."""
    kinds = ("Table", "Figure", "Algorithm", "Abstract", "Section", "Appendix")
    kind, _, number = place.partition(" ")
    rank = kinds.index(kind) if kind in kinds else len(kinds)
    return rank, [int(part) for part in re.findall(r"\d+", number)], number


def places_in_paper(row) -> list[str]:
    """List where the paper makes a claim, or what of the paper it is about: sections, tables, figures, algorithms.

    Examples
    --------
    >>> from ncdlib.evidence import ledger
    >>> from ncdlib.evidence.show.ledger import places_in_paper
    >>> places_in_paper(next(ledger().itertuples()))
    ['Section 7.2.1', 'Table 3', 'Algorithm 2']
    """
    about = [name for name in row.about.split(", ") if name.startswith("Algorithm")]
    return [*dict.fromkeys([*places_of(row.place), *about])]


def place_anchor(place: str) -> str:
    """Return the anchor of a table, figure, algorithm or section on the map of the paper.

    Examples
    --------
    >>> from ncdlib.evidence.show.ledger import place_anchor
    >>> place_anchor("Section 7.2.1")
    'map-section-7-2-1'
    """
    return "map-" + re.sub(r"[^a-z0-9]+", "-", place.lower()).strip("-")


def _chapter(topic: str, tag: str = "span") -> str:
    """Name a chapter by its topic, in a way that the book puts its number there (`book/_ext/claims_in_text.py`)."""
    value = f' value="{topic}"' if tag == "option" else ""
    return f'<{tag}{value} class="chapter-by-topic">chapter “{topic.replace("_", " ")}”</{tag}>'


def verdict_class(verdict: str) -> str:
    """Return the class that gives a verdict its colour, in `verdicts.css`.

    Examples
    --------
    >>> from ncdlib.evidence.show.ledger import verdict_class
    >>> verdict_class("holds in part")
    'holds-in-part'
    """
    return verdict.replace(" ", "-")


def _badge(verdict: str) -> str:
    return f'<span class="verdict {verdict_class(verdict)}">{verdict}</span>'


_COLUMNS = ("paper", "published", "searched")
_VIEW_NAMES = {
    "published": "ours, published hyperparameters",
    "searched": "ours, own search",
    "mended": "ours, TabularNCD mended",
}


def _claim(row, opened: bool, anchor: bool) -> str:
    """Make two rows of a claim: what is seen at a glance, and what it unfolds to."""
    id_ = f' id="claim-{row.id}"' if anchor else ""
    places = escape("|".join(places_in_paper(row)))
    cells = "".join(_glance(name, getattr(row, f"{name}_verdict"), getattr(row, f"{name}_short")) for name in _COLUMNS)
    lines = "".join(f"<dt>{name}</dt>\n<dd>{text}</dd>\n" for name, text in _numbers(row) + _ways(row, anchor))
    return (
        f'<tbody{id_} data-verdict="{row.verdict}" data-chapter="{row.chapter}" data-places="{places}"'
        f"{' data-open' if opened else ''}>"
        f'<tr><th scope="row"><span class="says">{escape(row.claim)}</span> <small>({escape(row.place)})</small></th>\n'
        f'{cells}<td data-label="verdict" data-sort="{VERDICTS.index(row.verdict)}">{_badge(row.verdict)}</td></tr>\n'
        f'<tr class="more"><td colspan="{len(_COLUMNS) + 2}"><dl>{lines}</dl></td></tr></tbody>'
    )


def _glance(column: str, outcome: str, short: str) -> str:
    """Make a cell: the number that tells most, and by a sign what it says about the claim; a dash without an answer."""
    number = re.search(r"[-+]?\d+(\.\d+)?", short)
    sort = number[0] if number else ""
    sign = f'<span class="sign {verdict_class(outcome)}"><span>{outcome}: </span></span> ' if outcome else ""
    return f'<td data-label="{column}" data-sort="{sort}">{sign}{escape(short) or "–"}</td>\n'


def _numbers(row) -> list[tuple[str, str]]:
    """List the answers with their numbers, and what is missing."""
    if row.paper_verdict:
        lines = [("the paper's own tables", _badge(row.paper_verdict) + " " + escape(row.paper))]
    else:
        lines = [("the paper", escape(row.paper))]
    for name in ALL_VIEWS:
        if outcome := getattr(row, f"{name}_verdict"):
            lines.append((_VIEW_NAMES[name], _badge(outcome) + " " + escape(getattr(row, name))))
    if row.cells and row.without_variants not in (row.verdict, UNKNOWN):
        lines.append(("without Human and Census", _badge(row.without_variants)))
    return lines + [(name, escape(text)) for name, text in (("missing", row.missing), ("data", row.caveat)) if text]


def _ways(row, anchor: bool) -> list[tuple[str, str]]:
    """List where to go from a claim: the paper, its runs, the commands that measure it again, its address."""
    lines = []
    if row.cells:
        tables = dict.fromkeys(cell.split(" / ")[0] for cell in row.cells.split("; "))
        lines.append(("measured in", ", ".join(_link(table) for table in tables)))
        lines.append(("measure it again", "<br>".join(f"<code>{escape(c)}</code>" for c in _commands(row.cells))))
    else:
        lines.append(("checked in", f'<a href="{SLIPS}">{_chapter(row.chapter)}</a>'))
    on_map = (f'<a href="paper_map.html#{place_anchor(place)}">{escape(place)}</a>' for place in places_in_paper(row))
    lines.append(("on the map of the paper", ", ".join(on_map)))
    other = [name for name in row.about.split(", ") if name and not name.startswith("Algorithm")]
    if other:
        lines.append(("about", escape(", ".join(other))))
    name = "its address" if anchor else "in the ledger"
    return [*lines, (name, f'<a href="claims.html#claim-{row.id}">claim-{row.id}</a>')]


def _link(table: str) -> str:
    chapter = _chapter(TABLES[table].chapter)
    label = ", ".join(filter(None, (TABLES[table].number, chapter)))
    return f'<a href="{TABLES[table].page}">{label}</a>'


def _commands(cells: str) -> list[str]:
    """Return the commands that measure the cells of a claim again, on a data set that is quick."""
    commands = []
    for cell in cells.split("; "):
        table, method = cell.split(" / ")
        if table == CORRELATION:
            again = f'ncd reproduce {table} --datasets pendigits --methods "{method}" --again'
            commands.append(f"cp -r results copy; NCDLIB_RESULTS=copy {again}")
        elif table == "perf_wrt_share":
            seven = '--variant "7 novel, combination 0"'
            commands.append(f'ncd verify "{TABLES[table].number}" --dataset letter --method "{method}" {seven}')
        else:
            named = f'"{TABLES[table].number}"' if TABLES[table].number else table
            commands.append(f'ncd verify {named} --dataset pendigits --method "{method}"')
    return commands


def verdicts(claims: pd.DataFrame) -> dict[str, str]:
    """Return the verdict of each claim by its id, for sentences."""
    return dict(zip(claims["id"], claims["verdict"], strict=True))


def count_of_verdicts(claims: pd.DataFrame) -> str:
    """Say how many claims got which verdict.

    Examples
    --------
    >>> import pandas as pd
    >>> from ncdlib.evidence.show import count_of_verdicts
    >>> count_of_verdicts(pd.DataFrame({"verdict": ["holds", "holds", "does not hold"]}))
    '2 hold, 1 does not hold'
    """
    counts = claims["verdict"].value_counts()
    return ", ".join(count_with_verdict(counts[v], v) for v in VERDICTS if v in counts)


def count_with_verdict(n: int, verdict: str) -> str:
    """Say that so many claims got a verdict.

    Examples
    --------
    >>> from ncdlib.evidence.show.ledger import count_with_verdict
    >>> count_with_verdict(1, "does not hold"), count_with_verdict(2, "does not hold")
    ('1 does not hold', '2 do not hold')
    """
    plural = {HOLDS: "hold", IN_PART: "hold in part", FAILS: "do not hold"}
    return f"{n} {verdict if n == 1 else plural.get(verdict, verdict)}"
