"""What chapters show of the evidence: values for their text."""

import numpy as np

from ncdlib.evidence import load_results
from ncdlib.evidence.paper import DATASETS
from ncdlib.evidence.show import glue_all, starred_names


def test_values_are_glued_as_plain_python(monkeypatch):
    glued = {}
    monkeypatch.setattr("myst_nb.glue", lambda name, value, display: glued.update({name: repr(value)}))
    glue_all(share=np.float64(76.5), wins=np.int64(3), sure=np.bool_(True), best="PBN", **{"w_0.5": np.float32(0.5)})
    assert glued == {"share": "76.5", "wins": "3", "sure": "True", "best": "'PBN'", "w_0.5": "0.5"}


def test_a_star_marks_what_is_measured_on_a_variant():
    starred = [name for name, printed in starred_names().items() if printed.endswith("*")]
    runs = load_results()
    assert starred == [name for name in DATASETS if (runs.loc[runs["dataset"] == name, "source"] != "original").any()]
