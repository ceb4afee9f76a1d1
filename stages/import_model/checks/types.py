"""Check types and sizes of the tensors of one operator."""

from stages.ir.model_info import TensorInfo
from stages.ir.naming import named
from stages.ir.operators.declaration import INTEGERS, NARROW
from stages.ir.operators.operation import Operation, Refused, listed
from stages.ir.operators.table import OPERATORS

_LARGEST_TENSOR = 2**31  # bytes: offsets in emitted loops are signed 32-bit integers
_LARGEST_RANK = 8
_BIAS = {"float32": ("float32",), "int8": ("int32",), "uint8": ("int32",), "int16": ("int64",)}


def check_sizes(operation: Operation) -> None:
    """Raise Refused for a dynamic shape, too many axes, or a tensor of 2 GB or more."""
    indices = {at for at in OPERATORS[operation.op].tensors.indices if at < len(operation.inputs)}
    for at, tensor in enumerate((*operation.inputs, *operation.outputs)):
        if tensor is None:
            continue
        if tensor.sparse:
            raise Refused(
                f"reads {named(tensor)}, a sparse tensor: not supported", "Export the model without sparsity."
            )
        _check_state(tensor, at in OPERATORS[operation.op].tensors.state and at < len(operation.inputs))
        if len(tensor.shape) > _LARGEST_RANK:
            raise Refused(f"has {len(tensor.shape)} axes in {named(tensor)}; at most {_LARGEST_RANK} are supported")
        if tensor.data is None and any(size <= 0 for size in tensor.shape):
            hint = "Export the model with fixed shapes."
            raise Refused(f"has the dynamic shape {listed(tensor.shape)} in {named(tensor)}", hint)
        # A list of axes, or a shape, may be empty.
        if any(size < 0 or (size == 0 and at not in indices) for size in tensor.shape):
            raise Refused(f"has the shape {listed(tensor.shape)} in {named(tensor)}, a constant without elements")
        check_bytes(tensor)


def check_bytes(tensor: TensorInfo) -> None:
    """Raise Refused for a tensor of 2 GB or more."""
    if tensor.bytes >= _LARGEST_TENSOR:
        size = f"{tensor.dtype}{listed(tensor.shape)}"
        raise Refused(f"does not fit any target: {named(tensor)} is {size}, 2 GB or more")


def _check_state(tensor: TensorInfo, kept: bool) -> None:
    if tensor.variable and not kept:
        raise Refused(f"reads the variable tensor {named(tensor)} at an input that is not a state")
    if kept and not tensor.variable:
        raise Refused(f"has the state {named(tensor)}, which is not a variable tensor")
    if kept and tensor.data is not None:
        raise Refused(f"has the state {named(tensor)}, which is a constant")


def check_types(operation: Operation) -> None:
    """Raise Refused for an unsupported type, or types that cannot be combined."""
    declared = OPERATORS[operation.op]
    excluded = {*declared.tensors.indices, *declared.weights.own, *declared.tensors.state, *declared.tensors.apart}
    data = [tensor for at, tensor in enumerate(operation.inputs) if at not in excluded and tensor is not None]
    checked = [(tensor, declared.tensors.types) for tensor in data]
    checked += [(tensor, declared.tensors.results or declared.tensors.types) for tensor in operation.outputs]
    for tensor, types in checked:
        if tensor.dtype not in types:
            supported = ", ".join(types)
            hint = "Export with int8: the operator has no int16 form." if tensor.dtype == "int16" else ""
            raise Refused(f"has the type {tensor.dtype} in {named(tensor)}; supported: {supported}", hint)
    conversion = _CONVERSIONS.get(operation.op)
    if conversion is not None:
        conversion(operation)
    elif data and not declared.tensors.mixed:
        for tensor in (*data[1:], *(() if declared.tensors.results else operation.outputs)):
            if tensor.dtype != data[0].dtype:
                raise Refused(f"mixes {data[0].dtype} in {named(data[0])} and {tensor.dtype} in {named(tensor)}")
    if declared.weights.channels is not None:
        data_at, weights_at, bias_at = declared.weights.operands
        bias = operation.inputs[bias_at] if len(operation.inputs) > bias_at else None
        _weights(operation, operation.input(data_at), operation.input(weights_at), bias)


def _dequantize(operation: Operation) -> None:
    source, result = operation.input(0), operation.outputs[0]
    if result.dtype != "float32" or source.dtype == "float32":
        raise Refused(f"cannot convert {source.dtype} in {named(source)} to {result.dtype} in {named(result)}")
    if source.dtype in ("float16", *NARROW) and source.data is None:
        kind = source.dtype
        raise Refused(f"reads {kind} in {named(source)}, which is computed; only constants may be {kind}")


def _quantize(operation: Operation) -> None:
    if operation.outputs[0].dtype == "float32":
        raise Refused(f"writes float32 to {named(operation.outputs[0])}; its result must be integers")


_CONVERSIONS = {"DEQUANTIZE": _dequantize, "QUANTIZE": _quantize}


def _weights(operation: Operation, data: TensorInfo, weights: TensorInfo, bias: TensorInfo | None) -> None:
    narrow = OPERATORS[operation.op].weights.narrow
    if weights.dtype in NARROW and weights.dtype not in narrow.get(data.dtype, ()):
        supported = ", ".join(
            f"{narrow_dtype} with {kind} data" for kind, types in narrow.items() for narrow_dtype in types
        )
        raise Refused(
            f"has {weights.dtype} weights in {named(weights)} with {data.dtype} data; LiteRT supports {supported}"
        )
    unpacked_dtype = weights.dtype if weights.dtype not in NARROW else "int8"
    constant = OPERATORS[operation.op].weights.macs is not None and weights.data is not None
    hybrid = constant and data.dtype == "float32" and unpacked_dtype == "int8" and weights.scale.size > 0
    if not hybrid and unpacked_dtype != {"int16": "int8"}.get(data.dtype, data.dtype):
        hint = "Export with full integer quantization, or all in float32."
        raise Refused(f"has {data.dtype} data and {weights.dtype} weights in {named(weights)}", hint)
    if data.dtype in INTEGERS and weights.data is None:
        raise Refused(f"has computed weights {named(weights)}; they must be constant")
    if bias is None:
        return
    if bias.dtype not in _BIAS[data.dtype]:
        raise Refused(
            f"has a bias of {bias.dtype} in {named(bias)}; with {data.dtype} data it is {_BIAS[data.dtype][0]}"
        )
    if data.dtype in INTEGERS and bias.data is None:
        raise Refused(f"has a computed bias {named(bias)}; it must be constant")
