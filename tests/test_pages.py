"""Quizzes, the map of the paper and the API reference: the sources of pages that promise to be complete."""

import ast
import importlib
import inspect
import itertools
import json
import re

import matplotlib as mpl
import numpy as np
import pytest
from conftest import ROOT, chapters_of

import ncdlib.clustering.validity
import ncdlib.evidence
import ncdlib.selection
from ncdlib.cli import app
from ncdlib.evidence import compare_with_paper, ledger
from ncdlib.plots import HIDDEN_COLOR, KNOWN_COLORS, NOVEL_COLORS, PALETTE

BOOK = ROOT / "book"
QUIZZES = sorted((BOOK / "_quiz").glob("*.json"))
QUIZ_PAGES = sorted(BOOK.glob("quiz_*.md"))


@pytest.fixture(scope="module")
def quiz_extension():
    spec = importlib.util.spec_from_file_location("quiz", BOOK / "_ext" / "quiz.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", QUIZZES, ids=lambda path: path.stem)
def test_quiz_is_in_order(quiz_extension, path):
    questions = quiz_extension.read_quiz(path)
    assert len({question["question"] for question in questions}) == len(questions) >= 3


def test_every_quiz_is_on_a_page():
    shown = re.findall(r"{quiz} (\S+)", "\n".join(page.read_text() for page in QUIZ_PAGES))
    assert sorted(shown) == [path.stem for path in QUIZZES]


GOOD = {"question": "?", "options": ["a", "b"], "answer": 0, "explanation": "!"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": 2}, "from 0 to 1"),
        ({"answer": "a"}, "position of an option"),
        ({"options": ["a", "a"]}, "all different"),
        ({"options": ["a"]}, "two options or more"),
        ({"hint": "h"}, "exactly the keys"),
    ],
)
def test_quiz_with_a_mistake_is_refused(quiz_extension, tmp_path, change, message):
    path = tmp_path / "part.json"
    path.write_text(json.dumps([GOOD, GOOD | change]))
    with pytest.raises(ValueError, match=f"part.json, question 2: .*{message}"):
        quiz_extension.read_quiz(path)


PAPER_FLOATS = [
    *(f"Table {n}" for n in range(1, 12)),
    *(f"Figure {n}" for n in range(1, 8)),
    *(f"Algorithm {n}" for n in range(1, 4)),
]


def test_paper_map_names_every_float_once_and_in_order():
    text = (BOOK / "paper_map.md").read_text()
    assert re.findall(r"^\* - ((?:Table|Figure|Algorithm) \d+)$", text, flags=re.M) == PAPER_FLOATS


def test_paper_map_leads_to_captions_that_name_the_same_float():
    """A reader who follows "Table 4" arrives at something that says "Table 4 of the paper"."""
    sources = {}
    for chapter in chapters_of():
        for cell in json.loads((BOOK / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]:
            text = "".join(cell["source"])
            figure = cell["metadata"].get("mystnb", {}).get("figure")
            if figure:
                sources[figure["name"]] = figure["caption"]
            for block in re.findall(r"^```+{[^`]*?^```+", text, flags=re.M):
                for name in re.findall(r"^:(?:name|label): (\S+)$", block, flags=re.M):
                    sources[name] = block
    text = (BOOK / "paper_map.md").read_text()
    row = r"^\* - ((?:Table|Figure|Algorithm) \d+)\n  - .*\n  - {claims}`\1`\n  - (.*)$"
    entries = re.findall(row, text, flags=re.M)
    assert [name for name, _ in entries] == PAPER_FLOATS
    for name, here in entries:
        targets = re.findall(r"{(?:numref|prf:ref)}`([^`]+)`", here)
        assert targets, f"{name} leads nowhere"
        assert set(targets) <= set(sources)
        assert re.search(rf"\b{name}\b", sources[targets[0]]), f"the caption of {targets[0]} does not say {name!r}"


PUBLIC_MODULES = (ncdlib, ncdlib.evidence, ncdlib.selection, ncdlib.clustering.validity)


def public_names(module) -> list[str]:
    """Names in __all__, or those that the module defines itself."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    defined = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    constants = re.findall(r"^([A-Z][A-Z_]+)\b.* = ", inspect.getsource(module), flags=re.M)
    return [name for name in (*defined, *constants) if not name.startswith("_")]


@pytest.mark.parametrize("module", PUBLIC_MODULES, ids=lambda module: module.__name__)
def test_public_names_have_examples(module):
    for name in public_names(module):
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert ">>> " in (value.__doc__ or ""), f"{module.__name__}.{name} has no example"


def test_api_reference_has_every_command():
    text = (BOOK / "api.md").read_text()
    for command in app.registered_commands:
        assert f"`ncd {command.callback.__name__}" in text


# -- colours ----------------------------------------------------------------------------------------------------------

WHITE, DARK = np.ones(3), np.full(3, 0x12 / 255)  # the grounds of the two themes


def red_green_blue(color: str) -> np.ndarray:
    return np.array(mpl.colors.to_rgb(color))


def linear(color: np.ndarray) -> np.ndarray:
    return np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    """As the Web Content Accessibility Guidelines define it."""
    low, high = sorted(linear(color) @ [0.2126, 0.7152, 0.0722] for color in (one, other))
    return (high + 0.05) / (low + 0.05)


def in_the_dark(color: np.ndarray) -> np.ndarray:
    """What book.css makes of it: ``invert(1) hue-rotate(180deg)``."""
    grey = np.array([0.213, 0.715, 0.072])
    return np.clip(2 * (1 - color) @ grey - (1 - color), 0, 1)


def lab(color: np.ndarray) -> np.ndarray:
    """CIE Lab, in which distances are about as large as they look."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x = to_xyz @ linear(color) / [0.9505, 1, 1.089]
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


# Machado, Oliveira and Fernandes (2009), full strength.
COLOUR_BLIND = {
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}


def seen_by(kind: str, color: np.ndarray) -> np.ndarray:
    seen = np.clip(COLOUR_BLIND[kind] @ linear(color), 0, 1)
    return np.where(seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055)


def closest(colors: dict[str, np.ndarray]) -> tuple[float, str, str]:
    pairs = itertools.combinations(colors, 2)
    return min((float(np.linalg.norm(lab(colors[a]) - lab(colors[b]))), a, b) for a, b in pairs)


METHODS = {name: red_green_blue(color) for name, color in PALETTE.items()}
THEMES = {"light": (lambda color: color, WHITE), "dark": (in_the_dark, DARK)}


def test_no_two_meanings_share_a_colour():
    """Within the known and within the novel classes colours may be near: they mean the same."""
    classes = {"known": KNOWN_COLORS, "novel": NOVEL_COLORS, "hidden": [HIDDEN_COLOR]}
    meanings = {name: [color] for name, color in PALETTE.items()} | classes
    for (one, some), (other, others) in itertools.combinations(meanings.items(), 2):
        for a, b in itertools.product(some, others):
            distance = np.linalg.norm(lab(red_green_blue(a)) - lab(red_green_blue(b)))
            assert distance > 15, f"{one} ({a}) looks like {other} ({b})"


@pytest.mark.parametrize("theme", THEMES)
def test_methods_can_be_told_apart_and_from_the_ground(theme):
    change, ground = THEMES[theme]
    colors = {name: change(color) for name, color in METHODS.items()}
    assert closest(colors)[0] > 18, closest(colors)
    for name, color in colors.items():
        assert contrast(color, ground) >= 3, name


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("kind", COLOUR_BLIND)
def test_colour_blind_readers_can_tell_methods_apart(theme, kind):
    colors = {name: seen_by(kind, THEMES[theme][0](color)) for name, color in METHODS.items()}
    assert closest(colors)[0] > 13, closest(colors)


def test_known_classes_are_cold_and_novel_ones_warm():
    for colors, warm in ((KNOWN_COLORS, False), (NOVEL_COLORS, True)):
        for color in colors:
            red, _, blue = red_green_blue(color)
            assert (red > blue) == warm, color


# -- chapters by name, and the findings -------------------------------------------------------------------------------


def load_extension(name: str):
    spec = importlib.util.spec_from_file_location(name, BOOK / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_chapters_are_numbered_as_the_contents_list_them():
    numbers = load_extension("chapters").chapter_numbers(ROOT / "_toc.yml")
    assert list(numbers) == chapters_of()
    assert list(numbers.values()) == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("path", [ROOT / "index.md", *sorted(BOOK.glob("*.md"))], ids=lambda path: path.stem)
def test_no_page_types_the_number_of_a_chapter(path):
    assert re.findall(r"[Cc]hapters? \d+|{doc}`\d+ <", path.read_text(encoding="utf-8")) == []


@pytest.fixture(scope="module")
def frontpage():
    return load_extension("frontpage")


def test_findings_answer_from_the_measurements(frontpage):
    """An answer has numbers, and its template has none but in names of formats."""
    claims = {row.id: row for row in ledger().itertuples()}
    cells = compare_with_paper()
    for question, id_, answer in frontpage.FINDINGS:
        assert id_ in claims, question
        assert re.search(r"\d", answer(claims, cells)), question
        texts = [
            node.value
            for node in ast.walk(ast.parse(inspect.getsource(answer)))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        assert not [text for text in texts if re.search(r"\d", text) and not re.fullmatch(r"\+?\.\d+f", text)], question


def test_findings_change_with_the_measurements(frontpage):
    cells, claims = compare_with_paper(), ledger()
    html = frontpage.findings_html(claims, cells)
    better = cells.assign(searched=cells["searched"] + 1.0, published=cells["published"] - 1.0)
    assert frontpage.searched(None, better) != frontpage.searched(None, cells)
    assert frontpage.findings_html(claims.assign(verdict="holds"), cells).count(">holds<") == 6
    assert html.count('class="verdict ') == 6


# -- verdicts in the text ---------------------------------------------------------------------------------------------


def test_map_of_the_paper_has_every_place_of_a_claim():
    """Once each, so that the ledger's links to the map arrive."""
    marked = re.findall(r"{claims}`([^`]+)`", (BOOK / "paper_map.md").read_text(encoding="utf-8"))
    counts = load_extension("claims_in_text").verdicts_by_place(ledger())
    assert len(set(marked)) == len(marked)
    assert set(counts) <= set(marked)
    assert set(marked) - set(counts) == {"Figure 1", "Figure 2", "Figure 3"}  # which illustrate


def test_counts_on_the_map_are_the_ledger_s():
    claims = ledger()
    about = claims[claims["place"].str.endswith(", Table 4")]
    counts = load_extension("claims_in_text").verdicts_by_place(claims)
    assert counts["Table 4"] == about["verdict"].value_counts().to_dict()
    assert len(about) > 10
    other = load_extension("claims_in_text").verdicts_by_place(claims.assign(verdict="holds"))
    assert other["Table 4"] == {"holds": len(about)}


def test_claims_named_in_the_text_exist():
    pages = [*BOOK.glob("*.md"), *BOOK.glob("*.ipynb")]
    named = {path.stem: re.findall(r"{claim}`([^`]+)`", path.read_text(encoding="utf-8")) for path in pages}
    assert {topic for topic, ids in named.items() if ids} >= {"hidden_classes", "how_many", "full_procedure"}
    assert set(itertools.chain(*named.values())) <= {claim.id for claim in ncdlib.evidence.CLAIMS}


def test_search_keeps_decimals_and_the_numbers_of_sections():
    split = load_extension("claims_in_text").EnglishWithDecimals({}).split
    assert split("a lead of 21.6 points (Section 7.2.1).") == ["a", "lead", "of", "21.6", "points", "Section", "7.2.1"]
