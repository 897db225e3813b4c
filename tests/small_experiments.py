"""Small experiments on digits in place of the paper's, and the command line in this process."""

import sys
from functools import partial

import pytest

from ncdlib.cli import main
from ncdlib.evidence import experiments as declared
from ncdlib.evidence import protocols
from ncdlib.evidence.experiments import Experiment

DIGITS = partial(Experiment, "clust", datasets=("digits",), runs=3)
TINY = [
    DIGITS("k-means", protocols.k_means),
    DIGITS("NCD k-means", protocols.ncd_k_means),
    DIGITS("SC", protocols.spectral),
    DIGITS("NCD SC", protocols.ncd_spectral, change={"s_min": 0.6, "n_components": 6}),
    DIGITS("PBN", protocols.deep("PBN"), change={"epochs": 2}),
    DIGITS("Baseline", protocols.deep("Baseline"), setting="estimated", change={"epochs": 2}),
    DIGITS("TabularNCD", protocols.deep("TabularNCD"), change={"epochs": 2}),
]


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Small experiments on digits instead of the paper's, and a folder for their results."""
    monkeypatch.setattr(declared, "experiment_list", lambda: TINY)
    monkeypatch.setattr(declared, "search_list", lambda: [])
    monkeypatch.setenv("NCDLIB_RESULTS", str(tmp_path))
    return tmp_path


@pytest.fixture
def ncd(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["ncd", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, capsys.readouterr().out

    return run
