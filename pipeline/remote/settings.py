"""Settings of the remote store: `store:` of pipeline.yaml and environment variables.

FIRMLINE_REMOTE             its URL, overrides pipeline.yaml; `off`: none
FIRMLINE_REMOTE_READ_ONLY   1 or true: never write; 0 or false: write; overrides pipeline.yaml
FIRMLINE_REMOTE_USER, FIRMLINE_REMOTE_PASSWORD, FIRMLINE_REMOTE_TOKEN
                            credentials; buckets and ssh also have other sources
FIRMLINE_REMOTE_HOST        `name` or `name:port`: the host that may get the credentials if pipeline.yaml sets the
                            URL, so that the author of that file cannot obtain them
"""

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
# Schemes that use these credentials.
_TAKE = ("https", "http", "ssh")
_OFF = "off"
_WORDS = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True)
class RemoteSettings:
    """A remote store. `url` has no credentials; `wrong` is an error of the settings or ''.

    `withheld`: the environment's credentials are not used, as FIRMLINE_REMOTE_HOST does not name this store.
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
        """A hint about its credentials."""
        if self.withheld:
            host = urlsplit(self.url).netloc
            return f"set {HOST}={host} to use the environment's credentials for a store of pipeline.yaml"
        return f"set its credentials with {CREDENTIALS}"

    @property
    def scheme(self) -> str:
        """The URL's scheme: `https`, `s3`, …."""
        return self.url.partition("://")[0]

    def redacted(self, text: str) -> str:
        """Return the text without these credentials and without those in URLs, in any spelling."""
        for secret in (self.token, self.password):
            pair = base64.b64encode(f"{self.user}:{secret}".encode()).decode()
            for form in (pair, secret, repr(secret)[1:-1], repr(secret.encode())[2:-1], quote(secret, safe="")):
                text = text.replace(form, "***") if secret else text
        return escape.without_credentials(text)

    @property
    def shown(self) -> str:
        """The URL in messages and manifests, without credentials."""
        return masked(self.url)


def remote_settings(store: RemoteStore | None, environment: Mapping[str, str] = os.environ) -> RemoteSettings | None:
    """Return the remote store of the environment or pipeline.yaml; None if there is none."""
    url_variable = environment.get(URL, "").strip()
    if url_variable == _OFF or (not url_variable and store is None):
        return None
    url = url_variable or (store.remote if store is not None else "")
    word = environment.get(READ_ONLY, "").strip().lower()
    read_only = _WORDS.get(word, store is not None and store.read_only)
    wrong = f"{URL}: {wrong_remote(url_variable)}" if url_variable and wrong_remote(url_variable) else ""
    if not wrong and word and word not in _WORDS:
        wrong = f"{READ_ONLY}={escape.name(word)}: expected 1, true, 0 or false"
    if wrong:
        return RemoteSettings(url="", read_only=read_only, wrong=wrong)
    parts = urlsplit(url)
    user, password, token = (environment.get(name, "").strip("\r\n") for name in _NAMES)
    for name, value in zip(_NAMES, (user, password, token), strict=True):
        if not value.isprintable():
            # Do not show the value.
            why = f"{name} has a line break or another unprintable character; it must be one line"
            return RemoteSettings(url="", read_only=read_only, wrong=why)
    withheld = not url_variable and bool(user or password or token) and not _has_host(parts, environment.get(HOST, ""))
    if withheld:
        user = password = token = ""
    settings = RemoteSettings(
        url=parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/"),
        read_only=read_only,
        user=user or unquote(parts.username or ""),
        password=password or unquote(parts.password or ""),
        token=token.strip(),
        withheld=withheld and parts.scheme in _TAKE,
    )
    has_credentials = bool(settings.user or settings.password or settings.token)
    if parts.scheme == "http" and has_credentials and not is_this_machine(parts.hostname or ""):
        why = f"{settings.shown}: credentials are not sent over unencrypted http://; use https://"
        return RemoteSettings(url="", read_only=read_only, wrong=why)
    return settings


def _has_host(parts: SplitResult, host: str) -> bool:
    """Return whether a URL's host is `host`, given as `name` or `name:port`."""
    name = parts.netloc.rpartition("@")[2].lower()
    return host.strip().lower() in {name, parts.hostname or ""} - {""}


def is_this_machine(name: str) -> bool:
    """Return whether a host is this machine's loopback."""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
