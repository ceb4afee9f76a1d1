"""FLOOR_DIV, FLOOR_MOD and NEG on raw integers, whatever their scales."""

from typing import Any, ClassVar, Literal

from stages.ir.layers import Array, LayerOp, LayerView
from stages.ir.operators.arithmetic import binary_shape
from stages.ir.operators.declaration import Legalization, Operator, Tensors
from stages.support.lazy import np, relax

_BY_ZERO = "LiteRT aborts on an integer divisor of 0; 8 and 16 bits: raw integers, scales are ignored"


class RawInteger(LayerOp):
    """floor(x_0 / x_1), the remainder x_0 - x_1 * floor(x_0 / x_1), or -x_0.

    The first two broadcast, and are 0 for x_1 = 0. Results beyond the type wrap.
    """

    op: Literal["floor_div", "floor_mod", "negative"]
    any_type: ClassVar[bool] = True

    @property
    def named(self) -> str:
        """Name in rules and reports."""
        return {"negative": "neg"}.get(self.op, self.op)

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the result in the output's type."""
        first, *others = (x.astype(np.int64) for x in inputs)
        dtype = view.outputs[0].dtype
        if not others:
            return (-first).astype(dtype)
        divisor = np.where(others[0] == 0, 1, others[0])
        result = {"floor_div": np.floor_divide, "floor_mod": np.mod}[self.op](first, divisor)
        return np.where(others[0] == 0, 0, result).astype(dtype)


def _division(name: str, body: str, *more: str) -> Operator:
    def divided(a: Any, b: Any) -> Any:
        return getattr(relax.op, body)(a, b)

    return Operator(
        name,
        binary_shape,
        Tensors((2, 2), types=("int8", "int16", "float32", "int32", *more), layout="following"),
        legalization=Legalization((RawInteger,), body=divided),
        limits=_BY_ZERO,
    )


OPERATORS = (_division("FLOOR_DIV", "floor_divide"), _division("FLOOR_MOD", "floor_mod", "int64"))
