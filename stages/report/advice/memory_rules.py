"""Rules of advice about RAM and ROM.

A rule returns None unless the figures of the run prove its sentence. The first that holds gives the line.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from stages.report.advice.facts import RECIPE, Advice, Facts, Saving, percent, run_with
from stages.report.advice.time_rules import CALIBRATE
from stages.report.html.memory import alive, bytes_in_use, peak_of, short_name, tensor_at
from stages.support.messages.wording import several

_LEAST = 0.01  # share of the arena or the ROM below which a saving is not worth a line
_NAMED = 4
_INT4 = ("conv2d", "fully_connected")  # operators with int4 weights


def unpacked_weights(facts: Facts) -> Advice | None:
    """Weights that are packed in ROM are unpacked at the peak."""
    return _less_scratch(
        facts,
        wide=True,
        what="are unpacked weights of {layer}",
        command=run_with("stages.tensorize.narrow_weights=false"),
    )


def scratch_at_peak(facts: Facts) -> Advice | None:
    """A kernel's scratch is alive at the peak, and the layer has other kernels."""
    if facts.plan.get("objective") == "ram":
        return None
    return _less_scratch(
        facts,
        wide=False,
        what="are scratch of {kernel} in {layer}. Its other kernels may need less, and take longer",
        command=run_with("stages.tensorize.optimize_for=ram"),
    )


def peak(facts: Facts) -> Advice | None:
    """The layer with the peak of the arena, and the buffers alive there."""
    buffers = _arena(facts)
    if not buffers:
        return None
    layer = peak_of(buffers, len(facts.report["layers"]))
    there = sorted(alive(buffers, layer), key=lambda buffer: -buffer["bytes"])
    names = [f"{short_name(tensor_at(buffer, layer))} {buffer['bytes']:,}" for buffer in there]
    total = bytes_in_use(there)
    index = facts.report["layers"][layer]["index"]
    what = f"The arena is largest in {facts.title(index)}: {total:,} bytes are alive. {several(names, _NAMED)}"
    return Advice("RAM", index, what)


def narrow_weights(facts: Facts) -> Advice | None:
    """Weights fit into 4 bits or fewer, and are stored in 8."""
    layers = [entry for entry in facts.layers.values() if entry["packable"]]
    saved = sum(entry["packable"]["bytes"] for entry in layers)
    if not saved:
        return None
    bits = max(entry["packable"]["bits"] for entry in layers)
    ram = max(entry["packable"]["scratch"] for entry in layers)
    which = f"{len(layers)} layers" if len(layers) > 1 else facts.title(layers[0]["index"])
    what = (
        f"The weights of {which} fit into {bits} bits and are stored in 8. Packed they need {ram:,} bytes of RAM more "
        "while a layer runs, and instructions that unpack them"
    )
    return Advice("ROM", None, what, Saving(saved, "bytes"), run_with("stages.tensorize.narrow_weights=true"))


def int4_weights(facts: Facts) -> Advice | None:
    """The recipe quantizes weights to 8 bits; 4 are half of them."""
    results = facts.report["quantization"]
    if not results or not any(layer["weights"] == "int8" and layer["op"] in _INT4 for layer in results["layers"]):
        return None
    weights = _weights(facts, "int8", _INT4)
    if not weights:
        return None
    what = (
        f"Convolutions and fully connected layers have {weights:,} bytes of int8 weights. With int4 they are half of "
        "that; the search shows what accuracy it costs"
    )
    command = f"doit search {RECIPE} set=stages.tensorize.narrow_weights=true"
    return Advice("ROM", None, what, Saving(weights // 2, "bytes"), command)


def float_weights(facts: Facts) -> Advice | None:
    """All weights are float32; int8 ones are a quarter."""
    if not facts.can_calibrate:
        return None
    weights = _weights(facts, "float32", None)
    if not weights:
        return None
    what = (
        f"The float32 constants of layers have {weights:,} bytes; as int8 weights they are about a quarter. Random "
        "calibration data show time and size, not accuracy"
    )
    return Advice("ROM", None, what, None, run_with(CALIBRATE))


def harness(facts: Facts) -> Advice | None:
    """The firmware has code that an export does not have."""
    memory = facts.report["memory"]
    rom, model = memory.get("rom_bytes"), memory.get("model_rom_bytes")
    if not rom or not model or rom - model < _LEAST * rom:
        return None
    what = (
        f"{rom - model:,} of {rom:,} bytes ({percent((rom - model) / rom)}) are start-up code, test harness and "
        "library. An export has only the model and its kernels"
    )
    return Advice("ROM", None, what, Saving(rom - model, "bytes"), f"doit export {RECIPE} as=cmake")


def _less_scratch(facts: Facts, *, wide: bool, what: str, command: str) -> Advice | None:
    """Return advice if avoidable scratch at the peak makes the arena larger.

    That is scratch of unpacked weights (`wide`), or of other kernels, in layers that have more than one.
    """
    buffers = _arena(facts)
    count = len(facts.report["layers"])
    avoidable = [buffer for buffer in buffers if _is_avoidable(facts, buffer, wide=wide)]
    if not avoidable:
        return None
    layer = peak_of(buffers, count)
    index = facts.report["layers"][layer]["index"]
    at_peak = sum(buffer["bytes"] for buffer in alive(avoidable, layer))
    before = _most(buffers, count)
    saved = before - _most([buffer for buffer in buffers if not any(buffer is other for other in avoidable)], count)
    if not at_peak or saved < _LEAST * before:
        return None
    reason = what.format(kernel=facts.layer_plan(index)["kernel"], layer=facts.title(index))
    text = f"{at_peak:,} of the {before:,} bytes that are alive at the arena's peak {reason}"
    return Advice("RAM", index, text, Saving(saved, "bytes"), command)


def _is_avoidable(facts: Facts, buffer: Mapping[str, Any], *, wide: bool) -> bool:
    """Whether scratch is for unpacked weights (`wide`), or of a replaceable kernel."""
    if buffer["kind"] != "scratch" or (":wide_" in buffer["name"]) != wide:
        return False
    plan = facts.layer_plan(int(buffer["name"].split(":")[1]))
    if wide:
        return True
    return not plan["program"] and any(other["cost"] is not None for other in plan["alternatives"])


def _arena(facts: Facts) -> Sequence[Mapping[str, Any]]:
    """Return the buffers of the region with the largest arena."""
    regions: dict[str, list[Mapping[str, Any]]] = {}
    for buffer in facts.report["arena"]:
        if buffer["bytes"]:
            regions.setdefault(buffer["region"], []).append(buffer)
    return max(regions.values(), key=lambda buffers: max(b["offset"] + b["bytes"] for b in buffers), default=[])


def _most(buffers: Sequence[Mapping[str, Any]], layers: int) -> int:
    """Return the most bytes that are alive at once."""
    return max(bytes_in_use(alive(buffers, layer)) for layer in range(layers))


def _weights(facts: Facts, dtype: str, ops: Sequence[str] | None) -> int:
    """Return the bytes of constants of a type that layers read, each once.

    `operators` selects the layers, None: all.
    """
    constants = facts.quantized.constants
    names = {
        name
        for layer in facts.quantized.layers
        if ops is None or layer.kind in ops
        for name in layer.constants.values()
        if str(constants[name].dtype) == dtype and constants[name].ndim > 1
    }
    return sum(int(constants[name].nbytes) for name in sorted(names))


RAM_RULES = (unpacked_weights, scratch_at_peak, peak)
ROM_RULES = (narrow_weights, int4_weights, float_weights, harness)
