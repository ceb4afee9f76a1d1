"""Google's buckets, by a loopback server that speaks as they do. S3 is in test_remote.py, by moto."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests.support.optional import needs
from tests.unit.pipeline.conftest import FakeProject
from tests.unit.pipeline.remote.conftest import all_of, how

Capture = pytest.CaptureFixture[str]

pytestmark = needs("google.auth", "remote")


class _Google(BaseHTTPRequestHandler):
    """Gives a token to who signs for one, and keeps the objects of who has it."""

    protocol_version = "HTTP/1.1"
    objects: ClassVar[dict[str, bytes]]
    tokens: ClassVar[list[str]]
    url: ClassVar[str]

    def do_POST(self) -> None:
        body = self._body().decode()
        self.tokens.append(body)
        right = "assertion=" in body
        self._answer(200 if right else 403, json.dumps({"access_token": "t0", "expires_in": 3600}).encode())

    def do_PUT(self) -> None:
        body = self._body()
        if self._is_allowed():
            self.objects[self.path] = body
            self._answer(200)

    def do_GET(self) -> None:
        if self._is_allowed():
            found = self.objects.get(self.path)
            self._answer(404 if found is None else 200, found or b"")

    do_HEAD = do_GET

    def _is_allowed(self) -> bool:
        right = self.headers.get("Authorization") == "Bearer t0"
        if not right:
            self._answer(401)
        return right

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Google]]:
    class Handler(_Google):
        objects: ClassVar[dict[str, bytes]] = {}
        tokens: ClassVar[list[str]] = []

    handler = Handler
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr("pipeline.remote.buckets._GOOGLE", url)
        monkeypatch.setenv("FIRMLINE_REMOTE", "gs://bucket/a folder")
        monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
        handler.url = url
        yield handler
        server.shutdown()


def _account(place: Path, url: str) -> Path:
    """The file of a service account, whose tokens `url` gives."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {"type": "service_account", "client_email": "a@b.example", "token_uri": f"{url}/token"}
    place.write_text(json.dumps({**account, "private_key": key.decode(), "project_id": "p"}))
    return place


def test_two_clones_share_a_bucket(
    google: type[_Google],
    project: FakeProject,
    other: FakeProject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    account = _account(tmp_path / "account.json", google.url)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
    assert how(project) == all_of("ran")
    assert len([name for name in google.objects if name.startswith("/bucket/a%20folder/ac/")]) == 4
    assert how(other) == all_of("remote")
    assert capsys.readouterr().err == "" and 1 <= len(google.tokens) <= 2


def test_credentials_that_are_none_are_one_line(
    google: type[_Google], project: FakeProject, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json")
    assert how(project) == all_of("ran")
    told = capsys.readouterr().err
    assert told.count("warning") == 1 and "the remote store gs://bucket/a folder cannot be read: File /nowhere" in told
