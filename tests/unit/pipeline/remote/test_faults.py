"""Nothing that a remote store does makes a run fail: what nobody wrote, what libraries raise, proxies that are none."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.remote.http import HttpTransport
from pipeline.remote.settings import RemoteSettings
from tests.unit.pipeline.conftest import Capture, FakeProject
from tests.unit.pipeline.remote.conftest import Server, all_of, found_elsewhere, how
from tests.unit.pipeline.remote.test_limits import serving


@pytest.mark.parametrize(
    ("files", "sizes", "seconds"),
    [
        ({"a": b"1", "a/b": b"2"}, None, 1),
        ({"x" * 300: b"1"}, None, 1),
        ({"/".join(["x" * 200] * 30): b"1"}, None, 1),
        ({"a": b"1"}, {}, 1),
        ({"a": b"1"}, {"size": 7}, 1),
        ({"a": b"1"}, None, 10**400),
    ],
    ids=["file and folder", "long", "long path", "no size", "other size", "long number"],
)
def test_an_entry_that_nobody_wrote_is_none(
    files: dict[str, bytes],
    sizes: dict[str, object] | None,
    seconds: int,
    other: FakeProject,
    server: Server,
    capsys: Capture,
) -> None:
    """Names that no disk takes, and sizes that are none, are a warning as other altered bytes are."""
    assert found_elsewhere(other, server, files, sizes, seconds) is None
    warning = capsys.readouterr().err
    assert warning.count("warning") == 1 and "is not an artifact entry; the artifact" in warning
    assert found_elsewhere(other, server, {"a": b"1", "b/c": b"2"}) is not None


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

    monkeypatch.setattr("pipeline.runs.workspace.open_transport", opened)
    monkeypatch.setenv("FIRMLINE_REMOTE", "http://127.0.0.1")
    assert how(project) == all_of("ran")
    kind = {"open": "RuntimeError: odd", "read": "KeyError: 'odd'", "write": "AttributeError: odd"}[where]
    assert capsys.readouterr().err.startswith(f"warning: the remote store http://127.0.0.1 fails: {kind};")


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_a_proxy_is_told_who_asks(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the name and the password of its URL, which may lack `http://`."""
    asked: list[bytes] = []

    def answer(request: bytes) -> Iterator[bytes]:
        asked.append(request)
        yield b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"

    with serving(answer) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("http://", f"{scheme}ann:s%40cret@"))
        monkeypatch.setenv("no_proxy", "")
        assert not HttpTransport(RemoteSettings("http://cache.example/x")).has("cas/1")
    (request,) = asked
    assert request.startswith(b"HEAD http://cache.example/x/cas/1 ")
    assert b"Basic " + base64.b64encode(b"ann:s@cret") in request
