"""`doit targets` and `doit boards`: list the names that a recipe's `target` may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.commands.catalogue.listing import Listing, Record
from pipeline.errors import PipelineError
from stages.backends.timing.accuracy import accuracy, accuracy_text

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target


class Targets(Listing):
    """`doit targets`: list cores and boards, or show targets in full."""

    name = "targets"
    group = "look"
    examples = (
        ("", "all cores and boards"),
        ("nucleo-f446re", "one in full"),
        ("'cortex-m*' --json", "some, for programs"),
    )
    keys_help = (("target", "the same as NAME"),)
    variables = name_keys = ("target", "board")
    what = "target"
    names = "targets"
    doc_purpose = "list targets: cores and boards"
    doc_usage = "[NAME...] [--json]"
    doc_description = (
        "Lists built-in targets, and those of the project and its plug-ins. A single target is shown in full."
    )
    columns = ("name", "core", "isa", "kernels", "simulator", "timing", "accelerator")

    def unknown(self, word: str, known: Sequence[str]) -> PipelineError:
        """Return the error of all commands for an unknown target."""
        from pipeline.recipes.targets import unknown_target_error

        return unknown_target_error(word, known)

    def records(self) -> Sequence[Record]:
        """Return all targets in the order of pipeline.yaml: cores, then boards."""
        return [_record(target) for target in _targets()]


class Boards(Listing):
    """`doit boards`."""

    name = "boards"
    group = "extend"
    examples = (("", "all boards"), ("nucleo-f446re", "one in full, with its source"))
    keys_help = (("target", "the same as NAME"),)
    variables = name_keys = ("target", "board")
    what = "board"
    names = "boards"
    doc_purpose = "list boards: core, clock, memories, accelerator"
    doc_usage = "[NAME...] [--json]"
    doc_description = "Each board is a target. A single board is shown in full, with its source."
    columns = ("name", "core", "clock", "rom", "ram", "accelerator", "title")

    def records(self) -> Sequence[Record]:
        """Return all boards in the order of pipeline.yaml."""
        return [_record(target) for target in _targets() if target.board is not None]


def _targets() -> Sequence[Target]:
    from pipeline.project import current_project
    from pipeline.recipes.targets import load_targets

    return list(load_targets(current_project()).values())


def _record(target: Target) -> Record:
    """Return a target's record: memories in bytes, the clock in Hz."""
    memory = target.memory
    regions = {} if memory is None else memory.regions
    record = {
        "name": target.name,
        "core": target.core,
        "isa": target.isa,
        "abi": target.abi,
        "word_bits": target.word_bits,
        "vlen": target.vlen,
        "fpu": target.fpu,
        "extensions": dict(target.extensions),
        "kernels": list(target.kernels),
        "compiler": target.compiler.command,
        "simulator": target.simulator.command or target.simulator.kind,
        "timing": None if target.timing_model is None else target.timing_model.name,
        "accelerator": None if target.accelerator is None else target.accelerator.kind,
        "rom": None if target.memory is None else target.memory.bytes_of(written=False),
        "ram": None if target.memory is None else target.memory.bytes_of(written=True),
        "memory": {name: f"{region.length:,} bytes at {region.origin:#x}" for name, region in regions.items()},
    }
    if target.timing_model is not None:
        model = target.timing_model
        record |= {"timing_model": model.title, "timing_source": model.source}
        record |= {"timing_accuracy": accuracy_text(accuracy(model.name))}
    if target.flash is not None:
        record |= {"flash": target.flash.description, "flash_source": target.flash.source}
    if target.board is not None:
        record |= {"title": target.board.title, "clock": target.board.clock, "source": target.board.source}
        if target.board.power is not None:
            record |= {"power": target.board.power.description, "power_source": target.board.power.source}
    return record
