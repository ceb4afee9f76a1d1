"""`store:` of pipeline.yaml: the remote artifact store."""

from urllib.parse import SplitResult, urlsplit

from pydantic import Field, field_validator

from stages.support.options.strict_model import StrictModel, mistake

SCHEMES = ("https", "http", "s3", "gs", "file", "ssh")
_PERCENT = "in a password / is written %2F, ? %3F, # %23 and @ %40"
_CREDENTIALS = "FIRMLINE_REMOTE_USER and FIRMLINE_REMOTE_PASSWORD, or FIRMLINE_REMOTE_TOKEN"


class RemoteStore(StrictModel):
    """URL of a remote store, and whether it is read-only. Credentials are in the environment."""

    remote: str = Field(min_length=1)
    read_only: bool = False

    @field_validator("remote")
    @classmethod
    def _check(cls, value: str) -> str:
        wrong = wrong_remote(value)
        if not wrong and (parts := urlsplit(value)).password is not None:
            wrong = f"a password must not be in a file; set it in the environment: {_CREDENTIALS} ({masked(parts)})"
        if wrong:
            raise mistake(wrong)
        return value


def wrong_remote(text: str) -> str:
    """Return the error in the URL of a remote store, '' if it is valid."""
    forms = ", ".join(f"{scheme}://" for scheme in SCHEMES)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        # Python's message quotes part of the URL, possibly of the password.
        return f"is not a URL; {_PERCENT}"
    if parts.scheme not in SCHEMES:
        return f"a remote store begins with one of {forms}"
    if parts.query or parts.fragment:
        return f"the URL of a remote store has no ? and no #; {_PERCENT}"
    if "@" in parts.path and parts.scheme in ("https", "http", "ssh"):
        return f"has an @ after its host; {_PERCENT}"
    if parts.scheme == "file":
        return "" if not parts.netloc and parts.path.startswith("/") else "file:// needs an absolute path: file:///…"
    return "" if parts.hostname and port != 0 else f"{parts.scheme}:// needs a host or bucket"


def masked(url: str | SplitResult) -> str:
    """Return a URL without user, password, query and fragment, for display."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else url
    except ValueError:
        return "(no URL)"
    _, at, place = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"***@{place}" if at else place, query="", fragment="").geturl()
