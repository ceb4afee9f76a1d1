"""Figures of docs/how-to/onnx.md: recipes/onnx_matrix.yaml, and its QDQ network with sums rounded twice."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from stages.support.system.installation import INSTALLATION as ROOT
from tests.pages.tables import Row, counted, rewritten

PAGE = ROOT / "docs/how-to/onnx.md"
MATRIX = ROOT / "recipes" / "onnx_matrix.yaml"
HEAD = "`onnx_matrix`"
TWICE = re.compile(r"Of the [\d,]+ sums of the QDQ form, [\d,]+ are then near ties\. [\d,]+ of the sums differ")
Report = Mapping[str, Any]


def run(file: str, target: str, options: Mapping[str, Any]) -> Report:
    """The report of a network of the matrix on a target; `options` are of the stage quantize."""
    matrix = yaml.safe_load(MATRIX.read_text(encoding="utf-8"))
    model = next(one for one in matrix["matrix"]["model"].values() if Path(one["file"]).name == file)
    stages = {**matrix["stages"], **({"quantize": dict(options)} if options else {})}
    recipe = {"schema": 1, "name": "onnx_page", "target": target, "model": model, "stages": stages}
    return counted(recipe)


def cell(report: Report, before: str) -> str:
    """`301,314, exact`: instructions, and how far outputs are; what the cell before says in brackets stays."""
    noted = re.search(r" \(.*?\)", before)
    found = report["verify"]
    far = found["float"]["max_relative"] if found["float"] else 0
    assert not found["mismatches"]
    exact = "exact" if not far else f"within {far:.0e}"
    return f"{report['instructions']['total']:,}{noted[0] if noted else ''}, {exact}"


def figures(targets: Sequence[str]) -> Callable[[Row], Row]:
    """Cells of a row of the matrix, whose first one begins with the network's file."""

    def row(cells: Row) -> Row:
        file = cells[0].split("`")[1]
        return cells[0], *(
            cell(run(file, target, {}), before) for target, before in zip(targets, cells[1:], strict=True)
        )

    return row


def near_ties(report: Report) -> str:
    """The sentences on sums that are rounded twice."""
    ties = report["verify"]["near_ties"]
    counts = [f"{ties[key]:,}" for key in ("values", "near", "differing")]
    return f"Of the {counts[0]} sums of the QDQ form, {counts[1]} are then near ties. {counts[2]} of the sums differ"


def renewed(page: str) -> str:
    """The page with the figures of today."""
    head = page.partition(f"\n| {HEAD} |")[2].partition("\n")[0]
    targets = [name.strip() for name in head.strip().strip("|").split("|")]
    page = rewritten(page, HEAD, figures(targets))
    assert len(TWICE.findall(page)) == 1
    return TWICE.sub(near_ties(run("digits_qdq.onnx", targets[-1], {"rounding": "twice"})), page)
