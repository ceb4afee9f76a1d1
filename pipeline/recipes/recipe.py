"""The recipe language as pydantic models: strict, frozen, without unknown keys.

`stages:` maps names of stages to options, a union discriminated by `kind`. It is the name, or the value of `use`:

    stages:
      layout: {rules: […]}                 ->      layout: {kind: layout, rules: […]}
      emit: {use: my_emit, unroll: 2}              emit: {kind: my_emit, unroll: 2}

The union's members are the `config` classes of the stages, each extended by its `kind`, so that an error is reported
for one stage only. pipeline.recipes.stage_sequence decides which stages run, and in which order.
"""

from collections.abc import Iterator, Mapping
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, create_model
from pydantic_core import CoreSchema, PydanticCustomError

from pipeline.matrices.matrix import Matrix
from pipeline.plugins.registry import PLACEMENT_KEYS, Registry
from pipeline.recipes.model_entry import ModelEntry, model_entry
from stages.backends.targets.memory import Size
from stages.backends.targets.memory_rules import MemoryRule, StackRule, as_stack
from stages.base import Stage, StageConfig
from stages.support.options.names import RecipeName
from stages.support.options.strict_model import StrictModel

_NO_OPTIONS = (
    {"type": "null"},
    {"const": False, "description": "The stage is disabled."},
    {"const": True, "description": "The stage runs with default options."},
)


class RecipeMemory(StrictModel):
    """Memory settings of a recipe: limit of the arena, and memory rules."""

    arena_limit: Size | None = Field(
        default=None,
        description="Limit in bytes (64K); layers run by rows, and with kernels of less scratch, as far as it needs.",
    )
    streaming: Literal["auto", False] | None = Field(
        default=None,
        description="Layers run by rows where that saves RAM and costs at most 2 % instructions, or as much as "
        "`arena_limit` asks for. `false`: whole images. `auto`: as the default, and the report says why if no layer "
        "runs by rows.",
    )
    overwrite_input: bool = Field(
        default=False,
        description="Results of layers by rows may replace rows of the network's input that no layer needs any more.",
    )
    rules: tuple[MemoryRule, ...] | None = Field(
        default=None, description="Memory regions of buffers and weights; the first matching rule applies."
    )
    stack: Annotated[StackRule | None, BeforeValidator(as_stack, json_schema_input_type=StackRule | str | int)] = Field(
        default=None, description="Memory region and size of the stack."
    )


class Recipe(StrictModel):
    """A model, a target, and options for each stage."""

    schema_version: Literal[1] = Field(alias="schema", description="Version of the recipe language.")
    # The name of a recipe in a sub-folder includes the folder: layers/conv3x3.
    name: RecipeName = Field(
        default="", description="Name of the recipe and of its build folder. Default: name of the file."
    )
    extends: str | None = Field(default=None, description="Name or path of a recipe with default values.")
    abstract: bool = Field(
        default=False, description="Whether the recipe needs extends or model= to run. Not inherited."
    )
    target: str = Field(description="Board or core declared in pipeline.yaml.")
    model: ModelEntry = Field(description="The model: exactly one of file, url with sha256, zoo, op, chain.")
    stages: Mapping[str, StageConfig] = Field(default_factory=dict)
    memory: RecipeMemory = RecipeMemory()
    matrix: Matrix | None = Field(default=None, description="Axes; each combination of values is a variant.")

    def config(self, name: str) -> StageConfig | None:
        """Return the options of a stage, or None."""
        return self.stages.get(name)


def stage_entries(value: Any) -> Any:
    """Add the kind to the options of each stage, and drop entries that are true or false."""
    if not isinstance(value, Mapping):
        raise PydanticCustomError("stage_mapping", "should be a mapping from stages to options")
    for name, options in value.items():
        if isinstance(options, Mapping) and "kind" in options:
            raise PydanticCustomError(
                "stage_mapping", "stage '{stage}': remove 'kind'; the key of the entry is the kind", {"stage": name}
            )
    return {name: _entry(name, options) for name, options in value.items() if not isinstance(options, bool)}


def _entry(name: str, options: Any) -> Any:
    """Return options with their kind; a non-mapping is unchanged, since pydantic reports it."""
    if options is not None and not isinstance(options, Mapping):
        return options
    entry = dict(options or {})
    kind = entry.get("use", name)
    return {**{key: value for key, value in entry.items() if key not in PLACEMENT_KEYS}, "kind": kind}


class _StageMapping:
    """JSON Schema of `stages:`: for each stage options, null, `true` or `false`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        references: dict[str, str] = handler(core)["additionalProperties"]["discriminator"]["mapping"]
        stages = [self._registry[kind] for kind in self._registry.named]
        entries = {stage.kind: [*self._options(stage, references), *_NO_OPTIONS] for stage in stages}
        return {
            "type": "object",
            "description": "Options of each stage. Other stages have default options; `false` disables a stage.",
            "additionalProperties": False,
            "properties": {kind: {"anyOf": variants} for kind, variants in entries.items()},
        }

    def _options(self, stage: Stage[Any], references: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yield the options of a stage, then those of its possible replacements."""
        yield {"$ref": references[stage.kind]}
        for other in self._registry:
            if other is not stage and other.role == stage.role:
                yield {"allOf": [{"$ref": references[other.kind]}, {"required": ["use"]}]}


@cache
def recipe_model(registry: Registry) -> type[Recipe]:
    """Return the recipe model for the stages of a registry (at least two)."""
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
    fields: dict[str, Any] = {}
    if registry.models:
        fields["model"] = (model_entry(registry.models), Field(description=Recipe.model_fields["model"].description))
    return create_model("Recipe", __base__=Recipe, __doc__=Recipe.__doc__, stages=stages, **fields)
