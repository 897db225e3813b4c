"""The ledger of claims on a page: a list to unfold, filter and link to."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

import pandas as pd

from ncdlib.evidence.claims import ALL_VIEWS, HOLDS, UNKNOWN, VERDICTS
from ncdlib.evidence.paper import CORRELATION, TABLES

if TYPE_CHECKING:
    from IPython.display import HTML

SLIPS = "unreported.html#slips"  # claims that the paper's own figures answer


def claims_html(claims: pd.DataFrame, *, filters: bool = False, open_first: bool = False) -> HTML:
    """Show claims as a list to unfold: each with its verdict, the numbers behind it, and how to measure it again.

    Parameters
    ----------
    claims : DataFrame
        Rows of `ledger`.
    filters : bool
        Put fields above the list that narrow it down (once on a page).
    open_first : bool
        Unfold the first claim.

    Examples
    --------
    >>> from ncdlib.evidence import ledger
    >>> from ncdlib.evidence.show import claims_html
    >>> page = claims_html(ledger().head(2), filters=True)
    >>> page.data.count("<details")
    2
    """
    from IPython.display import HTML

    style = f"<style>\n{_file('ledger.css')}</style>"
    cards = "".join(
        _card(row, opened=open_first and i == 0, anchor=filters) for i, row in enumerate(claims.itertuples())
    )
    if not filters:
        return HTML(f'{style}<div class="claims">{cards}</div>')
    options = "".join(f'<option value="{v}">{v}</option>' for v in VERDICTS)
    topics = dict.fromkeys(claims["chapter"])
    chapters = "".join(f'<option value="{topic}">{_in_words(topic)}</option>' for topic in topics)
    fields = (
        '<div class="filters"><label>words <input name="text" type="search" autocomplete="off"></label>'
        f'<label>verdict <select name="verdict"><option value="">all</option>{options}</select></label>'
        f'<label>chapter <select name="chapter"><option value="">all</option>{chapters}</select></label>'
        f'<span role="status">{len(claims)} claims</span></div>'
    )
    script = f"<script>\n{_file('ledger.js')}</script>"
    return HTML(f'{style}<div class="claims" id="claims-ledger">{fields}{cards}</div>{script}')


def _file(name: str) -> str:
    return files("ncdlib.evidence.show").joinpath(name).read_text(encoding="utf-8")


def _in_words(chapter: str) -> str:
    """Name a chapter by its topic; its number is the table of contents' affair."""
    return chapter.replace("_", " ")


def _badge(verdict: str) -> str:
    return f'<span class="verdict {verdict.replace(" ", "-")}">{verdict}</span>'


_VIEW_NAMES = {
    "published": "ours, published hyperparameters",
    "searched": "ours, own search",
    "mended": "ours, TabularNCD mended",
}


def _card(row, opened: bool, anchor: bool) -> str:
    lines = []
    if row.paper_verdict:
        lines.append(("the paper's own tables", _badge(row.paper_verdict) + escape(row.paper)))
    else:
        lines.append(("the paper", escape(row.paper)))
    for name in ALL_VIEWS:
        if getattr(row, f"{name}_verdict"):
            lines.append((_VIEW_NAMES[name], _badge(getattr(row, f"{name}_verdict")) + escape(getattr(row, name))))
    if row.cells and row.without_variants not in (row.verdict, UNKNOWN):
        lines.append(("without Human and Census", _badge(row.without_variants)))
    for name, text in (("still missing", row.missing), ("data", row.caveat)):
        if text:
            lines.append((name, escape(text)))
    if row.cells:
        tables = dict.fromkeys(cell.split(" / ")[0] for cell in row.cells.split("; "))
        lines.append(("measured in", ", ".join(_link(table) for table in tables)))
        lines.append(("measure it again", "<br>".join(f"<code>{escape(c)}</code>" for c in _commands(row.cells))))
    else:
        lines.append(("checked in", f'<a href="{SLIPS}">chapter “{_in_words(row.chapter)}”</a>'))
    if not anchor:
        lines.append(("in the ledger", f'<a href="claims.html#claim-{row.id}">{row.id}</a>'))
    rows = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in lines)
    id_ = f' id="claim-{row.id}"' if anchor else ""
    return (
        f'<details{id_} data-verdict="{row.verdict}" data-chapter="{row.chapter}"{" open" if opened else ""}>'
        f"<summary>{_badge(row.verdict)}{escape(row.claim)} <small>({escape(row.place)})</small></summary>"
        f"<dl>{rows}</dl></details>"
    )


def _link(table: str) -> str:
    chapter = f"chapter “{_in_words(TABLES[table].chapter)}”"
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
    plural = {HOLDS: "hold", "holds in part": "hold in part", "does not hold": "do not hold"}
    parts = [f"{counts[v]} {v if counts[v] == 1 else plural.get(v, v)}" for v in VERDICTS if v in counts]
    return ", ".join(parts)
