"""The options of a recipe's `model: {op: NAME, …}`, from the model that checks them."""

from collections.abc import Container, Mapping
from functools import cache
from typing import Any

from stages.ir.models.spec import COMMON, OpModel
from stages.ir.operators.declaration import Operator


def layer_options(operator: Operator) -> dict[str, str]:
    """Return each option with its values and its default, or that it is required.

    Example: `"stride": "[integer, integer], by default [1, 1]"`. {} for an operator without a layer.
    """
    if operator.model is None:
        return {}
    schema = _schema()
    types = {"dtype": operator.tensors.types, "weights": ("int8", *operator.weights.narrow.get("int8", ()))}
    required = {"shape", *operator.model.required}
    options = {}
    for name, property_schema in schema["properties"].items():
        if name == "op" or name not in operator.model.options | COMMON:
            continue
        options[name] = _values(property_schema, schema, types.get(name)) + (
            ", required" if name in required else _default(property_schema)
        )
    return options


@cache
def _schema() -> dict[str, Any]:
    return OpModel.model_json_schema()


def _default(property_schema: Mapping[str, Any]) -> str:
    default = property_schema.get("default")
    if default is None:
        return ""
    return f", by default {str(default).lower() if isinstance(default, bool) else default}"


def _values(schema_part: Mapping[str, Any], schema: Mapping[str, Any], among: Container[str] | None = None) -> str:
    """Return the values of an option; names only if they are in `among`."""
    if "$ref" in schema_part:
        return _values(schema["$defs"][schema_part["$ref"].rpartition("/")[2]], schema)
    if "anyOf" in schema_part:
        return " or ".join(
            _values(alternative, schema, among)
            for alternative in schema_part["anyOf"]
            if alternative.get("type") != "null"
        )
    if "enum" in schema_part:
        return " | ".join(str(name) for name in schema_part["enum"] if among is None or name in among)
    if "properties" in schema_part:
        return f"{{{', '.join(schema_part['properties'])}}}"
    if schema_part["type"] == "array" and "prefixItems" in schema_part:
        return f"[{', '.join(_values(alternative, schema) for alternative in schema_part['prefixItems'])}]"
    if schema_part["type"] == "array":
        return f"[{_values(schema_part['items'], schema)}, …]"
    return {"boolean": "true | false"}.get(schema_part["type"], str(schema_part["type"]))
