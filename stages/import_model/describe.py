"""tensors.json: tensors and operators of the imported file."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from stages.ir.model_info import ModelInfo

_NO_RULES: Mapping[int, Mapping[str, Any]] = {}
# Enumerations of the schema that occur in options, by field.
_NAMES = {"fusedActivationFunction": "ActivationFunctionType", "padding": "Padding"}


def operator_options(data: bytes) -> list[dict[str, Any]]:
    """Return the options of each operator, by the schema's field names; enumerations as names.

    A custom operator has `custom_options`: its bytes in hexadecimal digits. `data` is a checked TFLite file.
    """
    from ai_edge_litert import schema_py_generated as schema

    graph = schema.Model.GetRootAs(data, 0).Subgraphs(0)
    options_list = []
    for index in range(graph.OperatorsLength()):
        options = schema.OperatorT.InitFromObj(graph.Operators(index)).builtinOptions
        fields = vars(options) if options is not None else {}
        options_list.append({key: _json_value(schema, key, value) for key, value in fields.items()})
        if graph.Operators(index).CustomOptionsLength():
            options_list[-1]["custom_options"] = bytes(graph.Operators(index).CustomOptionsAsNumpy()).hex()
    return options_list


def _json_value(schema: Any, key: str, value: Any) -> Any:
    if key in _NAMES:
        names = {number: name for name, number in vars(getattr(schema, _NAMES[key])).items() if name[0] != "_"}
        return names.get(value, value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value


def describe(
    info: ModelInfo, options: list[dict[str, Any]], rules: Mapping[int, Mapping[str, Any]] = _NO_RULES
) -> dict[str, Any]:
    """Return the contents of tensors.json.

        {tensors: [{index, name, shape, dtype, scales, zero_points, axis, constant}],
         operators: [{index, op, inputs, outputs, options, intermediates, rule}], inputs, outputs}

    - Tensors and operators are in file order. `inputs` and `outputs` are tensor indices; -1 is an absent input.
    - `scales` are float32 values of the file, written so that they read back exactly. `axis` is null for one scale or
      none.
    - `intermediates` is present if the operator has such tensors.
    - `rule` is present for operators from ONNX, whose arithmetic is ONNX Runtime's. Its keys: `sums` (`float`: in real
      numbers, `integer`: in integers), `rounded_bias` (a float bias was rounded to integers), `table` with the name of
      its `function`, `lowered` (stages.ir.arithmetic.pairs).
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
            **({"rule": dict(rules[operator.index])} if operator.index in rules else {}),
        }
        for operator in info.operators
    ]
    return {"tensors": tensors, "operators": operators, "inputs": [*info.inputs], "outputs": [*info.outputs]}


def dump(description: dict[str, Any]) -> str:
    """Return the description as JSON, one line per tensor and operator."""
    parts = []
    for key, value in description.items():
        if key in ("tensors", "operators"):
            lines = ",\n".join("  " + json.dumps(item) for item in value)
            parts.append(f' "{key}": [\n{lines}\n ]')
        else:
            parts.append(f' "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"
