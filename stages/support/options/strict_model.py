"""The base of everything that is read from YAML: no unknown key, no value of another type, no number that is none."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError


def _take_lists(schema: Any) -> None:
    """Let every tuple in a schema be a list: YAML has no tuples, which a strict one would ask for."""
    if isinstance(schema, dict):
        if schema.get("type") == "tuple":
            schema["strict"] = False
        for value in schema.values():
            _take_lists(value)
    elif isinstance(schema, list):
        for value in schema:
            _take_lists(value)


class StrictModel(BaseModel):
    """Frozen; unknown keys, coercions (`"4"` for 4) and NaN are refused. A tuple is written as a YAML list."""

    # Built when it is used: a model that is part of another would else be built twice.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _take_lists(schema)
        return schema


def mistake(message: str, *at: str | int, beside: tuple[str | int, ...] = (), key: bool = False) -> PydanticCustomError:
    """What a validator of a model raises to blame the value (or the key) at `at`, from the model on.

    `beside` is another value that has its part in it.
    """
    return PydanticCustomError("mistake", "{message}", {"message": message, "at": at, "beside": beside, "key": key})
