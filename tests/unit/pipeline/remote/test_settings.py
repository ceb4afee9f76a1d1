"""Where the remote store and its credentials come from, and that credentials are shown nowhere."""

import pytest
from pydantic import ValidationError

from pipeline.remote.settings import remote_settings
from stages.support.options.remote_store import RemoteStore, masked, wrong_remote

FILE = RemoteStore(remote="https://cache.example/firmline/", read_only=True)


def test_the_environment_counts_before_the_file() -> None:
    assert remote_settings(None, {}) is None
    settings = remote_settings(FILE, {})
    assert settings is not None and (settings.url, settings.read_only) == ("https://cache.example/firmline", True)
    settings = remote_settings(FILE, {"FIRMLINE_REMOTE": "s3://bucket/a", "FIRMLINE_REMOTE_READ_ONLY": "false"})
    assert settings is not None and (settings.url, settings.read_only) == ("s3://bucket/a", False)
    assert remote_settings(FILE, {"FIRMLINE_REMOTE": "off"}) is None


@pytest.mark.parametrize("store", [None, FILE])
def test_read_only_in_doubt_is_refused(store: RemoteStore | None) -> None:
    settings = remote_settings(store, {"FIRMLINE_REMOTE": "http://cache", "FIRMLINE_REMOTE_READ_ONLY": "maybe"})
    assert settings is not None
    assert settings.wrong == "FIRMLINE_REMOTE_READ_ONLY=maybe: expected 1, true, 0 or false" and settings.url == ""


SECRETS = {"FIRMLINE_REMOTE_USER": "ann", "FIRMLINE_REMOTE_PASSWORD": "s@cret", "FIRMLINE_REMOTE_TOKEN": "tok"}


@pytest.mark.parametrize(
    ("url", "host", "meant"),
    [
        ("https://cache.example/firmline", "", False),
        ("https://cache.example/firmline", "cache.example", True),
        ("https://cache.example/firmline", "Cache.Example:8443", False),
        ("https://Cache.example:8443/firmline", "cache.example:8443", True),
        ("https://Cache.example:8443/firmline", "cache.example", True),
        ("https://cache.example.evil/firmline", "cache.example", False),
        ("https://cache.example@evil/firmline", "cache.example", False),
    ],
)
def test_a_project_gets_no_credentials_by_naming_a_store(url: str, host: str, meant: bool) -> None:
    settings = remote_settings(RemoteStore(remote=url), {**SECRETS, "FIRMLINE_REMOTE_HOST": host})
    assert settings is not None and not settings.wrong and settings.withheld is not meant
    assert (settings.user == "ann", settings.password, settings.token) == (
        meant,
        *(("s@cret", "tok") if meant else ("", "")),
    )
    assert ("FIRMLINE_REMOTE_HOST=" in settings.credentials) is not meant


@pytest.mark.parametrize(
    "host", ["cache.example", "10.0.0.7", "localhost.evil", "127.0.0.1", "localhost:8080", "[::1]:80"]
)
def test_credentials_do_not_go_over_plain_http(host: str) -> None:
    here = host.startswith(("127.", "localhost:", "[::1]"))
    for environment in (
        {"FIRMLINE_REMOTE": f"http://{host}/x", "FIRMLINE_REMOTE_TOKEN": "tok"},
        {"FIRMLINE_REMOTE": f"http://ann:tok@{host}/x"},
    ):
        settings = remote_settings(None, environment)
        assert settings is not None and bool(settings.wrong) is not here and "tok" not in settings.wrong
        assert bool(settings.token or settings.password) is here
    settings = remote_settings(None, {"FIRMLINE_REMOTE": f"http://{host}/x"})
    assert settings is not None and not settings.wrong


def test_what_is_wrong_with_a_url_is_stated() -> None:
    for text, part in {
        "cache.example": "begins with one of https://",
        "ftp://cache": "begins with one of https://",
        "https://": "needs a host or bucket",
        "https://cache:port": "is not a URL",
        "https://cache/?a=b": "has no ?",
        "file://folder": "an absolute path",
    }.items():
        assert part in wrong_remote(text), text
    settings = remote_settings(None, {"FIRMLINE_REMOTE": "ftp://ann:secret@cache"})
    assert settings is not None and settings.wrong.startswith("FIRMLINE_REMOTE: ") and "secret" not in settings.wrong


def test_a_file_has_no_password() -> None:
    with pytest.raises(ValidationError, match="a password must not be in a file") as refused:
        RemoteStore(remote="https://ann:secret@cache")
    assert masked("https://ann:secret@cache/x?sig=1") == "https://***@cache/x"
    assert "***@cache" in str(refused.value.errors(include_input=False))
