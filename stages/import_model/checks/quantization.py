"""Check scales and zero points of the tensors of one operator."""

from stages.ir.model_info import TensorInfo
from stages.ir.naming import named
from stages.ir.operators.declaration import EIGHT_BITS, INTEGERS, NARROW
from stages.ir.operators.operation import Operation, Refused
from stages.ir.operators.table import OPERATORS
from stages.ir.packed import limits

# Fixed-point multipliers have 31 bits and are shifted by at most 30.
_LARGEST_MULTIPLIER = 2.0**30
_ANEW = "Quantize the model again."


def check_quantization(operation: Operation) -> None:
    """Raise Refused for missing scales, too many scales, or invalid zero points."""
    declared = OPERATORS[operation.op]
    excluded = {*declared.tensors.indices, *declared.tensors.apart}
    data = [tensor for at, tensor in enumerate(operation.inputs) if at not in excluded and tensor is not None]
    for tensor in (*data, *operation.outputs):
        _zero_points(tensor)
        if tensor.dtype in (*INTEGERS, *NARROW) and declared.quantization.scales == "one":
            _scale(tensor)
            _symmetric(operation, tensor)
        if operation.op in _CONVERSIONS:
            _CONVERSIONS[operation.op](tensor)
    if declared.weights.channels is not None:
        _weighted(operation, declared.weights.channels)
    elif declared.quantization.scales != "any":
        for tensor in (*data, *operation.outputs):
            _one_scale(operation, tensor)
    if declared.quantization.alike:
        _alike(operation.input(0), operation.outputs[0])
    if operation.op == "CONCATENATION":
        _all_or_none([tensor for tensor in (*data, *operation.outputs) if tensor.dtype in INTEGERS])


def _of_dequantize(tensor: TensorInfo) -> None:
    if not tensor.dtype.startswith("float"):
        _scale(tensor)


def _of_quantize(tensor: TensorInfo) -> None:
    _of_dequantize(tensor)
    if tensor.dtype == "int32" and tensor.zero_point.any():
        raise Refused(f"has the zero point {int(tensor.zero_point[0])} in {named(tensor)}; for int32 it must be 0")


_CONVERSIONS = {"DEQUANTIZE": _of_dequantize, "QUANTIZE": _of_quantize}
# Operators with results of another type than their inputs: int16 may have a zero point.
_MIXING = frozenset({"SOFTMAX", "QUANTIZE"})


def _scale(tensor: TensorInfo) -> None:
    if _is_scaled(tensor):
        return
    problem = "a scale of 0" if tensor.scale.size else "no quantization"
    raise Refused(
        f"cannot be computed: tensor {tensor.index} {named(tensor)} is {tensor.dtype} but has {problem}", _ANEW
    )


def _symmetric(operation: Operation, tensor: TensorInfo) -> None:
    """Raise Refused for an int16 zero point, except where SOFTMAX and QUANTIZE mix types."""
    all_int16 = {other.dtype for other in (operation.input(0), *operation.outputs)} == {"int16"}
    if tensor.dtype == "int16" and tensor.zero_point.any() and (all_int16 or operation.op not in _MIXING):
        raise Refused(
            f"has the zero point {int(tensor.zero_point[0])} in {named(tensor)}; for int16 it must be 0", _ANEW
        )


def _zero_points(tensor: TensorInfo) -> None:
    if tensor.dtype.startswith("float"):
        return
    dtype = tensor.dtype if tensor.dtype in ("int8", "uint8", "int16", *NARROW) else "int32"
    low, high = limits(int(dtype.lstrip("uint")), signed=dtype.startswith("int"))
    for value in (int(value) for value in tensor.zero_point):
        if not low <= value <= high:
            raise Refused(f"has the zero point {value} in {named(tensor)}, outside of {dtype}", _ANEW)


def _one_scale(operation: Operation, tensor: TensorInfo) -> None:
    if tensor.scale.size < 2 or tensor.dtype not in INTEGERS:
        return
    if operation.op == "DEQUANTIZE" and tensor.data is not None:
        return
    raise Refused(f"has {tensor.scale.size} scales in {named(tensor)}; it takes one per tensor", _ANEW)


def _alike(source: TensorInfo, result: TensorInfo) -> None:
    if source.dtype not in INTEGERS or (_is_scaled(source), _is_scaled(result)) == (False, False):
        return
    for tensor in (source, result):
        if not _is_scaled(tensor):
            _scale(tensor)
    if (source.scale[0], source.zero_point[0]) != (result.scale[0], result.zero_point[0]):
        raise Refused(
            f"needs equal scales for input and output, but {_quantized(source)} and {_quantized(result)}", _ANEW
        )


def _all_or_none(tensors: list[TensorInfo]) -> None:
    if any(_is_scaled(tensor) for tensor in tensors):
        for tensor in tensors:
            _scale(tensor)


def _is_scaled(tensor: TensorInfo) -> bool:
    return bool(tensor.scale.size and tensor.scale.all())


def _quantized(tensor: TensorInfo) -> str:
    return f"{named(tensor)} has scale {float(tensor.scale[0]):g} and zero point {int(tensor.zero_point[0])}"


def _weighted(operation: Operation, axis: int) -> None:
    data_at, weights_at, bias_at = OPERATORS[operation.op].weights.operands
    data, weights, result = operation.input(data_at), operation.input(weights_at), operation.outputs[0]
    for tensor in (data, result):
        _one_scale(operation, tensor)
    if weights.dtype not in (*EIGHT_BITS, *NARROW):
        return
    if weights.scale.size > 1 and weights.axis != axis:
        raise Refused(f"has weights {named(weights)} with scales along axis {weights.axis}; it takes them along {axis}")
    if weights.scale.size > 1 and weights.zero_point.any():
        raise Refused(f"has a zero point per channel in {named(weights)}; it must be 0")
    if data.dtype not in INTEGERS:
        return
    if data.dtype == "int16" and weights.zero_point.any():
        raise Refused(
            f"has the zero point {int(weights.zero_point[0])} in {named(weights)}; with int16 data it must be 0"
        )
    bias = operation.inputs[bias_at] if len(operation.inputs) > bias_at else None
    if bias is not None and not _is_scaled(bias):
        raise Refused(f"has a bias {named(bias)} without a scale", _ANEW)
    if bias is not None and bias.zero_point.any():
        raise Refused(
            f"has the zero point {int(bias.zero_point[bias.zero_point != 0][0])} in {named(bias)}; it must be 0"
        )
    largest = float(weights.scale.max()) * float(data.scale[0]) / float(result.scale[0])
    if largest >= _LARGEST_MULTIPLIER:
        scales = f"{float(data.scale[0]):g} x {float(weights.scale.max()):g} / {float(result.scale[0]):g}"
        raise Refused(f"has scales that exceed 32 bits: {scales} (input x weights / output) is {largest:g}", _ANEW)
