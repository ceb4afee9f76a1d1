"""Sums, products, quotients and extremes of int32 without scales."""

from typing import ClassVar, Literal

from stages.ir.layers import Array, LayerOp, LayerView
from stages.support.lazy import np


class WideInteger(LayerOp):
    """Sum, difference, product, quotient (to 0), maximum or minimum of int32, without scales.

    The inputs broadcast. Results wrap at 32 bits; x / 0 is 0. `value` is the second operand if it is a single constant.
    """

    op: Literal["int32_add", "int32_sub", "int32_mul", "int32_div", "int32_maximum", "int32_minimum"]
    value: int | None = None
    any_type: ClassVar[bool] = True

    @property
    def named(self) -> str:
        """Name in rules and reports."""
        return self.op.removeprefix("int32_")

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the result in int32."""
        a, b = (x.astype(np.int64) for x in (*inputs, *([] if self.value is None else [np.array(self.value)])))
        if self.op == "int32_div":
            divisor = np.where(b == 0, 1, b)
            quotient = np.abs(a) // np.abs(divisor) * np.sign(a) * np.sign(divisor)
            return np.where(b == 0, 0, quotient).astype(np.int32)
        functions = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
        functions |= {"maximum": np.maximum, "minimum": np.minimum}
        return functions[self.named](a, b).astype(np.int32)


class IntegerSteps(LayerOp):
    """Consecutive WideInteger operators with constants: (name, constant) `steps`.

    Results keep the output type's lowest bits.
    """

    op: Literal["int32_steps"] = "int32_steps"
    alias: ClassVar[str] = "steps"
    steps: tuple[tuple[str, int], ...]
    any_type: ClassVar[bool] = True

    def compute(self, view: LayerView, *inputs: Array) -> Array:
        """Return the result of the last step."""
        x = inputs[0].astype(np.int32)
        for name, constant in self.steps:
            x = WideInteger(op=f"int32_{name}", value=constant).compute(view, x)  # type: ignore[arg-type]
        return x.astype(view.outputs[0].dtype)
