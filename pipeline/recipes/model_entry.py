"""The recipe's `model:` entry: its kinds, with the models of plug-ins."""

from collections.abc import Mapping
from functools import partial, reduce
from operator import or_
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, Discriminator, Tag, create_model
from pydantic_core import PydanticCustomError

from pipeline.documents.chains import NETWORK_SOURCES
from pipeline.errors import RecipeError
from pipeline.plugins.discovery import Plugin
from stages.ir.models.chain.spec import (
    PART_SOURCES,
    ChainModel,
    FilePart,
    FrontendPart,
    PluginPart,
    SmoothPart,
    UrlPart,
    ZooPart,
)
from stages.ir.models.sources import ModelSource
from stages.ir.models.spec import FileModel, OpModel, PluginModel, UrlModel, ZooModel
from stages.ir.models.zoo.names import check
from stages.support.messages import escape
from stages.support.messages.wording import several

MODEL_SOURCES = (*NETWORK_SOURCES, "chain")
_PLUG_IN = "plug-in"


def _keys_in(value: Any, keys: tuple[str, ...]) -> list[str]:
    names = type(value).model_fields if isinstance(value, BaseModel) else value
    return [key for key in keys if key in names]


def _check_source(value: Any, keys: tuple[str, ...]) -> Any:
    """Return the entry. Raises PydanticCustomError unless it has exactly one of `keys`."""
    *others, last = keys
    if not isinstance(value, Mapping | BaseModel):
        message = f"should be a mapping with one of {', '.join(keys)}"
        raise PydanticCustomError("model_source", "{message}", {"message": message})
    sources = _keys_in(value, keys)
    if len(sources) != 1:
        given = several([escape.quoted(str(key)) for key in value]) if isinstance(value, Mapping) and value else ""
        names = " and ".join(sources) or given or "none of them"
        message = f"give exactly one of {', '.join(others)}, {last}; got {names}"
        raise PydanticCustomError("model_source", "{message}", {"message": message})
    return value


def _union(classes: Mapping[str, Any], plugins: Mapping[str, Plugin]) -> Any:
    """Return the type of a mapping with one of the keys of `classes`, which selects the class."""
    keys = tuple(key for key in classes if key != _PLUG_IN)
    members = [cast(Any, Annotated)[model, Tag(key)] for key, model in classes.items()]

    def kind(value: Any) -> str:
        """Return the tag of the entry's class."""
        key = _keys_in(value, keys)[0]
        name = value.get("zoo") if isinstance(value, Mapping) else getattr(value, "zoo", None)
        return _PLUG_IN if key == "zoo" and isinstance(name, str) and name in plugins else key

    def check_source(value: Any) -> Any:
        return _check_source(value, keys)

    return cast(Any, Annotated)[reduce(or_, members), Discriminator(kind), BeforeValidator(check_source)]


def model_entry(plugins: Mapping[str, Plugin]) -> Any:
    """Return the type of the entry; `plugins` are further values of `zoo`."""
    networks = {"file": FileModel, "url": UrlModel, "zoo": _zoo(ZooModel, plugins), "op": OpModel}
    parts = {"file": FilePart, "url": UrlPart, "zoo": _zoo(ZooPart, plugins)}
    if plugins:
        networks[_PLUG_IN], parts[_PLUG_IN] = _plugin_model(PluginModel, plugins), _plugin_model(PluginPart, plugins)
    parts |= dict(zip(PART_SOURCES, (FrontendPart, SmoothPart), strict=True))
    members: Any = (cast(Any, tuple)[_union(parts, plugins), ...], ChainModel.model_fields["chain"])
    chain = create_model("ChainModel", __base__=ChainModel, __doc__=ChainModel.__doc__, chain=members)
    return _union(networks | {"chain": chain}, plugins)


def rebind_plugin_model(model: ModelSource, plugins: Mapping[str, Plugin]) -> ModelSource:
    """Return a plug-in's model bound to this project's module; other models stay.

    Raises RecipeError if there is no such plug-in.
    """
    if isinstance(model, ChainModel):
        parts = tuple(rebind_plugin_model(part, plugins) for part in model.chain)
        return type(model).model_construct(model.model_fields_set, chain=parts)
    if not isinstance(model, PluginModel):
        return model
    if model.zoo not in plugins:
        raise RecipeError(f"unknown model '{escape.name(model.zoo)}'")
    base = PluginPart if isinstance(model, PluginPart) else PluginModel
    return cast(PluginModel, _plugin_model(base, plugins).model_construct(model.model_fields_set, **dict(model)))


def _zoo(base: type[ZooModel], plugins: Mapping[str, Plugin]) -> Any:
    """Return the class of the zoo's networks; its error for an unknown name lists the plug-ins."""
    if not plugins:
        return base
    named = AfterValidator(partial(check, plugins=tuple(plugins)))
    return create_model(base.__name__, __base__=base, zoo=(Annotated[str, named], ...))


def _plugin_model(base: type[PluginModel], plugins: Mapping[str, Plugin]) -> Any:
    model = create_model(base.__name__, __base__=base, zoo=(cast(Any, Literal[tuple(plugins)]), ...))
    model.modules = {name: plugin.module for name, plugin in plugins.items()}
    model.places = {name: plugin.path for name, plugin in plugins.items()}
    return model


ModelEntry = model_entry({})
