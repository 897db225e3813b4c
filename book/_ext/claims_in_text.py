"""Verdicts in sentences and on the map of the paper, and numbers of the paper in the site's search.

``{claim}`id```
    The verdict on a claim of the ledger, as a mark that leads there.
``{claims}`Table 4```
    How many claims about a table, figure, algorithm or section of the paper got which verdict, as marks that lead to
    these claims. It is the place that the ledger's own links to the map lead to.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import sphinx.search
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish
from sphinx.util.docutils import SphinxRole

from chapters import chapter_numbers

LEDGER = "book/claims"
Parsed = tuple[list[nodes.Node], list[nodes.system_message]]


@cache
def stored_ledger() -> Any:
    from ncdlib.evidence import ledger

    return ledger().set_index("id", drop=False)


def verdicts_by_place(claims: Any) -> dict[str, dict[str, int]]:
    """Count the verdicts for each place of the paper, in the order of the verdicts."""
    from ncdlib.evidence.claims import VERDICTS
    from ncdlib.evidence.show.ledger import places_in_paper

    counts: dict[str, dict[str, int]] = {}
    for verdict in VERDICTS:
        for row in claims[claims["verdict"] == verdict].itertuples():
            for place in places_in_paper(row):
                by_verdict = counts.setdefault(place, {})
                by_verdict[verdict] = by_verdict.get(verdict, 0) + 1
    return counts


class ToLedger(SphinxRole):
    def mark(self, text: str, verdict: str, address: str, title: str) -> nodes.reference:
        from ncdlib.evidence.show.ledger import verdict_class

        page = self.env.app.builder.get_relative_uri(self.env.docname, LEDGER)
        shown = nodes.inline("", text, classes=["verdict", verdict_class(verdict)])
        return nodes.reference("", "", shown, internal=True, refuri=page + address, reftitle=title)

    def complain(self, message: str) -> Parsed:
        error = self.inliner.reporter.error(message, line=self.lineno)
        return [self.inliner.problematic(self.rawtext, self.rawtext, error)], [error]


class ClaimRole(ToLedger):
    def run(self) -> Parsed:
        claims = stored_ledger()
        if self.text not in claims.index:
            return self.complain(f"there is no claim {self.text!r}; the ids are those of the ledger, in its addresses")
        row = claims.loc[self.text]
        return [self.mark(row["verdict"], row["verdict"], f"#claim-{self.text}", f"Claim: {row['claim']}")], []


class ClaimsRole(ToLedger):
    def run(self) -> Parsed:
        from ncdlib.evidence.show.ledger import count_with_verdict, place_anchor

        counts = verdicts_by_place(stored_ledger()).get(self.text, {})
        here: list[nodes.Node] = [nodes.target("", "", ids=[place_anchor(self.text)])]
        for verdict, n in counts.items():
            query = urlencode({"place": self.text, "verdict": verdict})
            text = count_with_verdict(n, verdict)
            here += [self.mark(text, verdict, f"?{query}", f"{self.text}: {text}"), nodes.Text(" ")]
        return here if counts else [*here, nodes.Text("no claim")], []


def name_chapters(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Where the ledger names a chapter by its topic, put its number; in the list to choose from, its title as well."""
    if "chapter-by-topic" in context.get("body", ""):
        numbers = chapter_numbers(Path(app.srcdir) / "_toc.yml")
        titles = {topic: escape(app.env.titles[f"book/{topic}"].astext()) for topic in numbers}
        context["body"] = with_chapter_numbers(context["body"], numbers, titles)


def with_chapter_numbers(html: str, numbers: dict[str, int], titles: dict[str, str]) -> str:
    def named(found: re.Match[str]) -> str:
        tag, topic = found[2], found[3].replace(" ", "_")
        title = f": {titles[topic]}" if tag == "option" else ""
        return f"{found[1]}chapter\N{NO-BREAK SPACE}{numbers[topic]}{title}</{tag}>"

    return re.sub(r'(<(\w+)[^>]* class="chapter-by-topic">)chapter “([^”]+)”</\2>', named, html)


class EnglishWithDecimals(SearchEnglish):
    """English, where 21.6 is one word: Sphinx would make it two numbers, and its search leaves numbers out.

    >>> EnglishWithDecimals({}).split("21.6 points in Section 7.2.1. In 2024.")
    ['21.6', 'points', 'in', 'Section', '7.2.1', 'In', '2024']
    """

    _word_re = re.compile(r"\d+(?:\.\d+)+|\w+")
    js_splitter_code = r"""
function splitQuery(query) {
  return query.match(/\d+(?:\.\d+)+|[\p{Letter}\p{Number}_]+/gu) ?? [];
}
"""


def copy_style(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        style = files("ncdlib.evidence.show").joinpath("verdicts.css").read_text(encoding="utf-8")
        (Path(app.outdir) / "_static" / "verdicts.css").write_text(style, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    sphinx.search.languages["en"] = EnglishWithDecimals
    app.add_role("claim", ClaimRole())
    app.add_role("claims", ClaimsRole())
    app.connect("html-page-context", name_chapters)
    app.connect("build-finished", copy_style, priority=50)
    app.add_css_file("verdicts.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
