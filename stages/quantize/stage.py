"""Stage quantize: from QDQ Relax to the integer graph."""

from typing import Any

from stages.backends.targets.spec import Target
from stages.base import ActionInputs, Job, Stage, StageConfig, Tool
from stages.ir.models.sources import ModelSource
from stages.quantize.options import QuantizeOptions


class QuantizeConfig(QuantizeOptions, StageConfig):
    __doc__ = QuantizeOptions.__doc__


class Quantize(Stage[QuantizeConfig]):
    """Lowers the Relax module to graph.json, constants.npz and float.json."""

    kind = "quantize"
    exclusive = True
    config = QuantizeConfig
    consumes = ("import", "layout")

    def parameters(self, config: QuantizeConfig) -> dict[str, Any]:
        """Mode and rounding; the stage ptq has the options of calibration."""
        return {"mode": "prequantized"} | ({"rounding": "twice"} if config.rounding == "twice" else {})

    def inputs(self, config: QuantizeConfig, model: ModelSource, target: Target) -> ActionInputs:
        """Return TVM and numpy."""
        return ActionInputs(
            tools=(Tool("tvm", package="apache-tvm"), Tool("numpy", package="numpy")),
            sources=("stages/quantize/**/*.py",),
        )

    def run(self, job: Job[QuantizeConfig]) -> None:
        """Read layout's module.json and import's tensors.json; write the graph. Raises StageError."""
        import json

        from tvm import IRModule, ir

        from stages.ir.relax_module import load_module
        from stages.quantize.checks import check_widths
        from stages.quantize.lower import lower_module

        module = load_module(job.inputs["layout"])
        description = json.loads((job.inputs["import"] / "tensors.json").read_text())
        job.progress("matching operators")
        lowered = lower_module(module, description, twice=job.config.rounding == "twice")
        check_widths(lowered.graph)
        lowered.graph.save(job.out)
        if lowered.float_functions:
            functions = {module.get_global_var(name): module[name] for name in dict.fromkeys(lowered.float_functions)}
            (job.out / "float.json").write_text(ir.save_json(IRModule(functions)))
        layers = lowered.graph.layers
        job.log(f"{len(layers)} layers, {len(lowered.float_functions)} of them float")


STAGE = Quantize()
