"""The figures of docs/how-to/onnx.md: what writes them finds their places, and they are of the kernels of today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.pages.onnx import PAGE, renewed

TARGETS = {"rv64-rvp": 7, "cortex-m4": 5, "cortex-m55": 3}
FILES = ("digits.onnx", "digits_qdq.onnx", "digits_qdq_u8.onnx", "digits_qlinear.onnx")


def made(file: str, target: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Figures that tell where they come from."""
    number = 1000 * TARGETS[target] + FILES.index(file)
    far = {"max_relative": 3.21e-7} if file == "digits.onnx" else None
    ties = {"values": 5000, "near": 40, "differing": 3} if options == {"rounding": "twice"} else None
    return {"instructions": {"total": number}, "verify": {"float": far, "mismatches": 0, "near_ties": ties}}


def test_every_figure_has_its_place() -> None:
    page = PAGE.read_text()
    found = renewed(page, made)
    for number, file in enumerate(FILES):
        (row,) = (line for line in found.splitlines() if line.startswith(f"| `{file}`"))
        cells = [part.strip() for part in row.strip("|").split("|")]
        exact = "within 3e-07" if file == "digits.onnx" else "exact"
        assert [one.replace(" (no FPU)", "") for one in cells[1:]] == [f"{n},00{number}, {exact}" for n in (7, 5, 3)]
    assert "Of the 5,000 sums of the QDQ form, 40 are then near ties. 3 of the sums differ" in found
    assert renewed(found, made) == found and len(found.splitlines()) == len(page.splitlines())
    assert ("(no FPU)" in found) == ("(no FPU)" in page)
