"""The data on which a call is counted: the same for all networks with the call.

Instructions may depend on data where a kernel branches, so a count belongs to one set of data. Weights, biases,
multipliers and tables are random with fixed seeds. Numbers of the operator that differ between networks get fixed
values of the same kind: a zero point of 0 stays 0, a limit of the type stays one, a shift keeps its direction.
Everything else of the layer is part of the count's key.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.packed import bits_of, limits
from stages.tensorize.costs import KernelCall, clamps, keeps_scale

_ZERO_POINT, _MULTIPLIER, _NARROW_MULTIPLIER, _SHIFT = 3, 1_500_000_000, 24_000, -6
_UNCHANGED = ("left_shift", "depth_multiplier")  # equal for all networks, or part of the shape


def canonical(call: KernelCall, target: Target) -> KernelCall:
    """Return the call on canonical data; the call itself if its kernel does not accept them."""
    view = _canonical_view(call.view)
    if call.kernel.why_not(view, target) or call.params not in call.kernel.candidates(view, target):
        return call
    return replace(call, view=view)


def description(view: LayerView) -> dict[str, Any]:
    """Return everything that a call's layer consists of, as JSON values, for the key."""
    return {
        "op": view.op.model_dump(mode="json"),
        "tensors": {
            role: [
                [tensor.dtype, list(tensor.shape), str(tensor.layout), tensor.constant]
                for tensor in (view.tensors[name] for name in getattr(view.layer, role))
            ]
            for role in ("inputs", "outputs", "state")
        },
        "constants": {role: _digest(view.constant(role)) for role in sorted(view.layer.constants)},
        "read": [_digest(view.arrays[t.name]) for t in view.inputs if t.constant and t.name in view.arrays],
    }


def _digest(array: Array) -> list[Any]:
    return [str(array.dtype), list(array.shape), hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()]


def _canonical_view(view: LayerView) -> LayerView:
    op = view.op.model_dump()
    dtype = view.outputs[0].dtype
    changes = {name: _number(name, value) for name, value in op.items() if not keeps_scale(op)} | _limits(op, dtype)
    layer = view.layer.model_copy(update={"op": view.op.model_copy(update=changes)})
    arrays = dict(view.arrays)
    for role, name in view.layer.constants.items():
        if role in _VALUES:
            arrays[name] = _VALUES[role](view.constant(role))
    return replace(view, layer=layer, arrays=arrays)


def _number(name: str, value: Any) -> Any:
    """Return the canonical value of an operator's field; unchanged if no rule applies."""
    rule = next((rule for end, rule in _RULES.items() if name.endswith(end)), None)
    if rule is None or name in _UNCHANGED:
        return value
    if isinstance(value, tuple):
        return tuple(rule(item) if isinstance(item, int) else item for item in value)
    return rule(value) if isinstance(value, int) else value


def _multiplier(value: int) -> int:
    """Return a multiplier with as many bits: products with a 15-bit multiplier fit 32 bits."""
    return 0 if not value else _NARROW_MULTIPLIER if 0 < value < 1 << 15 else _MULTIPLIER


def _shift(value: int) -> int:
    return 1 if value > 0 else _SHIFT if value < 0 else 0


_RULES: Mapping[str, Callable[[int], int]] = {
    "zero_point": lambda value: _ZERO_POINT if value else 0,
    "zero_points": lambda value: _ZERO_POINT if value else 0,
    "multiplier": _multiplier,
    "multipliers": _multiplier,
    "shift": _shift,
    "shifts": _shift,
}


def _limits(op: Mapping[str, Any], dtype: str) -> dict[str, int]:
    """Return the limits of a fused activation; each clamped end loses a quarter of the range."""
    cut = clamps(op, dtype)
    if not cut:
        return {}
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    quarter = (high - low + 1) // 4
    return {"act_min": low + (quarter if "low" in cut else 0), "act_max": high - (quarter if "high" in cut else 0)}


def _weights(array: Array) -> Array:
    """Return weights of as many bits as the network's.

    Signed 8-bit weights lack the least value, as converters leave it out.
    """
    bits = next(bits for bits in (1, 2, 4, 8, 16, 32) if bits_of(array) <= bits)
    low, high = limits(bits, signed=array.dtype.kind == "i")
    low += bits == 8 and low < 0
    values = np.random.default_rng(1).integers(low, high, array.shape, array.dtype, endpoint=True)
    values.reshape(-1)[:1] = high if high > 0 else low
    return values


def _bias(array: Array) -> Array:
    return np.random.default_rng(2).integers(-1000, 1000, array.shape, array.dtype, endpoint=True)


def _multipliers(array: Array) -> Array:
    return np.random.default_rng(3).integers(1 << 30, (1 << 31) - 1, array.shape, array.dtype, endpoint=True)


def _shifts(array: Array) -> Array:
    """Return right shifts, with the first in the direction of the network's most leftward one."""
    shifts = np.full(array.shape, _SHIFT, array.dtype)
    if shifts.size:
        shifts.reshape(-1)[0] = _shift(int(array.max()))
    return shifts


def _table(array: Array) -> Array:
    if array.dtype.kind not in "iu":
        return array
    ends = np.iinfo(array.dtype)
    return np.linspace(int(ends.min), int(ends.max), array.size).astype(array.dtype).reshape(array.shape)


_VALUES: Mapping[str, Callable[[Array], Array]] = {
    "weights": _weights,
    "bias": _bias,
    "multiplier": _multipliers,
    "shift": _shifts,
    "table": _table,
}
