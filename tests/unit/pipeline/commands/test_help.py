"""`doit`, `doit help` and `doit help COMMAND`: a summary, examples that parse, no empty heading."""

import re
from pathlib import Path

import pytest

from tests.docs.test_commands import COMMANDS, mistake
from tests.support.command_lines import run_all


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What `doit help` prints, by its words."""
    lines = [[], ["help"], *(["help", name] for name in COMMANDS), *([name, "--help"] for name in COMMANDS)]
    results = run_all(lines, tmp_path_factory.mktemp("help"))
    assert [(result.words, result.stderr) for result in results if result.code or result.stderr] == []
    return {" ".join(result.words): result.stdout for result in results}


def sections(text: str) -> dict[str, list[str]]:
    """Return the lines below each heading."""
    found: dict[str, list[str]] = {}
    for heading, body in re.findall(r"^(\w+):\n((?:  .*\n?)*)", text, re.MULTILINE):
        found[heading] = body.splitlines()
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(texts: dict[str, str], name: str) -> None:
    text = texts[f"help {name}"]
    assert text == texts[f"{name} --help"]
    assert re.match(rf"doit {name}: \w.{{10,}}\n\nUsage:\n  doit {name}\b", text)
    parts = sections(text)
    assert [heading for heading, lines in parts.items() if not lines] == []
    assert not re.search(r"DB backend|doit core|config:|%\(", text)
    examples = [re.split(r"\s{2,}", line.strip())[0] for line in parts["Examples"] if line.startswith("  doit ")]
    assert examples
    assert {line: wrong for line in examples if (wrong := mistake(line.removeprefix("doit ")))} == {}
    # Each argument and option has a description, on its line or the next.
    rows = "\n".join([*parts.get("Arguments", []), *parts.get("Options", [])])
    assert re.findall(r"^  \S+\n(?!   )", f"{rows}\n", re.MULTILINE) == []


def test_without_arguments_an_overview_is_printed(texts: dict[str, str], tmp_path: Path) -> None:
    lines = texts[""].splitlines()
    assert len(lines) <= 10 and re.search(r"\b\d+ recipes\b", texts[""])
    commands = [re.split(r"\s{2,}", line.strip())[0] for line in lines[1:]]
    assert [line for line in commands if not line.startswith("doit ")] == []
    assert {line: wrong for line in commands if (wrong := mistake(line.removeprefix("doit ")))} == {}
    (tmp_path / "pipeline.yaml").write_text("schema: 1\n")
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "mine.yaml").write_text("schema: 1\n")
    (other,) = run_all([[]], tmp_path, tmp_path)
    assert other.code == 0 and "doit run mine" in other.stdout and "1 recipe of this project" in other.stdout
