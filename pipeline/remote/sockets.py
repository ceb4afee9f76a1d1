"""Sockets for urllib3 that keep the limits of their exchange."""

import socket
import ssl
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection

from pipeline.remote.exchange import current
from pipeline.remote.transport import RemoteError

# Timeout in seconds of a connection to one address.
CONNECT = 3.0


class _LimitedSocket(socket.socket):
    """A socket with the exchange's timeout that counts received bytes."""

    def recv(self, *args: Any) -> bytes:
        """Receive within the exchange's limits."""
        data: bytes = self._with_timeout(super().recv, *args)
        current().received(len(data))
        return data

    def recv_into(self, *args: Any) -> int:
        """Receive into a buffer within the exchange's limits."""
        count: int = self._with_timeout(super().recv_into, *args)
        current().received(count)
        return count

    def send(self, *args: Any) -> int:
        """Send within the exchange's time."""
        count: int = self._with_timeout(super().send, *args)
        return count

    def sendall(self, *args: Any) -> None:
        """Send all bytes within the exchange's time."""
        self._with_timeout(super().sendall, *args)

    def _with_timeout(self, step: Any, *args: Any) -> Any:
        exchange = current()
        self.settimeout(exchange.step_timeout())
        try:
            return step(*args)
        except TimeoutError:
            raise exchange.timeout_error() from None


class _LimitedTls(_LimitedSocket, ssl.SSLSocket):
    """The same with TLS. A handshake is one step."""

    def do_handshake(self, block: bool = False) -> None:
        """Do the TLS handshake; close the socket after a timeout."""
        try:
            self._with_timeout(super().do_handshake, block)
        except RemoteError:
            # The caller closes it for OSError only.
            self.close()
            raise


def limited(manager: PoolManager) -> PoolManager:
    """Set connections that keep the limits of their exchange. Returns the manager."""
    manager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
    return manager


def tls_context(certificates: str | None = None) -> ssl.SSLContext:
    """Return a TLS context with the system's certificates or a file's. Raises OSError."""
    context = ssl.create_default_context(cafile=certificates)
    context.sslsocket_class = _LimitedTls
    return context


def _connected(connection: HTTPConnection) -> socket.socket:
    """Return a socket to a connection's host or proxy. Raises RemoteError."""
    prefix = "its proxy: " if connection.proxy else ""
    try:
        places = socket.getaddrinfo(connection._dns_host, connection.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise RemoteError(f"{prefix}host name not found") from None
    why = "no connection"
    for family, kind, protocol, _, address in places:
        timeout = min(CONNECT, current().step_timeout())
        connected = _LimitedSocket(family, kind, protocol)
        try:
            connected.settimeout(timeout)
            connected.connect(address)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except TimeoutError:
            why = f"no connection within {CONNECT:g} seconds"
        except OSError as error:
            why = (error.strerror or why).lower()
        else:
            return connected
        connected.close()
    raise RemoteError(prefix + why)


class _Http(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _connected(self)


class _Https(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _connected(self)


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _Https
