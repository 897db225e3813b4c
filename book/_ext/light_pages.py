"""Pages that load little and say what they are: icons, formulas and scripts only where they are used, and metadata."""

from __future__ import annotations

import base64
import io
import re
from html import escape
from pathlib import Path
from typing import Any

import plotly
import pydata_sphinx_theme
from docutils import nodes
from fontTools import subset
from PIL import Image
from sphinx.application import Sphinx
from sphinx.util.fileutil import copy_asset_file

DESCRIPTION_LENGTH = 160
MATHJAX = {"loader": {"load": ["core", "input/tex", "output/chtml", "a11y/assistive-mml"]}}
SUMMARY = (
    "Novel class discovery in tabular data: a book with live code that teaches it and checks a paper, claim by claim."
)


def description(doctree: nodes.document | None) -> str:
    """The first sentences of a page, as many as search engines and link previews show.

    >>> description(None)
    ''
    """
    for paragraph in doctree.findall(nodes.paragraph) if doctree else ():
        words = " ".join(paragraph.astext().split())
        if isinstance(paragraph.parent, nodes.section) and "chapter-times" not in paragraph["classes"] and words:
            if len(words) <= DESCRIPTION_LENGTH:
                return words
            return words[:DESCRIPTION_LENGTH].rpartition(" ")[0].rstrip(",;:.") + " …"
    return ""


def describe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """What search engines and messengers show of a link to this page."""
    site = app.config.html_baseurl
    title = escape(re.sub(r"<[^>]*>", "", context.get("title", "")) or app.config.html_title)
    text = escape(description(doctree)) or f"{title}. {SUMMARY}"
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


ICON_RULE = re.compile(r'((?:\.fa-[\w-]+:before,?)+)\{content:"\\([0-9a-f]+)"\}')


def keep_icons(css: str, names: set[str]) -> tuple[str, set[int]]:
    r"""Leave in a style sheet the icons of these names only, and say which characters it then uses.

    >>> css, characters = keep_icons(r'.fa-x:before{content:"\f00d"}.fa-up:before{content:"\f062"}', {"fa-x"})
    >>> print(css, characters)
    .fa-x:before{content:"\f00d"} {61453}
    """
    kept = ICON_RULE.sub(lambda rule: rule[0] if names & set(re.findall(r"fa-[\w-]+", rule[1])) else "", css)
    return kept, characters_in(kept)


def characters_in(css: str) -> set[int]:
    """The characters of icons in a style sheet, escaped or as they are."""
    return {int(code, 16) for code in re.findall(r"\\([ef][0-9a-f]{3})\b", css)} | {
        ord(c) for c in css if "\ue000" <= c <= "\uf8ff"
    }


def subset_font(path: Path, characters: set[int]) -> bytes:
    font = subset.load_font(str(path), subset.Options())
    subsetter = subset.Subsetter(subset.Options(hinting=False))
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    font.flavor = "woff"
    file = io.BytesIO()
    font.save(file)
    return file.getvalue()


THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
STYLES = "styles/pydata-sphinx-theme.css"
FONTS = (("Font Awesome 6 Free", 900, "fa-solid-900.ttf"), ("Font Awesome 6 Brands", 400, "fa-brands-400.ttf"))


def shrink_icons(static: Path, pages: list[Path]) -> None:
    """Put the few icons of the site into one small style sheet, in place of the theme's script with all there are."""
    scripts = [path for path in static.glob("scripts/*.js") if path.name != "fontawesome.js"]
    texts = [path.read_text(encoding="utf-8") for path in (*pages, *scripts)]
    names = {name for text in texts for name in re.findall(r"fa-[a-z-]+", text)}
    css, characters = keep_icons((THEME / STYLES).read_text(encoding="utf-8"), names)
    (static / STYLES).write_text(css, encoding="utf-8")
    for path in static.rglob("*.css"):
        if path.name not in ("icons.css", Path(STYLES).name):
            characters |= characters_in(path.read_text(encoding="utf-8"))
    rules = []
    for family, weight, file in FONTS:
        font = base64.b64encode(subset_font(THEME / "vendor" / "fontawesome" / "webfonts" / file, characters)).decode()
        rules.append(
            f'@font-face{{font-family:"{family}";font-weight:{weight};font-display:block;'
            f'src:url(data:font/woff;base64,{font}) format("woff")}}'
        )
    (static / "icons.css").write_text("\n".join(rules) + "\n", encoding="utf-8")


def wait_for_reader(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Make the scripts that draw plotly figures recipes, for book.js to follow when a reader comes near."""
    context["body"] = re.sub(
        r"<script[^>]*>(?=\s*window\.PLOTLYENV)", '<script type="text/plotly">', context.get("body", "")
    )


NEEDED_TO_SEARCH = ("searchtools.js", "language_data.js", "searchindex.js")


def lighten(page: Path) -> None:
    """Leave out what a page loads for nothing; load pictures when a reader comes near, in the room kept for them."""
    head, end, body = page.read_text(encoding="utf-8").partition("</head>")
    viewports = re.findall(r'\s*<meta name="viewport"[^>]*>', head)
    for repeated in viewports[1:]:
        before, _, after = head.rpartition(repeated)
        head = before + after
    unused = ["scripts/fontawesome.js", *(() if page.stem == "search" else NEEDED_TO_SEARCH)]
    for script in unused:
        head = re.sub(rf'\s*<script[^>]* src="[^"]*{re.escape(script)}[^"]*"></script>', "", head)
    body = re.sub(r'<img (?![^>]*loading=)([^>]*src="([^":]*)")', lambda tag: _lazy(page, tag), body)
    page.write_text(head + end + body, encoding="utf-8")


def _lazy(page: Path, tag: re.Match[str]) -> str:
    path = page.parent / tag[2]
    if path.suffix != ".png" or not path.is_file():
        return f'<img loading="lazy" {tag[1]}'
    width, height = Image.open(path).size
    return f'<img loading="lazy" width="{width}" height="{height}" {tag[1]}'


def finish(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    pages = [page for page in Path(app.outdir).rglob("*.html") if "_static" not in page.parts]
    shrink_icons(static, pages)
    for page in pages:
        lighten(page)
    copy_asset_file(str(Path(plotly.__file__).parent / "package_data" / "plotly.min.js"), str(static))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", load_pieces_of_mathjax, priority=900)
    app.connect("html-page-context", describe, priority=900)
    app.connect("html-page-context", drop_unused_mathjax, priority=900)
    app.connect("html-page-context", wait_for_reader)
    app.connect("build-finished", finish, priority=100)
    app.add_css_file("icons.css", priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
