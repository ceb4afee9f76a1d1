"""Google's buckets, by a loopback server that speaks as they do. S3 is in test_remote.py, by moto."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.optional import needs
from tests.unit.pipeline.conftest import Capture, FakeProject
from tests.unit.pipeline.remote.conftest import all_of, how
from tests.unit.pipeline.remote.test_limits import serving

pytestmark = needs("google.auth", "remote")


class Google:
    """Gives a token to who signs for one, and keeps the objects of who has it."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.tokens = 0

    def answer(self, request: bytes) -> Iterator[bytes]:
        head, _, body = request.partition(b"\r\n\r\n")
        method, name, *_ = head.decode().split()
        status, content = 200, b""
        if method == "POST":
            self.tokens += 1
            status = 200 if b"assertion=" in body else 403
            content = json.dumps({"access_token": "t0", "expires_in": 3600}).encode()
        elif b"\r\nauthorization: bearer t0" not in head.lower():
            status = 401
        elif method == "PUT":
            self.objects[name] = body
        else:
            status = 200 if name in self.objects else 404
            content = self.objects.get(name, b"")
        yield f"HTTP/1.1 {status} Said\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode()
        if method != "HEAD":
            yield content


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Google]:
    """With the file of a service account, whose tokens it gives."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    google = Google()
    with serving(google.answer) as server:
        account = {"type": "service_account", "client_email": "a@b.example", "token_uri": f"{server.url}/token"}
        place = tmp_path / "account.json"
        place.write_text(json.dumps({**account, "private_key": key.decode(), "project_id": "p"}))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(place))
        monkeypatch.setattr("pipeline.remote.buckets._GOOGLE", server.url)
        monkeypatch.setenv("FIRMLINE_REMOTE", "gs://bucket/a folder")
        monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
        yield google


def test_two_clones_share_a_bucket(google: Google, project: FakeProject, other: FakeProject, capsys: Capture) -> None:
    assert how(project) == all_of("ran")
    assert len([name for name in google.objects if name.startswith("/bucket/a%20folder/ac/")]) == 4
    assert how(other) == all_of("remote")
    assert capsys.readouterr().err == "" and 1 <= google.tokens <= 2


def test_credentials_that_are_none_are_one_line(
    google: Google, project: FakeProject, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json")
    assert how(project) == all_of("ran")
    stderr = capsys.readouterr().err
    assert (
        stderr.count("warning") == 1 and "the remote store gs://bucket/a folder cannot be read: File /nowhere" in stderr
    )
