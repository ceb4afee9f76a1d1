"""Widen float16 and bfloat16 networks to float32, which represents all of their numbers.

Cores without half-precision arithmetic can run them. ONNX Runtime has no float16 kernels on most CPUs: it casts to
float32 and back around each operator. The float32 network rounds less, and verify compares with it.
"""

from typing import Any

import onnx
from onnx import TensorProto, numpy_helper

from stages.import_model.onnx.tensor_values import tensor_values
from stages.ir.models.onnx_external import messages_in

_NARROW = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "stash_type", "softmax_precision")


def widen(model: onnx.ModelProto, name: str) -> bool:
    """Change each float16 and bfloat16 constant, type and cast to float32.

    Returns whether anything was widened. Raises StageError, with the file's `name`, for a constant with a wrong byte
    count.
    """
    changed = False
    waiting: list[Any] = [model]
    while waiting:
        part = waiting.pop()
        if isinstance(part, TensorProto):
            if part.data_type in _NARROW:
                part.CopyFrom(numpy_helper.from_array(tensor_values(part, name).astype("float32"), part.name))
                changed = True
            continue
        if isinstance(part, onnx.TypeProto.Tensor | onnx.TypeProto.SparseTensor) and part.elem_type in _NARROW:
            part.elem_type = TensorProto.FLOAT
            changed = True
        if isinstance(part, onnx.AttributeProto) and part.name in _TYPE_ATTRIBUTES and part.i in _NARROW:
            part.i = TensorProto.FLOAT
            changed = True
        waiting += messages_in(part)
    return changed
