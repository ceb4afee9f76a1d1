"""Whatever a server sends, or does not send: the run goes on after a short time."""

import os
import re
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.remote.folder import FolderTransport
from pipeline.remote.health import MOST_FAILURES
from pipeline.remote.http import HttpTransport
from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import RemoteError
from tests.unit.pipeline.conftest import Capture, FakeProject
from tests.unit.pipeline.remote.conftest import all_of, how

Answer = Callable[[bytes], Iterator[bytes | float]]


def answering(*parts: bytes | float) -> Answer:
    """Bytes that are sent, and seconds that nothing is sent."""
    return lambda _: iter(parts)


def endless(start: bytes, more: bytes, pause: float = 0.0) -> Answer:
    """Bytes that begin so and have no end: none within the time of a test."""

    def answer(_: bytes) -> Iterator[bytes | float]:
        yield start
        for _part in range(500):
            yield more
            yield pause

    return answer


def redirecting(request: bytes) -> Iterator[bytes]:
    """To another name each time."""
    name = request.split()[1].decode()
    yield f"HTTP/1.1 302 Found\r\nLocation: {name}x\r\nContent-Length: 0\r\n\r\n".encode()


OK = b"HTTP/1.1 200 OK\r\n"
ANSWERS: dict[str, tuple[Answer, str]] = {
    "silence": (answering(60.0), "no answer within 0.3 seconds"),
    "a dripping 200": (endless(OK + b"\r\n", b"x", 0.02), "slower than 10,000 bytes per second"),
    "an endless 200": (endless(OK + b"\r\n", b"x" * 65536), "is not an artifact entry"),
    "an endless 404": (endless(b"HTTP/1.1 404 Not Found\r\n\r\n", b"x" * 65536), ""),
    "an endless 500": (endless(b"HTTP/1.1 500 Oh\r\n\r\n", b"x" * 65536), "500 Internal Server Error"),
    "redirections": (redirecting, "too many redirects"),
    "a 200 that stops": (answering(OK + b"Content-Length: 1000\r\n\r\n", bytes(900), 60.0), "no answer within"),
    "a 200 that breaks off": (answering(OK + b"Content-Length: 1000\r\n\r\n", bytes(900)), "connection was closed"),
    "another protocol": (answering(b"HTTP/1.1 101 Switching\r\n\r\n", 60.0), "101"),
}


class Serving(socketserver.ThreadingTCPServer):
    """A loopback server that answers each request with the parts of an `Answer`."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.requests, self.answer, self.over = 0, answer, threading.Event()
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that end a connection are meant."""


class _Connection(socketserver.StreamRequestHandler):
    server: Serving
    timeout = 20

    def handle(self) -> None:
        while request := self._request():
            self.server.requests += 1
            keeps = False
            for part in self.server.answer(request):
                if isinstance(part, bytes):
                    keeps |= b"Content-Length: 0" in part
                    self.wfile.write(part)
                elif self.server.over.wait(part):
                    return
            if not keeps:
                return

    def _request(self) -> bytes:
        head = b""
        while (line := self.rfile.readline()) not in (b"", b"\r\n"):
            head += line
        length = re.search(rb"content-length: (\d+)", head.lower())
        return head and head + b"\r\n" + self.rfile.read(int(length[1]) if length else 0)


@contextmanager
def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Serving]:
    with Serving(answer, tls) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.over.set()
        server.shutdown()


def fetched(transport: HttpTransport) -> tuple[bool, int]:
    """Whether an object is there, and how many bytes of it came."""
    blocks: list[bytes] = []
    return transport.read("cas/1", blocks.append), sum(map(len, blocks))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_run_goes_on(name: str, project: FakeProject, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    for module in ("http", "remote"):
        monkeypatch.setattr(f"pipeline.remote.{module}.SECONDS", 0.3)
    answer, message = ANSWERS[name]
    with serving(answer) as server:
        monkeypatch.setenv("FIRMLINE_REMOTE", server.url)
        assert how(project) == all_of("ran")
        stderr = capsys.readouterr().err
        assert stderr.count("warning") <= 2 and f"the remote store {server.url}" in stderr and message in stderr
        assert server.requests <= 4 * (MOST_FAILURES + 8)


def test_what_is_packed_stays_packed() -> None:
    """It was not asked for, and a kilobyte of it may be a gigabyte."""
    import gzip

    packed = gzip.compress(bytes(32 << 20))
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    with serving(answering(head, packed)) as server:
        assert fetched(HttpTransport(RemoteSettings(server.url))) == (True, len(packed))


def test_only_a_server_whose_certificate_is_trusted_is_asked(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving(answering(OK + b"Content-Length: 2\r\n\r\nok"), context) as server:
        assert fetched(HttpTransport(RemoteSettings(server.url), str(certificate))) == (True, 2)
        with pytest.raises(RemoteError, match="no secure connection"):
            fetched(HttpTransport(RemoteSettings(server.url)))


@pytest.mark.parametrize("what", ["pipe", "device"])
def test_a_folder_may_have_anything_in_the_place_of_a_file(what: str, tmp_path: Path) -> None:
    place = tmp_path / "cas/1"
    place.parent.mkdir()
    if what == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    transport = FolderTransport(RemoteSettings(f"file://{tmp_path}"))
    with pytest.raises(RemoteError, match="not a file"):
        transport.read("cas/1", lambda _: None)
    assert not transport.has("cas/1", 10)
    # What was made here takes its place.
    transport.write("cas/1", b"bytes")
    assert place.read_bytes() == b"bytes" and [*place.parent.iterdir()] == [place]
