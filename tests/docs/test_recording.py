"""The picture in README.md shows what a run shows today: the same lines in the same order, whatever their figures."""

import re
from html import unescape
from pathlib import Path

from stages.support.system.installation import INSTALLATION as ROOT
from tests.recording import PICTURE, picture, recorded


def beginnings(svg: str) -> list[str]:
    """The first word of each line, from above, up to the layers of the comparison, whose order is that of figures."""
    lines: dict[float, str] = {}
    for height, text in re.findall(r'<text class="[^"]*-r\d+" x="[\d.]+" y="([\d.]+)"[^>]*>(.*?)</text>', svg):
        lines[float(height)] = lines.get(float(height), "") + " " + unescape(text).replace("\xa0", " ")
    words = [lines[height].split()[:1] for height in sorted(lines)]
    found = [word[0] for word in words if word and re.fullmatch(r"[A-Za-z$/_]+", word[0])]
    return found[: found.index("layer") + 1]


def test_it_is_current(tmp_path: Path) -> None:
    shown = beginnings(PICTURE.read_text())
    today = beginnings(picture(recorded(tmp_path)))
    assert {"$", "import", "tensorize", "verify", "instructions", "memory"} <= set(today)
    assert shown == today, "python -m tests.recording draws it anew"


def test_the_readme_shows_it_and_it_loads_nothing() -> None:
    assert f"]({PICTURE.relative_to(ROOT).as_posix()})" in (ROOT / "README.md").read_text()
    assert not re.search(r"url\((?!#)|href=|<script|@import", PICTURE.read_text())
