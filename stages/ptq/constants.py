"""Integer constants of a float network: weights with dynamic-range quantization."""

import numpy as np
import numpy.typing as npt

from stages.import_model.normalize.graph import one_graph
from stages.ir.model_info import ModelInfo, TensorInfo
from stages.support.lazy import schema


def narrow_constants(info: ModelInfo) -> list[TensorInfo]:
    """Return the integer constants with scales, which represent float32 numbers."""
    return [tensor for tensor in info.tensors if tensor.scale.size and tensor.data is not None]


def with_float_constants(data: bytes, info: ModelInfo) -> bytes:
    """Return the file with its `narrow_constants` as float32."""
    graph = one_graph(data, "the network", 0)
    for tensor in narrow_constants(info):
        replacement = graph.tensors[tensor.index]
        replacement.type, replacement.quantization = schema.TensorType.FLOAT32, None
        replacement.buffer = len(graph.buffers)
        graph.buffers.append(memoryview(real(tensor).tobytes()))
    return graph.pack()


def real(tensor: TensorInfo) -> npt.NDArray[np.float32]:
    """Return a quantized constant's real numbers: scale * (q - zero point), per channel."""
    shape = [1] * len(tensor.shape)
    if tensor.scale.size > 1:
        shape[tensor.axis] = tensor.scale.size
    scale, zero = tensor.scale.astype(np.float64).reshape(shape), tensor.zero_point.reshape(shape)
    return np.asarray((tensor.values().astype(np.float64) - zero) * scale).astype("<f4")
