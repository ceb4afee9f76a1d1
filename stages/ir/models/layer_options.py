"""What a recipe's `model: {op: NAME, …}` may have beside the name, from the model that checks it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import cache
from typing import Any

from stages.ir.models.spec import COMMON, OpModel
from stages.ir.operators.declaration import Operator


def layer_options(operator: Operator) -> dict[str, str]:
    """Each option with its values, and whether it is required or what it is by default; {} of one that has no layer.

    Such as `"stride": "[integer, integer], by default [1, 1]"`.
    """
    if operator.model is None:
        return {}
    schema = _schema()
    types = {"dtype": operator.types, "weights": ("int8", *operator.narrow.get("int8", ()))}
    required = {"shape", *operator.model.required}
    found = {}
    for name, one in schema["properties"].items():
        if name == "op" or name not in operator.model.options | COMMON:
            continue
        found[name] = _values(one, schema, types.get(name)) + (", required" if name in required else _default(one))
    return found


@cache
def _schema() -> dict[str, Any]:
    return OpModel.model_json_schema()


def _default(one: Mapping[str, Any]) -> str:
    default = one.get("default")
    if default is None:
        return ""
    return f", by default {str(default).lower() if isinstance(default, bool) else default}"


def _values(one: Mapping[str, Any], schema: Mapping[str, Any], among: Container[str] | None = None) -> str:
    """What a value may be; of names those `among` some."""
    if "$ref" in one:
        return _values(schema["$defs"][one["$ref"].rpartition("/")[2]], schema)
    if "anyOf" in one:
        return " or ".join(_values(each, schema, among) for each in one["anyOf"] if each.get("type") != "null")
    if "enum" in one:
        return " | ".join(str(name) for name in one["enum"] if among is None or name in among)
    if "properties" in one:
        return f"{{{', '.join(one['properties'])}}}"
    if one["type"] == "array" and "prefixItems" in one:
        return f"[{', '.join(_values(each, schema) for each in one['prefixItems'])}]"
    if one["type"] == "array":
        return f"[{_values(one['items'], schema)}, …]"
    return {"boolean": "true | false"}.get(one["type"], str(one["type"]))
