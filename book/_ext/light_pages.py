"""Pages that load little and say what they are: icons, formulas and scripts only where they are used, and metadata."""

from __future__ import annotations

import base64
import io
import re
from html import escape
from pathlib import Path
from typing import Any

import plotly
from docutils import nodes
from fontTools import subset
from sphinx.application import Sphinx
from sphinx.util.fileutil import copy_asset_file

DESCRIPTION_LENGTH = 160
MATHJAX = {"loader": {"load": ["core", "input/tex", "output/chtml", "a11y/assistive-mml"]}}
SUMMARY = (
    "Novel class discovery in tabular data: a book with live code that teaches it and checks a paper, claim by claim."
)


def description(doctree: nodes.document | None) -> str:
    """The first sentences of a page, as many as search engines and link previews show.

    >>> description(None) == SUMMARY
    True
    """
    for paragraph in doctree.findall(nodes.paragraph) if doctree else ():
        words = " ".join(paragraph.astext().split())
        if isinstance(paragraph.parent, nodes.section) and "chapter-times" not in paragraph["classes"] and words:
            if len(words) <= DESCRIPTION_LENGTH:
                return words
            return words[:DESCRIPTION_LENGTH].rpartition(" ")[0].rstrip(",;:.") + " …"
    return SUMMARY


def describe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """What search engines and messengers show of a link to this page."""
    site = app.config.html_baseurl
    text = escape(description(doctree))
    title = escape(re.sub(r"<[^>]*>", "", context.get("title", "")) or app.config.html_title)
    context["metatags"] = (
        f'<meta name="description" content="{text}">\n'
        f'<meta property="og:type" content="article">\n<meta property="og:title" content="{title}">\n'
        f'<meta property="og:description" content="{text}">\n<meta property="og:url" content="{site}{page}.html">\n'
        f'<meta property="og:image" content="{site}_static/preview.png">\n'
        '<meta name="twitter:card" content="summary_large_image">\n'
    )


def drop_unused_mathjax(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """MathJax is a third of a page's weight: only where there is a formula."""
    if 'class="math' not in context.get("body", ""):
        kept = [script for script in context["script_files"] if "mathjax" not in _source(script).lower()]
        context["script_files"][:] = kept


def _source(script: Any) -> str:
    return f"{script.filename} {script.attributes.get('body') or ''}"


def load_pieces_of_mathjax(app: Sphinx, config: Any) -> None:
    """Without the menu, the explorer and the other inputs that the complete file holds."""
    config.mathjax_path = "mathjax/startup.js"
    config.mathjax3_config = {**(config.mathjax3_config or {}), **MATHJAX}


def icon_rules(css: str, names: set[str]) -> dict[str, str]:
    """The characters of icons, from the rules of Font Awesome.

    >>> icon_rules('.fa-x:before,.fa-xmark:before{content:"\\\\f00d"}.fa-up:before{content:"\\\\f062"}', {"fa-x"})
    {'fa-x': 'f00d'}
    """
    rules = re.findall(r'((?:\.fa-[\w-]+:before,?)+)\{content:"\\([0-9a-f]+)"\}', css)
    return {
        name[1:]: code for selector, code in rules for name in re.findall(r"\.fa-[\w-]+", selector) if name[1:] in names
    }


def subset_font(path: Path, codes: set[str]) -> bytes:
    font = subset.load_font(str(path), subset.Options())
    subsetter = subset.Subsetter(subset.Options(hinting=False, desubroutinize=True))
    subsetter.populate(unicodes=[int(code, 16) for code in codes])
    subsetter.subset(font)
    font.flavor = "woff"
    file = io.BytesIO()
    font.save(file)
    return file.getvalue()


FONTS = (("Font Awesome 6 Free", 900, "fa-solid-900.ttf"), ("Font Awesome 6 Brands", 400, "fa-brands-400.ttf"))


def shrink_icons(static: Path, pages: list[Path]) -> None:
    """Put the few icons of the site into one small style sheet, for the theme's script with all there are."""
    names = {name for page in pages for name in re.findall(r"fa-[a-z-]+", page.read_text(encoding="utf-8"))}
    names |= {
        name
        for script in static.glob("scripts/*.js")
        if script.name != "fontawesome.js"
        for name in re.findall(r"fa-[a-z-]+", script.read_text(encoding="utf-8"))
    }
    codes = set(icon_rules((static / "styles" / "pydata-sphinx-theme.css").read_text(encoding="utf-8"), names).values())
    rules = []
    for family, weight, file in FONTS:
        font = base64.b64encode(subset_font(static / "vendor" / "fontawesome" / "webfonts" / file, codes)).decode()
        rules.append(
            f'@font-face{{font-family:"{family}";font-weight:{weight};font-display:block;'
            f'src:url(data:font/woff;base64,{font}) format("woff")}}'
        )
    (static / "icons.css").write_text("\n".join(rules) + "\n", encoding="utf-8")


def tidy_head(page: Path) -> None:
    """One viewport, not three, and the site's own icons for the theme's script."""
    html = page.read_text(encoding="utf-8")
    head, end, body = html.partition("</head>")
    viewport = re.compile(r'\s*<meta name="viewport"[^>]*>')
    first = viewport.search(head)
    if first:
        head = head[: first.end()] + viewport.sub("", head[first.end() :])
    head = re.sub(r'\s*<script defer src="[^"]*scripts/fontawesome\.js[^"]*"></script>', "", head)
    page.write_text(head + end + body, encoding="utf-8")


def finish(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    pages = [page for page in Path(app.outdir).rglob("*.html") if "_static" not in page.parts]
    shrink_icons(static, pages)
    for page in pages:
        tidy_head(page)
    copy_asset_file(str(Path(plotly.__file__).parent / "package_data" / "plotly.min.js"), str(static))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", load_pieces_of_mathjax, priority=900)
    app.connect("html-page-context", describe, priority=900)
    app.connect("html-page-context", drop_unused_mathjax, priority=900)
    app.connect("build-finished", finish, priority=100)
    app.add_css_file("icons.css", priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
