"""ptq.json: settings, and the distance of the quantized network from the float one.

    {float: {sha256, bytes}, quantized: {sha256, bytes}, samples, evaluated, accuracy: {samples, agree, float,
     quantized}, loss, snr, ranges, layers: [{index, op, name, dtype, weights, scale, low, high, seen: [low, high], snr,
     drop, clipped}], warnings}

- `loss`: percentage points; `snr`: of the outputs and of each layer, in dB
- `drop`: dB that a layer loses
- `clipped`: share of the float values outside of the layer's type
- `accuracy` has `float` and `quantized` if there are labels
- a layer that stays float has null for scale, low, high and clipped
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ptq.compare import MOST_DB, Comparison, bounds
from stages.ptq.observe import Range
from stages.ptq.precision import kind
from stages.ptq.quantizer import Quantized

MODEL, SUMMARY = "model.tflite", "ptq.json"


def file_entry(data: bytes) -> dict[str, Any]:
    """Return digest and size of a file."""
    return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


def layer_entries(
    info: ModelInfo, quantized: Quantized, seen: Mapping[int, Range], comparison: Comparison
) -> list[dict[str, Any]]:
    """Return an entry for each operator of the float file with a float32 output."""
    return [
        _entry(info, operator, quantized, seen[operator.outputs[0]], comparison)
        for operator in info.operators
        if operator.outputs[0] in seen and operator.outputs[0] in comparison.layers
    ]


def _entry(
    info: ModelInfo, operator: OperatorInfo, quantized: Quantized, seen: Range, comparison: Comparison
) -> dict[str, Any]:
    index = operator.outputs[0]
    tensor, noise = quantized.tensor(index), comparison.layers[index]
    assert tensor is not None
    inputs = [comparison.layers[index_in].snr for index_in in operator.inputs if index_in in comparison.layers]
    low, high = bounds(tensor) if tensor.scale.size else (None, None)
    return {
        "index": operator.index,
        "op": kind(operator),
        "name": info.tensors[index].name,
        "dtype": tensor.dtype,
        "weights": _weights(operator, quantized),
        "scale": float(tensor.scale[0]) if tensor.scale.size else None,
        "low": low,
        "high": high,
        "seen": [seen.low, seen.high],
        "snr": round(noise.snr, 2),
        "drop": round(max(0.0, min(inputs, default=MOST_DB) - noise.snr), 2),
        "clipped": round(noise.clipped / noise.elements, 8) if tensor.scale.size and noise.elements else None,
    }


def _weights(operator: OperatorInfo, quantized: Quantized) -> str | None:
    """Return the type of an operator's weights, else None."""
    if operator.op not in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"):
        return None
    tensor = quantized.tensor(operator.inputs[1])
    return tensor.dtype if tensor is not None and tensor.data is not None else None


def worst(layers: Sequence[Mapping[str, Any]], count: int = 3) -> list[str]:
    """Return the layers that lose most: `conv2d 'conv_1' 4.2 dB`."""
    by_drop = sorted((layer for layer in layers if layer["drop"] > 0), key=lambda layer: -layer["drop"])[:count]
    return [f"{layer['op']} '{layer['name']}' {layer['drop']:.1f} dB" for layer in by_drop]
