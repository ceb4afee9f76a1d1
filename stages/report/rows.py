"""Rows of the layer table and lines of the summary, for the terminal and the pages."""

from typing import Any

from stages.report.audio.text import audio_lines
from stages.report.board import board_line, counted, per_mac, ran_line
from stages.report.cycles import searched
from stages.report.estimate import COLUMN, choice_line
from stages.report.estimate import line as estimate_line
from stages.report.parts import parts_line
from stages.report.quantization import line
from stages.report.streaming import effect_line, rows_of
from stages.verify.reference_name import reference_name

_COLUMNS = ("#", "layer", "op", "output", "kernel", "layout", "MACs", "instructions", "per MAC", "share")
_ROWS_AT = 4  # column after the output, if layers run by rows


def shape(dims: Any) -> str:
    """Format a list of dimensions, or a list of such lists: `1x25x5x64`."""
    if dims and isinstance(dims[0], list | tuple):
        return " ".join(shape(inner) for inner in dims)
    return "x".join(str(dim) for dim in dims)


def columns(report: dict[str, Any]) -> tuple[str, ...]:
    """Return the titles of the layer table, with estimated cycles if there are any."""
    titles: tuple[str, ...] = (*_COLUMNS, COLUMN) if report.get("estimated_cycles") else _COLUMNS
    if _has_rows(report):
        titles = (*titles[:_ROWS_AT], "rows", *titles[_ROWS_AT:])
    return tuple(counted(report) if name == "instructions" else name for name in titles)


def layer_rows(report: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return a row of text for each layer, in the order of `columns`."""
    total = report["instructions"]["total"] or 0
    rows: list[tuple[str, ...]] = []
    for layer in report["layers"]:
        instructions, macs = layer["instructions"], layer["macs"]
        ratio = per_mac(report, instructions, macs)
        rows.append(
            (
                str(layer["index"]),
                _short(layer["name"]),
                layer["op"],
                shape(layer["shape_out"]),
                *([rows_of(layer)] if _has_rows(report) else []),
                layer["kernel"],
                str(layer["layout"]),
                f"{macs:,}" if macs else "",
                "" if instructions is None else f"{instructions:,}",
                f"{ratio:.3f}" if ratio else "",
                f"{100 * instructions / total:.1f} %" if instructions and total else "",
                *([f"{layer['estimated_cycles']:,}"] if report.get("estimated_cycles") else []),
            )
        )
    return rows


def summary(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return name and value of each line below the table."""
    verify, memory, instructions = report["verify"] or {}, report["memory"], report["instructions"]
    ran = report.get("ran")
    lines = [("board", board_line(report["board"], ran))] if report.get("board") else []
    lines += [("ran", ran_line(ran))] if ran else []
    lines += [("recorded", report["recorded"])] if report.get("recorded") else []
    lines.append(("verify", _verdict(verify) if verify else "not run: outputs were not compared"))
    if window := verify.get("whole_window"):
        frames = f"{window['frames']} new frame{'s' if window['frames'] > 1 else ''} per run"
        equal = f"all {window['inputs']:,} inferences equal the network over {window['window']} frames"
        lines.append(("window", f"{equal}, zeros before the first; {frames}"))
    if verify.get("without_reference"):
        lines.append(("not verified", f"{', '.join(verify['without_reference'])}: LiteRT aborts on this input"))
    if verify.get("overflowed"):
        name, tensor = next(iter(verify["overflowed"].items()))
        which = ", ".join(verify["overflowed"])
        reference = reference_name(verify["reference"])
        lines.append(("not verified", f"{which}: float32 overflow in {reference}, on {name} in {tensor}"))
    if verify.get("tied"):
        name, tensor = next(iter(verify["tied"].items()))
        which = ", ".join(verify["tied"])
        lines.append(("not verified", f"{which}: only in part, after a near tie in QUANTIZE, on {name} in {tensor}"))
    if verify.get("distance"):
        lines.append(("distance", _distance(verify["distance"], report["layers"])))
    if report.get("quantization"):
        lines.append(("quantize", line(report["quantization"])))
    if ties := verify.get("near_ties"):
        text = f"{ties['near']:,} of {ties['values']:,} sums may round differently in ONNX Runtime"
        lines.append(("near ties", f"{text}, {ties['differing']:,} do"))
    lines.append(("legalize", _widths(report["legalize"])))
    rewrites = report["simplify"]["rewrites"]
    if rewrites is None:
        lines.append(("simplify", "off"))
    elif rewrites:
        lines.append(("simplify", _simplified(rewrites, report["simplify"]["macs"], report["model"]["macs"])))
    if report.get("chosen_by", {}).get("unit") == "cycles":
        lines.append(("chosen by", choice_line(report["chosen_by"])))
    accuracy = verify.get("accuracy")
    if accuracy:
        lines.append(("accuracy", accuracy_line(accuracy, reference_name(verify["reference"]))))
    ratio = per_mac(report, instructions["total"], report["model"]["macs"])
    for_each = f", {ratio:.3f} per MAC" if ratio else ""
    if instructions["total"] is not None and not report.get("cycles"):
        lines.append((counted(report), f"{instructions['total']:,}{for_each}"))
    if estimate := report.get("estimated_cycles"):
        lines.append((COLUMN, estimate_line(estimate)))
    if cycles := report.get("cycles"):
        shares = ", ".join(f"{unit} {cycles[unit]:,}" for unit in ("engine", "dma", "core", "waiting"))
        text = f"{cycles['total']:,}{for_each} ({shares}); predicted {cycles['predicted']['total']:,}"
        lines.append(("cycles", text))
        if cycles["search"]:
            lines.append(("tiles", searched(cycles["search"])))
    lines.append(
        (
            "memory",
            ", ".join(
                f"{label} {memory[key]:,} B{_divided(memory.get('blocks', []), label)}"
                for label, key in (
                    ("arena", "arena_bytes"),
                    ("state", "state_bytes"),
                    ("RAM", "ram_bytes"),
                    ("stack", "stack_bytes"),
                    ("ROM", "rom_bytes"),
                    ("weights", "weights_bytes"),
                )
                if memory.get(key) is not None
            ),
        )
    )
    if report.get("parts"):
        lines.append(("parts", parts_line(report["parts"], instructions["total"])))
    if audio := report.get("audio"):
        lines += audio_lines(audio)
    if effect := report.get("streaming"):
        lines.append(("streaming", effect_line(effect)))
    return lines


def _has_rows(report: dict[str, Any]) -> bool:
    return any(layer.get("rows") for layer in report["layers"])


def _verdict(verify: dict[str, Any]) -> str:
    """Return the line with verify's result; for float outputs with the largest error.

    `0 mismatches in 48 output values of 4 inferences against LiteRT 2.1`
    """
    inferences = f"{verify['inputs']} inference{'s' if verify['inputs'] != 1 else ''}"
    checked = f"{verify['outputs_checked']:,} output values of {inferences}"
    if not verify.get("float") or not verify["float"]["max_relative"]:
        return f"{verify['mismatches']} mismatches in {checked} against {verify['reference']}"
    allowed, worst = verify["float"]["tolerance"], verify["float"]["max_relative"]
    return f"{checked} within {allowed:g} of {verify['reference']} (relative); largest difference {worst:.2g}"


def accuracy_line(accuracy: dict[str, Any], reference: str) -> str:
    """Return `97.8 % (352 of 360 samples), LiteRT 97.8 %, same class in 360 of 360`."""
    total = accuracy["images"]
    ours, agree = (round(accuracy[key] * total) for key in ("ours", "agree"))
    theirs = percent_of(round(accuracy["litert"] * total), total)
    samples = f"({ours:,} of {total:,} samples)"
    return f"{percent_of(ours, total)} {samples}, {reference} {theirs}, same class in {agree:,} of {total:,}"


def percent_of(count: int, total: int) -> str:
    """Return a share with one decimal. `100.0 %` means all of them, `0.0 %` none."""
    percent = 100 * count / total
    return f"{percent if count in (0, total) else min(max(percent, 0.1), 99.9):.1f} %"


def _divided(blocks: list[dict[str, Any]], part: str) -> str:
    """Return ` (rom 8,000, dtcm 1,000 copied from rom at start)` for several regions, else ''."""
    mine = [block for block in blocks if block["part"] == part and block["bytes"]]
    copied = [f" copied from {block['loaded_from']} at start" if block["loaded_from"] else "" for block in mine]
    sizes = [f"{block['region']} {block['bytes']:,}{note}" for block, note in zip(mine, copied, strict=True)]
    return f" ({', '.join(sizes)})" if len(sizes) > 1 or any(copied) else ""


def _distance(measured: dict[str, Any], layers: list[dict[str, Any]]) -> str:
    """Describe an engine's distance from LiteRT: of outputs, of layers, and predicted."""
    shares = [
        f"{_percent(measured[which]['share'])} of {which} by {measured[which]['largest']:g} at most"
        for which in ("outputs", "layers")
        if measured[which]["values"]
    ]
    predicted = [layer["distance"] for layer in layers if layer["distance"]]
    if not predicted:  # near ties
        return f"from ONNX Runtime, {'; '.join(shares)}"
    reachable = sum(distance["reachable"] for distance in predicted)
    share = sum(distance["differing"] for distance in predicted) / max(reachable, 1)
    return f"from LiteRT, {'; '.join(shares)}; predicted {_percent(share)} of reachable sums"


def _percent(share: float) -> str:
    """Return `0.052 %`, `100 %`."""
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.2g} %"


def _widths(legalize: dict[str, Any]) -> str:
    """Return `all activations are int8`, or `activations: 1 int16, 30 int8; widened: y`."""
    types, wide = legalize["tensors"], legalize["widened"]
    if len(types) == 1 and not wide:
        return f"all activations are {next(iter(types))}"
    counts = ", ".join(f"{count} {dtype}" for dtype, count in types.items())
    return f"activations: {counts}{'; widened: ' + ', '.join(wide) if wide else ''}"


def _simplified(rewrites: list[dict[str, Any]], before: int, after: int) -> str:
    """Return such as `from 748 to 391 MACs; channels removed from 19 layers, 2 layers removed`."""
    fewer = {name for rewrite in rewrites if rewrite["rule"] == "channels" for name in rewrite["layers"]}
    removed = sum(rewrite["rule"] != "channels" for rewrite in rewrites)
    changes = [f"channels removed from {len(fewer)} layers"] if fewer else []
    changes += [f"{removed} layer{'s' if removed > 1 else ''} removed"] if removed else []
    return "; ".join([f"from {before:,} to {after:,} MACs"] * (before != after) + [", ".join(changes)])


def _short(name: str, limit: int = 36) -> str:
    """Shorten a tensor name for a cell: first fused operator, end of a long path."""
    name = name.partition(";")[0]
    return name if len(name) <= limit else "…" + name[-limit + 1 :]
