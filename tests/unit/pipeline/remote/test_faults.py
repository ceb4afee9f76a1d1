"""Nothing that a remote store does makes a run fail: what nobody wrote, what libraries raise, proxies that are none."""

from __future__ import annotations

import base64
import contextlib
import errno
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path

import pytest

from pipeline.errors import DiskFullError
from pipeline.remote.health import MOST_FAILURES
from pipeline.remote.http import HttpTransport
from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import READ, SLOWEST, Pace, RemoteError
from stages.system.installation import INSTALLATION
from tests.support.optional import needs
from tests.unit.pipeline.conftest import FakeProject
from tests.unit.pipeline.remote.conftest import Server, all_of, found_elsewhere, how

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("files", "sizes"),
    [
        ({"a": b"1", "a/b": b"2"}, None),
        ({"a": b"1", "a/b/c": b"2"}, None),
        ({"x" * 300: b"1"}, None),
        ({"x" * 300 + "/a": b"1"}, None),
        ({"/".join(["x" * 200] * 30): b"1"}, None),
        ({"a": b"1"}, {}),
        ({"a": b"1"}, {"size": "1"}),
        ({"a": b"1"}, {"size": 7}),
    ],
    ids=["file and folder", "file and folders", "long", "long folder", "long path", "no size", "text", "other size"],
)
def test_an_entry_that_nobody_wrote_is_none(
    files: dict[str, bytes], sizes: dict[str, object] | None, other: FakeProject, server: Server, capsys: Capture
) -> None:
    """Names that no disk takes, and sizes that are none, are a warning as other altered bytes are."""
    assert found_elsewhere(other, server, files, sizes) is None
    warning = capsys.readouterr().err
    assert warning.count("warning") == 1 and "is no entry of an artifact; what needs" in warning
    assert found_elsewhere(other, server, {"a": b"1", "b/c": b"2"}) is not None


def test_a_full_disk_is_the_machines_own(other: FakeProject, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong here is not told as wrong there."""

    def full(self: Path, mode: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(DiskFullError), monkeypatch.context() as one:
        one.setattr("pipeline.remote.remote.Path.chmod", full)
        found_elsewhere(other, server, {"a": b"1"})


class _Odd:
    """A transport whose library raises what it should not."""

    def __init__(self, where: str) -> None:
        self.where = where

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        if self.where == "read":
            raise KeyError("odd")
        return False

    def has(self, name: str, size: int | None = None) -> bool:
        return False

    def write(self, name: str, content: Path | bytes) -> None:
        raise AttributeError("odd")


@pytest.mark.parametrize("where", ["open", "read", "write"])
def test_whatever_a_library_raises_the_run_goes_on(
    where: str, project: FakeProject, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def opened(*_: object) -> _Odd:
        if where == "open":
            raise RuntimeError("odd")
        return _Odd(where)

    monkeypatch.setattr("pipeline.runs.workspace.open_remote", opened)
    monkeypatch.setenv("FIRMLINE_REMOTE", "http://127.0.0.1")
    assert how(project) == all_of("ran")
    kind = {"open": "RuntimeError: odd", "read": "KeyError: 'odd'", "write": "AttributeError: odd"}[where]
    assert capsys.readouterr().err.startswith(f"warning: the remote store http://127.0.0.1 fails: {kind};")


@pytest.mark.parametrize(
    "proxy", ["socks5://ann:secret@127.0.0.1:1", "http://ann:secret@[::1", "http://ann:secret@a:b"]
)
def test_a_proxy_that_is_none_is_one_line(
    proxy: str, project: FakeProject, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("FIRMLINE_REMOTE", "http://cache.example")
    assert how(project) == all_of("ran")
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "cannot be used: HTTP_PROXY is no proxy" in told and "secret" not in told


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_a_proxy_is_told_who_asks(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the name and the password of its URL, which may lack `http://`."""
    asked: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            asked.extend([self.path, self.headers.get("Proxy-Authorization", "")])
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Proxy) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        monkeypatch.setenv("http_proxy", f"{scheme}ann:s%40cret@127.0.0.1:{served.server_port}")
        monkeypatch.setenv("no_proxy", "")
        assert not HttpTransport(RemoteSettings("http://cache.example/x")).has("cas/1")
        served.shutdown()
    assert asked == ["http://cache.example/x/cas/1", f"Basic {base64.b64encode(b'ann:s@cret').decode()}"]


@needs("fsspec", "remote")
def test_what_closing_a_file_raises_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All was read before."""
    from pipeline.remote.files import FilesTransport

    transport = FilesTransport(RemoteSettings(f"file://{tmp_path}"))
    transport.write("cas/1", b"bytes")

    class Closing:
        def __init__(self) -> None:
            self.read = io.BytesIO((tmp_path / "cas/1").read_bytes()).read

        def close(self) -> None:
            raise EOFError

    monkeypatch.setattr(vars(transport)["_fs"], "open", lambda *_, **__: Closing())
    parts: list[bytes] = []
    assert transport.read("cas/1", parts.append) and parts == [b"bytes"]


@contextmanager
def dripping() -> Iterator[str]:
    """A server that gives a byte now and then, and takes as few, without an end."""

    class Drip(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            with contextlib.suppress(OSError):
                while not over.wait(0.05):
                    self.wfile.write(b"x")

        def do_PUT(self) -> None:
            while not over.wait(0.05) and self.rfile.read1(1 << 16):  # type: ignore[attr-defined]
                pass

        def log_message(self, *_: object) -> None:
            """Nothing."""

    over = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Drip) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{served.server_port}"
        finally:
            over.set()
            served.shutdown()


def test_what_drips_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.remote.http.READ", 0.4)
    monkeypatch.setattr("pipeline.remote.transport.SLOWEST", 1_000_000)
    (tmp_path / "large").write_bytes(bytes(30 << 20))
    with dripping() as url:
        transport = HttpTransport(RemoteSettings(url))
        parts: list[bytes] = []
        with pytest.raises(RemoteError, match="fewer than 1,000,000 bytes a second"):
            transport.read("cas/1", parts.append)
        assert 0 < len(parts) < 100
        monkeypatch.setattr("pipeline.remote.transport.SLOWEST", 9_000_000)
        with pytest.raises(RemoteError, match="fewer than 9,000,000 bytes a second"):
            transport.write("cas/1", tmp_path / "large")


def test_a_large_object_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("pipeline.remote.transport.time.monotonic", lambda: now)
    pace = Pace(READ)
    for _ in range(100):
        now += 1
        pace.moved(SLOWEST)
    now += READ
    pace.moved(0)
    now += 0.1
    with pytest.raises(RemoteError):
        pace.moved(0)


def test_the_page_says_how_long_silence_takes() -> None:
    page = (INSTALLATION / "docs/store.md").read_text()
    assert f"up to {READ * (MOST_FAILURES + 1):.0f} seconds, {READ:.0f} seconds for each of three failures" in page
    assert f"fewer than {SLOWEST:,} bytes a second" in page
