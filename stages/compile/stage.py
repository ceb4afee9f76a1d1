"""compile: emitted C and the target's runtime -> an ELF file, a map file and sizes."""

from collections.abc import Mapping
from pathlib import Path

from stages.backends.targets.spec import Target
from stages.base import ActionInputs, Job, Stage, Tool
from stages.compile.config import CompileConfig
from stages.ir.models.sources import ModelSource


class CompileStage(Stage[CompileConfig]):
    """Stage that compiles and links the firmware."""

    kind = "compile"
    config = CompileConfig
    consumes = ("emit",)

    def inputs(self, config: CompileConfig, model: ModelSource, target: Target) -> ActionInputs:
        """Return compiler, linker and C library, the target's run-time code, and its fields."""
        from stages.backends.targets.runtime import code_patterns, runtime_for
        from stages.backends.toolchain.compiler import binutil

        compiler = target.compiler
        headers = (*compiler.flags, *runtime_for(target).compile_flags)
        install = f"apt-get install {' '.join(compiler.packages)}" if compiler.packages else ""
        return ActionInputs(
            tools=(
                Tool("compiler", command=compiler.command, minimum=compiler.minimum, install=install),
                Tool("linker", command=binutil(target, "ld"), install=install),
                Tool("C library", command=compiler.command, c_flags=headers, install=install),
                Tool("pyelftools", package="pyelftools"),
            ),
            sources=(
                "stages/compile/stage.py",
                "stages/backends/targets/spec.py",
                "stages/backends/targets/memory.py",
                *code_patterns(target),
            ),
            target_fields=("name", "family", "compiler", "memory", "simulated", "simulator", "board"),
        )

    def preflight(
        self, config: CompileConfig, model: ModelSource, target: Target, root: Path, artifacts: Mapping[str, Path]
    ) -> None:
        """Check that the target's memory can hold the model's weights and largest tensors."""
        if target.memory is None or "import" not in artifacts:
            return
        from stages.compile.preflight import check_fits
        from stages.ir.models.least_memory import least_memory
        from stages.ir.models.local_model import local_model

        info = local_model(model, root, artifacts)
        if info is not None:
            by_rows = config.streaming is not False and target.accelerator is None
            check_fits(least_memory(info, by_rows=by_rows), target)

    def run(self, job: Job[CompileConfig]) -> None:
        """Compile and link the emitted sources."""
        import json

        from stages.compile.firmware import compile_firmware

        emitted = job.inputs["emit"]
        model = json.loads((emitted / "model.json").read_text())
        compile_firmware(
            emitted / "src",
            model,
            job.target,
            job.out,
            config=job.config,
            log=job.log,
            progress=job.progress,
            cache=job.cache,
            tools={name: tool.version for name, tool in job.tools.items()},
        )


STAGE = CompileStage()
