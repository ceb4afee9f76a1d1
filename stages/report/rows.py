"""The rows of the layer table, shared by the terminal and the Markdown page."""

from __future__ import annotations

from typing import Any

from stages.report.board import board_line, counted, per_mac, ran_line
from stages.report.cycles import searched
from stages.report.estimate import COLUMN, choice_line
from stages.report.estimate import line as estimate_line
from stages.report.quantization import line
from stages.verify.reference_name import reference_name

_COLUMNS = ("#", "layer", "op", "output", "kernel", "layout", "MACs", "instructions", "per MAC", "share")


def shape(dims: Any) -> str:
    """`1x25x5x64` from a list of dimensions, or from a list of such lists."""
    if dims and isinstance(dims[0], list | tuple):
        return " ".join(shape(one) for one in dims)
    return "x".join(str(dim) for dim in dims)


def columns(report: dict[str, Any]) -> tuple[str, ...]:
    """The titles of the layer table: estimated cycles where there are some; what a board counted."""
    titles = (*_COLUMNS, COLUMN) if report.get("estimated_cycles") else _COLUMNS
    return tuple(counted(report) if name == "instructions" else name for name in titles)


def layer_rows(report: dict[str, Any]) -> list[tuple[str, ...]]:
    """One row of text for each layer, as `columns` says."""
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
    """Name and value of each line below the table."""
    verify, memory, instructions = report["verify"] or {}, report["memory"], report["instructions"]
    ran = report.get("ran")
    lines = [("board", board_line(report["board"], ran))] if report.get("board") else []
    lines += [("ran", ran_line(ran))] if ran else []
    lines.append(("verify", _verdict(verify) if verify else "left out: nothing was compared"))
    if verify.get("without_reference"):
        lines.append(("not verified", f"{', '.join(verify['without_reference'])}: LiteRT's kernels abort on it"))
    if verify.get("overflowed"):
        name, tensor = next(iter(verify["overflowed"].items()))
        which = ", ".join(verify["overflowed"])
        whose = reference_name(verify["reference"])
        lines.append(("not verified", f"{which}: {whose}'s results leave float32's range, on {name} in {tensor}"))
    if verify.get("tied"):
        name, tensor = next(iter(verify["tied"].items()))
        which = ", ".join(verify["tied"])
        lines.append(("not verified", f"{which}: behind float numbers that round either way, on {name} in {tensor}"))
    if verify.get("distance"):
        lines.append(("distance", _distance(verify["distance"], report["layers"])))
    if report.get("quantization"):
        lines.append(("quantize", line(report["quantization"])))
    if ties := verify.get("near_ties"):
        told = f"{ties['near']:,} of {ties['values']:,} sums of real numbers may round otherwise in ONNX Runtime"
        lines.append(("near ties", f"{told}, {ties['differing']:,} do"))
    lines.append(("legalize", _widths(report["legalize"])))
    rewrites = report["simplify"]["rewrites"]
    if rewrites is None:
        lines.append(("simplify", "off: all of the network is computed"))
    elif rewrites:
        lines.append(("simplify", _simplified(rewrites, report["simplify"]["macs"], report["model"]["macs"])))
    if report.get("chosen_by", {}).get("unit") == "cycles":
        lines.append(("chosen by", choice_line(report["chosen_by"])))
    accuracy = verify.get("accuracy")
    if accuracy:
        called = {"litert": reference_name(verify["reference"])}
        lines.append(("accuracy", ", ".join(f"{called.get(name, name)} {value}" for name, value in accuracy.items())))
    ratio = per_mac(report, instructions["total"], report["model"]["macs"])
    for_each = f", {ratio:.3f} per MAC" if ratio else ""
    if instructions["total"] is not None and not report.get("cycles"):
        lines.append((counted(report), f"{instructions['total']:,}{for_each}"))
    if estimate := report.get("estimated_cycles"):
        lines.append((COLUMN, estimate_line(estimate)))
    if cycles := report.get("cycles"):
        shares = ", ".join(f"{unit} {cycles[unit]:,}" for unit in ("engine", "dma", "core", "waiting"))
        told = f"{cycles['total']:,}{for_each} ({shares}); predicted {cycles['predicted']['total']:,}"
        lines.append(("cycles", told))
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
    return lines


def _verdict(verify: dict[str, Any]) -> str:
    """`0 mismatches in 48 output values of 4 inferences against LiteRT 2.1`; of a float network how far off."""
    inferences = f"{verify['inputs']} inference{'s' if verify['inputs'] != 1 else ''}"
    checked = f"{verify['outputs_checked']:,} output values of {inferences}"
    if not verify.get("float") or not verify["float"]["max_relative"]:
        return f"{verify['mismatches']} mismatches in {checked} against {verify['reference']}"
    allowed, worst = verify["float"]["tolerance"], verify["float"]["max_relative"]
    return f"{checked} within {allowed:g} of {verify['reference']}, relative; the worst differs by {worst:.2g}"


def _divided(blocks: list[dict[str, Any]], part: str) -> str:
    """` (rom 8,000, dtcm 1,000 copied from rom at start)` for what is copied or lies in several regions, else ''."""
    mine = [block for block in blocks if block["part"] == part and block["bytes"]]
    copied = [f" copied from {block['loaded_from']} at start" if block["loaded_from"] else "" for block in mine]
    sizes = [f"{block['region']} {block['bytes']:,}{how}" for block, how in zip(mine, copied, strict=True)]
    return f" ({', '.join(sizes)})" if len(sizes) > 1 or any(copied) else ""


def _distance(measured: dict[str, Any], layers: list[dict[str, Any]]) -> str:
    """How far an engine's own arithmetic is from LiteRT's: of outputs, of layers, and of all sums that can be."""
    parts = [
        f"{_percent(measured[which]['share'])} of {which} by {measured[which]['largest']:g} at most"
        for which in ("outputs", "layers")
        if measured[which]["values"]
    ]
    own = [layer["distance"] for layer in layers if layer["distance"]]
    if not own:  # near ties
        return f"from ONNX Runtime, {'; '.join(parts)}"
    share = sum(one["differing"] for one in own) / max(sum(one["reachable"] for one in own), 1)
    return f"from LiteRT, {'; '.join(parts)}; predicted {_percent(share)} of reachable sums"


def _percent(share: float) -> str:
    """`0.052 %`, `100 %`."""
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.2g} %"


def _widths(legalize: dict[str, Any]) -> str:
    """Return such as `all activations are int8`, or `activations: 1 int16, 30 int8; widened: y`."""
    types, wide = legalize["tensors"], legalize["widened"]
    if len(types) == 1 and not wide:
        return f"all activations are {next(iter(types))}"
    counts = ", ".join(f"{count} {dtype}" for dtype, count in types.items())
    return f"activations: {counts}{'; widened: ' + ', '.join(wide) if wide else ''}"


def _simplified(rewrites: list[dict[str, Any]], before: int, after: int) -> str:
    """`7,489,664 MACs are 3,916,997; channels left out of 19 layers, 2 layers taken out`."""
    fewer = {name for rewrite in rewrites if rewrite["rule"] == "channels" for name in rewrite["layers"]}
    gone = sum(rewrite["rule"] != "channels" for rewrite in rewrites)
    said = [f"channels left out of {len(fewer)} layers"] if fewer else []
    said += [f"{gone} layer{'s' if gone > 1 else ''} taken out"] if gone else []
    return "; ".join([f"{before:,} MACs are {after:,}"] * (before != after) + [", ".join(said)])


def _short(name: str, limit: int = 36) -> str:
    """A tensor name for a cell: of fused operators the first, of a long path the end, which tells layers apart."""
    name = name.partition(";")[0]
    return name if len(name) <= limit else "…" + name[-limit + 1 :]
