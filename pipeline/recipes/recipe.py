"""What a recipe and pipeline.yaml may contain, as pydantic models: strict, frozen, unknown keys refused.

`stages:` maps names of stages to options, a union discriminated by `kind`, which is the name unless `use` says
otherwise:

    stages:
      layout: {rules: […]}                 ->      layout: {kind: layout, rules: […]}
      emit: {use: my_emit, unroll: 2}              emit: {kind: my_emit, unroll: 2}

The union's members are the stages' own `config` classes, each extended by its `kind`, so an error stays with the one
stage that it concerns. Which stages run, and in which order, is pipeline.recipes.chain's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial, reduce
from operator import or_
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    create_model,
)
from pydantic_core import CoreSchema, PydanticCustomError

from pipeline.errors import RecipeError
from pipeline.matrices.matrix import Matrix
from pipeline.plugins.discovery import Plugin
from pipeline.plugins.registry import PLACEMENT, Registry
from stages.base import Stage, StageConfig
from stages.messages import escape
from stages.messages.wording import several
from stages.models.spec import FileModel, ModelSource, OpModel, PluginModel, UrlModel, ZooModel
from stages.models.zoo.names import check
from stages.options.names import RecipeName
from stages.options.strict_model import StrictModel
from stages.targets.memory import Size
from stages.targets.memory_rules import MemoryRule, StackRule, as_stack

MODEL_SOURCES = ("file", "url", "zoo", "op")
_NO_OPTIONS = (
    {"type": "null"},
    {"const": False, "description": "The stage is left out."},
    {"const": True, "description": "As usual, with no options of its own."},
)


def _given_sources(value: Any) -> list[str]:
    keys = type(value).model_fields if isinstance(value, BaseModel) else value
    return [source for source in MODEL_SOURCES if source in keys]


def _one_source(value: Any) -> Any:
    """The model entry as it is. Raises PydanticCustomError unless it gives exactly one of file, url, zoo, op."""
    if not isinstance(value, Mapping | BaseModel):
        raise PydanticCustomError("model_source", "should be a mapping with one of file, url, zoo, op")
    given = _given_sources(value)
    if len(given) != 1:
        others = several([escape.quoted(str(key)) for key in value]) if isinstance(value, Mapping) and value else ""
        found = " and ".join(given) or (f"{others} instead" if others else "none of them")
        raise PydanticCustomError(
            "model_source", "give exactly one of file, url, zoo, op; here is {found}", {"found": found}
        )
    return value


_Sources = Annotated[FileModel, Tag("file")] | Annotated[UrlModel, Tag("url")] | Annotated[OpModel, Tag("op")]
ModelEntry = Annotated[
    _Sources | Annotated[ZooModel, Tag("zoo")],
    Discriminator(lambda value: _given_sources(value)[0]),
    BeforeValidator(_one_source),
]


def rebind_plugin_model(model: ModelSource, models: Mapping[str, Plugin]) -> ModelSource:
    """A model of a plug-in with this project's module for it. Raises RecipeError where the project has none."""
    if not isinstance(model, PluginModel):
        return model
    if model.zoo not in models:
        raise RecipeError(f"there is no model '{escape.name(model.zoo)}'")
    return _plugin_model(models).model_construct(model.model_fields_set, **dict(model))


def _plugin_model(models: Mapping[str, Plugin]) -> type[PluginModel]:
    plugin = create_model("PluginModel", __base__=PluginModel, zoo=(cast(Any, Literal[tuple(models)]), ...))
    plugin.modules = {name: found.module for name, found in models.items()}
    plugin.places = {name: found.path for name, found in models.items()}
    return plugin


def _model_entry(models: Mapping[str, Plugin]) -> Any:
    """ModelEntry, where `zoo` may also name one of the models of plug-ins."""
    plugin = _plugin_model(models)
    named = AfterValidator(partial(check, plugins=tuple(models)))
    built_in = create_model("ZooModel", __base__=ZooModel, zoo=(Annotated[str, named], ...))

    def source(value: Any) -> str:
        given = _given_sources(value)[0]
        name = value.get("zoo") if isinstance(value, Mapping) else getattr(value, "zoo", None)
        return "plug-in" if given == "zoo" and isinstance(name, str) and name in models else given

    return Annotated[
        _Sources | Annotated[built_in, Tag("zoo")] | Annotated[plugin, Tag("plug-in")],
        Discriminator(source),
        BeforeValidator(_one_source),
    ]


class RecipeMemory(StrictModel):
    """What a recipe says of its target's memory: a bound, and what lies where."""

    arena_limit: Size | None = Field(
        default=None, description="Bytes (64K): a kernel whose scratch brings the arena above this is not chosen."
    )
    rules: tuple[MemoryRule, ...] | None = Field(
        default=None,
        description="Which regions of the target hold which buffers and weights; the first rule that matches decides.",
    )
    stack: Annotated[StackRule | None, BeforeValidator(as_stack, json_schema_input_type=StackRule | str | int)] = Field(
        default=None, description="Where the stack lies, and its size."
    )


class Recipe(StrictModel):
    """A model, a target, and options for each stage."""

    schema_version: Literal[1] = Field(alias="schema", description="Version of the recipe language.")
    # Of a recipe in recipes/layers/ the folder is part of the name, as it is of the build folder.
    name: RecipeName = Field(
        default="",
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
    stages: Mapping[str, StageConfig] = Field(default_factory=dict)
    memory: RecipeMemory = RecipeMemory()
    matrix: Matrix | None = Field(default=None, description="Makes one recipe for each combination of values.")

    def config(self, name: str) -> StageConfig | None:
        """The options given for a stage, or None."""
        return self.stages.get(name)


def stage_entries(value: Any) -> Any:
    """The YAML mapping name -> options with the kind among the options, without those that have only true or false."""
    if not isinstance(value, Mapping):
        raise PydanticCustomError("stage_mapping", "should be a mapping from stages to their options")
    for name, options in value.items():
        if isinstance(options, Mapping) and "kind" in options:
            raise PydanticCustomError(
                "stage_mapping", "stage '{stage}': its key is its kind, there is no key 'kind'", {"stage": name}
            )
    return {name: _entry(name, options) for name, options in value.items() if not isinstance(options, bool)}


def _entry(name: str, options: Any) -> Any:
    """Options with their kind; what is no mapping stays as it is, so that pydantic reports it at its own position."""
    if options is not None and not isinstance(options, Mapping):
        return options
    given = dict(options or {})
    kind = given.get("use", name)
    return {**{key: value for key, value in given.items() if key not in PLACEMENT}, "kind": kind}


class _StageMapping:
    """Describes what may stand under `stages:`: for each stage options, nothing, `true` or `false`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        references: dict[str, str] = handler(core)["additionalProperties"]["discriminator"]["mapping"]
        stages = [self._registry[kind] for kind in self._registry.named]
        entries = {stage.kind: [*self._options(stage, references), *_NO_OPTIONS] for stage in stages}
        return {
            "type": "object",
            "description": "Options of each stage; one that is not named has its defaults, `false` leaves it out.",
            "additionalProperties": False,
            "properties": {kind: {"anyOf": variants} for kind, variants in entries.items()},
        }

    def _options(self, stage: Stage[Any], references: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """The stage's own options, then those of the stages that may be used in its place."""
        yield {"$ref": references[stage.kind]}
        for other in self._registry:
            if other is not stage and other.role == stage.role:
                yield {"allOf": [{"$ref": references[other.kind]}, {"required": ["use"]}]}


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
        for stage in map(registry.__getitem__, registry.named)
    ]
    union: Any = Annotated[cast(Any, reduce(or_, cast(Any, members))), Field(discriminator="kind")]
    entries: Any = Annotated[dict[str, union], BeforeValidator(stage_entries), _StageMapping(registry)]
    stages: Any = (entries, Field(default_factory=dict))
    more: dict[str, Any] = {}
    if registry.models:
        more["model"] = (_model_entry(registry.models), Field(description=Recipe.model_fields["model"].description))
    return create_model("Recipe", __base__=Recipe, __doc__=Recipe.__doc__, stages=stages, **more)
