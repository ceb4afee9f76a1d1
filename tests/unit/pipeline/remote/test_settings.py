"""Where the remote store and its credentials come from, and that credentials are shown nowhere."""

import logging
from pathlib import Path

import pytest
from pydantic import ValidationError

from pipeline.artifacts.store import Store
from pipeline.errors import RecipeError
from pipeline.plugins.registry import default_registry
from pipeline.project import Project
from pipeline.recipes.loader import load_recipe
from pipeline.recipes.targets import remote_store
from pipeline.remote.remote import Remote
from pipeline.remote.settings import RemoteSettings, remote_settings
from pipeline.remote.transport import RemoteError
from stages.import_model.model_files import model_inputs
from stages.ir.models.spec import UrlModel
from stages.support.messages import escape
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


SECRET = "s3cr/t'&\"%é"
PARTS = ("s3cr", "\\u0142", "ł")
SHA = "0" * 64


def no_secret(text: str) -> bool:
    return not any(part in text for part in PARTS)


@pytest.mark.parametrize("value", [f"{SECRET}\nX: y", f"a\r\n{SECRET}", f"{SECRET}\0", f"\x1b{SECRET}"])
@pytest.mark.parametrize("name", ["TOKEN", "PASSWORD", "USER"])
def test_what_no_header_can_have_is_refused_by_its_name(name: str, value: str) -> None:
    settings = remote_settings(None, {"FIRMLINE_REMOTE": "https://host/x", f"FIRMLINE_REMOTE_{name}": value})
    assert (
        settings is not None
        and f"FIRMLINE_REMOTE_{name}" in settings.wrong
        and no_secret(f"{settings.wrong}{settings}")
    )


@pytest.mark.parametrize(
    "url", ["https://me:{}@host/x", "https://{}@host/x", "http://me:{}@host", "ssh://me:{}@host/x", "me:{}@host/x"]
)
def test_urls_of_the_environment(url: str) -> None:
    for secret in (SECRET, "s3cr:12/3", "12/s3cr", "s3cr?", "s3cr#", "s3cr@", "[s3cr", "s3cr\u2100"):
        settings = remote_settings(None, {"FIRMLINE_REMOTE": url.format(secret)})
        assert settings is not None and no_secret(
            f"{settings.wrong}{settings.shown}{settings}{settings.credentials}"
        ), secret


@pytest.mark.parametrize("secret", ["s3cr", "s3cr/t", "12/s3cr", "s3cr@x", "[s3cr", "s3cr?"])
def test_lines_of_files_that_errors_show(tmp_path: Path, secret: str) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "pipeline.yaml").write_text(f"schema: 1\nstore: {{remote: 'https://me:{secret}@host/x', wrong: 1}}\n")
    with pytest.raises(RecipeError) as raised:
        remote_store(Project(tmp_path))
    assert no_secret(str(raised.value)) and "***@" in str(raised.value)
    path = tmp_path / "recipes/r.yaml"
    path.write_text(
        f"schema: 1\ntarget: host\nmodel: {{url: 'https://me:{secret}@host/x.tflite', sha256: '{SHA}'}}\nextra: 1\n"
    )
    with pytest.raises(RecipeError) as raised:
        load_recipe("r", root=Project(tmp_path), registry=default_registry())
    assert no_secret(str(raised.value))


def test_what_libraries_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a way to a store raises, with the credentials in any form, reaches nobody."""
    caplog.set_level(logging.DEBUG)
    settings = RemoteSettings("https://host/x", user="me", password=SECRET, token="")
    for error in (
        ValueError(f"Invalid header value {f'Bearer {SECRET}'.encode()!r}"),
        OSError(f"no way to https://me:{SECRET}@host"),
        RemoteError(f"auth failed for {SECRET!r}"),
        UnicodeEncodeError("latin-1", SECRET, 0, 1, SECRET),
    ):

        class Fails:
            def __getattr__(self, name: str, error: Exception = error) -> object:
                raise error

        remote = Remote(settings, Store(tmp_path / "store"), lambda _: Fails())  # type: ignore[arg-type, return-value]
        problem = remote.problem()
        assert problem and no_secret(problem)
        remote.fetch(SHA)
    stderr = capsys.readouterr().err
    assert "fails: " in stderr and no_secret(stderr) and no_secret(caplog.text)


def test_addresses_of_models() -> None:
    """What follows the ? may be a key: it is in no manifest. A version behind an @ is no password."""
    model = UrlModel(url="https://cdn.example/npm/net@1.0/x.tflite?sig=s3cr", sha256=SHA)
    assert no_secret(str(model_inputs(model).model_entry)) and no_secret(model.source)


def test_what_is_shown_has_no_password_however_it_is_cut() -> None:
    url = f"https://me:{'s3cr' * 100}@host/x"
    for show in (escape.name, escape.line, escape.log_line, escape.message, escape.markdown, escape.quoted):
        assert no_secret(show(f"see {url}")) and "host" in show(f"see {url}")
    assert escape.name("https://host/a@b") == "https://host/a@b"
