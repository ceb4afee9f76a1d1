"""What the stage ptq found of a network that it quantized, beside what the firmware makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stages.support.messages.escape import markdown as escaped
from stages.support.messages.escape import markdown_row, shortened

RANGES, FILE = "ranges.svg", "quantized.tflite"
_LAYERS = ("#", "layer", "op", "types", "SNR dB", "lost dB", "outside of the range", "seen", "range")


def quantization(found: Mapping[str, Any] | None, verified: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """`quantization` of report.json: ptq.json with the accuracy of the firmware beside the others'; None without."""
    if found is None:
        return None
    accuracy = (verified or {}).get("accuracy")
    target = {"samples": accuracy["images"], "accuracy": accuracy["ours"]} if accuracy else None
    return {**{name: value for name, value in found.items() if name != "warnings"}, "target": target}


def line(found: Mapping[str, Any]) -> str:
    """`accuracy of float 97.78 %, quantized 97.50 % (360 samples), on the target 97.50 % (360 samples); …`."""
    shares = found["accuracy"]
    of = f"({shares['samples']:,} {'' if found['evaluated'] else 'calibration '}samples)"
    if "float" in shares:
        parts = [f"accuracy of float {_percent(shares['float'])}, quantized {_percent(shares['quantized'])} {of}"]
    else:
        parts = [f"class of float and quantized agree in {_percent(shares['agree'])} {of}"]
    if found["target"]:
        target = found["target"]
        # Beside an agreement of classes it has to be said that this is of the labels.
        what = "on the target" if "float" in shares else "accuracy against the labels on the target"
        parts.append(f"{what} {_percent(target['accuracy'])} ({target['samples']:,} samples)")
    return f"{', '.join(parts)}; outputs {found['snr']:.1f} dB"


def section(found: Mapping[str, Any] | None) -> list[str]:
    """The section of report.md: accuracies, each layer's noise, the picture of the ranges."""
    if found is None:
        return []
    sizes = f"{found['float']['bytes']:,} bytes in float, {found['quantized']['bytes']:,} quantized ([{FILE}]({FILE}))"
    told = f"{escaped(line(found))}. {sizes}, ranges from {found['samples']:,} samples."
    lines = ["", "## Quantization", "", told, ""]
    lines += [markdown_row(("network", "samples", "accuracy", "same class as float")), markdown_row(["---"] * 4)]
    lines += [markdown_row(row) for row in _accuracies(found)]
    lines += ["", f"![ranges of the layers]({RANGES})", ""]
    lines += [markdown_row(_LAYERS), markdown_row(["---"] * len(_LAYERS))]
    return [*lines, *(markdown_row(_row(layer)) for layer in found["layers"])]


def _accuracies(found: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    shares, target = found["accuracy"], found["target"]
    count = f"{shares['samples']:,}"
    yield ("float", count, _percent(shares.get("float")), "")
    yield ("quantized, LiteRT", count, _percent(shares.get("quantized")), _percent(shares["agree"]))
    if target:
        yield ("quantized, firmware", f"{target['samples']:,}", _percent(target["accuracy"]), "")


def _row(layer: Mapping[str, Any]) -> tuple[str, ...]:
    types = layer["dtype"] if layer["weights"] is None else f"{layer['dtype']}, weights {layer['weights']}"
    clipped = "" if layer["clipped"] is None else f"{100 * layer['clipped']:.3g} %"
    span = "" if layer["low"] is None else f"{layer['low']:.4g} to {layer['high']:.4g}"
    seen = f"{layer['seen'][0]:.4g} to {layer['seen'][1]:.4g}"
    name = shortened(layer["name"].partition(";")[0])
    noise = (f"{layer['snr']:.1f}", f"{layer['drop']:.1f}" if layer["drop"] else "")
    return (str(layer["index"]), name, layer["op"], types, *noise, clipped, seen, span)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f} %"
