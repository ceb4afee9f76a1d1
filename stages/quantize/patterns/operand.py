"""An operand that is a tensor of the graph or a constant: ADD, SUB, MUL, CONCATENATION."""

from __future__ import annotations

from tvm import relax

from stages.ir.graph import Quant, Tensor
from stages.quantize.operator import Operator, quant_of
from stages.quantize.writer import GraphWriter


def operand(operator: Operator, writer: GraphWriter, expr: relax.Expr, number: int) -> Tensor:
    """The graph tensor under `expr`, a parameter or dequantize(parameter); a constant becomes a constant tensor.

    Constants lie in the layout of the output, where they have four axes; `number` is part of the new tensor's name.
    """
    inner = operator.resolve(expr)
    if isinstance(inner, relax.Call) and inner.op.name == "relax.dequantize":
        inner = operator.resolve(inner.args[0])
    tensor = operator.tensor(inner)
    if tensor is not None:
        return tensor
    parameters, out = operator.parameters(expr), operator.outputs[0]
    values, quant = parameters.values, None
    if out.layout == "NCHW" and values.ndim < 4:
        values = values.reshape((1,) * (4 - values.ndim) + values.shape)
    if parameters.scale is not None and parameters.zero_point is not None:
        if len({*parameters.scale.flat}) != 1:
            raise operator.error("has a constant operand with more than one scale")
        quant = Quant(scale=(float(parameters.scale.flat[0]),), zero_point=(int(parameters.zero_point.flat[0]),))
    elif out.dtype != "float32":
        raise operator.error("has a constant operand without a scale")
    layout = out.layout if values.ndim == 4 else ""
    return writer.constant_tensor(f"{out.name}/operand{number}", values, quant, layout)


def operands(operator: Operator, writer: GraphWriter, count: int | None = None) -> list[Tensor]:
    """The first inputs of an operator that TVM's front end was not asked for, in the file's order, without absent ones.

    Constants become constant tensors, quantized as the file says.
    """
    made: list[Tensor] = []
    for number, (value, given) in enumerate(zip(operator.operands, filter(None, operator.file_inputs), strict=True)):
        if number == count:
            break
        if not isinstance(value, Tensor):
            layout = "NHWC" if value.ndim == 4 else ""
            value = writer.constant_tensor(
                f"{operator.outputs[0].name}/operand{number}", value, quant_of(given), layout
            )
        made.append(value)
    return made
