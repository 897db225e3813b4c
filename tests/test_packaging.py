"""One version, one set of dependencies, one repository address; and the package builds and installs."""

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distributions
from pathlib import Path

import pytest
import yaml
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import ncdlib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def locked() -> dict[str, str]:
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    pins = [re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.!]+)", line) for line in lines]
    assert all(pins), f"not an exact pin: {[line for line, pin in zip(lines, pins, strict=True) if not pin]}"
    return {canonicalize_name(pin[1]): pin[2] for pin in pins}


def requirements(*groups: list[str]) -> list[Requirement]:
    return [Requirement(line) for group in groups for line in group]


def test_lock_holds_every_requirement_of_pyproject(locked):
    for requirement in requirements(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        name = canonicalize_name(requirement.name)
        assert name in locked, f"{requirement} is not in requirements.lock: run make lock"
        assert requirement.specifier.contains(locked[name]), f"{name} is locked at {locked[name]}: not {requirement}"


def test_lock_is_what_is_installed(locked):
    installed = {canonicalize_name(d.name): Version(d.version).public for d in distributions()}
    # Besides the installer and ourselves: what torch and IPython need on some systems only.
    elsewhere = re.compile(r"ncdlib|pip|nvidia-.*|cuda-.*|triton|appnope|colorama|pywin.*")
    assert {name: version for name, version in installed.items() if not elsewhere.fullmatch(name)} == locked


CONDA_NAMES = {
    "torch": "pytorch",
    "igraph": "python-igraph",
    "matplotlib": "matplotlib-base",
    "lazy-loader": "lazy_loader",
}


def test_conda_environment_names_what_the_package_and_the_book_need(locked):
    """With the versions of pyproject, which those of the lock satisfy; torch of the lock is named."""
    text = (ROOT / "environment.yml").read_text()
    python, *packages, pip, from_pip = yaml.safe_load(text)["dependencies"]
    assert Requirement(f"python{PROJECT['requires-python']}").specifier.contains(python.removeprefix("python="))
    *others, ourselves = from_pip["pip"]
    assert (pip, ourselves) == ("pip", "--editable .")
    named = {requirement.name: requirement.specifier for requirement in requirements(packages, others)}
    assert len(named) == len(packages) + len(others)
    needed = requirements(PROJECT["dependencies"], PROJECT["optional-dependencies"]["book"])
    assert named == {CONDA_NAMES.get(r.name, r.name): r.specifier for r in needed}
    assert all(r.specifier.contains(locked[canonicalize_name(r.name)]) for r in needed)
    assert f"torch is {locked['torch']}" in " ".join(text.replace("# ", "").split())


def test_one_version_number():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    newest_change = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert {ncdlib.__version__, citation["version"], newest_change[1]} == {PROJECT["version"]}


def test_one_repository_address():
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    address = config["repository"]["url"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["repository-code"] == PROJECT["urls"]["Repository"] == address
    for chapter in sorted((ROOT / "book").glob("[0-9]*.ipynb")):
        code = json.loads(chapter.read_text())["cells"]
        clones = re.findall(r"git clone \S.* (\S+)", "".join("".join(c["source"]) for c in code))
        assert clones == [address], f"{chapter.name}: the hidden first cell clones {clones}"


def test_ncd_tells_the_version():
    answer = subprocess.run([Path(sys.executable).with_name("ncd"), "--version"], capture_output=True, text=True)
    assert answer.returncode == 0
    assert PROJECT["version"] in answer.stdout


def test_wheel_and_sdist(tmp_path):
    """Both build, and hold what an installed package needs: every module, its data and the licence."""
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < 8_000_000
    (sdist,) = tmp_path.glob("*.tar.gz")
    package = [path for path in (ROOT / "ncdlib").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    wanted = {path.relative_to(ROOT).as_posix() for path in package}
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    assert wanted <= in_wheel
    assert wanted | {"pyproject.toml", "LICENSE", "README.md"} <= in_sdist
    assert any(name.endswith("licenses/LICENSE") for name in in_wheel)
    assert {name.split("/")[0] for name in in_wheel} == {"ncdlib", f"ncdlib-{PROJECT['version']}.dist-info"}
