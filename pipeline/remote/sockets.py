"""Sockets of urllib3's connections that keep to the limits of the exchange they serve."""

from __future__ import annotations

import socket
import ssl
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection

from pipeline.remote.exchange import current
from pipeline.remote.transport import RemoteError

# Seconds to wait for a connection to one address.
CONNECT = 3.0


class _Limited(socket.socket):
    """Waits as long as the exchange may, and counts what comes."""

    def recv(self, *args: Any) -> bytes:
        data: bytes = self._waiting(super().recv, *args)
        current().received(len(data))
        return data

    def recv_into(self, *args: Any) -> int:
        count: int = self._waiting(super().recv_into, *args)
        current().received(count)
        return count

    def send(self, *args: Any) -> int:
        count: int = self._waiting(super().send, *args)
        return count

    def sendall(self, *args: Any) -> None:
        self._waiting(super().sendall, *args)

    def _waiting(self, step: Any, *args: Any) -> Any:
        exchange = current()
        self.settimeout(exchange.patience())
        try:
            return step(*args)
        except TimeoutError:
            raise exchange.late() from None


class _LimitedTls(_Limited, ssl.SSLSocket):
    """The same, with TLS. A handshake is one step."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            self._waiting(super().do_handshake, block)
        except RemoteError:
            # Who calls closes it for errors of the system alone.
            self.close()
            raise


def limited(manager: PoolManager) -> PoolManager:
    """The same manager, with connections that keep to the limits of their exchanges."""
    manager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
    return manager


def tls_context(certificates: str | None = None) -> ssl.SSLContext:
    """What a connection with TLS checks, by the system's certificates or those of a file. Raises OSError."""
    context = ssl.create_default_context(cafile=certificates)
    context.sslsocket_class = _LimitedTls
    return context


def _connected(connection: HTTPConnection) -> socket.socket:
    """A socket to a connection's host, or to its proxy. Raises RemoteError."""
    whose = "its proxy: " if connection.proxy else ""
    try:
        places = socket.getaddrinfo(connection._dns_host, connection.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise RemoteError(f"{whose}nobody knows its name") from None
    why = "no connection"
    for family, kind, protocol, _, address in places:
        patience = min(CONNECT, current().patience())
        found = _Limited(family, kind, protocol)
        try:
            found.settimeout(patience)
            found.connect(address)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except TimeoutError:
            why = f"no connection within {CONNECT:g} seconds"
        except OSError as error:
            why = (error.strerror or why).lower()
        else:
            return found
        found.close()
    raise RemoteError(whose + why)


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
