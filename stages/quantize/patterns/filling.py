"""FILL as a repeated value, and ONE_HOT as a comparison and a selection."""

from math import prod

import numpy as np

from stages.ir.graph import Layout, Move, Tensor
from stages.ir.operators.casting import Cast
from stages.ir.operators.choices import Comparison, Select
from stages.quantize.operator import Operator
from stages.quantize.patterns.operand import operands
from stages.quantize.patterns.picking import picked
from stages.quantize.patterns.shapes import reshaped
from stages.quantize.writer import GraphWriter


def fill(operator: Operator, writer: GraphWriter) -> None:
    """FILL: a scalar for every element."""
    value, out = operator.tensor_at(1), operator.outputs[0]
    if out.elements == 1:
        writer.layer(Move(kind="reshape"), [value], out, alias=True)
        return
    tables = {axis: np.zeros(size, int) for axis, size in enumerate(out.shape) if size > 1}
    picked(operator, writer, reshaped(writer, value, (1,) * len(out.shape)), tables, "broadcast_to")


def one_hot(operator: Operator, writer: GraphWriter) -> None:
    """ONE_HOT: y[i, j, k] = on if indices[i, k] == j, else off.

    LiteRT compares int32, to which indices of 64 bits wrap.
    """
    indices, _, on, off = operands(operator, writer)
    shape, out, axis = indices.shape, operator.outputs[0], int(operator.options.get("axis", 0))
    axis = len(shape) if axis < 0 else axis
    rows, columns, depth = prod(shape[:axis]), prod(shape[axis:]), out.shape[axis]
    if indices.dtype == "int64":
        indices = writer.layer(Cast(), [indices], _like(writer, indices, shape, "int32"))
    places = writer.constant_tensor(f"{out.name}/places", np.arange(depth, dtype=np.int32).reshape(depth, 1), None)
    hot = _like(writer, indices, (rows, depth, columns), "bool")
    writer.layer(Comparison(op="equal"), [reshaped(writer, indices, (rows, 1, columns)), places], hot)
    selected = writer.intermediate(_shaped(out, hot.shape), "rows", out.quant)
    writer.layer(Select(), [hot, *(reshaped(writer, value, ()) for value in (on, off))], selected)
    writer.layer(Move(kind="reshape"), [selected], out, alias=True)


def _like(writer: GraphWriter, tensor: Tensor, shape: tuple[int, ...], dtype: str) -> Tensor:
    return writer.intermediate(_shaped(tensor, shape).model_copy(update={"dtype": dtype}), dtype, None)


def _shaped(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    return tensor.model_copy(update={"shape": shape, "layout": Layout("NHWC" if len(shape) == 4 else "")})


PATTERNS = {"FILL": fill, "ONE_HOT": one_hot}
