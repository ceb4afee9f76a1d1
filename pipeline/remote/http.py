"""A remote store over HTTP, as Bazel speaks to its caches: GET, HEAD and PUT of `<url>/ac/…` and `<url>/cas/…`."""

from __future__ import annotations

import base64
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3.exceptions import MaxRetryError, ProtocolError, SSLError

from pipeline.remote.exchange import BLOCK, Exchange, current
from pipeline.remote.settings import RemoteSettings
from pipeline.remote.sockets import limited, tls_context
from pipeline.remote.transport import Denied, RemoteError, Unusable

_NONE = (404, 410)
_DENIED = (401, 403, 405, 407)
# A WebDAV server that makes no folders by itself answers so.
_NO_FOLDER = (404, 409)
_CONNECTIONS = 8


class HttpTransport:
    """Keeps connections open, `_CONNECTIONS` of them; heeds HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE."""

    def __init__(self, settings: RemoteSettings, certificates: str | None = None) -> None:
        """`certificates` is a file of them to check servers by, in place of the system's. Raises RemoteError."""
        self._url = settings.url
        self._headers = {"User-Agent": "firmline", "Accept-Encoding": "identity", **_authorization(settings)}
        with _told():
            context = tls_context(certificates)
        options: dict[str, Any] = {
            "maxsize": _CONNECTIONS,
            "ssl_context": context,
            # A server may close a kept connection just when the next request goes out: one more attempt.
            "retries": urllib3.Retry(total=5, connect=0, read=1, status=0, other=0, redirect=5),
        }
        parts = urlsplit(settings.url)
        proxy = urllib.request.getproxies().get(parts.scheme)
        if proxy and not urllib.request.proxy_bypass(parts.hostname or ""):
            self._pool = limited(_by_way_of(proxy, parts.scheme, options))
        else:
            self._pool = limited(urllib3.PoolManager(**options))

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        """As Transport says."""
        with self._asked("GET", name) as response:
            if response.status in _NONE:
                return False
            _check(response.status)
            current().expect_object()
            while True:
                with _told():
                    # What has come, and not only all of BLOCK; as it came: what is packed may grow without an end.
                    block = response.read1(BLOCK, decode_content=False)
                if not block:
                    break
                take(block)
            if response.length_remaining:
                raise RemoteError("the connection broke off")
            return True

    def has(self, name: str, size: int | None = None) -> bool:
        """As Transport says."""
        with self._asked("HEAD", name) as response:
            if response.status in _NONE:
                return False
            _check(response.status)
            there = response.headers.get("Content-Length", "")
        # Some say nothing, or 0, of what they have.
        return size is None or not there.isdecimal() or there in ("0", str(size))

    def write(self, name: str, content: Path | bytes) -> None:
        """As Transport says."""
        status = self._put(name, content)
        if status in _NO_FOLDER and self._make_folder(name.partition("/")[0]):
            status = self._put(name, content)
        _check(status)

    def _make_folder(self, name: str) -> bool:
        """Have a folder made, where the store is one of folders; whether it may be there now."""
        with self._asked("MKCOL", f"{name}/"):
            return True

    def _request(self, method: str, name: str) -> tuple[str, dict[str, str]]:
        """The URL and the headers of a request. Raises RemoteError."""
        return f"{self._url}/{name}", self._headers

    def _put(self, name: str, content: Path | bytes) -> int:
        if isinstance(content, bytes):
            with self._asked("PUT", name, body=content, size=len(content)) as response:
                return int(response.status)
        size = content.stat().st_size
        with content.open("rb") as stream, self._asked("PUT", name, body=_Counted(stream), size=size) as response:
            return int(response.status)

    @contextmanager
    def _asked(self, method: str, name: str, body: Any = None, size: int | None = None) -> Iterator[Any]:
        """The response to a request; its connection is free again afterwards, or closed where not all was read."""
        with _told():
            url, common = self._request(method, name)
            headers = {**common, **({} if size is None else {"Content-Length": str(size)})}
            response = self._pool.request(method, url, body=body, headers=headers, preload_content=False)
        with closing(response):
            yield response
            with _told():
                response.drain_conn()


class _Counted:
    """A file that is sent; `tell` and `seek` are for redirections."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._exchange: Exchange = current()
        self.tell, self.seek = stream.tell, stream.seek

    def read(self, size: int) -> bytes:
        block = self._stream.read(size)
        self._exchange.moved(len(block))
        return block


@contextmanager
def _told() -> Iterator[None]:
    """What the library raises as RemoteError."""
    try:
        yield
    except RemoteError:
        raise
    except Exception as error:
        raise RemoteError(_reason(error)) from error


def _by_way_of(proxy: str, scheme: str, options: dict[str, Any]) -> urllib3.PoolManager:
    """Connections by a proxy, `http://user:password@name:port` or a part of it. Raises Unusable."""
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        named = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        headers = urllib3.make_headers(proxy_basic_auth=named) if parts.username else None
        place = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        return urllib3.ProxyManager(place, proxy_headers=headers, **options)
    except Exception as error:
        # What the library says has the whole URL, with its password.
        message = f"{scheme.upper()}_PROXY is no proxy of http:// or https://, as name:port"
        raise Unusable(message) from error


def _authorization(settings: RemoteSettings) -> dict[str, str]:
    if settings.token:
        return {"Authorization": f"Bearer {settings.token}"}
    if settings.user or settings.password:
        pair = f"{settings.user}:{settings.password}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}


def _check(status: int) -> None:
    if 200 <= status < 300:
        return
    words = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    raise (Denied if status in _DENIED else RemoteError)(f"{status} {words}".strip())


def _reason(error: Exception) -> str:
    """Why there is no answer, in a few words."""
    while isinstance(error, MaxRetryError) and error.reason is not None:
        error = error.reason
    if isinstance(error, SSLError):
        return f"no secure connection: {error}"
    if isinstance(error, UnicodeError) or (isinstance(error, ValueError) and "header" in str(error)):
        # Python shows the header's value: a credential.
        return "a credential has a character that no header can have"
    if isinstance(error, ProtocolError):
        return "the connection broke off"
    return f"{type(error).__name__}: {error}"
