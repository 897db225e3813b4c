"""What a chapter's sentences are made of."""

import numpy as np
import pandas as pd

from ncdlib.evidence import compare_with_paper, load_results
from ncdlib.evidence.paper import DATASETS
from ncdlib.evidence.show import glue_all, lower_by, range_in_words, starred_names, variant_sources


def test_values_are_glued_as_plain_python(monkeypatch):
    glued = {}
    monkeypatch.setattr("myst_nb.glue", lambda name, value, display: glued.update({name: repr(value)}))
    glue_all(share=np.float64(76.5), wins=np.int64(3), sure=np.bool_(True), best="PBN", **{"w_0.5": np.float32(0.5)})
    assert glued == {"share": "76.5", "wins": "3", "sure": "True", "best": "'PBN'", "w_0.5": "0.5"}


def test_a_star_marks_what_is_measured_on_a_variant():
    starred = [name for name, printed in starred_names().items() if printed.endswith("*")]
    runs = load_results()
    assert starred == [name for name in DATASETS if (runs.loc[runs["dataset"] == name, "source"] != "original").any()]
    sources = variant_sources()
    assert list(sources) == [f"source_{name}" for name in starred]
    assert all(len(source) > 20 for source in sources.values())


def test_lower_cells_are_those_that_lose_more_than_three_points():
    cells = compare_with_paper().query("table == 'ncd'")
    words = lower_by(cells)
    real = cells[(cells["dataset"] != "average") & (cells["published"] - cells["searched"] > 3)]
    assert words.count("(") == len(real) > 0
    for cell in real.itertuples():
        assert f"{starred_names()[cell.dataset]} ({cell.searched - cell.published:+.1f})" in words
    assert lower_by(cells, points=100) == "none"


def test_a_range_names_its_ends():
    words = range_in_words(pd.Series({"Letter": -1.0, "Census*": 4.0, "Human*": 0.0}))
    assert words == "+1.0 points on average, and upwards on 1 of 3 data sets (from -1.0 on Letter to +4.0 on Census*)"
