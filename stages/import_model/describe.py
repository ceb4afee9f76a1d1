"""tensors.json: what the imported file says about its tensors and operators, for stages without a TFLite reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from stages.ir.models.tflite_reader import ModelInfo

# Enumerations of the schema that occur in options, by field.
_NAMES = {"fusedActivationFunction": "ActivationFunctionType", "padding": "Padding"}


def operator_options(data: bytes) -> list[dict[str, Any]]:
    """The options of each operator of a sound TFLite file, with the schema's field names; enumerations as names.

    Those of a custom operator are `custom_options`, its bytes in hexadecimal digits.
    """
    from ai_edge_litert import schema_py_generated as schema

    graph = schema.Model.GetRootAs(data, 0).Subgraphs(0)
    found = []
    for index in range(graph.OperatorsLength()):
        options = schema.OperatorT.InitFromObj(graph.Operators(index)).builtinOptions
        fields = vars(options) if options is not None else {}
        found.append({key: _plain(schema, key, value) for key, value in fields.items()})
        if graph.Operators(index).CustomOptionsLength():
            found[-1]["custom_options"] = bytes(graph.Operators(index).CustomOptionsAsNumpy()).hex()
    return found


def _plain(schema: Any, key: str, value: Any) -> Any:
    if key in _NAMES:
        names = {number: name for name, number in vars(getattr(schema, _NAMES[key])).items() if name[0] != "_"}
        return names.get(value, value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value


def describe(
    info: ModelInfo, options: list[dict[str, Any]], rules: Mapping[int, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """{tensors: [{index, name, shape, dtype, scales, zero_points, axis, constant}], operators: [{index, op, inputs,
    outputs, options}], inputs, outputs}.

    Tensors and operators are in the order of the file; `inputs` and `outputs` are tensor indices, -1 for an absent
    input. Operators that have some have `intermediates`, tensors too. Scales are the float32 values of the file,
    written so that reading them back gives the same float32; `axis` is null where there is one scale or none. Of a
    network that came as ONNX `arithmetic` is `onnxruntime`, and operators have a `rule`, where they need one: `sums`
    (float: of real numbers, integer: of integers), `rounded_bias` where real numbers became one of integers, `table`
    with the name of its `function`, `lowered` (stages.ir.arithmetic.pairs).
    """
    tensors = [
        {
            "index": tensor.index,
            "name": tensor.name,
            "shape": list(tensor.shape),
            "dtype": tensor.dtype,
            "scales": [float(scale) for scale in tensor.scale],
            "zero_points": [int(zero_point) for zero_point in tensor.zero_point],
            "axis": tensor.axis if tensor.scale.size > 1 else None,
            "constant": tensor.data is not None,
        }
        for tensor in info.tensors
    ]
    operators = [
        {
            "index": operator.index,
            "op": operator.op,
            "inputs": list(operator.inputs),
            "outputs": list(operator.outputs),
            "options": options[operator.index],
            **({"intermediates": list(operator.intermediates)} if operator.intermediates else {}),
        }
        for operator in info.operators
    ]
    described = {"tensors": tensors, "operators": operators, "inputs": [*info.inputs], "outputs": [*info.outputs]}
    if rules is None:
        return described
    for index, rule in rules.items():
        operators[index]["rule"] = dict(rule)
    return {**described, "arithmetic": "onnxruntime"}


def dump(description: dict[str, Any]) -> str:
    """The description as JSON with one line for each tensor and operator."""
    parts = []
    for key, value in description.items():
        if key in ("tensors", "operators"):
            lines = ",\n".join("  " + json.dumps(item) for item in value)
            parts.append(f' "{key}": [\n{lines}\n ]')
        else:
            parts.append(f' "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"
