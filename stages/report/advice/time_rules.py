"""Rules of advice about time: of the whole network, and of one layer.

A rule returns None unless the figures of the run prove its sentence.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

from stages.ir.tensor_layout import UNPACK_INSTRUCTIONS
from stages.report.advice.facts import Advice, Facts, Saving, percent, run_with

LEAST = 0.01  # share of the inference below which a layer or a saving is not worth a line
CALIBRATE = "stages.quantize={mode: calibrate, data: {random: {}}}"
_PROVED = ("counted", "modelled")
# By optimize_for: the memory that it saves, and the objective that is faster.
_INSTEAD = {"balanced": ("ROM", "speed"), "rom": ("ROM", "balanced"), "ram": ("RAM", "balanced")}
_LAST = ("softmax", "logistic", "log_softmax", "dequantize")
_TYPES = ("int8", "uint8", "int16", "float32")


def engine_requantizes(facts: Facts) -> Advice | None:
    """The core requantizes sums, which the engine could do with its own rounding."""
    cycles, plan = facts.report.get("cycles"), facts.plan
    if not cycles or plan.get("requantize") != "core" or "engine" not in plan.get("requantizers", ()):
        return None
    programs = {index: entry["program"] for index, entry in facts.layers.items() if entry["program"]}
    busy = [index for index, program in programs.items() if any(step["do"] == "work" for step in program["commands"])]
    core = sum(layer["core"] for layer in cycles["layers"] if layer["index"] in busy)
    if core < LEAST * cycles["total"]:
        return None
    what = (
        f"The core works {core:,} of {cycles['total']:,} cycles in the {len(busy)} layers of the engine, to requantize "
        "its sums. The engine can do it, with its own rounding: results differ slightly, and the run says by how much"
    )
    return Advice("time", None, what, None, run_with("stages.tensorize.requantize=engine"))


def slower_for_size(facts: Facts) -> Advice | None:
    """The objective chose kernels that are slower than others and need less ROM or RAM."""
    objective = facts.plan.get("objective")
    if objective not in _INSTEAD or not facts.total:
        return None
    memory, instead = _INSTEAD[objective]
    slower: dict[int, tuple[float, str]] = {}
    for index, entry in facts.layers.items():
        limited = "the arena's limit" in entry["why"]
        faster = None if entry["why"].startswith("rule ") or limited != (memory == "RAM") else _faster(entry)
        if faster is not None:
            slower[index] = faster
    saved = sum(saving for saving, _ in slower.values())
    if saved < LEAST * facts.total:
        return None
    first = max(slower, key=lambda index: slower[index][0])
    chosen, (saving, kernel) = facts.layer_plan(first)["kernel"], slower[first]
    unit = facts.plan.get("unit", "instructions")
    which = f" ({len(slower)} such layers)" if len(slower) > 1 else ""
    what = f"{facts.title(first)} runs {chosen} for less {memory}; {kernel} takes {saving:,.0f} {unit} less{which}"
    return Advice(
        "time", first, _sentence(what), Saving(round(saved), unit), run_with(f"stages.tensorize.optimize_for={instead}")
    )


def unpacked_each_inference(facts: Facts) -> Advice | None:
    """Layers unpack weights into scratch before their kernels, whose own cost was counted."""
    if facts.unit != "instructions" or facts.plan.get("unit", "instructions") != "instructions" or not facts.total:
        return None
    stored = {row["name"]: row["bytes"] for row in facts.report.get("weights", ())}
    taken = weights = rom = 0
    layers = []
    for index, entry in facts.layers.items():
        wide = _unpacked(facts, index)
        if not wide or entry["cost_source"] != "counted":
            continue
        layers.append(index)
        weights += sum(wide.values())
        rom += sum(size - stored.get(entry["constants"].get(key, ""), size) for key, size in wide.items())
        kernel = entry["cost"] - UNPACK_INSTRUCTIONS * sum(wide.values())  # the plan adds an estimate for unpacking
        taken += max(round(facts.measured(index) - kernel), 0)
    if taken < max(LEAST * facts.total, 1):
        return None
    which = f"{len(layers)} layers" if len(layers) > 1 else facts.title(layers[0])
    verb = "unpack" if len(layers) > 1 else "unpacks"
    what = (
        f"{which} {verb} {weights:,} weights in each inference: {percent(taken / facts.total)} of the instructions. "
        f"Stored in 8 bits they need {rom:,} bytes of ROM more"
    )
    command = run_with("stages.tensorize.narrow_weights=false")
    return Advice("time", layers[0] if len(layers) == 1 else None, _sentence(what), Saving(taken, facts.unit), command)


def rule_of_recipe(facts: Facts, index: int) -> Advice | None:
    """A rule of the recipe chose a kernel, and another one is known to be faster."""
    entry = facts.layer_plan(index)
    faster = _faster(entry) if entry["why"].startswith("rule ") else None
    if faster is None:
        return None
    saved, kernel = faster
    unit = facts.plan.get("unit", "instructions")
    what = (
        f"{facts.title(index)} runs {entry['kernel']} by a rule of the recipe; {kernel} takes {saved:,.0f} {unit} less"
    )
    saving = Saving(round(saved), unit)
    return Advice("time", index, _sentence(what), saving, run_with("stages.tensorize.rules=[]"))


def layout_transform(facts: Facts, index: int) -> Advice | None:
    """The layer only changes the layout of a tensor."""
    op: Any = facts.computed.layers[index].op
    if op.op != "move" or op.kind != "layout":
        return None
    before, after = facts.inputs(index)[0].layout or "NHWC", facts.outputs(index)[0].layout or "NHWC"
    what = (
        f"{facts.title(index)} only copies {before} to {after}: {percent(facts.share(index))} of the {facts.unit}. "
        "With NHWC everywhere there is no such copy; other layers may take longer"
    )
    command = run_with("stages.layout.rules=[{data: NHWC}]") if "NHWC" in (before, after) else None
    return Advice("time", index, _sentence(what), facts.saving(index), command)


def float_layer(facts: Facts, index: int) -> Advice | None:
    """The layer computes in float32."""
    if any(tensor.dtype != "float32" for tensor in (*facts.inputs(index), *facts.outputs(index))):
        return None
    share = f"{facts.title(index)} computes in float32: {percent(facts.share(index))} of the {facts.unit}"
    if facts.can_calibrate and not facts.computed.layers[index].op.approximate:
        what = f"{share}. As int8 it can use integer kernels; random calibration data show time and size, not accuracy"
        return Advice("time", index, _sentence(what), None, run_with(CALIBRATE))
    if facts.report["quantization"]:
        what = f"{share}. Without keep_float it computes in integers, if there is a kernel for it"
        return Advice("time", index, _sentence(what), None, run_with("stages.quantize.keep_float=[]"))
    return Advice("time", index, _sentence(f"{share}. The model's file keeps it in float32"))


def last_activation(facts: Facts, index: int) -> Advice | None:
    """The last layer is a softmax, sigmoid or conversion, which a decision does not need."""
    layer = facts.computed.layers[index]
    if layer.kind not in _LAST or not set(layer.outputs) <= set(facts.computed.outputs):
        return None
    reason = (
        "An application can read the integers before it"
        if layer.kind == "dequantize"
        else "It keeps the order of the values: for the largest one, export the model without it"
    )
    what = f"{facts.title(index)} is the last layer: {percent(facts.share(index))} of the {facts.unit}. {reason}"
    return Advice("time", index, _sentence(what), facts.saving(index))


def excluded_kernel(facts: Facts, index: int) -> Advice | None:
    """A generic kernel or the core runs, because a faster kernel or the engine does not fit."""
    entry = facts.layer_plan(index)
    engine = _engine(facts)
    if not entry["kernel"].startswith("generic.") and (not engine or entry["kernel"] == engine):
        return None
    special = [other for other in entry["alternatives"] if not other["kernel"].startswith("generic.")]
    if engine:
        special = [other for other in special if other["kernel"] == engine]
    # A kernel for another type than the layer's is no alternative to it.
    reasons = [
        (other["kernel"], other["reason"])
        for other in special
        if other["reason"] and not any(f"for {dtype}" in other["reason"] for dtype in _TYPES)
    ]
    if not reasons or any(other["cost"] is not None for other in special):
        return None
    kernel, reason = reasons[0]
    what = (
        f"{facts.title(index)} runs {entry['kernel']} ({percent(facts.share(index))} of the {facts.unit}). "
        f"Against {kernel}: {reason}"
    )
    command = None if kernel == engine else f"doit kernels {kernel} target={facts.report['target']}"
    return Advice("time", index, _sentence(what), None, command)


def padded_channels(facts: Facts, index: int) -> Advice | None:
    """A tensor of the layer has a blocked layout that its channels do not fill."""
    worst: tuple[int, str] | None = None
    for tensor in (*facts.inputs(index), *facts.outputs(index)):
        if not tensor.layout or not tensor.layout.is_blocked:
            continue
        stored, needed = tensor.layout.elements(tensor.shape), prod(tensor.shape)
        if stored > needed:
            text = (
                f"{tensor.shape[-1]} channels in {tensor.layout}: {stored - needed:,} of {stored:,} values are padding"
            )
            worst = max(worst or (0, ""), (stored - needed, text))
    if worst is None:
        return None
    what = f"{facts.title(index)} has a tensor with {worst[1]}. A model with full blocks needs none"
    return Advice("time", index, _sentence(what))


def _faster(entry: Mapping[str, Any]) -> tuple[float, str] | None:
    """Return the fastest other kernel's saving and name; None if none is proved faster."""
    unpacks = any("scratch:wide_" in role for step in entry["steps"] for role in step["roles"])
    if entry["cost_source"] not in _PROVED or unpacks:  # the other costs are without unpacking weights
        return None
    others = [
        (entry["cost"] - other["cost"], other["kernel"])
        for other in entry["alternatives"]
        if other["cost"] is not None and other["cost_source"] in _PROVED and not other["flips"]
    ]
    best = max(others, default=(0, ""))
    return best if best[0] > 0 else None


def _unpacked(facts: Facts, index: int) -> dict[str, int]:
    """Return the number of weights by constant that a layer unpacks."""
    start = f"scratch:{index}:wide_"
    return {
        row["name"].removeprefix(start): row["bytes"] for row in facts.report["arena"] if row["name"].startswith(start)
    }


def _engine(facts: Facts) -> str:
    """Return the name of the engine that computes some layer, or ''."""
    return next((entry["kernel"] for entry in facts.layers.values() if entry["program"]), "")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


NETWORK_RULES = (engine_requantizes, slower_for_size, unpacked_each_inference)
"""Rules about all layers; each may give a line."""

LAYER_RULES = (rule_of_recipe, layout_transform, last_activation, float_layer, excluded_kernel, padded_channels)
"""Rules about an expensive layer; the first that holds gives its line."""
