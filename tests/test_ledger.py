"""The ledger on a page: what it says at a glance, and in a browser how it filters, sorts and unfolds."""

import re
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from playwright.sync_api import sync_playwright
from test_pages import load_extension

from ncdlib.evidence import ledger
from ncdlib.evidence.claims import ALL_VIEWS, CLAIMS, VERDICTS
from ncdlib.evidence.claims.claim import places_of
from ncdlib.evidence.show import claims_html
from ncdlib.evidence.show.ledger import place_anchor, places_in_paper

ADDRESS = "http://ledger.test/book/claims.html"


@pytest.fixture(scope="module")
def claims():
    return ledger()


@pytest.fixture(scope="module")
def html(claims):
    return claims_html(claims, filters=True).data


@pytest.fixture(scope="module")
def table(html):
    return BeautifulSoup(html, "html.parser").select_one("#claims-ledger table")


# -- what it says -----------------------------------------------------------------------------------------------------


def test_every_answer_has_a_short_form(claims):
    for name in ("paper", *ALL_VIEWS):
        answered = claims[claims[f"{name}_verdict"] != ""]
        assert len(answered) > 10
        shorts = answered[f"{name}_short"]
        assert shorts.str.contains(r"\d").all()
        assert shorts.str.len().max() <= 55
        assert (claims.loc[claims[f"{name}_verdict"] == "", f"{name}_short"] == "").all()


def test_a_short_form_is_part_of_the_numbers(claims):
    """A number in a column is one of those that the claim unfolds to."""
    for name in ("paper", *ALL_VIEWS):
        for row in claims[claims[f"{name}_verdict"] != ""].itertuples():
            short, text = getattr(row, f"{name}_short"), getattr(row, name)
            assert set(re.findall(r"\d+\.\d+", short)) <= set(re.findall(r"\d+\.\d+", text)), (row.id, name)


def test_the_table_shows_every_claim_with_its_columns(claims, table):
    heads = ["claim", "paper", "published", "searched", "verdict"]
    assert [head.get_text() for head in table.select("thead th")] == heads
    bodies = table.select("tbody")
    assert [body["id"] for body in bodies] == [f"claim-{id_}" for id_ in claims["id"]]
    for body, row in zip(bodies, claims.itertuples(), strict=True):
        cells = [" ".join(cell.get_text().split()) for cell in body.tr.find_all("td")]
        for name, cell in zip(heads[1:4], cells, strict=False):
            short, outcome = getattr(row, f"{name}_short"), getattr(row, f"{name}_verdict")
            assert cell == (f"{outcome}: {short}" if short else "–")
        assert cells[-1] == row.verdict
        more = body.select_one(".more")
        assert not more.has_attr("hidden")  # without a script all is in view
        assert row.paper in more.get_text()
        assert all(link["href"] for link in more.select("a"))


def test_chapters_get_the_book_s_numbers(html):
    numbers = {topic: n for n, topic in enumerate(dict.fromkeys(claim.chapter for claim in CLAIMS), start=30)}
    titles = {topic: f"Title of {topic}" for topic in numbers}
    named = load_extension("claims_in_text").with_chapter_numbers(html, numbers, titles)
    assert "chapter “" in html
    assert "chapter “" not in named
    assert '<option value="known_k" class="chapter-by-topic">chapter\N{NO-BREAK SPACE}30: Title of known_k<' in named
    assert 'Table 3, <span class="chapter-by-topic">chapter\N{NO-BREAK SPACE}30</span>' in named


def test_places_are_taken_apart(claims):
    assert places_of("Authors' files, Appendix D, Table 8") == ["Authors' files", "Appendix D", "Table 8"]
    assert places_of("Sections 7.2.2 and 8, Table 5") == ["Section 7.2.2", "Section 8", "Table 5"]
    places = {place for row in claims.itertuples() for place in places_in_paper(row)}
    whole = re.compile(r"(Table|Figure|Algorithm) \d+|Section [\d.]+|Appendix [A-G]|Abstract|Authors' files")
    assert all(whole.fullmatch(place) for place in places), places
    assert len({place_anchor(place) for place in places}) == len(places)
    assert {"Algorithm 1", "Algorithm 2", "Algorithm 3"} <= places


# -- in a browser -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--headless", "--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_ledger(browser, html):
    """Open the ledger alone, as a page of its own."""
    contexts, problems = [], []

    def make(suffix: str = "", **settings):
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.on("pageerror", problems.append)
        content = f"<!doctype html><html lang=en><title>Ledger</title><main><h1>Ledger</h1>{html}</main></html>"
        page.route("http://ledger.test/**", lambda route: route.fulfill(body=content, content_type="text/html"))
        page.goto(ADDRESS + suffix)
        return page

    yield make
    for context in contexts:
        context.close()
    assert problems == []


def shown(page) -> set[str]:
    return set(page.eval_on_selector_all("tbody:not([hidden])", "all => all.map(one => one.id.slice(6))"))


def ids_at(claims, place: str) -> set[str]:
    return {row.id for row in claims.itertuples() if place in places_in_paper(row)}


@pytest.mark.needs_chromium
@pytest.mark.parametrize("place", ["Table 4", "Table 1", "Figure 7", "figure 5", "Algorithm 1", "Section 7.2.1"])
def test_words_name_a_table_or_figure_as_a_whole(open_ledger, claims, place):
    page = open_ledger()
    expected = ids_at(claims, place.capitalize())
    for words in (place, f'"{place}"', place.upper()):
        page.get_by_label("words").fill(words)
        assert shown(page) == expected, words
    assert 0 < len(expected) < len(claims) / 2


@pytest.mark.needs_chromium
def test_words_and_phrases(open_ledger, claims):
    page = open_ledger()
    words = page.get_by_label("words")
    figure_6 = ids_at(claims, "Figure 6")
    for query in ("critical difference", '"critical difference"', "Nemenyi", "nemen"):
        words.fill(query)
        assert shown(page) == figure_6, query
    words.fill("text says 74.3")
    assert shown(page) == {"printed-74"}
    words.fill('"text says"')
    both = shown(page)
    words.fill('"says text"')
    assert both == {"printed-74"}
    assert shown(page) == set()
    words.fill("1.6")  # no part of 21.6 or 11.64
    texts = page.eval_on_selector_all("tbody:not([hidden])", "all => all.map(one => one.textContent)")
    assert texts
    assert all(re.search(r"(?<![\d.])1\.6(?!\d)", text) for text in texts)
    words.fill("ifference")  # the middle of a word
    assert shown(page) == set()


@pytest.mark.needs_chromium
def test_fields_narrow_together_and_stand_in_the_address(open_ledger, claims):
    page = open_ledger()
    page.get_by_label("in the paper").select_option("Table 3")
    page.get_by_label("verdict").select_option("does not hold")
    expected = ids_at(claims, "Table 3") & set(claims.loc[claims["verdict"] == "does not hold", "id"])
    assert shown(page) == expected
    assert page.get_by_role("status").inner_text() == f"{len(expected)} of {len(claims)} claims"
    again = open_ledger(page.url.removeprefix(ADDRESS))
    assert shown(again) == expected
    assert again.get_by_label("in the paper").input_value() == "Table 3"
    again.get_by_role("button", name="show all").click()
    assert shown(again) == set(claims["id"])
    assert again.url == ADDRESS
    chapter = claims["chapter"].iloc[0]
    again.get_by_label("chapter").select_option(chapter)
    assert shown(again) == set(claims.loc[claims["chapter"] == chapter, "id"])


@pytest.mark.needs_chromium
def test_a_link_to_a_claim_unfolds_it_whatever_is_asked_for(open_ledger):
    page = open_ledger("?" + urlencode({"place": "Table 3"}) + "#claim-printed-74")
    assert page.get_by_text("the text says 74.3").is_visible()
    assert page.evaluate("document.activeElement.textContent").startswith("NCD SC falls")
    page.evaluate("location.hash = 'claim-one-hot'")
    page.get_by_text("all attributes of Census are categories").wait_for()


@pytest.mark.needs_chromium
def test_columns_sort_up_down_and_back(open_ledger, claims):
    page = open_ledger()

    def column(name: str) -> list[str]:
        return page.eval_on_selector_all(f"td[data-label={name}]", "all => all.map(one => one.dataset.sort)")

    def check(name: str, key) -> None:
        before = column(name)
        head = page.get_by_role("columnheader", name=name)
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == "ascending"
        up = [key(value) for value in column(name) if value]
        assert up == sorted(up) != [key(value) for value in before if value]
        assert not any(column(name)[len(up) :])  # what has no number comes last
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == "descending"
        assert [key(value) for value in column(name) if value] == up[::-1]
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") is None
        assert column(name) == before

    check("paper", float)
    check("published", float)
    check("searched", float)
    check("verdict", int)
    page.get_by_role("columnheader", name="claim").get_by_role("button").click()
    says = [text.strip() for text in page.locator("button.unfold").all_inner_texts()]
    assert says == sorted(says, key=str.lower)
    assert set(says) == {claim.says for claim in CLAIMS}
    assert VERDICTS[0] == "holds"  # the order of the verdicts is that of their column


@pytest.mark.needs_chromium
def test_a_claim_unfolds_by_keyboard(open_ledger, claims):
    page = open_ledger()
    page.get_by_role("button", name="show all").focus()
    for _ in range(5 + 1):  # over the heads of the columns
        page.keyboard.press("Tab")
    first = page.locator("tbody").first
    assert page.evaluate("document.activeElement.textContent") == claims["claim"].iloc[0]
    assert not first.locator(".more").is_visible()
    page.keyboard.press("Enter")
    assert first.get_by_role("button").get_attribute("aria-expanded") == "true"
    assert first.get_by_text("measure it again").is_visible()
    assert first.locator("code").first.inner_text().startswith("ncd verify")
    page.keyboard.press("Space")
    assert not first.locator(".more").is_visible()


@pytest.mark.needs_chromium
@pytest.mark.parametrize("width", [1000, 390])
def test_the_ledger_is_accessible_and_no_wider_than_the_page(open_ledger, width):
    page = open_ledger("#claim-printed-74", viewport={"width": width, "height": 800})
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.needs_chromium
def test_paper_gets_every_claim_unfolded(open_ledger, claims):
    page = open_ledger()
    page.emulate_media(media="print")
    rows = page.locator(".more")
    assert rows.evaluate_all("rows => rows.filter(row => row.getClientRects().length).length") == len(claims)


@pytest.mark.needs_chromium
def test_without_a_script_it_is_a_plain_table(open_ledger, claims):
    page = open_ledger(java_script_enabled=False)
    assert page.locator(".more").first.is_visible()
    assert page.get_by_text("the text says 74.3").is_visible()
    assert not page.locator(".filters").is_visible()
