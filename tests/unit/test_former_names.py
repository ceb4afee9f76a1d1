"""Plug-ins with former module names and former hooks of stages work, with a warning."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.recipes.targets import load_targets
from stages import former_names
from stages.base import ActionInputs, StageConfig, Tool
from stages.ir.models.spec import ZooModel
from stages.layout.rules import LayoutConfig
from stages.layout.stage import LayoutStage
from stages.support.action_inputs import _no_files, _no_tools
from stages.support.system.installation import INSTALLATION as ROOT

MODULES = [*former_names._NAMES]


@pytest.mark.parametrize("name", MODULES)
def test_a_former_name_is_the_module_of_today(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, name, raising=False)  # another test may have imported it
    current = importlib.import_module(former_names.current_name(name))
    spec = current.__spec__
    with pytest.warns(DeprecationWarning, match="is now stages"):
        importlib.invalidate_caches()
        assert importlib.import_module(name) is current
    assert current.__spec__ is spec


def test_other_names_are_left_alone() -> None:
    assert former_names.current_name("stages.quantize.stage") == "stages.quantize.stage"
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        importlib.import_module("stages.backends.kernels.no_such")


FORMER = """\
from pathlib import Path
from stages.base import Stage, StageConfig, Tool

class Former(Stage[StageConfig]):
    kind = "former"
    config = StageConfig
    sources = ("a.py",)
    target_fields = ("core",)

    def tools(self, config, target):
        return (*super().tools(config, target), Tool("cc", command="cc"))

    def model_tools(self, model):
        return (Tool("onnx", package="onnx"),)

    def files(self, config, model, root):
        return {"data": root / "data.npy", "costs": root / "other.csv"}

    def target_files(self, target, root):
        return {"costs": root / f"{target.name}.csv"}

    def option_files(self, config, target, root):
        return {"notes": root / "notes.txt"}

    def model_entry(self, model):
        return {"zoo": model.zoo}

    def option_fields(self, config):
        return ("isa",)

    def target_sources(self, target):
        return (f"{target.family}.py",)

    def target_code(self, target):
        return {"kernel.c": Path("/k.c")}

    def model_code(self, model):
        return {"model.py": Path("/m.py")}

    def foresee(self, *arguments):
        raise RuntimeError("refused")

    def run(self, job):
        pass
"""


def test_a_stage_with_former_hooks_has_the_same_inputs(tmp_path: Path) -> None:
    path = tmp_path / "plugin.py"
    path.write_text(FORMER)
    names: dict[str, Any] = {"__name__": "plugin"}
    with pytest.warns(DeprecationWarning, match="former hooks sources, target_fields, tools, .*preflight") as warned:
        exec(compile(FORMER, str(path), "exec"), names)
    assert {(warning.filename, warning.lineno) for warning in warned} == {(str(path), 4)}
    stage, model, target = names["Former"](), ZooModel(zoo="ds_cnn"), load_targets(ROOT)["host"]
    inputs = stage.inputs(StageConfig(), model, target)
    assert inputs.files(tmp_path) == {
        "data": tmp_path / "data.npy", "costs": tmp_path / "host.csv", "notes": tmp_path / "notes.txt"
    }  # fmt: skip
    assert inputs.file_tools(tmp_path) == ()
    assert replace(inputs, files=_no_files, file_tools=_no_tools) == ActionInputs(
        tools=(Tool("cc", command="cc"), Tool("onnx", package="onnx")),
        sources=("a.py", "host.py"),
        code={"kernel.c": Path("/k.c"), "model.py": Path("/m.py")},
        target_fields=("core", "isa"),
        model_entry={"zoo": "ds_cnn"},
    )
    with pytest.raises(RuntimeError, match="refused"):
        stage.preflight(StageConfig(), model, target, tmp_path, {})


def test_former_hooks_add_to_the_inputs_of_a_built_in_stage() -> None:
    with pytest.warns(DeprecationWarning, match="former hooks tools"):

        class More(LayoutStage):
            def tools(self, config: Any, target: Any) -> tuple[Tool, ...]:
                return (Tool("cc", command="cc"),)

    inputs = More().inputs(LayoutConfig(), ZooModel(zoo="ds_cnn"), load_targets(ROOT)["host"])
    assert [tool.name for tool in inputs.tools] == ["tvm", "cc"] and inputs.sources
