"""Names of files in recipes: what no file can be called is refused before anybody looks for it."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from stages.ir.models.spec import FileModel
from stages.simulate import InputsConfig
from stages.support.system.pathname import located, variable_hint


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "should be the name of a file, is empty"),
        (" ", "should be the name of a file, is empty"),
        ("a\0b", "NUL"),
        ("x" * 5000, "has 5,000 characters, more than a file name can have"),
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


def test_located_in_a_folder_that_a_variable_names(monkeypatch: pytest.MonkeyPatch) -> None:
    root, names = Path("/project"), ("${NETS}/a", "${NETS:-../nets}/a/b", "${NETS}", "a/${NETS}/b")
    monkeypatch.delenv("NETS", raising=False)
    assert [str(located(name, root)) for name in names] == [
        "/project/${NETS}/a",
        "/project/../nets/a/b",
        "/project/${NETS}",
        "/project/a/${NETS}/b",
    ]
    for value, folder in (("/nets", "/nets"), ("nets", "/project/nets")):
        monkeypatch.setenv("NETS", value)
        assert [str(located(name, root)) for name in names[:3]] == [f"{folder}/a", f"{folder}/a/b", folder]
        assert variable_hint(names[1]) == f"the environment variable NETS names the folder; it is {value}"
    assert variable_hint("plain") == ""


@pytest.mark.parametrize("name", ["${NETS/a", "${}/a", "${1}/a", "${NETS}a", "${NETS-x}/a", "${N:-${M}}/a"])
def test_no_variable(name: str) -> None:
    with pytest.raises(ValidationError, match=r"should begin as \$\{NAME\}/ or \$\{NAME:-folder\}/"):
        FileModel(file=name)
