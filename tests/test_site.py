"""The built site, opened in a browser as a reader does: run ``make book`` first."""

import ast
import functools
import importlib
import io
import json
import re
import threading
import tomllib
import zlib
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlencode, urljoin, urlsplit

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from conftest import ROOT, SITE, chapters_of
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from test_book import CHAPTERS, cells, python
from test_pages import PUBLIC_MODULES, public_names

from ncdlib.evidence import CLAIMS, compare_with_paper, ledger, show_table
from ncdlib.evidence.paper import PAPER_NAME_OF
from ncdlib.evidence.show import count_of_verdicts, render_table, verdicts

pytestmark = [pytest.mark.needs_site, pytest.mark.needs_chromium]

# The site is published under this path, and the page for missing addresses relies on it.
PREFIX = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]["notfound_urls_prefix"]
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
QUIZ_PAGES = [page for page in PAGES if page.startswith("book/quiz_")]
every_page = pytest.mark.parametrize("path", PAGES or ["index.html"])
SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args) -> None:
        pass


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Iterator[str]:
    """The address of the site, served under the path it is published at."""
    top = tmp_path_factory.mktemp("server")
    (top / PREFIX.strip("/")).symlink_to(SITE)
    handler = functools.partial(QuietHandler, directory=top)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{PREFIX}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
        yield browser
        browser.close()


class Reader:
    """A browser window that keeps a list of everything that goes wrong in it."""

    def __init__(self, browser: Browser, site: str, size: str = "desktop", theme: str = "light") -> None:
        self.site, self.problems = site, []
        self.context = browser.new_context(viewport=SIZES[size], color_scheme=theme)
        self.page: Page = self.context.new_page()
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"script error: {error}"))
        self.page.on("request", self._on_request)
        self.page.on("requestfailed", lambda request: self.problems.append(f"failed: {request.url}"))
        self.page.on("response", self._on_response)

    def _on_console(self, message) -> None:
        if message.type == "error":
            self.problems.append(f"console: {message.text}")

    def _on_request(self, request) -> None:
        if not request.url.startswith((self.site, "data:", "blob:")):
            self.problems.append(f"request to another host: {request.url}")

    def _on_response(self, response) -> None:
        if response.status >= 400:
            self.problems.append(f"{response.status}: {response.url}")

    def open(self, path: str) -> Page:
        self.page.goto(urljoin(self.site, path), wait_until="networkidle")
        return self.page


@pytest.fixture
def reader(browser, site):
    readers = []

    def make(**settings) -> Reader:
        readers.append(Reader(browser, site, **settings))
        return readers[-1]

    yield make
    for one in readers:
        one.context.close()


def read_to_the_end(page: Page) -> None:
    """Scroll as a reader does: pictures and interactive figures load when one comes near."""
    page.evaluate("""async () => {
        for (let y = 0; y < document.body.scrollHeight; y += innerHeight) {
            scrollTo(0, y);
            await new Promise((next) => setTimeout(next, 30));
        }
        scrollTo(0, 0);
    }""")
    page.wait_for_function("document.querySelector('script[type=\"text/plotly\"]') === null")
    page.wait_for_load_state("networkidle")


@every_page
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_loads_from_this_host_alone_and_is_accessible(reader, path, theme):
    visitor = reader(theme=theme)
    page = visitor.open(path)
    page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
    assert visitor.problems == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["desktop"]["width"]
    names = page.locator("button.copybtn").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
    assert set(names) <= {"Copy the code"}
    # What is folded is read, too: code, solutions, claims.
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.evaluate("document.querySelectorAll('button.toggle-button-hidden').forEach(one => one.click())")
    page.wait_for_timeout(500)  # they fade in
    # Without preload, since axe looks for imported style sheets where they are not.
    options = {"preload": False, "resultTypes": ["violations"]}
    found = Axe().run(page, options=options).response["violations"]
    violations = [v for v in found if v["impact"] in ("serious", "critical")]
    assert not violations, "\n".join(
        f"{v['id']}: {v['help']}: {[node['html'][:150] for node in v['nodes'][:3]]}" for v in violations
    )


@every_page
def test_formulas_pictures_plots_and_hidden_solutions_are_there(reader, path):
    page = reader().open(path)
    read_to_the_end(page)
    formulas = page.locator(".math:not(nav *)")
    if formulas.count():  # window.MathJax is there before MathJax itself: the page's options
        page.wait_for_function("window.MathJax?.startup?.promise?.then(() => true)")
    assert formulas.locator("mjx-container").count() >= formulas.count()
    assert page.locator("mjx-merror").count() == 0
    for picture in page.locator("article img").all():
        assert picture.evaluate("image => image.complete && image.naturalWidth > 0"), picture.get_attribute("src")
        assert picture.get_attribute("alt"), f"no alt text: {picture.get_attribute('src')}"
    for plot in page.locator(".plotly-graph-div").all():
        assert plot.locator("svg.main-svg").count() > 0, "a plotly figure is blank"
    for solution in page.locator("div.solution.dropdown").all():
        content = solution.locator("section, .admonition-content, .solution-content, div").first
        assert not content.is_visible()
        solution.locator("button.toggle-button").click()
        assert content.is_visible()


@every_page
def test_page_fits_a_phone(reader, path):
    visitor = reader(size="phone")
    page = visitor.open(path)
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["phone"]["width"]
    assert visitor.problems == []


@pytest.mark.parametrize("wide", ["#tab-known-k-ncd table", "#fig-known-k-against > img"])
def test_what_is_wide_scrolls_in_its_own_box_on_a_phone(reader, wide):
    page = reader(size="phone").open("book/known_k.html")
    boxes = ".output, .cell_output, .pst-scrollable-table-container"
    box = f"document.querySelector('{wide}').closest('{boxes}')"
    assert page.evaluate(f"{box}.scrollWidth > {box}.clientWidth")
    assert page.evaluate(f"getComputedStyle({box}).overflowX") in ("auto", "scroll")
    assert page.evaluate(f"{box}.tabIndex") == 0  # to be scrolled by keyboard


PAPER = {"width": 718, "height": 1000}  # A4 without the browser's margins, in CSS pixels
PRINTED = {
    "book/pbn.html": "a figure with sliders",
    "book/hyperparameters.html": "the widest table",
    "book/api_methods.html": "long lines of code",
}


@pytest.mark.parametrize("path", PRINTED)
def test_page_prints_well(reader, path):
    page = reader().open(path)
    # What can be pressed in a table of claims is its text: on paper it looks like that.
    controls = page.locator(
        ".bd-sidebar-primary, .bd-sidebar-secondary, .bd-header-article, button:not(.claims button)"
    )
    assert controls.filter(visible=True).count() > 10
    page.emulate_media(media="print")
    assert controls.filter(visible=True).evaluate_all("shown => shown.map(one => one.className)") == []
    page.set_viewport_size(PAPER)
    assert page.locator("article h2").first.is_visible()
    # What a box would scroll is lost on paper.
    cut = page.evaluate("""() =>
        [...document.querySelectorAll("article :not(svg, svg *, mjx-assistive-mml *)")]
            .filter(one => one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML.slice(0, 150))
    """)
    assert cut == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_buttons_lead_to_the_chapter_in_this_repository(chapter):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    owner_and_name = project["urls"]["Repository"].removeprefix("https://github.com/")
    workflow = (ROOT / ".github" / "workflows" / "book.yml").read_text()
    branch = re.search(r"refs/heads/(\w+)", workflow).group(1)  # which is published
    path = chapter.relative_to(ROOT).as_posix()
    page = SITE / "book" / f"{chapter.stem}.html"
    document = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    links = {tag["title"]: tag["href"] for tag in document.select(".article-header-buttons a[href]")}
    download = page.parent / links.pop("Download source file")
    assert download.parent.name == "notebooks" and download.name == chapter.name and cells(download)
    published = re.search(r"git checkout --force -B (\w+)", workflow).group(1)
    assert published == "notebooks"
    issue = urlsplit(links.pop("Open an issue"))
    assert issue.geturl().startswith(f"https://github.com/{owner_and_name}/issues/new?")
    assert f"book/{page.name}" in unquote(issue.query)
    assert links == {
        "Launch on Binder": f"https://mybinder.org/v2/gh/{owner_and_name}/{published}?urlpath=lab/tree/notebooks/{chapter.name}",
        "Launch on Colab": "https://colab.research.google.com/github/"
        f"{owner_and_name}/blob/{published}/notebooks/{chapter.name}",
        "Source repository": f"https://github.com/{owner_and_name}",
        "Suggest edit": f"https://github.com/{owner_and_name}/edit/{branch}/{path}",
    }


@pytest.mark.parametrize("path", QUIZ_PAGES)
def test_quiz_answers_respond(reader, path):
    visitor = reader()
    page = visitor.open(path)
    questions = page.locator("ol.quiz > li").all()
    n_right = 0
    for number, question in enumerate(questions):
        answer = question.locator(".quiz-options > li" + (".quiz-right" if number % 2 else ":not(.quiz-right)")).first
        n_right += number % 2
        answer.locator("button").focus()
        page.keyboard.press("Enter")
        feedback = question.locator(".quiz-feedback")
        assert feedback.is_visible()
        assert feedback.inner_text().startswith("Right." if number % 2 else "No. The answer is")
        assert len(feedback.inner_text()) > 40  # the explanation
        # A second thought does not count.
        question.locator(".quiz-options button").last.click(force=True)
        assert question.get_attribute("data-answered") == ("right" if number % 2 else "wrong")
    scores = page.locator(".quiz-score").all_inner_texts()
    assert sum(int(score.split(" of ")[0]) for score in scores) == n_right
    assert all(score.endswith(" %.") for score in scores)
    again = page.get_by_role("button", name="Start again")
    assert again.count() == len(scores)
    while again.count():
        again.first.click()
    assert page.locator("[data-answered], .quiz-chosen, [aria-disabled]").count() == 0
    assert set(page.locator(".quiz-score").all_inner_texts()) == {""}
    first = page.locator("ol.quiz > li").first
    first.locator(".quiz-right button").click()
    assert first.locator(".quiz-feedback").inner_text().startswith("Right.")
    assert page.locator(".quiz-score").first.inner_text().startswith("1 of 1 right")
    assert visitor.problems == []


@pytest.mark.parametrize("path", QUIZ_PAGES)
def test_quiz_works_without_scripts(browser, site, path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site + path)
    for question in page.locator("ol.quiz > li").all():
        answer = question.locator("details > p").first
        assert not answer.is_visible()
        question.locator("summary").click()
        assert answer.is_visible()
    context.close()


def test_sliders_move(reader):
    """Every slider of a plotly figure changes what is drawn."""
    pages = [path for path in PAGES if "plotly-graph-div" in (SITE / path).read_text(encoding="utf-8")]
    with_sliders = set()
    for path in pages:
        visitor = reader()
        page = visitor.open(path)
        read_to_the_end(page)
        for plot in page.locator(".plotly-graph-div").all():
            if plot.locator(".slider-container").count() == 0:
                continue
            with_sliders.add(path)
            plot.scroll_into_view_if_needed()
            drawn = "plot => JSON.stringify([plot.data, plot.layout.shapes, plot.layout.title])"
            before = plot.evaluate(drawn)
            rail = plot.locator(".slider-rail-touch-rect").first.bounding_box()
            page.mouse.click(rail["x"] + 0.8 * rail["width"], rail["y"] + rail["height"] / 2)
            page.wait_for_timeout(500)
            assert plot.evaluate(drawn) != before, path
        assert visitor.problems == []
    assert with_sliders >= {f"book/{chapter}.html" for chapter in ("kmeans", "pbn", "how_many")}


@pytest.mark.parametrize("module", PUBLIC_MODULES, ids=lambda module: module.__name__)
def test_api_reference_has_every_public_name(module):
    pages = [BeautifulSoup(path.read_bytes(), "html.parser") for path in (SITE / "book").glob("api*.html")]
    documented = {tag["id"].rpartition(".")[2] for page in pages for tag in page.select("dt.sig[id]")}
    names = set(public_names(module))
    assert len(names) > 3
    assert names <= documented, sorted(names - documented)


def test_api_reference_spells_fitted_attributes():
    page = BeautifulSoup((SITE / "book" / "api_methods.html").read_bytes(), "html.parser")
    fields = page.find(id="ncdlib.methods.kmeans.NCDKMeans").parent.select(".field-list li strong")
    names = {field.get_text() for field in fields}
    assert {"labels_", "cluster_centers_", "initial_centers_", "n_clusters_"} <= names  # two of them on one line


def test_what_the_api_reference_lists_has_an_example():
    listed = "dl.py.class > dt.sig[id], dl.py.function > dt.sig[id], dl.py.exception > dt.sig[id]"
    n_names = 0
    for path in (SITE / "book").glob("api*.html"):
        for tag in BeautifulSoup(path.read_bytes(), "html.parser").select(listed):
            module, _, name = tag["id"].rpartition(".")
            assert ">>> " in getattr(importlib.import_module(module), name).__doc__, f"{tag['id']} has no example"
            n_names += 1
    assert n_names > 40


def test_links_and_anchors_resolve(site):
    documents = {path: BeautifulSoup((SITE / path).read_text(encoding="utf-8"), "html.parser") for path in PAGES}
    anchors = {path: {tag["id"] for tag in document.find_all(id=True)} for path, document in documents.items()}
    broken = []
    for path, document in documents.items():
        for tag in document.select("a[href], link[href], img[src], script[src]"):
            address, anchor = urldefrag(urljoin(site + path, tag.get("href") or tag.get("src")))
            if not address.startswith(site):
                continue
            target = unquote(urlsplit(address).path.removeprefix(PREFIX)) or "index.html"
            if not (SITE / target).is_file() or (anchor and target in anchors and anchor not in anchors[target]):
                broken.append(f"{path}: {tag.get('href') or tag.get('src')}")
    assert broken == []


def test_search_finds_a_word(reader):
    visitor = reader()
    page = visitor.open("search.html?q=Hungarian")
    page.locator("#search-results li").first.wait_for()
    assert "Known and novel classes" in page.locator("#search-results").inner_text()
    assert visitor.problems == []


def test_theme_switch_changes_the_colours_and_is_remembered(reader):
    visitor = reader()
    page = visitor.open("index.html")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    for _ in range(3):  # the button goes through automatic, light and dark
        page.locator("button.theme-switch-button:visible").first.click()
        if page.evaluate("document.documentElement.dataset.theme") == "dark":
            break
    dark = page.evaluate(background)
    assert dark != light
    visitor.open("book/problem.html")
    assert page.evaluate(background) == dark
    assert visitor.problems == []


def test_missing_address_shows_a_page_with_style_and_contents(reader, site):
    visitor = reader()
    page = visitor.open("404.html")
    assert "does not exist" in page.locator("article").inner_text()
    page.locator("nav a", has_text="Known and novel classes").first.click()
    assert page.url.startswith(site) and page.url.endswith("book/problem.html")


def test_missing_address_in_a_folder_has_its_style(browser, site):
    """GitHub serves 404.html at whatever address is missing."""
    context = browser.new_context()
    page, problems = context.new_page(), []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("requestfailed", lambda request: problems.append(request.url))
    body = (SITE / "404.html").read_text(encoding="utf-8")
    page.route("**/no/such/page", lambda route: route.fulfill(body=body, content_type="text/html"))
    page.goto(urljoin(site, "no/such/page"), wait_until="networkidle")
    assert page.locator("article h1").is_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.bd-sidebar-primary')).display") == "flex"
    assert problems == []
    context.close()


RAW = re.compile(r":header-rows:|:name: |\{(numref|glue\S*|cite\S*|ref|doc|term|chapter)\}`|```|:::")


@every_page
def test_no_page_shows_raw_directives(path):
    document = BeautifulSoup((SITE / path).read_text(encoding="utf-8"), "html.parser")
    for code in document.select("pre, code, script"):
        code.decompose()
    found = RAW.search(document.get_text())
    assert found is None, document.get_text()[max(found.start() - 60, 0) : found.end() + 60]


@every_page
def test_head_says_what_the_page_is(path):
    head = BeautifulSoup((SITE / path).read_text(encoding="utf-8"), "html.parser").head
    content = {tag.get("name") or tag.get("property"): tag["content"] for tag in head.select("meta[content]")}
    assert len(head.select('meta[name="viewport"]')) == 1
    assert 40 <= len(content["description"]) <= 170
    assert content["og:title"] and content["og:description"] == content["description"]
    base = yaml.safe_load((ROOT / "_config.yml").read_text())["html"]["baseurl"]
    assert (SITE / content["og:image"].removeprefix(base)).is_file()


def test_pages_have_descriptions_of_their_own():
    pages = [page for page in PAGES if page.startswith("book/") or page == "index.html"]
    heads = [BeautifulSoup((SITE / page).read_text(encoding="utf-8"), "html.parser").head for page in pages]
    texts = [head.find("meta", attrs={"name": "description"})["content"] for head in heads]
    assert sorted(text for text in set(texts) if texts.count(text) > 1) == []


LIGHT = 1_500_000  # bytes


@every_page
def test_first_load_is_light(browser, site, path):
    """What a server sends that compresses text, as GitHub's does; the landing page is as light without."""
    context = browser.new_context(viewport=SIZES["desktop"])
    page, answers = context.new_page(), []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(urljoin(site, path), wait_until="networkidle")
    bodies = {answer.url: answer.body() for answer in answers if answer.ok}
    text = (".html", ".js", ".css", ".svg")
    sizes = {url: len(zlib.compress(b)) if urlsplit(url).path.endswith(text) else len(b) for url, b in bodies.items()}
    assert sum(sizes.values()) < LIGHT / 2, sorted(sizes.items(), key=lambda item: -item[1])[:5]
    if path == "index.html":
        assert sum(map(len, bodies.values())) < LIGHT
    html = (SITE / path).read_text(encoding="utf-8")
    assert any("mathjax" in url for url in bodies) == ('class="math' in html)
    assert not any("fontawesome" in url for url in bodies)
    context.close()


def test_icons_are_there(reader):
    page = reader().open("book/known_k.html")
    family = page.evaluate("""async () => {
        await document.fonts.ready;
        return [...document.fonts].filter(font => font.status === "loaded").map(font => font.family).join();
    }""")
    assert "Font Awesome 6 Free" in family and "Font Awesome 6 Brands" in family


def test_hero_moves_until_it_is_paused(reader):
    visitor = reader()
    page = visitor.open("index.html")
    picture = "document.querySelector('.hero canvas').toDataURL()"
    page.wait_for_function("document.querySelector('.hero-epoch').textContent !== ''")
    first = page.evaluate(picture)
    page.wait_for_timeout(800)
    assert page.evaluate(picture) != first
    page.get_by_role("button", name="Pause").click()
    page.wait_for_timeout(100)
    still = page.evaluate(picture)
    page.wait_for_timeout(500)
    assert page.evaluate(picture) == still
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    page.wait_for_timeout(100)
    assert page.evaluate(picture) != still  # in the colours of the dark
    assert visitor.problems == []


def test_hero_rests_for_readers_who_prefer_less_motion(browser, site):
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(site, wait_until="networkidle")
    picture = "document.querySelector('.hero canvas').toDataURL()"
    assert page.locator(".hero-epoch").inner_text() == "Epoch 100."
    still = page.evaluate(picture)
    page.wait_for_timeout(500)
    assert page.evaluate(picture) == still
    page.get_by_role("button", name="Play").click()
    page.wait_for_function(f"still => {picture} !== still", arg=still)
    context.close()


def test_findings_are_the_ledger_s():
    skip_if_measured_since_the_build()
    claims = ledger()
    findings = BeautifulSoup((SITE / "index.html").read_text(encoding="utf-8"), "html.parser").select_one(".findings")
    bar = {" ".join(tag.get_text().split()[1:]): int(tag.b.get_text()) for tag in findings.select(".verdict-bar a")}
    assert bar == claims["verdict"].value_counts().to_dict()
    answers = findings.select("li")
    assert len(answers) == 6
    verdict = verdicts(claims)
    for answer in answers:
        assert answer.select_one(".verdict").get_text() == verdict[answer.a["href"].rpartition("#claim-")[2]]
        assert re.search(r"\d", answer.select("span")[-1].get_text())


@pytest.mark.parametrize("figure", ["#fig-kmeans-starts img", ".plotly-graph-div"])
def test_figures_have_no_white_ground_in_the_dark(reader, figure):
    page = reader(theme="dark").open("book/kmeans.html")
    read_to_the_end(page)
    box = page.locator(figure).first
    box.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    pixels = np.asarray(Image.open(io.BytesIO(box.screenshot())).convert("RGB"))
    ground = [
        int(value) for value in re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))
    ]
    assert np.abs(pixels[3, 3].astype(int) - ground[:3]).max() <= 6
    assert (pixels.mean(axis=2) > 200).mean() < 0.1


def test_names_stay_in_view_while_a_table_scrolls(reader):
    page = reader(size="phone").open("book/known_k.html")
    box = page.locator("#tab-known-k-ncd .output.text_html, #tab-known-k-ncd .text_html").first
    assert box.get_attribute("data-more") == "right"  # it fades out where it goes on
    name = page.locator("#tab-known-k-ncd tbody th[rowspan]").first
    before = name.bounding_box()["x"]
    box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    page.wait_for_timeout(200)
    assert name.bounding_box()["x"] == pytest.approx(before, abs=2)
    assert box.get_attribute("data-more") is None


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_copy_of_a_chapter_reads_without_the_site(chapter):
    copy = nbformat.read(SITE / "notebooks" / chapter.name, as_version=4)
    nbformat.validate(copy)
    code = ["".join(cell["source"]) for cell in cells(chapter) if cell["cell_type"] == "code"]
    assert [cell.source for cell in copy.cells if cell.cell_type == "code"] == code
    text = "\n\n".join(cell.source for cell in copy.cells if cell.cell_type == "markdown")
    prose = re.sub(r"^( *> ?| *)```.*?^( *> ?| *)```$|``[^`]+``|`[^`]+`", "", text, flags=re.M | re.S)
    for raw in ("{glue", "{numref}", "{cite", "{ref}", "{doc}", "{chapter", "{claim", ":::", "{exercise", "{solution"):
        assert raw not in text, raw
    assert "```" not in prose
    assert text.startswith("# ") and "## Exercises" in text and "**Exercise " in text and "**Solution to" in text
    assert any(cell.get("outputs") for cell in copy.cells)
    pictures = [figure for cell in cells(chapter) if (figure := cell["metadata"].get("mystnb", {}).get("figure"))]
    kinds = {"fig": "Figure", "tab": "Table"}
    for figure in pictures:  # every caption is there, with a number
        assert re.search(rf"\*\*{kinds[figure['name'][:3]]} \d+\.\d+\.\*\* ", text)
    captions = re.findall(r"^\*\*(?:Figure|Table) \d+\.\d+\.\*\*", text, flags=re.M)
    assert len(set(captions)) == len(captions) >= len(pictures)


def test_site_names_no_script_of_another_host():
    for path in Path(SITE).rglob("*.html"):
        for script in BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").select("script[src]"):
            assert "//" not in script["src"], f"{path.name}: {script['src']}"


def test_claims_can_be_filtered(reader):
    visitor = reader()
    page = visitor.open("book/claims.html")
    claims, status = page.locator("#claims-ledger tbody"), page.locator("#claims-ledger [role=status]")
    n_claims = claims.count()
    assert n_claims >= 30
    assert status.inner_text() == f"{n_claims} of {n_claims} claims"
    page.get_by_label("verdict").select_option("does not hold")
    shown = claims.filter(visible=True)
    assert 0 < shown.count() < n_claims
    assert status.inner_text() == f"{shown.count()} of {n_claims} claims"
    assert set(shown.evaluate_all("all => all.map(one => one.dataset.verdict)")) == {"does not hold"}
    page.get_by_label("words").fill("text says 74.3")
    assert shown.count() == 1
    shown.get_by_role("button").click()
    assert shown.get_by_text("the text says 74.3").is_visible()
    assert visitor.problems == []


def test_claim_is_open_when_linked_to(reader):
    page = reader().open("book/claims.html#claim-printed-74")
    assert page.get_by_text("the text says 74.3").is_visible()
    assert page.get_by_text("the text says 74.3").evaluate("one => one.getBoundingClientRect().top < innerHeight")


def test_search_finds_a_number_of_the_paper(reader):
    page = reader().open("search.html?q=21.6")
    page.locator("#search-results li").first.wait_for()
    assert "The claims ledger" in page.locator("#search-results").inner_text()


@functools.cache
def judged_once() -> pd.DataFrame:
    return ledger()


def claims_of_the_tables() -> list[str]:
    """Ten claims about tables and figures of the paper, drawn at random."""
    ids = [claim.id for claim in CLAIMS if claim.full_place.rpartition(", ")[2].startswith(("Table", "Figure"))]
    return np.random.default_rng(24).choice(ids, 10, replace=False).tolist()


@pytest.mark.parametrize("id_", claims_of_the_tables())
def test_a_claim_is_reached_within_three_clicks(reader, id_):
    skip_if_measured_since_the_build()
    row = judged_once().set_index("id", drop=False).loc[id_]
    place = row["place"].rpartition(", ")[2]
    visitor = reader()
    page = visitor.open("index.html")
    page.locator("nav").get_by_role("link", name="Map of the paper").first.click()
    page.wait_for_load_state("networkidle")  # who leaves earlier breaks off the loading of fonts
    page.locator(f'a[href$="{urlencode({"place": place, "verdict": row["verdict"]})}"]').click()
    claim = page.locator(f"#claim-{id_}")
    claim.get_by_role("button").click()
    numbers = claim.locator("dd").filter(has_text=row["paper"])
    assert numbers.first.is_visible()
    assert claim.locator("dd a").first.is_visible()  # to its runs
    assert " ".join(claim.locator("td[data-label=verdict]").inner_text().split()) == row["verdict"]
    assert visitor.problems == []


def test_map_and_ledger_lead_to_each_other(reader):
    visitor = reader()
    page = visitor.open("book/paper_map.html")
    table_4 = page.locator('a[href*="place=Table+4"]')
    counts = dict(text.split(" ", 1)[::-1] for text in table_4.all_inner_texts())
    assert sum(int(n) for n in counts.values()) >= 10
    first = int(table_4.first.inner_text().split()[0])
    table_4.first.click()
    assert page.locator("#claims-ledger tbody").filter(visible=True).count() == first
    page.locator("#claims-ledger tbody").filter(visible=True).first.get_by_role("button").click()
    page.locator("#claims-ledger").get_by_role("link", name="Table 4", exact=True).filter(visible=True).last.click()
    assert page.url.endswith("paper_map.html#map-table-4")
    assert visitor.problems == []


@pytest.mark.parametrize("chapter", ["hidden_classes", "how_many", "full_procedure"])
def test_verdicts_in_the_text_lead_to_their_claims(chapter):
    skip_if_measured_since_the_build()
    verdict = verdicts(judged_once())
    document = BeautifulSoup((SITE / "book" / f"{chapter}.html").read_text(encoding="utf-8"), "html.parser")
    marks = document.select('p a[href*="#claim-"]')
    assert marks
    for mark in marks:
        assert mark.get_text() == verdict[mark["href"].rpartition("#claim-")[2]]


def test_ledger_names_chapters_by_their_numbers():
    html = (SITE / "book" / "claims.html").read_text(encoding="utf-8")
    options = BeautifulSoup(html, "html.parser").select("#claims-ledger select[name=chapter] option[value]")
    numbers = {option["value"]: option.get_text() for option in options if option["value"]}
    assert len(numbers) > 5
    for topic, text in numbers.items():
        assert text.startswith(f"chapter\N{NO-BREAK SPACE}{chapters_of().index(topic) + 1}: ")
    assert "chapter “" not in html


GLUED = ROOT / "_build" / "jupyter_execute" / "book" / "claims.glue.json"


def skip_if_measured_since_the_build() -> None:
    newest = max(path.stat().st_mtime for path in (ROOT / "results").rglob("*.csv"))
    if newest > GLUED.stat().st_mtime:
        pytest.skip("measured since the book was built")


def test_book_shows_the_verdicts_of_the_ledger():
    skip_if_measured_since_the_build()
    glued = json.loads(GLUED.read_text())
    claims = ledger()
    assert glued["counts"]["data"]["text/plain"] == repr(count_of_verdicts(claims))
    cards = BeautifulSoup((SITE / "book" / "claims.html").read_text(), "html.parser").select("#claims-ledger tbody")
    shown = {card["id"].removeprefix("claim-"): card["data-verdict"] for card in cards}
    assert all(card.select("a[href]") for card in cards)  # to where it is measured or checked
    assert shown == dict(zip(claims["id"], claims["verdict"], strict=True))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_verdicts_in_sentences_are_the_ledger_s(chapter):
    """A chapter names the verdicts it glues in a dictionary from its own names to the ids of claims."""
    skip_if_measured_since_the_build()
    verdict = verdicts(ledger())
    code = "\n".join(python(cell) for cell in cells(chapter) if cell["cell_type"] == "code")
    named = {}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Dict):
            ids = [getattr(value, "value", None) for value in node.values]  # noqa: PD011
            if set(ids) <= set(verdict):
                named |= dict(zip((key.value for key in node.keys), ids, strict=True))
    assert named or "verdict[" not in code
    if named:
        glued = json.loads(GLUED.with_name(f"{chapter.stem}.glue.json").read_text())
        shown = {key: glued[key]["data"]["text/plain"] for key in named}
        assert shown == {key: repr(verdict[id_]) for key, id_ in named.items()}


def texts_of(html: str) -> list[str]:
    """The cells of the first table, as a reader sees them."""
    return [" ".join(tag.get_text().split()) for tag in BeautifulSoup(html, "html.parser").table.select("td, th")]


def table_on_page(page: str, anchor: str) -> list[str]:
    document = BeautifulSoup((SITE / "book" / f"{page}.html").read_text(encoding="utf-8"), "html.parser")
    return texts_of(str(document.find(id=anchor)))


@pytest.mark.parametrize(
    ("page", "anchor", "table", "metric"),
    [
        ("known_k", "tab-known-k-clust", "clust", "ACC"),
        ("known_k", "tab-known-k-ncd", "ncd", "ACC"),
        ("estimated_k", "tab-estimated-k-acc", "ncd_k_est", "ACC"),
        ("estimated_k", "tab-estimated-k-nmi", "final_table_nmi", "NMI"),
        ("estimated_k", "tab-estimated-k-ari", "final_table_ari", "ARI"),
        ("pbn_spectral", "tab-pbn-spectral-acc", "pbn_sc", "ACC"),
    ],
)
def test_table_on_the_page_is_what_is_stored(page, anchor, table, metric):
    skip_if_measured_since_the_build()
    assert table_on_page(page, anchor) == texts_of(render_table(table, metric).to_html())


def test_estimates_and_convergence_on_the_page_are_what_is_stored():
    skip_if_measured_since_the_build()
    cells = compare_with_paper()
    shown = table_on_page("how_many", "tab-how-many-stored")
    mine = cells[(cells["table"] == "silhouette_results") & (cells["method"] != "Ground-truth")]
    for cell in mine[mine["dataset"] != "average"].itertuples():
        ours = "–" if pd.isna(cell.published) else f"{cell.published:.0f}"
        row = shown.index(cell.method.removesuffix(" (PBN latent space)"))
        column = next(i for i, name in enumerate(shown) if name.rstrip("*") == PAPER_NAME_OF[cell.dataset])
        assert shown[row + column] == f"{cell.paper:.0f} / {ours}", cell
    stored = show_table("clust_results_different_convergence").drop(columns="searched", level=1)
    shown = table_on_page("kmeans", "tab-kmeans-convergence")
    assert [text for text in shown if "±" in text or text == "–"] == stored.to_numpy().ravel().tolist()


def test_every_chapter_runs_within_two_minutes():
    times = {}
    for name in chapters_of():
        path = SITE / "book" / f"{name}.html"
        text = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").select_one(".chapter-times").get_text()
        times[name] = int(re.search(r"in (\d+) s", text).group(1))
    assert max(times.values()) <= 120, times
