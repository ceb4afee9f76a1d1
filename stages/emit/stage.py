"""emit: scheduled TIR and packed weights -> a folder of self-contained C."""

from collections.abc import Mapping
from pathlib import Path

from stages.backends.targets.memory_rules import check_rules
from stages.backends.targets.spec import Target
from stages.base import ActionInputs, Job, Stage, Tool
from stages.emit.config import EmitConfig
from stages.ir.models.sources import ModelSource


class EmitStage(Stage[EmitConfig]):
    """Stage that writes the model's C sources."""

    kind = "emit"
    exclusive = True
    config = EmitConfig
    consumes = ("import", "tensorize")

    def inputs(self, config: EmitConfig, model: ModelSource, target: Target) -> ActionInputs:
        """Return TVM and Jinja, the code of the target's kernels and accelerator, and its fields."""
        from stages.backends.accelerators.registry import code_patterns_of
        from stages.backends.kernels.places import code_patterns
        from stages.backends.targets.places import accelerator_code, kernel_code

        return ActionInputs(
            tools=(Tool("tvm", package="apache-tvm"), Tool("jinja2", package="jinja2")),
            sources=(
                "stages/emit/stage.py",
                "stages/emit/templates/*.j2",
                "stages/backends/targets/spec.py",
                "stages/backends/targets/memory.py",
                *code_patterns(target.kernels),
                *code_patterns_of(target),
            ),
            code=kernel_code(target) | accelerator_code(target),
            target_fields=("core", "word_bits", "compiler", "capacities", "kernels", "accelerator"),
        )

    def preflight(
        self, config: EmitConfig, model: ModelSource, target: Target, root: Path, artifacts: Mapping[str, Path]
    ) -> None:
        """Check that memory rules name regions."""
        check_rules(config.memory_rules or (), target)

    def run(self, job: Job[EmitConfig]) -> None:
        """Write the C sources and model.json."""
        import json

        from stages.emit.build import emit
        from stages.ir.models.index_ranges import imported_rules, index_ranges
        from stages.ir.models.tflite_reader import read

        import_file = job.inputs["import"] / "import.json"
        summary = json.loads(import_file.read_text())
        folder = job.inputs["import"]
        ranges = index_ranges(read((folder / "model.tflite").read_bytes()), imported_rules(folder))
        emit(
            job.inputs["tensorize"],
            job.out,
            job.config,
            job.target,
            name=summary["name"],
            ranges=ranges,
            sample_rate=summary.get("sample_rate"),
            progress=job.progress,
        )


STAGE = EmitStage()
