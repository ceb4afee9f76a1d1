"""What a recipe and pipeline.yaml may contain, as pydantic models: strict, frozen, unknown keys refused.

In YAML `stages:` maps kinds to options; here it is a tuple of options, a union discriminated by `kind`:

    stages:
      layout: {rules: […]}      ->      ({kind: layout, rules: […]}, {kind: simulate, inputs: {…}})
      simulate: {inputs: {…}}

The union's members are the stages' own `config` classes, each extended by its `kind`, so an error stays with the one
stage that it concerns.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Literal, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    create_model,
)
from pydantic_core import CoreSchema, PydanticCustomError

from pipeline.matrix import Matrix
from pipeline.registry import Registry
from stages.base import StageConfig
from stages.models.spec import FileModel, OpModel, UrlModel, ZooModel
from stages.strict_model import StrictModel
from stages.targets.memory import Size

MODEL_SOURCES = ("file", "url", "zoo", "op")
# Of a recipe in recipes/layers/ the folder is part of the name, as it is of the build folder.
RECIPE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.+-]*(/[A-Za-z0-9][A-Za-z0-9_.+-]*)*$"


def _given_sources(value: Any) -> list[str]:
    keys = type(value).model_fields if isinstance(value, BaseModel) else value
    return [source for source in MODEL_SOURCES if source in keys]


def _one_source(value: Any) -> Any:
    """The model entry as it is. Raises PydanticCustomError unless it gives exactly one of file, url, zoo, op."""
    if not isinstance(value, Mapping | BaseModel):
        raise PydanticCustomError("model_source", "should be a mapping with one of file, url, zoo, op")
    given = _given_sources(value)
    if len(given) != 1:
        found = " and ".join(given) if given else "none of them"
        raise PydanticCustomError(
            "model_source", "give exactly one of file, url, zoo, op; here is {found}", {"found": found}
        )
    return value


ModelEntry = Annotated[
    Annotated[FileModel, Tag("file")]
    | Annotated[UrlModel, Tag("url")]
    | Annotated[ZooModel, Tag("zoo")]
    | Annotated[OpModel, Tag("op")],
    Discriminator(lambda value: _given_sources(value)[0]),
    BeforeValidator(_one_source),
]


class MemoryLimits(StrictModel):
    """Bounds that a recipe sets beside what its target has."""

    arena_limit: Size | None = Field(
        default=None, description="Bytes (64K): a kernel whose scratch brings the arena above this is not chosen."
    )


class Recipe(StrictModel):
    """A model, a target, and options for each stage."""

    schema_version: Literal[1] = Field(alias="schema", description="Version of the recipe language.")
    name: str = Field(
        default="",
        pattern=RECIPE_NAME,
        description="Name of the recipe and of its folder under build/. The file's name when absent.",
    )
    extends: str | None = Field(
        default=None, description="A recipe whose values hold where this one says nothing: its name, or a path."
    )
    abstract: bool = Field(
        default=False,
        description="Only to be extended, or run with a model= of the command line; recipes that extend it are not.",
    )
    target: str = Field(description="One of the boards and cores declared in pipeline.yaml.")
    model: ModelEntry = Field(description="The network: exactly one of file, url with sha256, zoo, op.")
    stages: tuple[StageConfig, ...] = ()
    memory: MemoryLimits = MemoryLimits()
    matrix: Matrix | None = Field(default=None, description="Makes one recipe for each combination of values.")

    def config(self, kind: str) -> StageConfig | None:
        """The options given for a stage, or None."""
        return next((config for config in self.stages if cast(Any, config).kind == kind), None)


def stage_entries(value: Any) -> Any:
    """The YAML mapping kind -> options as a list of {kind, **options}, in the order written."""
    if not isinstance(value, Mapping):
        raise PydanticCustomError("stage_mapping", "should be a mapping from stages to their options")
    for kind, options in value.items():
        if isinstance(options, Mapping) and "kind" in options:
            raise PydanticCustomError(
                "stage_mapping", "stage '{stage}': its key is its kind, there is no key 'kind'", {"stage": kind}
            )
    # An entry that is not a mapping stays as it is, so that pydantic reports it at its own position.
    return [
        {**(options or {}), "kind": kind} if options is None or isinstance(options, Mapping) else options
        for kind, options in value.items()
    ]


class _StageMapping:
    """Describes the list of tagged options, in JSON Schema, as the mapping that is written in YAML."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        items = handler(core)["items"]
        mapping: dict[str, str] = items["discriminator"]["mapping"]
        return {
            "type": "object",
            "description": "Options of each stage; a stage that is not named runs with its defaults.",
            "additionalProperties": False,
            "properties": {
                kind: {"anyOf": [{"$ref": reference}, {"type": "null"}]} for kind, reference in mapping.items()
            },
        }


@cache
def recipe_model(registry: Registry) -> type[Recipe]:
    """The recipe model with the options of the registry's stages, of which there are at least two."""
    members = [
        create_model(
            f"{stage.kind.title()}Stage",
            __base__=stage.config,
            __doc__=stage.config.__doc__,
            kind=(cast(Any, Literal[stage.kind]), stage.kind),
        )
        for stage in registry
    ]
    union: Any = Annotated[cast(Any, reduce(or_, cast(Any, members))), Field(discriminator="kind")]
    entries: Any = Annotated[tuple[union, ...], BeforeValidator(stage_entries), _StageMapping()]
    return create_model("Recipe", __base__=Recipe, __doc__=Recipe.__doc__, stages=(entries, ()))
