"""Whatever a server sends, or does not send: an exchange ends, and takes little memory."""

import os
import re
import socket
import ssl
import subprocess
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pipeline.remote import exchange, health
from pipeline.remote.exchange import FAST, SECONDS, SLOW_SECONDS, STEP, Exchange
from pipeline.remote.folder import FolderTransport
from pipeline.remote.health import MOST_FAILURES, MOST_WAITING, Health
from pipeline.remote.http import HttpTransport
from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import RemoteError, Transport
from stages.support.system.installation import INSTALLATION
from tests.unit.pipeline.conftest import Capture, FakeProject
from tests.unit.pipeline.remote.conftest import all_of, bounded, how

# Bytes that an object may have in these tests, and that a server may send before it is left: twice that, those that are
# not the object's, and those in the buffers of the system.
MOST = 100_000
MOST_SENT = 16 << 20

Answer = Callable[[bytes], Iterator[bytes | float]]


def answering(*parts: bytes | float) -> Answer:
    """Bytes that are sent, and seconds that nothing is sent."""
    return lambda _: iter(parts)


def endless(start: bytes, more: bytes, pause: float = 0.0) -> Answer:
    """Bytes that begin so and have no end."""

    def answer(_: bytes) -> Iterator[bytes | float]:
        yield start
        # Large pieces where nothing is waited for: a server is as fast as it can be.
        piece = more if pause else more * (1 + (1 << 16) // len(more))
        while True:
            yield piece
            yield pause

    return answer


def redirecting(request: bytes) -> Iterator[bytes]:
    """To another name each time."""
    name = request.split()[1].decode()
    yield f"HTTP/1.1 302 Found\r\nLocation: {name}x\r\nContent-Length: 0\r\n\r\n".encode()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
UNSIZED = OK + b"\r\n"
LATE = "no complete answer within|no answer within|slower than"
LARGE = "its answer is too large"
BROKEN = "connection was closed|more than 100 headers|LineTooLong|got more than"

ANSWERS: dict[str, tuple[Answer, str]] = {
    "silence": (answering(60.0), LATE),
    "one byte of a header now and then": (endless(OK + b"X: ", b"x", 0.05), LATE),
    "100 Continue": (endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), LARGE),
    "a dripping 404": (endless(b"HTTP/1.1 404 Not Found\r\n\r\n", b"x", 0.05), LATE),
    "a 404": (endless(b"HTTP/1.1 404 Not Found\r\n\r\n", b"x"), LARGE),
    "a 500": (endless(b"HTTP/1.1 500 Oh\r\n\r\n", b"x"), "500"),
    "redirections": (redirecting, "too many redirects"),
    "a redirection to a file": (
        answering(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"),
        "scheme|host",
    ),
    "a 200": (endless(UNSIZED, b"x"), "TooLarge"),
    "a 200 of 2^60 bytes": (endless(OK + b"Content-Length: 1152921504606846976\r\n\r\n", b"x"), "TooLarge"),
    "a 200 that stops": (answering(OK + b"Content-Length: 1000\r\n\r\n", bytes(900), 60.0), LATE),
    "a 200 that breaks off": (answering(OK + b"Content-Length: 1000\r\n\r\n", bytes(900)), BROKEN),
    "a trailer": (endless(CHUNKED + b"1\r\nx\r\n0\r\nX: ", b"x"), f"{LARGE}|{BROKEN}"),
    "another protocol": (answering(b"HTTP/1.1 101 Switching\r\n\r\n", 60.0), "101"),
}


class Serving:
    """A loopback server on bare sockets that answers each request with the parts of an `Answer`."""

    def __init__(self, answer: Answer, *, reads_body: bool = True, tls: ssl.SSLContext | None = None) -> None:
        self.sent = 0
        self.requests = 0
        self._answer, self._reads_body, self._tls = answer, reads_body, tls
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _secured(self, connection: socket.socket) -> socket.socket:
        return self._tls.wrap_socket(connection, server_side=True) if self._tls else connection

    def _serve(self, accepted: socket.socket) -> None:
        with suppress(OSError), self._secured(accepted) as connection:
            connection.settimeout(20)
            while request := self._request(connection):
                self.requests += 1
                keeps = False
                for part in self._answer(request):
                    keeps |= isinstance(part, bytes) and b"Content-Length: 0" in part
                    if self._over.is_set():
                        return
                    if isinstance(part, float):
                        if part and self._over.wait(part):
                            return
                    else:
                        connection.sendall(part)
                        self.sent += len(part)
                if not keeps:
                    return

    def _request(self, connection: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            data += (more := connection.recv(1 << 16))
            if not more:
                return b""
        head, _, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        size = int(length[1]) if length else 0
        while len(body) < size and self._reads_body:
            body += connection.recv(1 << 16)
        if len(body) < size:
            self._over.wait()
        return head + b"\r\n\r\n" + body


@contextmanager
def serving(answer: Answer, *, reads_body: bool = True, tls: ssl.SSLContext | None = None) -> Iterator[Serving]:
    server = Serving(answer, reads_body=reads_body, tls=tls)
    try:
        yield server
    finally:
        server.close()


class TooLarge(Exception):
    """As pipeline.remote.remote refuses what has more bytes than it may."""


def fetched(transport: Transport, most: int = MOST) -> tuple[bool, int]:
    """What an exchange gives, and the bytes of the object that came."""
    count = 0

    def take(block: bytes) -> None:
        nonlocal count
        count += len(block)
        if count > most:
            raise TooLarge("TooLarge")

    return bounded(transport).read("cas/1", take, most), count


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exchange has 0.3 seconds, and again for each 20,000 bytes."""
    monkeypatch.setattr(exchange, "SECONDS", 0.3)
    monkeypatch.setattr(exchange, "STEP", 20_000)


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_has_an_end(name: str, quick: None) -> None:
    answer, message = ANSWERS[name]
    with serving(answer) as server:
        transport = HttpTransport(RemoteSettings(server.url))
        tracemalloc.start()
        try:
            with pytest.raises((RemoteError, TooLarge), match=f"{message}|{LATE}"):
                fetched(transport)
            assert tracemalloc.get_traced_memory()[1] < 8 << 20
        finally:
            tracemalloc.stop()
        assert server.sent < MOST_SENT
        before = server.sent
        with suppress(RemoteError):
            bounded(transport).has("cas/1")
        with suppress(RemoteError):
            bounded(transport).write("cas/1", b"x")
        assert server.sent - before < MOST_SENT


def test_a_kept_connection_that_the_server_closes_is_opened_again(tmp_path: Path) -> None:
    requests: list[bytes] = []

    def close_every_second_time(request: bytes) -> Iterator[bytes]:
        requests.append(request)
        if len(requests) % 2:
            yield OK + b"Content-Length: 0\r\n\r\n"

    body = tmp_path / "body"
    body.write_bytes(bytes(1000))
    with serving(close_every_second_time) as server:
        transport = bounded(HttpTransport(RemoteSettings(server.url)))
        assert transport.has("cas/1") and transport.has("cas/2")
        transport.write("cas/3", body)
    assert len(requests) == 5 and requests[-1].endswith(b"\r\n\r\n" + bytes(1000))


@pytest.mark.parametrize("after", [answering(UNSIZED), endless(UNSIZED, b"x")])
def test_a_server_that_takes_nothing_of_what_is_sent(after: Answer, tmp_path: Path, quick: None) -> None:
    large = tmp_path / "large"
    with large.open("wb") as stream:
        stream.truncate(64 << 20)
    with serving(after, reads_body=False) as server, pytest.raises(RemoteError, match=f"{LATE}|{LARGE}|{BROKEN}"):
        bounded(HttpTransport(RemoteSettings(server.url))).write("cas/1", large)


def test_what_is_packed_stays_packed() -> None:
    """It was not asked for, and a kilobyte of it may be a gigabyte."""
    import gzip

    packed = gzip.compress(bytes(32 << 20))
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    with serving(answering(head, packed)) as server:
        assert fetched(HttpTransport(RemoteSettings(server.url))) == (True, len(packed))


def test_after_a_broken_exchange_the_next_is_not_confused() -> None:
    """What was left unread is not taken for the next answer."""
    answers = iter([endless(UNSIZED, b"HTTP/1.1 200 OK\r\n"), answering(OK + b"Content-Length: 2\r\n\r\nok")])
    with serving(lambda request: next(answers)(request)) as server:
        transport = HttpTransport(RemoteSettings(server.url))
        with pytest.raises(TooLarge):
            fetched(transport)
        assert fetched(transport) == (True, 2)
    # The second answer came before it was asked for: the connection is not used again.
    with serving(answering(OK + b"Content-Length: 0\r\n\r\nHTTP/1.1 404 No\r\n\r\n")) as server:
        transport = HttpTransport(RemoteSettings(server.url))
        assert [fetched(transport), fetched(transport)] == [(True, 0)] * 2


def test_tls_has_the_same_limits(tmp_path: Path) -> None:
    """An endless answer over TLS is counted as it is without."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    good, endless_404 = answering(OK + b"Content-Length: 2\r\n\r\nok"), ANSWERS["a 404"][0]
    with serving(lambda request: (good if b"/good/" in request else endless_404)(request), tls=context) as server:
        with pytest.raises(RemoteError, match=LARGE):
            fetched(HttpTransport(RemoteSettings(server.url), str(certificate)))
        assert server.sent < MOST_SENT
        assert fetched(HttpTransport(RemoteSettings(f"{server.url}/good"), str(certificate))) == (True, 2)
        with pytest.raises(RemoteError, match="no secure connection"):
            fetched(HttpTransport(RemoteSettings(server.url)))


@pytest.mark.parametrize("what", ["pipe", "device", "sparse"])
def test_a_folder_may_have_anything_in_the_place_of_a_file(what: str, tmp_path: Path) -> None:
    place = tmp_path / "cas/1"
    place.parent.mkdir()
    if what == "pipe":
        os.mkfifo(place)
    elif what == "device" and os.getuid() == 0:
        with suppress(PermissionError):
            os.mknod(place, 0o20666, os.makedev(1, 5))
    if what == "sparse":
        with place.open("wb") as stream:
            stream.truncate(1 << 42)
    elif not place.exists():
        place.symlink_to("/dev/zero")
    transport = FolderTransport(RemoteSettings(f"file://{tmp_path}"))
    with pytest.raises((RemoteError, TooLarge), match=r"not a file|TooLarge"):
        fetched(transport)
    assert not bounded(transport).has("cas/1", 10)
    # What was made here takes its place.
    bounded(transport).write("cas/1", b"bytes")
    assert place.read_bytes() == b"bytes" and [*place.parent.iterdir()] == [place]


def test_time_is_had_by_the_bytes_that_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gigabyte that came at once is no reason to wait for a day for what follows."""
    now = 100.0
    monkeypatch.setattr("pipeline.remote.exchange.time.monotonic", lambda: now)
    exchange = Exchange(1 << 30)
    for _ in range(80):
        now += SECONDS * 0.99
        exchange.moved(STEP)
    exchange.moved(1 << 30)
    now += SECONDS * 0.99
    exchange.moved(STEP - 1)
    now += SECONDS * 0.02
    with pytest.raises(RemoteError, match="slower than 10,000 bytes per second"):
        exchange.moved(STEP)


def test_a_slow_link_has_minutes_and_not_days(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sends 12,000 bytes a second may say that a file has 2^40."""
    now = 100.0
    monkeypatch.setattr("pipeline.remote.exchange.time.monotonic", lambda: now)
    slow, small = Exchange(1 << 40), Exchange(1 << 22, is_small=True)
    with pytest.raises(RemoteError, match="an entry is not complete after 10 seconds"):
        for _ in range(20):
            now += 1
            small.moved(12_000)
    slow = Exchange(1 << 40)
    with pytest.raises(RemoteError, match="longer than 15 minutes"):
        for _ in range(1000):
            now += 1
            slow.moved(12_000)
    fast = Exchange(1 << 40)
    for _ in range(1000):
        now += 1
        fast.moved(FAST)
    health = Health(RemoteSettings("http://slow"), print)
    for step in range(10):
        assert health.reads == (step < 10)
        health.spent(now, now + 100, 1_000_000)
        now += 100
    assert not health.reads
    late = Health(RemoteSettings("http://late"), print)
    for step in range(1000):
        # Each answer in time, of an artifact with thousands of files.
        assert late.reads == (step <= SLOW_SECONDS / 0.95)
        late.spent(now, now + 0.95, 0)
        now += 0.95


@pytest.mark.parametrize("name", ["one byte of a header now and then", "a 200"])
def test_a_run_goes_on(
    name: str, project: FakeProject, quick: None, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    with serving(ANSWERS[name][0]) as server:
        monkeypatch.setenv("FIRMLINE_REMOTE", server.url)
        assert how(project) == all_of("ran")
        stderr = capsys.readouterr().err
        assert stderr.count("warning") <= 2 and f"the remote store {server.url}" in stderr
        assert server.requests <= 4 * (MOST_FAILURES + 8)


def test_the_page_says_how_long_silence_takes() -> None:
    page = (INSTALLATION / "docs/explanation/store.md").read_text()
    assert f"at most {MOST_WAITING + SECONDS:.0f} seconds" in page
    assert f"{SECONDS:.0f} seconds for each {STEP:,} bytes" in page
    assert f"at most {SLOW_SECONDS / 60:.0f} minutes" in page and f"{FAST / 1e6:.0f} MB a second" in page
    assert health.SLOWEST == STEP / SECONDS and MOST_FAILURES * SECONDS <= MOST_WAITING


def test_a_slow_link_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long an object takes in all."""
    monkeypatch.setattr(exchange, "SECONDS", 0.8)
    monkeypatch.setattr(exchange, "STEP", 5_000)
    parts: list[bytes | float] = [OK + b"Content-Length: 100000\r\n\r\n"]
    for _ in range(20):
        parts += [bytes(5_000), 0.08]
    with serving(answering(*parts)) as server:
        assert fetched(HttpTransport(RemoteSettings(server.url))) == (True, 100_000)
