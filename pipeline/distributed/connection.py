"""The scheduler that `executor=` names, and whether the connection is safe.

A client of a Dask scheduler over plain TCP can run code on its workers. Plain TCP is therefore limited to this
machine's loopback; other machines need TLS, with the certificates of Dask's settings.
"""

import os
import re
from dataclasses import dataclass
from typing import Any

from distributed.security import Security

from pipeline.errors import PipelineError, RecipeError
from pipeline.remote.settings import is_this_machine
from stages.support.messages import escape

PLAIN_TCP = "FIRMLINE_DASK_PLAIN_TCP"
_ADDRESS = re.compile(r"(?P<scheme>dask|tls|tcp)://(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\]):(?P<port>\d{1,5})", re.ASCII)
_HELP = 'docs/how-to/distributed.md, "TLS"'
_YES, _NO = ("1", "true"), ("", "0", "false")


@dataclass(frozen=True)
class Connection:
    """A scheduler: text of `executor=`, Dask's address (`tls://…`, `tcp://…`), TLS settings."""

    text: str
    address: str
    security: Any

    @property
    def hint(self) -> str:
        """Advice on starting a scheduler, for error messages."""
        over_tls = " --protocol tls, and a certificate of the same authority" if self.address[:3] == "tls" else ""
        return f"start `dask scheduler`{over_tls}, and `dask worker`: docs/how-to/distributed.md"


def connection_to(text: str) -> Connection:
    """Return the scheduler of `dask://HOST:PORT`, `tls://HOST:PORT` or `tcp://HOST:PORT`.

    `dask://` is TLS if Dask's settings name certificates, else plain TCP. Raises RecipeError for another form, and
    PipelineError for TLS without certificates or plain TCP to another machine.
    """
    shown = f"executor={escape.name(text)}"
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match["port"]) < 1 << 16:
        raise RecipeError(f"{shown}: expected local, dask or tls://HOST:PORT (dask://…, tcp://…)")
    security = _security(shown)
    place = f"{match['host']}:{match['port']}"
    if match["scheme"] == "tls" or (match["scheme"] == "dask" and security.tls_client_cert):
        if not (security.tls_client_cert and security.tls_ca_file):
            raise PipelineError(f"{shown}: Dask's settings name no TLS certificates", hint=f"set them up: {_HELP}")
        return Connection(text, f"tls://{place}", security)
    if not is_this_machine(match["host"].strip("[]").lower()) and not _plain_tcp_is_allowed():
        message = f"{shown}: plain TCP is refused, it lets anybody on the network run code on the workers"
        hint = f"use TLS ({_HELP}); {PLAIN_TCP}=1 allows plain TCP in a network that you trust"
        raise PipelineError(message, hint=hint)
    return Connection(text, f"tcp://{place}", security)


def _security(shown: str) -> Security:
    """Return Dask's TLS settings with readable files. Raises PipelineError."""
    try:
        security = Security()
        security.get_connection_args("client")
    except (OSError, ValueError, TypeError) as error:
        why = escape.line(str(error))
        raise PipelineError(f"{shown}: Dask's TLS settings cannot be used: {why}", hint=_HELP) from None
    return security


def _plain_tcp_is_allowed() -> bool:
    word = os.environ.get(PLAIN_TCP, "").strip().lower()
    if word not in (*_YES, *_NO):
        raise RecipeError(f"{PLAIN_TCP}={escape.name(word)}: expected 1, true, 0 or false")
    return word in _YES
