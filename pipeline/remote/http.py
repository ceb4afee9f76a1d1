"""A remote store over HTTP, Bazel's cache protocol: GET, HEAD, PUT of `ac/…` and `cas/…`."""

import base64
import ssl
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    MaxRetryError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import BLOCK, CONNECT, SECONDS, Denied, RemoteError, Unusable

_NONE = (404, 410)
_DENIED = (401, 403, 405, 407)
# Answers of a WebDAV server without the folder.
_NO_FOLDER = (404, 409)
_CONNECTIONS = 8


class HttpTransport:
    """HTTP with kept connections; uses HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE."""

    def __init__(self, settings: RemoteSettings, certificates: str | None = None) -> None:
        """Raises RemoteError. `certificates` is a CA file that replaces the system's certificates."""
        self._url = settings.url
        self._headers = {"User-Agent": "firmline", "Accept-Encoding": "identity", **_authorization(settings)}
        with _convert_errors():
            context = ssl.create_default_context(cafile=certificates)
        options: dict[str, Any] = {
            "maxsize": _CONNECTIONS,
            "ssl_context": context,
            "timeout": urllib3.Timeout(connect=CONNECT, read=SECONDS),
            # A server may close a kept connection just when the next request is sent: retry once.
            "retries": urllib3.Retry(total=5, connect=0, read=1, status=0, other=0, redirect=5),
        }
        parts = urlsplit(settings.url)
        proxy = urllib.request.getproxies().get(parts.scheme)
        if proxy and not urllib.request.proxy_bypass(parts.hostname or ""):
            self._pool = _proxy_manager(proxy, parts.scheme, options)
        else:
            self._pool = urllib3.PoolManager(**options)

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        """See Transport."""
        with self._response("GET", name) as response:
            if response.status in _NONE:
                return False
            _check(response.status)
            while True:
                with _convert_errors():
                    # Available bytes only, without decoding: compressed data may expand without limit.
                    block = response.read1(BLOCK, decode_content=False)
                if not block:
                    break
                take(block)
            if response.length_remaining:
                raise RemoteError("the connection was closed")
            return True

    def has(self, name: str, size: int | None = None) -> bool:
        """See Transport."""
        with self._response("HEAD", name) as response:
            if response.status in _NONE:
                return False
            _check(response.status)
            length = response.headers.get("Content-Length", "")
        # Some servers send no length, or 0, for existing objects.
        return size is None or not length.isdecimal() or length in ("0", str(size))

    def write(self, name: str, content: Path | bytes) -> None:
        """See Transport."""
        status = self._put(name, content)
        if status in _NO_FOLDER and self._make_folder(name.partition("/")[0]):
            status = self._put(name, content)
        _check(status)

    def _make_folder(self, name: str) -> bool:
        """Create a folder on servers that have folders. Returns whether it may exist now."""
        with self._response("MKCOL", f"{name}/"):
            return True

    def _request(self, method: str, name: str) -> tuple[str, dict[str, str]]:
        """Return URL and headers of a request. Raises RemoteError."""
        return f"{self._url}/{name}", self._headers

    def _put(self, name: str, content: Path | bytes) -> int:
        if isinstance(content, bytes):
            with self._response("PUT", name, body=content, size=len(content)) as response:
                return int(response.status)
        size = content.stat().st_size
        with content.open("rb") as stream, self._response("PUT", name, body=stream, size=size) as response:
            return int(response.status)

    @contextmanager
    def _response(self, method: str, name: str, body: Any = None, size: int | None = None) -> Iterator[Any]:
        """Yield the response to a request; afterwards its connection is reused or closed."""
        with _convert_errors():
            url, common = self._request(method, name)
            headers = {**common, **({} if size is None else {"Content-Length": str(size)})}
            response = self._pool.request(method, url, body=body, headers=headers, preload_content=False)
        with closing(response):
            yield response
            with _convert_errors():
                # A connection can be reused if its answer has ended. A long error page is not read to its end.
                response.read(BLOCK, decode_content=False)


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Turn the library's exceptions into RemoteError."""
    try:
        yield
    except RemoteError:
        raise
    except Exception as error:
        raise RemoteError(_reason(error)) from error


def _proxy_manager(proxy: str, scheme: str, options: dict[str, Any]) -> urllib3.PoolManager:
    """Return connections through a proxy, `http://user:password@name:port`. Raises Unusable."""
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        named = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        headers = urllib3.make_headers(proxy_basic_auth=named) if parts.username else None
        place = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        return urllib3.ProxyManager(place, proxy_headers=headers, **options)
    except Exception as error:
        # The library's message contains the URL with its password.
        message = f"{scheme.upper()}_PROXY is not the address of an http:// or https:// proxy, such as name:port"
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
    """Return in a few words why there is no answer."""
    while isinstance(error, MaxRetryError) and error.reason is not None:
        error = error.reason
    if isinstance(error, ProxyError):
        return f"its proxy: {_reason(error.original_error)}"
    if isinstance(error, SSLError):
        return f"no secure connection: {error}"
    if isinstance(error, UnicodeError) or (isinstance(error, ValueError) and "header" in str(error)):
        # Python's message contains the header's value: a credential.
        return "a credential has a character that is not allowed in a header"
    if isinstance(error, NameResolutionError):
        return "host name not found"
    if isinstance(error, NewConnectionError):
        return str(getattr(error.__cause__, "strerror", None) or "no connection").lower()
    if isinstance(error, ConnectTimeoutError):
        return f"no connection within {CONNECT:g} seconds"
    if isinstance(error, (ReadTimeoutError, TimeoutError)):
        return f"no answer within {SECONDS:g} seconds"
    if isinstance(error, ProtocolError):
        return "the connection was closed"
    return f"{type(error).__name__}: {error}"
