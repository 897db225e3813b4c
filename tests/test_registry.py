"""The lists that others read: methods, validity indices, slow tests."""

import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT, SLOW
from sklearn.utils import get_tags

import ncdlib
from ncdlib import estimate_n_clusters
from ncdlib.cli import METHOD_HELP
from ncdlib.clustering import validity
from ncdlib.evidence.experiments import SEARCHES
from ncdlib.evidence.paper import INDEX_NAMES
from ncdlib.methods.base import NCDEstimator
from ncdlib.methods.registry import DISCOVERING, METHODS, get_method
from ncdlib.plots import KNOWN_COLORS, NOVEL_COLORS, PALETTE

OURS = [method for method in METHODS.values() if method.module.startswith("ncdlib.")]
with_each = pytest.mark.parametrize("method", OURS, ids=lambda method: method.name)


def test_reading_the_registry_loads_no_library():
    code = "import sys, ncdlib.methods.registry; sys.exit(bool({'torch', 'sklearn', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_made_and_says_the_truth_about_itself(name):
    method = METHODS[name]
    estimator = method.load()()
    assert method.name == name == name.lower()
    assert method.searched == hasattr(estimator, "search_space")
    assert method.learns_from_known == get_tags(estimator).target_tags.required
    assert method.description and len(method.description) < 100 and method.description[-1] != "."


@with_each
def test_every_method_is_in_the_package_and_on_its_page(method):
    assert getattr(ncdlib, method.class_name) is method.load()
    assert method.class_name in ncdlib.__all__
    path = f"{method.module}.{method.class_name}"
    page = (ROOT / "book" / "api_methods.md").read_text()
    of_module = page.partition(f".. automodule:: {method.module}\n   :members: ")[2].partition("\n")[0].split(", ")
    assert f".. autoclass:: {path}\n" in page or method.class_name in of_module
    assert f"`~{path}`" in (ROOT / "book" / "api.md").read_text()


def test_no_estimator_is_missing():
    estimators = {
        name
        for name in ncdlib.__all__
        if isinstance(value := getattr(ncdlib, name), type) and issubclass(value, NCDEstimator)
    }
    assert estimators == {method.class_name for method in OURS}


def test_colours_tell_methods_from_each_other_and_from_classes():
    colors = [method.color for method in METHODS.values()]
    assert len(set(colors) | set(KNOWN_COLORS) | set(NOVEL_COLORS)) == len(colors) + len(KNOWN_COLORS + NOVEL_COLORS)
    assert {method.label: method.color for method in METHODS.values()}.items() <= PALETTE.items()


def test_methods_by_name():
    assert [get_method(name.upper()).name for name in DISCOVERING] == list(DISCOVERING)
    for name in ("sc", "kmeans", "dbscan"):
        with pytest.raises(ValueError, match=f"unknown method '{name}': choose from auto, metric"):
            get_method(name)
    assert all(f"{name}: {METHODS[name].description}" in METHOD_HELP for name in DISCOVERING)


def test_the_evidence_searches_what_has_to_be_searched():
    assert {estimator for estimator, _, _ in SEARCHES.values()} == {
        method.class_name for method in METHODS.values() if method.searched
    }


def test_a_new_validity_index_works_at_once(monkeypatch):
    index = validity.ValidityIndex(lambda sweep: -sweep.ks.astype(float))
    monkeypatch.setitem(validity.VALIDITY_INDICES, "smallest", index)
    X = np.random.default_rng(0).normal(size=(30, 2))
    estimate = estimate_n_clusters(X, ["smallest", "silhouette"], range(3, 6), random_state=0)
    assert estimate.n_clusters == 3 and np.isfinite(estimate.scores["silhouette"]).all()


def test_every_index_of_the_paper_is_registered():
    assert set(INDEX_NAMES) <= set(validity.VALIDITY_INDICES)


@pytest.mark.parametrize("test", SLOW)
def test_what_make_quick_leaves_out_is_there(test):
    file, _, name = test.partition("::")
    assert f"def {name}(" in (ROOT / "tests" / file).read_text() if name else (ROOT / "tests" / file).is_file()
