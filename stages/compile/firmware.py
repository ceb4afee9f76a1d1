"""From the emitted folder and the target's runtime to firmware.elf, firmware.map and sizes.json."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.backends.targets.runtime import BACKENDS, HARNESS, Runtime, runtime_for
from stages.backends.toolchain.compiler import WARNINGS, CommandFailed, Source, compile_sources, link, run_command
from stages.backends.toolchain.objects import ObjectCache
from stages.base import StageError, no_progress
from stages.compile.blocks import blocks_of, listed, own_sections
from stages.compile.config import CompileConfig
from stages.compile.flags import blamed_flag
from stages.compile.sizes import addresses, measure, region_use
from stages.support.messages import escape
from stages.support.system.scratch import temporary_folder

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.base import Cache

KERNELS = "kernels"  # folder of the emitted sources that are the same for every model
SIMULATED, NOT_SIMULATED = "simulated.elf", "not_simulated.txt"
_OVERFLOW = re.compile(r"region `(\w+)' overflowed by (\d+) bytes?")


class DoesNotFit(StageError):
    """A program is larger than the target's memory."""


def compile_firmware(
    src: Path,
    model: Mapping[str, Any],
    target: Target,
    out: Path,
    *,
    config: CompileConfig | None = None,
    log: Callable[[str], None] = lambda line: None,
    progress: Callable[..., None] = no_progress,
    cache: Cache | None = None,
    tools: Mapping[str, str] | None = None,
    inspect: Callable[[Mapping[str, Path]], None] = lambda objects: None,
) -> dict[str, Any]:
    """Compile the sources that `model` (the content of model.json) lists, link them with the harness, measure.

    Writes firmware.elf, firmware.map and sizes.json into `out` and returns the sizes; for a target whose board is
    simulated at other addresses also simulated.elf. The same sources give the same bytes wherever they lie. With a
    `cache`, and the versions of the compile stage's `tools`, kernels and runtime are compiled once for all models.
    `inspect` gets the object files, which last as long as its call, by source file: `layers.c`, `kernels/rvp/quads.c`.
    Raises StageError with the compiler's first errors, or with the sizes when the model does not fit the memory.
    """
    config = config or CompileConfig()
    debugged = config.host == "debugger"
    runtime = runtime_for(target, debugged=debugged)
    with temporary_folder("compile") as build:
        elf, map_file = build / "firmware.elf", build / "firmware.map"
        # Debug information names files as in the project, not as on this machine.
        # GCC for bare metal hands the assembler, for .S, only the second of the two.
        places = ((src, "src"), (BACKENDS, "backends"), (build, "build"))
        shown = [f"-f{what}-prefix-map={folder}={short}" for folder, short in places for what in ("file", "debug")]
        shared = (config.optimize, *WARNINGS, *config.flags, *shown)
        kept = None if cache is None else ObjectCache(cache, _compiler(tools or {}), (src / KERNELS, BACKENDS), places)
        groups = (
            (model_sources(src, model["sources"], own_sections(model, target)), ("-std=c11", "-DMODEL_HOOK"), "model"),
            (harness_sources(src, model, target, runtime), ("-std=gnu11",), "harness"),
        )
        objects: list[Path] = []
        names: dict[str, str] = {}  # of source files, by object file
        for sources, flags, group in groups:
            with _blaming_flags(config):
                compiled = compile_sources(
                    target,
                    runtime,
                    sources,
                    build / group,
                    flags=(*shared, *flags),
                    include=(src,),
                    objects=kept,
                    log=log,
                    progress=lambda done, part, group=group: progress(done, 0.8 * part if group == "model" else 0.9),
                )
            names |= {f"{group}/{made.name}": _shown(s.path, src) for made, s in zip(compiled, sources, strict=True)}
            objects += compiled
        inspect({names[f"{one.parent.name}/{one.name}"]: one for one in objects})
        progress("linking", 0.95)
        _link(target, runtime, model, objects, elf, map_file, log)
        sizes = {
            **measure(elf, map_file, model, names),
            "regions": region_use(elf, target.memory),
            "blocks": addresses(elf, blocks_of(model, target), target.memory),
        }
        _check_shared(sizes["regions"], model, target)
        for made in (elf, map_file):
            shutil.move(made, out / made.name)
        if target.simulated is not None and not debugged:
            _link_for_simulation(target, model, objects, build / SIMULATED, out, log)
    (out / "sizes.json").write_text(json.dumps(sizes, indent=1) + "\n")
    return sizes


def _compiler(tools: Mapping[str, str]) -> dict[str, str]:
    """Of a stage's tools those that objects are made with: other stages that compile have more."""
    return {name: tools[name] for name in ("compiler", "C library") if name in tools}


def _link(
    target: Target,
    runtime: Runtime,
    model: Mapping[str, Any],
    objects: list[Path],
    elf: Path,
    map_file: Path,
    log: Callable[[str], None],
) -> None:
    try:
        link(target, runtime, objects, elf, map_file=map_file, log=log)
    except CommandFailed as error:
        needs = _overflow(error, model, target)
        if not needs:
            raise
        raise DoesNotFit(
            f"{escape.name(model['name'])} does not fit target {target.name}: {needs}",
            hint=_fewer_by_rules(error, model, target) or _more_reserve(model, target) or remedy(target),
        ) from None


def _check_shared(regions: Sequence[Mapping[str, Any]], model: Mapping[str, Any], target: Target) -> None:
    """Raises StageError where regions that are one memory hold more than that: the linker knows each alone."""
    used = {one["name"]: one["used"] for one in regions}
    for one in regions:
        names = () if target.memory is None or one["same_as"] else target.memory.same(one["name"])
        needed = sum(used[name] for name in names)
        if len(names) > 1 and needed > one["length"]:
            each = " and ".join(f"{name} {used[name]:,}" for name in names)
            parts = f"{each}, which are one memory, need {needed:,} bytes and have {one['length']:,}"
            raise DoesNotFit(
                f"{escape.name(model['name'])} does not fit target {target.name}: {parts}\n"
                f"{listed('weights', model, target)}",
                hint=remedy(target),
            )


def _link_for_simulation(
    target: Target, model: Mapping[str, Any], objects: list[Path], elf: Path, out: Path, log: Callable[[str], None]
) -> None:
    """The same objects at the addresses of the simulator's machine. One that does not fit there is simulate's error."""
    machine = target.in_simulator
    try:
        link(machine, runtime_for(machine), objects, elf, map_file=elf.with_suffix(".map"), log=log)
        shutil.move(elf, out / SIMULATED)
    except CommandFailed as error:
        needs = _overflow(error, model, machine)
        if not needs:
            raise
        where = f"{target.simulator.machine}, the machine it is simulated on"
        (out / NOT_SIMULATED).write_text(f"{escape.name(model['name'])} fits {target.name}, but not {where}: {needs}\n")


@contextmanager
def _blaming_flags(config: CompileConfig) -> Iterator[None]:
    """An error about one of the recipe's flags blames it."""
    try:
        yield
    except CommandFailed as error:
        number = blamed_flag(config.flags, error.output, partial(_compiles, error.arguments, config.flags))
        if number is not None:
            error.at = ("stages", "compile", "flags", number)
        raise


def _compiles(arguments: tuple[str, ...], flags: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether a call of the compiler that failed ends well with other flags of the recipe."""
    before = (*WARNINGS, *flags)
    at = next(at for at in range(len(arguments)) if arguments[at : at + len(before)] == before)
    try:
        run_command((*arguments[:at], *WARNINGS, *others, *arguments[at + len(before) :]), "compiling")
    except StageError:
        return False
    return True


def model_sources(src: Path, listed: Mapping[str, Any], sections: Sequence[str] = ()) -> list[Source]:
    """The model's own files: entries are paths, or {path, flags} for a file with flags of its own.

    `sections` are flags for what has arenas or weights, which kernels do not have.
    """
    entries = [*listed.get("c", ()), *listed.get("assembly", ())]
    named = [(entry, ()) if isinstance(entry, str) else (entry["path"], entry.get("flags", ())) for entry in entries]
    return [
        Source(src / path, (*flags, *(() if path.startswith(f"{KERNELS}/") else sections))) for path, flags in named
    ]


def harness_sources(src: Path, model: Mapping[str, Any], target: Target, runtime: Runtime) -> list[Source]:
    """`main`, the traces and the target's runtime; `main` learns the sizes of inputs and outputs here.

    The traces' file has the arenas where the model is handed them.
    """
    sizes = {
        macro: ",".join(str(port["bytes"]) for port in model[ports])
        for macro, ports in (("HARNESS_INPUT_BYTES", "inputs"), ("HARNESS_OUTPUT_BYTES", "outputs"))
    }
    main = Source(HARNESS / "main.c", tuple(f"-D{macro}={value}" for macro, value in sizes.items()))
    sections = tuple(own_sections(model, target))
    traces = [Source(src / path, sections) for path in model["sources"].get("trace", ())]
    return [main, *traces, *(Source(path) for path in runtime.sources)]


def _shown(path: Path, src: Path) -> str:
    """A source file's name for people: within `src`, or within stages/backends."""
    return path.relative_to(src if path.is_relative_to(src) else BACKENDS).as_posix()


def _overflow(error: CommandFailed, model: Mapping[str, Any], target: Target) -> str:
    """The linker's overflow in the user's words, '' when it was about something else."""
    overflows = _OVERFLOW.findall(error.output)
    if not overflows or target.memory is None:
        return ""
    regions = target.memory.regions
    needs = [
        f"{name} needs {regions[name].length + int(excess):,} bytes and has {regions[name].length:,}"
        for name, excess in dict(overflows).items()
    ]
    parts = f"{listed('weights', model, target)}, {listed('arena', model, target)}, stack {target.memory.stack:,} bytes"
    arenas = {block["region"] for block in blocks_of(model, target) if block["part"] == "arena"}
    peak = f"\n{arena_peak(model)}" if arenas & {*dict(overflows)} and model.get("arena") else ""
    return f"{'; '.join(needs)}\n{parts}{peak}"


def _fewer_by_rules(error: CommandFailed, model: Mapping[str, Any], target: Target) -> str:
    """What to do where memory rules put something into a region that is too small."""
    full = {name for name, _ in _OVERFLOW.findall(error.output)}
    blocks = [block for block in blocks_of(model, target) if full & {block["region"], block["loaded_from"]}]
    rules = sorted({number for block in blocks for number in block["rules"]})
    if not rules:
        return ""
    which = f"rule{'s' if len(rules) > 1 else ''} {', '.join(map(str, rules))} of the recipe's memory.rules"
    filled = ", ".join(f"{one['part']} {one['bytes']:,} in {one['region']}" for one in blocks if one["rules"])
    return f"{which} put much there ({filled}): let them put less there, or take a smaller stack"


def _more_reserve(model: Mapping[str, Any], target: Target) -> str:
    """What to do where arena and weights left too little of a region to others, with other regions to go to.

    '' where all regions that may hold one of the two have less room than it takes.
    """
    if target.memory is None or not target.rooms:
        return ""
    for part in ("arena", "weights"):
        room = sum(region.length for region in target.memory.regions.values() if part in region.holds)
        if model[f"{part}_bytes"] > room:
            return ""
    left = target.memory.reserve
    return (
        f"raise memory.reserve of {target.name} in pipeline.yaml (code {left.code:,}, data {left.data:,} bytes): what "
        "weights and arena leave to others where they have a choice of regions"
    )


def remedy(target: Target) -> str:
    """What to do about a model that is too large for the memory it was linked for."""
    machine = target.simulator.machine
    if target.board is None:
        within = f", within what {machine} has" if machine else ""
        return f"take a smaller model, or raise memory.*.length of {target.name} in pipeline.yaml{within}"
    return "take a smaller model or another board"


def arena_peak(model: Mapping[str, Any]) -> str:
    """Where most of the arena is in use, in a line: bytes, layer, and its largest blocks."""
    blocks = model["arena"]
    live = {
        layer["index"]: [block for block in blocks if block["first"] <= layer["index"] <= block["last"]]
        for layer in model["layers"]
    }
    index = max(live, key=lambda index: sum(block["bytes"] for block in live[index]))
    layer = next(layer for layer in model["layers"] if layer["index"] == index)
    largest = sorted(live[index], key=lambda block: -block["bytes"])[:3]
    named = ", ".join(f"{escape.name(block['name'])} {block['bytes']:,}" for block in largest)
    used = sum(block["bytes"] for block in live[index])
    return f"the arena's peak is {used:,} bytes at layer {index} {escape.name(layer['name'])} ({layer['op']}): {named}"
