"""Values that go to a worker arrive as they were, also of classes that were made for a project."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from pipeline.distributed.values import dumps, loads
from pipeline.errors import RecipeError
from pipeline.plugins.discovery import Plugin
from pipeline.plugins.registry import default_registry
from pipeline.recipes.model_entry import model_entry, rebind_plugin_model
from stages.ir.models.spec import PluginModel


def models(folder: str) -> dict[str, Plugin]:
    return {"two_layers": Plugin("two_layers", f"{folder}.two_layers", Path(folder, "two_layers.py"), "two_layers")}


def sent(entry: dict[str, Any]) -> tuple[Any, Any]:
    """A recipe's model here, and as a worker unpickles it."""
    model = TypeAdapter(model_entry(models("here"))).validate_python(entry)
    return model, loads(dumps((model, 1))[0], lambda target: target)[0][0]


def test_a_model_of_a_plug_in_is_that_of_the_workers_project() -> None:
    here, received = sent({"zoo": "two_layers", "seed": 3})
    assert here.module == "here.two_layers"
    rebound = rebind_plugin_model(received, models("there"))
    assert isinstance(rebound, PluginModel) and rebound.model_dump() == here.model_dump()
    assert (rebound.module, rebound.place) == ("there.two_layers", Path("there/two_layers.py"))
    with pytest.raises(RecipeError, match="unknown model 'two_layers'"):
        rebind_plugin_model(received, default_registry().models)
