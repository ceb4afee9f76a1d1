"""Instructions as disassembled, with the cycles that a timing model gives them; programs run with such a model."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from stages.backends.simulators.program import run_program
from stages.backends.targets.flash import Flash
from stages.backends.targets.load import load_catalogue, load_target
from stages.backends.targets.runtime import runtime_for
from stages.backends.targets.spec import Target
from stages.backends.targets.timing import TimingModel
from stages.backends.timing.disassembly import Line
from stages.backends.timing.log import LOG, TABLE, Interval, intervals, readings
from stages.backends.timing.table import Timed, timed, timing_table
from stages.backends.toolchain.compiler import Source, compile_sources, link


@cache
def model(name: str) -> TimingModel:
    """Return a built-in timing model."""
    catalogue = load_catalogue()
    return TimingModel(name=name, **dict(catalogue.timings[name]))


def target_with(core: str, timing: str, **flash: int | bool | list[int]) -> Target:
    """A target with a timing model, and wait states where `flash` says some."""
    update = {"timing": timing, "timing_model": model(timing)}
    waits = Flash.model_validate({"region": "rom", "source": "made up", **flash}) if flash else None
    return load_target(core).model_copy(update={**update, "flash": waits})


def lines(texts: Sequence[str], *, size: int = 2, start: int = 0x100) -> list[Line]:
    """`ldr r0, [r1]` and the like, one behind the other."""
    found = []
    for number, text in enumerate(texts):
        mnemonic, _, operands = text.partition(" ")
        found.append(Line(start + number * size, size, mnemonic, operands, "f"))
    return found


def cycles(name: str, *texts: str) -> list[Timed]:
    """What each of these instructions takes, of 2 bytes each, one behind the other."""
    return list(timed(lines(texts), model(name)))


def straight(name: str, *texts: str) -> int:
    """The estimate for all of them, none of which jumps."""
    first, *rest = cycles(name, *texts)
    return first.entered[1] + sum(one.follows[1] for one in rest)


def run_timed(target: Target, main: str, folder: Path, *, more: Sequence[Path] = ()) -> list[Interval]:
    """Compile and run a C program; what it took between each reading of the counter and the next."""
    (folder / "main.c").write_text(main)
    runtime = runtime_for(target)
    sources = [Source(path) for path in (folder / "main.c", *more, *runtime.sources)]
    objects = compile_sources(target, runtime, sources, folder / "obj", flags=("-O2",))
    elf = folder / "timed.elf"
    link(target, runtime, objects, elf)
    (folder / TABLE).write_bytes(timing_table(elf, target))
    finished = run_program(elf, target, folder, timed=True)
    assert finished.exit_code == 0, finished.output
    return intervals(readings((folder / LOG).read_bytes()))
