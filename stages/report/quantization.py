"""Results of the stage ptq, with the accuracy of the firmware."""

from collections.abc import Iterator, Mapping
from typing import Any

from stages.support.messages.escape import markdown as escaped
from stages.support.messages.escape import markdown_row, shortened

RANGES, FILE = "ranges.svg", "quantized.tflite"
_LAYERS = ("#", "layer", "op", "types", "SNR dB", "lost dB", "outside of the range", "seen", "range")


def quantization(results: Mapping[str, Any] | None, verified: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return `quantization` of report.json: ptq.json with the firmware's accuracy, or None."""
    if results is None:
        return None
    accuracy = (verified or {}).get("accuracy")
    target = {"samples": accuracy["images"], "accuracy": accuracy["ours"]} if accuracy else None
    return {**{name: value for name, value in results.items() if name != "warnings"}, "target": target}


def line(results: Mapping[str, Any]) -> str:
    """Return the line with the accuracy of each form of the network.

    `accuracy of float 97.78 %, quantized 97.50 % (360 samples), on the target 97.50 % (360 samples); …`
    """
    shares = results["accuracy"]
    samples = f"({shares['samples']:,} {'' if results['evaluated'] else 'calibration '}samples)"
    if "float" in shares:
        shares_text = [
            f"accuracy of float {_percent(shares['float'])}, quantized {_percent(shares['quantized'])} {samples}"
        ]
    else:
        shares_text = [f"class of float and quantized agree in {_percent(shares['agree'])} {samples}"]
    if results["target"]:
        target = results["target"]
        # The text before is about the agreement of classes, so this names the labels.
        label = "on the target" if "float" in shares else "accuracy against the labels on the target"
        shares_text.append(f"{label} {_percent(target['accuracy'])} ({target['samples']:,} samples)")
    return f"{', '.join(shares_text)}; outputs {results['snr']:.1f} dB"


def section(results: Mapping[str, Any] | None) -> list[str]:
    """Return the section of report.md: accuracies, value ranges, and the noise of each layer."""
    if results is None:
        return []
    sizes = (
        f"{results['float']['bytes']:,} bytes in float, {results['quantized']['bytes']:,} quantized ([{FILE}]({FILE}))"
    )
    summary = f"{escaped(line(results))}. {sizes}, ranges from {results['samples']:,} samples."
    lines = ["", "## Quantization", "", summary, ""]
    lines += [markdown_row(("network", "samples", "accuracy", "same class as float")), markdown_row(["---"] * 4)]
    lines += [markdown_row(row) for row in _accuracies(results)]
    lines += ["", f"![ranges of the layers]({RANGES})", ""]
    lines += [markdown_row(_LAYERS), markdown_row(["---"] * len(_LAYERS))]
    return [*lines, *(markdown_row(_row(layer)) for layer in results["layers"])]


def _accuracies(results: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    shares, target = results["accuracy"], results["target"]
    count = f"{shares['samples']:,}"
    yield ("float", count, _percent(shares.get("float")), "")
    yield ("quantized, LiteRT", count, _percent(shares.get("quantized")), _percent(shares["agree"]))
    if target:
        yield ("quantized, firmware", f"{target['samples']:,}", _percent(target["accuracy"]), "")


def _row(layer: Mapping[str, Any]) -> tuple[str, ...]:
    types = layer["dtype"] if layer["weights"] is None else f"{layer['dtype']}, weights {layer['weights']}"
    clipped = "" if layer["clipped"] is None else f"{100 * layer['clipped']:.3g} %"
    value_range = "" if layer["low"] is None else f"{layer['low']:.4g} to {layer['high']:.4g}"
    float_range = f"{layer['seen'][0]:.4g} to {layer['seen'][1]:.4g}"
    name = shortened(layer["name"].partition(";")[0])
    noise = (f"{layer['snr']:.1f}", f"{layer['drop']:.1f}" if layer["drop"] else "")
    return (str(layer["index"]), name, layer["op"], types, *noise, clipped, float_range, value_range)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f} %"
