"""Base of all models that are parsed from YAML: unknown keys and coercions are errors."""

from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError


def _take_lists(schema: Any) -> None:
    """Let every tuple in a schema accept a list: YAML has no tuples."""
    if isinstance(schema, dict):
        if schema.get("type") == "tuple":
            schema["strict"] = False
        for value in schema.values():
            _take_lists(value)
    elif isinstance(schema, list):
        for value in schema:
            _take_lists(value)


class StrictModel(BaseModel):
    """Frozen model without unknown keys, coercions (`"4"` for 4) and NaN. Lists make tuples."""

    # Built on first use: otherwise a model inside another is built twice.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _take_lists(schema)
        return schema


def mistake(message: str, *at: str | int, beside: tuple[str | int, ...] = (), key: bool = False) -> PydanticCustomError:
    """Return the error that a validator raises for the value (or the key) at `at`.

    at      path from the model
    beside  path of another value that causes the error together with it
    """
    return PydanticCustomError("mistake", "{message}", {"message": message, "at": at, "beside": beside, "key": key})
