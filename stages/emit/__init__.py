"""emit: scheduled TIR and packed weights -> a folder of self-contained C."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from stages.backends.targets.memory import Size
from stages.backends.targets.memory_rules import MemoryRule, check_rules
from stages.backends.targets.spec import Target
from stages.base import Job, Stage, StageConfig, StageError, Tool
from stages.support.options.names import Identifier

if TYPE_CHECKING:
    from stages.ir.models.spec import ModelSource


class EmitConfig(StageConfig):
    """Options of the emit stage.

    `prefix` is the prefix of all C names, in upper case for macros: `kws` gives kws_run and KWS_INPUT0_BYTES. So
    several models fit into one program. They share the kernels.
    `weights`: `incbin` writes weights.bin and a short weights.S, which needs no compile time; `c` writes an array, for
    assemblers without `.incbin`. With `caller` the application passes the address of a blob to `model_init`, so that
    new weights need no new code; `caller_c` is the same, with the first blob as an array (stages.emit.blob).
    `alignment` of each tensor in the arena and of each constant, in bytes.
    `arena`: `static` is part of the emitted sources; `caller` is passed by the caller (`model_init(arena, bytes)`), so
    that models can share it. If several memory regions are used, there is one block, or two parameters, for each.
    An arena larger than `arena_limit` bytes is an error; the recipe's `memory.arena_limit` sets it. `memory_rules`,
    which the recipe's `memory.rules` sets, select the memory regions of buffers and constants.
    """

    prefix: Identifier = "model"
    weights: Literal["incbin", "c", "caller", "caller_c"] = "incbin"
    arena: Literal["static", "caller"] = "static"
    alignment: Literal[8, 16, 32, 64] = Field(default=16)
    arena_limit: Size | None = None
    memory_rules: tuple[MemoryRule, ...] | None = None

    @property
    def is_blob(self) -> bool:
        """Whether the caller passes the weights."""
        return self.weights in ("caller", "caller_c")

    @property
    def is_array(self) -> bool:
        """Whether the sources have the weights as a C array."""
        return self.weights in ("c", "caller_c")

    @property
    def layer_prefix(self) -> str:
        """Prefix of the layers' functions; '' for the default prefix."""
        return "" if self.prefix == type(self).model_fields["prefix"].default else f"{self.prefix}_"


class EmitStage(Stage[EmitConfig]):
    """Stage that writes the model's C sources."""

    kind = "emit"
    exclusive = True
    config = EmitConfig
    consumes = ("import", "tensorize")
    sources = (
        "stages/emit/__init__.py",
        "stages/emit/templates/*.j2",
        "stages/backends/targets/spec.py",
        "stages/backends/targets/memory.py",
    )
    target_fields = ("core", "word_bits", "compiler", "capacities", "kernels", "accelerator")

    def target_code(self, target: Target) -> dict[str, Path]:
        """Return the kernel and accelerator code of plug-ins."""
        from stages.backends.targets.places import accelerator_code, kernel_code

        return kernel_code(target) | accelerator_code(target)

    def target_sources(self, target: Target) -> tuple[str, ...]:
        """Return the patterns of the kernels' and the accelerator's code."""
        from stages.backends.accelerators.registry import code_patterns_of
        from stages.backends.kernels.places import code_patterns

        return (*code_patterns(target.kernels), *code_patterns_of(target))

    def tools(self, config: EmitConfig, target: Target) -> tuple[Tool, ...]:
        """Return TVM and Jinja."""
        return (Tool("tvm", package="apache-tvm"), Tool("jinja2", package="jinja2"))

    def preflight(
        self, config: EmitConfig, model: ModelSource, target: Target, root: Path, made: Mapping[str, Path]
    ) -> None:
        """Check that memory rules name regions of the target, and that the arena can stay below its limit."""
        check_rules(config.memory_rules or (), target)
        if config.arena_limit is None or "import" not in made:
            return
        from stages.ir.models.least_memory import least_memory
        from stages.ir.models.local_model import local_model

        info = local_model(model, root, made)
        least = None if info is None else least_memory(info)
        if least is not None and least.activations > config.arena_limit:
            raise StageError(
                f"the arena needs {least.activations:,} bytes or more, the recipe's arena_limit is "
                f"{config.arena_limit:,}\n{least.largest} bytes",
                at=("stages", "emit", "arena_limit"),
            )

    def run(self, job: Job[EmitConfig]) -> None:
        """Write the C sources and model.json."""
        import json

        from stages.emit.build import emit
        from stages.ir.models.index_ranges import imported_rules, index_ranges
        from stages.ir.models.tflite_reader import read

        import_file = job.inputs["import"] / "import.json"
        name = json.loads(import_file.read_text())["name"]
        folder = job.inputs["import"]
        ranges = index_ranges(read((folder / "model.tflite").read_bytes()), imported_rules(folder))
        emit(job.inputs["tensorize"], job.out, job.config, job.target, name=name, ranges=ranges, progress=job.progress)


STAGE = EmitStage()
