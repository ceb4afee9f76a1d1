"""Stage layout: write a Relax module with layouts, and layouts.json that explains them."""

import json
from typing import Any, ClassVar

from stages.backends.targets.spec import Target
from stages.base import ActionInputs, Job, Stage, StageConfig, Tool
from stages.ir.models.sources import ModelSource
from stages.layout.rules import LayoutConfig
from stages.support.messages import escape

LAYOUTS = "layouts.json"


class LayoutStage(Stage[LayoutConfig]):
    """Assigns a layout to each operator, and inserts the transforms that are needed."""

    kind: ClassVar[str] = "layout"
    exclusive = True
    config: ClassVar[type[StageConfig]] = LayoutConfig
    consumes: ClassVar[tuple[str, ...]] = ("import",)

    def inputs(self, config: LayoutConfig, model: ModelSource, target: Target) -> ActionInputs:
        """Return TVM, which represents and checks the module."""
        return ActionInputs(tools=(Tool("tvm", package="apache-tvm"),), sources=("stages/layout/*.py",))

    def run(self, job: Job[LayoutConfig]) -> None:
        """Write module.json and layouts.json. Raises StageError if a rule cannot be applied."""
        from stages.ir.relax_module import load_module, save_module
        from stages.layout.apply import lay_out

        module, report = lay_out(load_module(job.inputs["import"]), job.config)
        save_module(module, job.out)
        (job.out / LAYOUTS).write_text(_dump(report))
        moved = [transform for transform in report["transforms"] if transform["moves"]]
        job.log(f"{len(report['operators'])} operators, {len(moved)} layout transforms")
        for transform in moved:
            job.log(
                f"  {escape.quoted(transform['name'])} {transform['from']} -> {transform['to']}: {transform['reason']}"
            )
        for warning in report["warnings"]:
            job.log(f"warning: {warning}")


def _dump(report: dict[str, Any]) -> str:
    """JSON with one line for each operator and transform."""
    lists = (f' "{key}": ' + _list(report[key]) for key in ("operators", "transforms", "unused_rules", "warnings"))
    return "{\n" + ",\n".join(lists) + "\n}\n"


def _list(items: list[Any]) -> str:
    if not items:
        return "[]"
    return "[\n" + ",\n".join("  " + json.dumps(item) for item in items) + "\n ]"


STAGE = LayoutStage()
