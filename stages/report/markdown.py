"""report.json as a Markdown page."""

from typing import Any

from stages.report.advice.advise import advice_line, few
from stages.report.cycles import PICTURE, UNITS
from stages.report.html import command_mark
from stages.report.quantization import section
from stages.report.rows import columns, layer_rows, summary
from stages.report.streaming import buffer_rows, groups_section
from stages.support.messages.escape import markdown as escaped
from stages.support.messages.escape import markdown_row, shortened

ARENA = (
    ("buffer", "name"),
    ("kind", "kind"),
    ("region", "region"),
    ("offset", "offset"),
    ("bytes", "bytes"),
    ("rows", "rows"),
    ("first layer", "first"),
    ("last layer", "last"),
)
WEIGHTS = (
    ("constant", "name"),
    ("read by layers", "layers"),
    ("region", "region"),
    ("offset", "offset"),
    ("bytes", "bytes"),
)


def markdown(report: dict[str, Any]) -> str:
    """Return the page: table and figures as in the terminal, plan of arena and weights."""
    title = f"{shortened(report['model']['name'])} on {report['target']}"
    lines = [f"# {escaped(title)}", ""]
    lines += [f"- **{escaped(name)}**: {escaped(value)}" for name, value in summary(report)]
    advice = report.get("advice", ())
    lines += [
        f"- **advice**: {escaped(advice_line(entry))} {command_mark(advice.index(entry))}" for entry in few(advice)
    ]
    lines += [f"- **warning**: {escaped(warning)}" for warning in report["warnings"]]
    titles = columns(report)
    lines += ["", "## Layers", "", markdown_row(titles), markdown_row(["---" for _ in titles])]
    lines += [markdown_row(cells) for cells in layer_rows(report)]
    lines += _rewrites(report["simplify"]["rewrites"])
    lines += section(report.get("quantization"))
    lines += _cycles(report["cycles"], report["layers"]) if report.get("cycles") else []
    lines += groups_section(report.get("streaming"))
    arena = [{**row, "rows": _rows(row)} for row in report["arena"]]
    shown = ARENA if any(row["rows"] for row in arena) else tuple(column for column in ARENA if column[0] != "rows")
    lines += _plan("Arena", shown, arena)
    lines += _plan("Weights", WEIGHTS, report["weights"])
    return "\n".join(lines) + "\n"


def _cycles(cycles: dict[str, Any], layers: list[dict[str, Any]]) -> list[str]:
    """Return the section on cycles by unit and layer, with the best other kernel."""
    columns = ("#", *UNITS, *(f"{unit} predicted" for unit in UNITS), "instead")
    lines = ["", "## Cycles", "", markdown_row(columns), markdown_row(["---:" for _ in columns])]
    rows = [*cycles["layers"], {**cycles, "index": "all"}]
    instead = {layer["index"]: _instead(layer) for layer in layers}
    for row in rows:
        predicted = [f"{row['predicted'][unit]:,}" if row["predicted"] else "" for unit in UNITS]
        cells = [str(row["index"]), *(f"{row[unit]:,}" for unit in UNITS), *predicted, instead.get(row["index"], "")]
        lines.append(markdown_row(cells))
    lines += ["", *(f"- {escaped(sentence)}" for sentence in cycles["assumptions"])]
    picture = ["", f"![Timeline of core, engine and DMA]({PICTURE})"] if cycles["total"] and cycles["timeline"] else []
    return [*lines, *picture]


def _instead(layer: dict[str, Any]) -> str:
    """Return the cheapest other kernel and its cost: `rvp.gemm_s8 1,234`."""
    alternatives = [
        alternative
        for alternative in layer["alternatives"]
        if alternative["kernel"] != layer["kernel"] and alternative["cost"] is not None
    ]
    if not alternatives:
        return ""
    best = min(alternatives, key=lambda alternative: alternative["cost"])
    flips = best.get("flips", 0)
    return f"{best['kernel']} {best['cost']:,.0f}" + (f" with {flips} flip{'s' * (flips > 1)}" if flips else "")


def _plan(title: str, columns: tuple[tuple[str, str], ...], rows: list[dict[str, Any]]) -> list[str]:
    """Return a section of the memory plan, with the address of each buffer or constant."""
    lines = ["", f"## {title}", "", markdown_row([name for name, _ in columns]), markdown_row(["---" for _ in columns])]
    return [*lines, *(markdown_row([_cell(row[key]) for _, key in columns]) for row in rows)]


def _rows(buffer: dict[str, Any]) -> str:
    """Return the rows of each tensor of a rolling buffer, '' for other buffers."""
    return ", ".join(dict.fromkeys(filter(None, map(buffer_rows, buffer.get("holds", ())))))


def _rewrites(rewrites: list[dict[str, Any]] | None) -> list[str]:
    """Return the section on simplifications, or nothing."""
    if not rewrites:
        return []
    rows = [
        markdown_row([_cell(rewrite["what"]), _cell([shortened(name) for name in rewrite["layers"]])])
        for rewrite in rewrites
    ]
    return ["", "## Simplified", "", markdown_row(("removed", "layers")), markdown_row(("---", "---")), *rows]


def _cell(value: Any) -> str:
    return shortened(", ".join(map(str, value)) if isinstance(value, list) else str(value))
