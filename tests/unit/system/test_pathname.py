"""Names of files in recipes: what no file can be called is refused before anybody looks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from stages.models.spec import FileModel
from stages.simulate import InputsConfig
from stages.system.pathname import located


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "should be the name of a file, is empty"),
        (" ", "should be the name of a file, is empty"),
        ("a\0b", "NUL"),
        ("x" * 5000, "no file's name has 5,000 characters"),
        ("~nobody-of-this-name/x", "there is no user 'nobody-of-this-name'"),
    ],
)
def test_no_name(name: str, message: str) -> None:
    for make in (lambda: FileModel(file=name), lambda: InputsConfig(files=(name,)), lambda: InputsConfig(labels=name)):
        with pytest.raises(ValidationError, match=message):
            make()


def test_located(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    root = Path("/project")
    assert [str(located(name, root)) for name in ("a/b", "/a", "~/a")] == ["/project/a/b", "/a", "/home/me/a"]
