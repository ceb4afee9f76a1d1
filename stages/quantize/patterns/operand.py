"""Operands that are graph tensors or constants."""

from tvm import relax

from stages.ir.graph import Quant, Tensor
from stages.quantize.operator import Operator, quant_of
from stages.quantize.writer import GraphWriter


def operand(operator: Operator, writer: GraphWriter, expr: relax.Expr, number: int) -> Tensor:
    """Graph tensor of `expr`, a parameter or dequantize(parameter), or a new constant tensor.

    Constants of four axes have the output's layout; `number` is part of the new tensor's name.
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
    elif out.dtype in ("int8", "uint8", "int16"):
        raise operator.error("has a constant operand without a scale")
    layout = out.layout if values.ndim == 4 else ""
    return writer.constant_tensor(f"{out.name}/operand{number}", values, quant, layout)


def operands(operator: Operator, writer: GraphWriter, count: int | None = None) -> list[Tensor]:
    """The first `count` inputs of an operator that TVM does not import, in the file's order.

    Absent ones are left out. Constants become constant tensors, quantized as in the file.
    """
    tensors: list[Tensor] = []
    for number, (value, entry) in enumerate(zip(operator.operands, filter(None, operator.file_inputs), strict=True)):
        if number == count:
            break
        if not isinstance(value, Tensor):
            layout = "NHWC" if value.ndim == 4 else ""
            value = writer.constant_tensor(
                f"{operator.outputs[0].name}/operand{number}", value, quant_of(entry), layout
            )
        tensors.append(value)
    return tensors
