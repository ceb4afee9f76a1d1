"""Which remote store a run has: `store:` of the project's pipeline.yaml, and what the environment says.

FIRMLINE_REMOTE             its URL, instead of pipeline.yaml's; `off`: none
FIRMLINE_REMOTE_READ_ONLY   1 or true: nothing is written to it; 0 or false: it is written, whatever the file says
FIRMLINE_REMOTE_USER, FIRMLINE_REMOTE_PASSWORD, FIRMLINE_REMOTE_TOKEN
                            credentials; buckets and ssh have ways of their own as well
FIRMLINE_REMOTE_HOST        where these go, as `name` or `name:port`, if pipeline.yaml names the store: whoever wrote
                            that file does not get them by writing it
"""

from __future__ import annotations

import base64
import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, quote, unquote, urlsplit

from stages.support.messages import escape
from stages.support.options.remote_store import RemoteStore, masked, wrong_remote

URL = "FIRMLINE_REMOTE"
READ_ONLY = "FIRMLINE_REMOTE_READ_ONLY"
HOST = "FIRMLINE_REMOTE_HOST"
CREDENTIALS = "FIRMLINE_REMOTE_USER and FIRMLINE_REMOTE_PASSWORD, or FIRMLINE_REMOTE_TOKEN"
_NAMES = ("FIRMLINE_REMOTE_USER", "FIRMLINE_REMOTE_PASSWORD", "FIRMLINE_REMOTE_TOKEN")
# Schemes that take them.
_TAKE = ("https", "http", "ssh")
_OFF = "off"
_WORDS = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True)
class RemoteSettings:
    """A remote store. `url` has no user and no password; `wrong` is what is wrong with it, or ''.

    `withheld`: the environment has credentials, and does not say that they are this store's.
    """

    url: str
    read_only: bool = False
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    wrong: str = ""
    withheld: bool = False

    @property
    def credentials(self) -> str:
        """A line on what its credentials are."""
        if self.withheld:
            host = urlsplit(self.url).netloc
            return f"the environment's credentials go to a store of pipeline.yaml with {HOST}={host} alone"
        return f"{CREDENTIALS}, are its credentials"

    @property
    def scheme(self) -> str:
        """`https`, `s3`, …"""
        return self.url.partition("://")[0]

    def redacted(self, text: str) -> str:
        """The text without these credentials, and without those of any URL, in the forms that libraries show."""
        for secret in (self.token, self.password):
            pair = base64.b64encode(f"{self.user}:{secret}".encode()).decode()
            for form in (pair, secret, repr(secret)[1:-1], repr(secret.encode())[2:-1], quote(secret, safe="")):
                text = text.replace(form, "***") if secret else text
        return escape.without_credentials(text)

    @property
    def shown(self) -> str:
        """What messages and manifests call it."""
        return masked(self.url)


def remote_settings(store: RemoteStore | None, environment: Mapping[str, str] = os.environ) -> RemoteSettings | None:
    """The remote store, of pipeline.yaml's `store` or of the environment; None where there is none."""
    given = environment.get(URL, "").strip()
    if given == _OFF or (not given and store is None):
        return None
    url = given or (store.remote if store is not None else "")
    word = environment.get(READ_ONLY, "").strip().lower()
    read_only = _WORDS.get(word, store is not None and store.read_only)
    wrong = f"{URL}: {wrong_remote(given)}" if given and wrong_remote(given) else ""
    if not wrong and word and word not in _WORDS:
        wrong = f"{READ_ONLY}={escape.name(word)}: should be 1, true, 0 or false"
    if wrong:
        return RemoteSettings(url="", read_only=read_only, wrong=wrong)
    parts = urlsplit(url)
    user, password, token = (environment.get(name, "").strip("\r\n") for name in _NAMES)
    for name, value in zip(_NAMES, (user, password, token), strict=True):
        if not value.isprintable():
            # Libraries would show the value.
            why = f"{name} has a line end, or another character that is not printed; it is one line"
            return RemoteSettings(url="", read_only=read_only, wrong=why)
    withheld = not given and bool(user or password or token) and not _is(parts, environment.get(HOST, ""))
    if withheld:
        user = password = token = ""
    found = RemoteSettings(
        url=parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/"),
        read_only=read_only,
        user=user or unquote(parts.username or ""),
        password=password or unquote(parts.password or ""),
        token=token.strip(),
        withheld=withheld and parts.scheme in _TAKE,
    )
    has_credentials = bool(found.user or found.password or found.token)
    if parts.scheme == "http" and has_credentials and not is_this_machine(parts.hostname or ""):
        why = f"{found.shown}: no credentials are sent over http://, where anybody may read them; use https://"
        return RemoteSettings(url="", read_only=read_only, wrong=why)
    return found


def _is(parts: SplitResult, host: str) -> bool:
    """Whether a URL leads to a host, `name` or `name:port`."""
    name = parts.netloc.rpartition("@")[2].lower()
    return host.strip().lower() in {name, parts.hostname or ""} - {""}


def is_this_machine(name: str) -> bool:
    """Whether what is sent to a host stays on this machine."""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
