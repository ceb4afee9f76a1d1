"""compile: emitted C and the target's runtime to an ELF, a map and the sizes of what is in them."""

from __future__ import annotations

from typing import Literal

from stages.base import Job, Stage, StageConfig, Tool
from stages.targets.spec import Target


class CompileConfig(StageConfig):
    """Options of the compile stage.

    `optimize` is the level for the model's own files (flags of a single kernel file come after it); `flags` are added
    to every file's.
    """

    kind: Literal["compile"] = "compile"
    optimize: Literal["-O1", "-O2", "-O3", "-Os"] = "-O2"
    flags: tuple[str, ...] = ()


class CompileStage(Stage[CompileConfig]):
    kind = "compile"
    config = CompileConfig
    consumes = ("emit",)
    sources = (
        "stages/compile/*.py",
        "stages/targets/*.py",
        "stages/targets/*/*.py",
        "stages/targets/*/*.[chS]",
        "stages/targets/*/*.in",
    )
    target_fields = ("name", "family", "compiler", "memory")

    def tools(self, config: CompileConfig, target: Target) -> tuple[Tool, ...]:
        from stages.compile.toolchain import binutil
        from stages.targets.runtime import runtime_for

        compiler = target.compiler
        headers = (*compiler.flags, *runtime_for(target).compile_flags)
        install = f"apt-get install {' '.join(compiler.packages)}" if compiler.packages else ""
        return (
            Tool("compiler", command=compiler.command, minimum=compiler.minimum, install=install),
            Tool("linker", command=binutil(target, "ld"), install=install),
            Tool("C library", command=compiler.command, c_flags=headers, install=install),
            Tool("pyelftools", package="pyelftools"),
        )

    def run(self, job: Job[CompileConfig]) -> None:
        import json

        from stages.compile.firmware import compile_firmware

        emitted = job.inputs["emit"]
        model = json.loads((emitted / "model.json").read_text())
        compile_firmware(
            emitted / "src", model, job.target, job.out, config=job.config, log=job.log, progress=job.progress
        )


STAGE = CompileStage()
