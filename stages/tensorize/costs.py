"""What a kernel costs for a layer: counted on the simulator, or the kernel's own estimate.

A call is a kernel with its parameters, for a layer: `rvp.gemm_s8 mr=5` is its variant, and its signature has all that
decides the instruction count of the layer. The stage `count` counts the calls that may be the best
(stages.count.search); what was not counted costs no less than its estimate divided by how far the estimate may be off
(`Kernel.estimate_error`). So a call is only chosen uncounted where nothing can count it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from stages.backends.kernels.kernel import Kernel
    from stages.backends.targets.spec import Target
    from stages.ir.graph import LayerView, Tensor

_WINDOW = ("kernel", "stride", "padding", "dilation", "groups", "axis", "axes", "rounding")
_USUAL = {"padding": "0x0x0x0", "dilation": "1x1", "groups": "1", "rounding": "double"}  # not written

Call = tuple[str, str]
"""Signature of a layer, as its kernel sees it, and the variant that computes it."""


@dataclass(frozen=True)
class Price:
    """Instructions (or cycles) of one call; None where nobody knows them.

    source  counted, estimated (by the kernel), modelled (cycles of an accelerator, by its model), or '' for unknown
    """

    cost: float | None = None
    source: str = ""


@dataclass(frozen=True)
class CallRom:
    """Bytes of ROM that a counted call takes.

    own   the layer's packed constants and its function
    code  sections of kernels by name, which calls of the same network share
    """

    own: int
    code: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Costs:
    """The costs of a network's calls.

    counts       signature of a layer -> variant -> instructions, or cycles
    rom          ROM of the calls that were counted
    lower_bounds whether what was not counted costs the least that it may, so that it is chosen, and counted, if it can
                 be the best; otherwise it costs what its kernel estimates
    uncounted    calls that could not be counted: their estimates decide
    """

    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    lower_bounds: bool = False
    uncounted: frozenset[Call] = frozenset()
    rom: Mapping[Call, CallRom] = field(default_factory=dict)

    def price(self, kernel: Kernel, view: LayerView, params: Any, target: Target) -> Price:
        """What is known of a call of the kernel for this layer, for choosing."""
        view = kernel.seen(view)
        estimate = estimated(kernel, view, params, target)
        if not kernel.lowers:
            return Price() if estimate is None else Price(estimate, "modelled")
        call = (signature(view), variant(kernel, params))
        count = self.counts.get(call[0], {}).get(call[1])
        if count is not None:
            return Price(count, "counted")
        if not self.lower_bounds or call in self.uncounted:
            return Price() if estimate is None else Price(estimate, "estimated")
        return Price(0.0 if estimate is None else estimate / kernel.estimate_error, "estimated")

    def estimate(self, kernel: Kernel, price: float | None, source: str) -> float | None:
        """The estimate behind a price, which may be a lower bound: what people are shown."""
        if source != "estimated" or price is None or not self.lower_bounds:
            return price
        return price * kernel.estimate_error

    def estimates(self) -> Costs:
        """The kernels' estimates alone."""
        return Costs()


def variant(kernel: Kernel, params: Any) -> str:
    """A kernel with its parameters: `rvp.gemm_s8 mr=5`."""
    tuned = [f"{key}={value}" for key, value in sorted(params.model_dump(mode="json").items())]
    return " ".join([kernel.name, *tuned])


def estimated(kernel: Kernel, view: LayerView, params: Any, target: Target) -> float | None:
    """The kernel's own estimate; None when it states none, or no number."""
    try:
        cost = kernel.cost(view, params, target)
    except LookupError:
        return None
    return cost if isfinite(cost) else None


def signature(view: LayerView) -> str:
    """All that decides a kernel's instruction count, but not its data: operator, shapes, types, layouts, window.

    Multipliers and names are left out. Of zero points it says whether the weights have one, and by how much a QUANTIZE
    moves it that keeps the scale; of limits of the output whether they narrow the type's. Layers that differ in other
    numbers share one count.
    """
    op = view.op.model_dump(mode="json")
    window = [f"{key}={_compact(op[key])}" for key in _WINDOW if key in op and _compact(op[key]) != _USUAL.get(key)]
    if op["op"] == "move":
        window += [f"{key}={_compact(value)}" for key, value in sorted(op["params"].items()) if key != "value"]
    if view.has("weights"):
        shifted = "-zp" if op.get("weight_zero_point") else ""
        window.append(f"weights={view.constant('weights').dtype}{shifted}")
    if keeps_scale(op):
        window.append(f"offset={op['output_zero_point'] - op['input_zero_point']}")
    if clamped := clamps(op, view.outputs[0].dtype):
        window.append(f"clamp={clamped}")
    inputs = [_tensor(tensor) for tensor in view.inputs]
    outputs = [_tensor(tensor) for tensor in view.outputs]
    return " ".join([view.layer.kind, *inputs, "->", *outputs, *window])


def keeps_scale(op: Mapping[str, Any]) -> bool:
    """Whether a QUANTIZE only moves the zero point: some kernels change the top bits of its bytes then."""
    return op["op"] == "requantize" and (op["multiplier"], op["shift"]) == (1 << 30, 1)


def clamps(op: Mapping[str, Any], dtype: str) -> str:
    """Which ends of the output's type a fused activation cuts off: '', `low`, `high`, or `low+high`."""
    if "act_min" not in op or not np.issubdtype(np.dtype(dtype), np.integer):
        return ""
    limits = np.iinfo(dtype)
    return "+".join(
        name for name, cut in (("low", op["act_min"] > limits.min), ("high", op["act_max"] < limits.max)) if cut
    )


def _tensor(tensor: Tensor) -> str:
    order = "" if tensor.layout == "NHWC" else tensor.layout
    return f"{tensor.dtype}[{_compact(tensor.shape)}]{order}"


def _compact(value: Any) -> str:
    return "x".join(str(item) for item in value) if isinstance(value, list | tuple) else str(value).replace(" ", "")
