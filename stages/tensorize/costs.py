"""The cost of a kernel for a layer: counted on the simulator, or estimated by the kernel.

A call is a kernel with parameters for a layer. Its variant is `rvp.gemm_s8 mr=5`. Its signature has everything that
determines the instruction count of the layer. The stage count measures promising calls (stages.count.search). The
lower bound of any other call is its estimate divided by `Kernel.estimate_error`. So a chosen call is always counted,
unless it cannot be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from stages.backends.kernels.kernel import Kernel, KernelParams
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView, Tensor

_WINDOW = ("kernel", "stride", "padding", "dilation", "groups", "axis", "axes", "rounding")
_DEFAULTS = {"padding": "0x0x0x0", "dilation": "1x1", "groups": "1", "rounding": "double"}  # left out

Call = tuple[str, str]
"""Signature of a layer, as its kernel sees it, and the variant that computes it."""


@dataclass(frozen=True)
class KernelCall:
    """A kernel with parameters for the layer of `view`, as the kernel sees it.

    `estimate` is the kernel's cost estimate.
    """

    view: LayerView
    kernel: Kernel
    params: KernelParams
    signature: str
    variant: str
    estimate: float | None

    @classmethod
    def of(cls, kernel: Kernel, view: LayerView, params: KernelParams, target: Target) -> KernelCall:
        """Return the call for a layer of a graph."""
        kernel_view = kernel.seen(view)
        estimate = estimated(kernel, kernel_view, params, target)
        return cls(kernel_view, kernel, params, signature(kernel_view), variant(kernel, params), estimate)

    @property
    def key(self) -> Call:
        """Signature and variant, the key of the call's count."""
        return self.signature, self.variant


@dataclass(frozen=True)
class Price:
    """Instructions (or cycles) of one call; None if unknown.

    source  counted, estimated (by the kernel), modelled (cycles of an accelerator), or '' for unknown
    """

    cost: float | None = None
    source: str = ""


@dataclass(frozen=True)
class CallRom:
    """ROM bytes of a counted call.

    own   packed constants and function of the layer
    code  sections of kernels by name, shared by the calls of a network
    """

    own: int
    code: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Costs:
    """The costs of a network's calls.

    counts        signature -> variant -> instructions or cycles
    rom           ROM of the counted calls
    lower_bounds  price uncounted calls at their lower bound, so that they are chosen, and counted, if they can be
                  best; otherwise at the kernel's estimate
    uncounted     calls that cannot be counted: their estimates decide
    """

    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    lower_bounds: bool = False
    uncounted: frozenset[Call] = frozenset()
    rom: Mapping[Call, CallRom] = field(default_factory=dict)

    def price(self, kernel: Kernel, view: LayerView, params: Any, target: Target) -> Price:
        """Return the price of a kernel with `params` for a layer."""
        return self.price_of(KernelCall.of(kernel, view, params, target))

    def price_of(self, call: KernelCall) -> Price:
        """Return the price of a call."""
        estimate = call.estimate
        if not call.kernel.lowers:
            return Price() if estimate is None else Price(estimate, "modelled")
        count = self.counts.get(call.signature, {}).get(call.variant)
        if count is not None:
            return Price(count, "counted")
        if not self.lower_bounds or call.key in self.uncounted:
            return Price() if estimate is None else Price(estimate, "estimated")
        return Price(0.0 if estimate is None else estimate / call.kernel.estimate_error, "estimated")

    def estimate(self, kernel: Kernel, price: float | None, source: str) -> float | None:
        """Return the kernel's estimate for a price that may be a lower bound, for reports."""
        if source != "estimated" or price is None or not self.lower_bounds:
            return price
        return price * kernel.estimate_error

    def estimates(self) -> Costs:
        """Return costs that consist of the kernels' estimates."""
        return Costs()


def variant(kernel: Kernel, params: Any) -> str:
    """Return a kernel with its parameters: `rvp.gemm_s8 mr=5`."""
    tuned = [f"{key}={value}" for key, value in sorted(params.model_dump(mode="json").items())]
    return " ".join([kernel.name, *tuned])


def estimated(kernel: Kernel, view: LayerView, params: Any, target: Target) -> float | None:
    """Return the kernel's estimate; None if it has none, or one that is not finite."""
    try:
        cost = kernel.cost(view, params, target)
    except LookupError:
        return None
    return cost if isfinite(cost) else None


def signature(view: LayerView) -> str:
    """Return a layer's properties, other than data, that determine a kernel's count.

    Names, multipliers and most numbers are left out, so layers that differ only in them share a count. Included are
    whether weights have a zero point, the offset of a QUANTIZE that keeps the scale, and whether the output limits
    clamp.
    """
    op = view.op.model_dump(mode="json")
    window = [f"{key}={_compact(op[key])}" for key in _WINDOW if key in op and _compact(op[key]) != _DEFAULTS.get(key)]
    if op["op"] == "move":
        window += [f"{key}={_compact(value)}" for key, value in sorted(op["params"].items()) if key != "value"]
    if op["op"] == "slide":
        window += [*map(_tensor, view.states), f"from={op['source']}", f"to={op['target']}"]
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
    """Return whether a QUANTIZE changes only the zero point."""
    return op["op"] == "requantize" and (op["multiplier"], op["shift"]) == (1 << 30, 1)


def clamps(op: Mapping[str, Any], dtype: str) -> str:
    """Return where a fused activation clamps: '', `low`, `high` or `low+high`."""
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
