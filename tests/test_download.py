"""Downloads from a local server in the layout of the UCI archive, and what can go wrong with them."""

import io
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
import zipfile
from dataclasses import replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from faults import full_disk, read_only

from ncdlib import DATASETS, load_dataset
from ncdlib.datasets import DataFile, DataFileError, archive_url, get_files
from ncdlib.datasets.files import _fetch

ROWS = "".join(f"{row % 10},{row},{row % 7}\n" for row in range(150_000)).encode()
URL = "/1/toy.zip"


def read_toy(paths):
    table = pd.read_csv(paths["part/toy.csv"], header=None).to_numpy()
    return {"X": table[:, 1:], "y": table[:, 0], "feature_names": np.array(["a", "b"])}


TOY = replace(
    DATASETS["digits"],
    name="toy",
    source="original",
    files=(DataFile("part/toy.csv", len(ROWS), sha256(ROWS).hexdigest()),),
    archive=URL[1:],
    read=read_toy,
)


def zipped(members, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


GOOD = zipped({"readme.txt": b"hello", "part/toy.csv.Z": b"compressed", "UCI toy/part/toy.csv": ROWS})
PACKED = zipped({"part/toy.csv": ROWS}, zipfile.ZIP_DEFLATED)


class Server(ThreadingHTTPServer):
    """Answers each path with the bytes, or the function, that `answers` holds for it."""

    daemon_threads, closing = True, False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.requests, self.half_sent, self.go_on = {}, [], threading.Event(), threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        answer = self.server.answers.get(self.path)
        if answer is None:
            self.send_error(404)
        elif callable(answer):
            answer(self)
        else:
            self.start(len(answer))
            self.wfile.write(answer)

    def start(self, length=None):
        self.send_response(200)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *_):
        pass


def send_half_of_what_is_announced(handler):
    handler.start(len(GOOD))
    handler.wfile.write(GOOD[: len(GOOD) // 2])


def send_half_without_a_length(handler):
    handler.start()
    handler.wfile.write(GOOD[: len(GOOD) // 2])


def send_in_two_halves(handler):
    handler.start(len(GOOD))
    handler.wfile.write(GOOD[: len(GOOD) // 2])
    handler.server.half_sent.set()
    if handler.server.go_on.wait(300) and not handler.server.closing:
        handler.wfile.write(GOOD[len(GOOD) // 2 :])


@pytest.fixture
def server():
    server = Server()
    yield server
    server.closing = True
    server.go_on.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def cache(server, tmp_path, monkeypatch):
    """An empty cache folder, no other data folder, and the local server in UCI's place."""
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setitem(DATASETS, "toy", TOY)
    monkeypatch.setenv("NCDLIB_CACHE", str(cache))
    monkeypatch.setenv("NCDLIB_UCI_URL", server.url)
    monkeypatch.delenv("NCDLIB_DATA", raising=False)
    return cache


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_download_puts_the_file_into_the_cache_with_a_progress_bar(server, cache, capfd):
    server.answers[URL] = GOOD
    problem = load_dataset("toy")
    assert problem.source == "original" and len(problem.X) == 105_000
    assert (cache / "toy" / "part" / "toy.csv").read_bytes() == ROWS
    assert "100%" in capfd.readouterr().err
    load_dataset("toy")
    assert server.requests == [URL]
    parsed, file = files_in(cache)
    assert parsed.startswith("toy/parsed-") and file == "toy/part/toy.csv"


def test_archive_inside_the_archive(server, cache):
    inner = zipped({"__MACOSX/UCI toy/part/._toy.csv": b"icon", "UCI toy/part/toy.csv": ROWS})
    server.answers[URL] = zipped({"readme.txt": b"hello", "UCI toy.zip": inner})
    assert load_dataset("toy").source == "original"


def test_archive_without_announced_length(server, cache):
    def answer(handler):
        handler.start()
        handler.wfile.write(GOOD)

    server.answers[URL] = answer
    assert load_dataset("toy").source == "original"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(None, r"there is no part/toy.csv .*cannot be read \(404 .*\). Get http", id="404"),
        pytest.param(send_half_of_what_is_announced, "cannot be read .*Error", id="connection lost"),
        pytest.param(send_half_without_a_length, "not a whole zip archive", id="cut short"),
        pytest.param(b"<!DOCTYPE html><html>Sorry</html>", "not a whole zip archive", id="web page"),
        pytest.param(b"", "not a whole zip archive", id="empty"),
        pytest.param(zipped({"other.csv": ROWS}), "holds no part/toy.csv", id="file missing"),
        pytest.param(
            zipped({"part/toy.csv": ROWS[:-7]}),
            "is not the original: it has .* bytes, and the original",
            id="size",
        ),
        pytest.param(zipped({"part/toy.csv": ROWS.replace(b"99", b"98")}), "its checksum differs", id="wrong checksum"),
        pytest.param(
            zipped({"part/toy.csv": ROWS, "../../evil.txt": b"x"}),
            r"'../../evil.txt' points outside",
            id="slip",
        ),
        pytest.param(zipped({"part/toy.csv": ROWS, "/etc/evil": b"x"}), "'/etc/evil' points outside", id="absolute"),
        pytest.param(
            zipped({"inner.zip": zipped({"../part/toy.csv": ROWS})}),
            "points outside",
            id="slip in the inner archive",
        ),
        pytest.param(GOOD[:3000] + b"?" + GOOD[3001:], "not a whole zip archive .*CRC", id="damaged"),
        pytest.param(PACKED[:200] + b"???" + PACKED[203:], "not a whole zip archive", id="damaged and packed"),
        pytest.param(
            zipped({"a.zip": zipped({"b.zip": zipped({"part/toy.csv": ROWS})})}), "holds no part/toy.csv", id="too deep"
        ),
    ],
)
def test_bad_archives_are_refused_and_leave_nothing_behind(server, cache, tmp_path, answer, message):
    if answer is not None:
        server.answers[URL] = answer
    with pytest.raises(DataFileError, match=message) as error:
        load_dataset("toy")
    assert "toy" in str(error.value) and server.url in str(error.value)
    assert files_in(tmp_path) == []
    server.answers[URL] = GOOD
    assert load_dataset("toy").source == "original"


def test_modified_archive_on_demand(server, cache):
    server.answers[URL] = zipped({"part/toy.csv": ROWS[: ROWS.rindex(b"\n", 0, -1) + 1]})
    problem = load_dataset("toy", allow_modified=True)
    assert problem.source == "modified data: part/toy.csv is not the original"
    with pytest.raises(DataFileError, match="is not the original file of data set toy"):
        load_dataset("toy")


def test_no_network_and_no_file(cache, monkeypatch):
    monkeypatch.setenv("NCDLIB_UCI_URL", "http://127.0.0.1:9")
    with pytest.raises(DataFileError) as error:
        load_dataset("toy")
    message = str(error.value)
    assert message.startswith("data set toy: there is no part/toy.csv on this computer")
    assert "http://127.0.0.1:9/1/toy.zip cannot be read (ConnectionError)" in message
    assert f"put its files into {cache / 'toy'}" in message
    _, there = message.split("Data sets that work without a network: ")
    assert there.split(", ") == [name for name in DATASETS if name not in ("human", "census", "toy")]
    assert error.value.__suppress_context__  # no pages of urllib3 above the message
    assert files_in(cache) == []


def test_download_can_be_forbidden(server, cache):
    server.answers[URL] = GOOD
    with pytest.raises(DataFileError, match=r"no part/toy.csv .*download=False.*put its files into .*toy.*digits"):
        load_dataset("toy", download=False)
    assert server.requests == [] and files_in(cache) == []


def test_no_space_left(server, cache):
    server.answers[URL] = GOOD
    assert len(GOOD) > 1 << 20
    with full_disk(cache, 1 << 20):
        with pytest.raises(DataFileError, match=rf"cannot store data set toy in {cache}.*(space|large).*NCDLIB_CACHE"):
            load_dataset("toy")
        assert files_in(cache) == []


def test_no_space_left_for_the_extracted_file(server, cache):
    server.answers[URL] = PACKED
    assert len(PACKED) < 1 << 19 < 1 << 20 < len(ROWS)
    with full_disk(cache, 1 << 20):
        with pytest.raises(DataFileError, match=rf"cannot store data set toy in {cache}.*(space|large).*NCDLIB_CACHE"):
            load_dataset("toy")
        assert files_in(cache) == []


def test_read_only_cache(server, cache):
    server.answers[URL] = GOOD
    with (
        read_only(cache),
        pytest.raises(DataFileError, match=rf"cannot store data set toy in {cache}.*NCDLIB_CACHE"),
    ):
        load_dataset("toy")
    assert server.requests == [] and files_in(cache) == []


LOAD = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background of a shell
import test_download as t
t.DATASETS["toy"] = t.TOY
print(t.load_dataset("toy").source)
"""


def other_process():
    return subprocess.Popen(
        [sys.executable, "-c", LOAD],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_kill_during_a_download_leaves_nothing_that_is_believed(server, cache):
    server.answers[URL] = send_in_two_halves
    process = other_process()
    assert server.half_sent.wait(300)
    time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert files_in(cache) == ["toy/.lock"]
    server.answers[URL] = GOOD
    assert load_dataset("toy").source == "original"
    assert not any(name.endswith((".lock", ".part")) for name in files_in(cache))


def test_interrupt_during_a_download_leaves_nothing(server, cache):
    server.answers[URL] = send_in_two_halves
    process = other_process()
    assert server.half_sent.wait(300)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=300)[1]
    assert files_in(cache) == []


def test_what_a_killed_process_left_is_removed(server, cache):
    server.answers[URL] = GOOD
    left = cache / "toy" / "part" / ".toy.csv.0a1b2c3d.part"
    left.parent.mkdir(parents=True)
    left.write_bytes(ROWS[:100])
    get_files(TOY)
    assert files_in(cache) == ["toy/part/toy.csv"]


def test_two_processes_download_once(server, cache):
    server.answers[URL] = send_in_two_halves
    first = other_process()
    assert server.half_sent.wait(300)
    threading.Timer(1, server.go_on.set).start()
    assert load_dataset("toy").source == "original"  # it waited for the other process, and found its file
    assert first.communicate(timeout=300)[0] == "original\n"
    assert server.requests == [URL]


def test_downloads_are_https_unless_the_user_names_a_mirror(monkeypatch):
    monkeypatch.delenv("NCDLIB_UCI_URL", raising=False)
    for info in DATASETS.values():
        assert not info.files or archive_url(info).startswith("https://archive.ics.uci.edu/static/public/")


def test_a_redirect_from_https_to_http_is_refused(server, tmp_path, monkeypatch):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    subprocess.run(
        [*command.split(), "-addext", "subjectAltName=DNS:localhost", "-out", certificate, "-keyout", key],
        check=True,
        capture_output=True,
    )
    secure = Server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))

    def redirect(handler):
        handler.send_response(302)
        handler.send_header("Location", f"{server.url}{URL}")
        handler.end_headers()

    server.answers[URL] = secure.answers["/direct"] = GOOD
    secure.answers[URL] = redirect
    target = io.BytesIO()
    try:
        _fetch(f"https://localhost:{secure.server_port}/direct", target)
        assert target.getvalue() == GOOD
        with pytest.raises(DataFileError, match="which is not https"):
            _fetch(f"https://localhost:{secure.server_port}{URL}", io.BytesIO())
    finally:
        secure.shutdown()
        secure.server_close()


# The members of UCI's archives, as far as they matter here.
LAYOUT = {
    "letter": {"Index": b"", "letter-recognition.data": ..., "letter-recognition.data.Z": b"\x1f\x9d"},
    "pendigits": {"pendigits.tes.Z": b"\x1f\x9d", "pendigits.tra": ..., "pendigits.tes": ...},
    "optdigits": {"optdigits-orig.tra.Z": b"\x1f\x9d", "optdigits.tra": ..., "optdigits.tes": ...},
    "mfeat": {"mfeat-fou": b"", "mfeat-fac": ..., "mfeat.info": b""},
    "cnae9": {"CNAE-9.data": ..., "CNAE-9.names": b""},
    "census": {"USCensus1990-desc.html": b"", "USCensus1990.data.txt": ...},
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.needs_files(n)) for n in [*LAYOUT, "human"]])
def test_archives_in_the_layout_of_uci(server, tmp_path, monkeypatch, name):
    monkeypatch.setenv("NCDLIB_CACHE", str(tmp_path))
    monkeypatch.setenv("NCDLIB_UCI_URL", server.url)
    home = Path(os.environ["NCDLIB_DATA"], name)
    monkeypatch.delenv("NCDLIB_DATA")
    info = DATASETS[name]
    if name == "human":
        folder = "UCI HAR Dataset"
        members = {f"{folder}/{file.name}": (home / file.name).read_bytes() for file in info.files}
        members |= {
            f"__MACOSX/{folder}/train/._X_train.txt": b"",
            f"{folder}/train/Inertial Signals/a.txt": b"",
        }
        members = {f"{folder}.names": b"", f"{folder}.zip": zipped(members)}
    else:
        members = {m: (home / m).read_bytes() if c is ... else c for m, c in LAYOUT[name].items()}
    server.answers[f"/{info.archive}"] = zipped(members)
    variant = any(file.variants for file in info.files)
    if variant:
        with pytest.raises(DataFileError, match="is not the original"):
            get_files(info)
    paths = get_files(info, allow_modified=variant)
    for file in info.files:
        assert paths[file.name] == tmp_path / name / file.name
        assert sha256(paths[file.name].read_bytes()).digest() == sha256((home / file.name).read_bytes()).digest()
    problem = load_dataset(name)
    assert (problem.source == "original") == (not variant)
    assert re.match("rebuilt|the first|original", problem.source)
