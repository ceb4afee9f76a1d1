"""Passwords and tokens are in no message, log, manifest or report."""

import logging
from pathlib import Path

import pytest

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
