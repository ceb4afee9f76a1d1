"""matrix.html."""

import re
from pathlib import Path

from pipeline.terminal.matrix_page import matrix_page
from pipeline.terminal.matrix_row import MatrixRow


def row(model: str, target: str, error: str = "", verdict: str = "exact") -> MatrixRow:
    return MatrixRow(f"{model}-{target}", target, {"model": model, "target": target}, verdict, 1000, 20, 300, error)


def cells(page: str) -> list[list[str]]:
    """The texts of the table, line by line."""
    lines = re.findall(r"<tr>(.*?)</tr>", page)
    return [[re.sub(r"<.*?>", " ", cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", line)] for line in lines]


def test_two_axes_are_a_grid(tmp_path: Path) -> None:
    (tmp_path / "kws-m4").mkdir()
    (tmp_path / "kws-m4/report.html").write_text("")
    rows = [row("kws", "m4"), row("kws", "m7"), row("ad", "m7", error="no room\nmore")]
    page = matrix_page("grid", "3 of the 4 combinations", rows, tmp_path)
    grid = cells(page)
    assert grid[0] == ["model", "m4", "m7"]
    assert [line[0] for line in grid[1:]] == ["kws", "ad"]
    assert grid[1][1].split() == ["exact", "instructions", "1,000", "RAM", "20", "ROM", "300"]
    assert grid[2][1:] == ["", "no room"]
    assert page.count("<a href=") == 1 and '<a href="kws-m4/report.html">' in page
    assert "1 of 3 failed" in page and "3 of the 4 combinations" in page


def test_names_are_no_markup(tmp_path: Path) -> None:
    page = matrix_page("<b>", "<i>", [row("<script>", "m4", error="<x>\x1b[31m")], tmp_path)
    assert "<script>" not in page and "<x>" not in page and "\x1b" not in page
