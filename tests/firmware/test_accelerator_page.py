"""docs/tutorials/accelerator.md is true: its code is in the named files, its commands print what it says."""

import re
from pathlib import Path

import pytest

from stages.support.system.installation import INSTALLATION as ROOT
from tests.firmware.test_extend_page import BLOCK, ran

PAGE = (ROOT / "docs/tutorials/accelerator.md").read_text(encoding="utf-8")
NAMED = re.compile(r"^(?:# |// |/\* )(\S+\.\w+)(?: \*/)?\n")
ENGINE = ROOT / "stages/backends/accelerators/outer16"
OF_THE_PROJECT = ("recipes/one_layer.yaml", "plugins/targets/mine.yaml")


def boxes() -> list[tuple[str, str, str]]:
    """Language, file ('' of commands and what they print), text."""
    found = []
    for language, text in BLOCK.findall(PAGE):
        name = NAMED.match(text)
        found.append((language, name[1] if name else "", text.partition("\n")[2] if name else text))
    return found


def test_what_stands_in_boxes_is_cut_from_the_files() -> None:
    seen = set()
    for _, name, text in boxes():
        if not name or name in OF_THE_PROJECT:
            continue
        seen.add(name)
        whole, at = (ROOT / name).read_text(encoding="utf-8"), 0
        for piece in re.split(r"^\.\.\.\n", text, flags=re.MULTILINE):
            found = whole.find(piece, at)
            assert found >= 0, f"{name} has not, or not in this order:\n{piece}"
            at = found + len(piece)
    inside = {path.relative_to(ROOT).as_posix() for path in ENGINE.rglob("*.*") if "__pycache__" not in path.parts}
    assert seen == (inside - {"stages/backends/accelerators/outer16/hwlib/outer16.h"}) | {"pipeline.yaml"}


def renamed(source: Path, target: Path) -> None:
    """The engine's folder under the name mine16."""
    for path in (path for path in source.rglob("*.*") if "__pycache__" not in path.parts):
        text = path.read_text(encoding="utf-8")
        for old, new in (("outer16", "mine16"), ("Outer16", "Mine16"), ("OUTER16", "MINE16")):
            text = text.replace(old, new)
        place = target / path.relative_to(source).as_posix().replace("outer16", "mine16")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


def test_its_commands_print_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_text("schema: 1\n")
    (tmp_path / "recipes").mkdir()
    renamed(ENGINE, tmp_path / "plugins/accelerators/mine16")
    printed, counted = "", ""
    for language, name, text in boxes():
        if name in OF_THE_PROJECT:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        elif language == "sh":
            printed = ran(tmp_path, text.strip())
            counted = printed if "kws_outer16" in text else counted
        elif language == "text":
            for line in text.splitlines():
                assert line in printed, f"{line!r} is not in what was printed:\n{printed}"
    line = r"^cycles +([\d,]+\d)(?:, [\d.]+ per MAC)? \(engine ([\d,]+), .* waiting ([\d,]+)\)"
    (figures,) = re.findall(line, counted, re.MULTILINE)
    (stated,) = re.findall(r"^\| `ds_cnn` \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| 2 \|", PAGE, re.MULTILINE)
    for ours, theirs in zip(figures, stated, strict=True):  # but for what another GCC makes of the core's part
        assert int(ours.replace(",", "")) == pytest.approx(int(theirs.replace(",", "")), rel=0.03)
