"""`doit completion`."""

import subprocess
from pathlib import Path

import pytest

from pipeline.commands.completion import Completion, possible_words


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["dig"], ["digits_onnx", "digits_onnx_ptq", "digits_ptq", "digits_rvp"]),
        (["run", "recipe=digits_r"], ["recipe=digits_rvp"]),
        (["run", "recipe=kws_rvp,digits_r"], ["recipe=kws_rvp,digits_rvp"]),
        (["run", "digits_rvp", "target=nucleo-f4"], ["target=nucleo-f446re"]),
        (["run", "digits_rvp", "--dr"], ["--dry-run"]),
        (["run", "digits_rvp:em"], ["digits_rvp:emit"]),
        (["run", "tiny_matrix:kws-cortex-m4"], ["tiny_matrix:kws-cortex-m4"]),
        (["explain", "digits_rvp", "--ch"], ["--check"]),
        *((["op"], ["open", "operators"]), (["graph", "digits_r"], ["digits_rvp"]), (["graph", "ta"], ["target="])),
        *((["gc", "da"], ["days="]), (["compare", "x", "fail"], ["fail_above="]), (["gc", "--d"], [])),
        *((["bench", "tar"], ["target="]), (["doctor", "target=host,cortex-m5"], ["target=host,cortex-m55"])),
        (["run", "--p"], ["--process"]),
        *((["targets", "--js"], ["--json"]), (["store", "--js"], ["--json"]), (["list", "--js"], ["--json"])),
        (["kernels", "depthwise"], ["depthwise_conv2d"]),
        (["store", ""], ["days=", "list", "push", "remote", "size", "verify"]),
        (["help", "expl"], ["explain"]),
        (["run", "colour=r"], []),
    ],
)
def test_what_may_follow(words: list[str], expected: list[str]) -> None:
    assert possible_words(words) == expected


HOSTILE = ["x;touch PWNED", "$(touch PWNED)", "`touch PWNED`", "a b", "a'b", 'a"b', "a\\b", "*", "~", "a|b", "<a>"]


def test_bash_inserts_what_is_offered_as_one_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What bash puts on the line is read as the same word again, and runs nothing."""
    assert Completion().execute({}, ["bash"]) == 0
    (tmp_path / "completion").write_text(capsys.readouterr().out)
    words = [*HOSTILE, *(f"recipe={name}" for name in HOSTILE)]
    (tmp_path / "possible_words").write_text("".join(f"{word}\n" for word in words))
    (tmp_path / "doit").write_text(f"#!/bin/sh\ncat {tmp_path}/possible_words\n")
    (tmp_path / "doit").chmod(0o755)
    script = """
        PATH=$PWD:$PATH
        source ./completion
        COMP_LINE="doit run $1"
        COMP_POINT=${#COMP_LINE}
        _firmline 2>/dev/null
        for word in "${COMPREPLY[@]}"; do
            eval "set -- $word"
            [ $# = 1 ] && printf '%s\\n' "$1"
        done
    """
    for typed in ("", "recipe="):
        done = subprocess.run(
            ["bash", "-c", script, "bash", typed], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-len(HOSTILE) if typed else None :][: len(HOSTILE)] == HOSTILE
    assert not (tmp_path / "PWNED").exists()


def test_recipes_whose_names_are_none_are_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "pipeline.yaml").write_text("schema: 1\n")
    for name in ("mine", "mine;touch PWNED", "mine$(id)", "mine\nb"):
        (tmp_path / "recipes" / f"{name}.yaml").write_text("schema: 1\n")
    monkeypatch.chdir(tmp_path)
    assert possible_words(["run", "mi"]) == ["mine"]
