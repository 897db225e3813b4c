"""Quizzes, the map of the paper and the API reference: the sources of pages that promise to be complete."""

import importlib
import inspect
import json
import re

import pytest
from conftest import ROOT, chapters_of

import ncdlib.clustering.validity
import ncdlib.evidence
import ncdlib.selection
from ncdlib.cli import app

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
    entries = re.findall(r"^\* - ((?:Table|Figure|Algorithm) \d+)\n  - .*\n  - (.*)$", text, flags=re.M)
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
