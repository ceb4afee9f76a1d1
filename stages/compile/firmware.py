"""Compile and link the emitted folder and the target's runtime.

Writes firmware.elf, firmware.map and sizes.json.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from stages.backends.targets.runtime import BACKENDS, HARNESS, Runtime, runtime_for
from stages.backends.targets.spec import Target
from stages.backends.toolchain.compiler import WARNINGS, CommandFailed, Source, compile_sources, link, run_command
from stages.backends.toolchain.objects import ObjectCache
from stages.base import Cache, StageError, no_progress
from stages.compile.blocks import blocks_of, own_sections, size_line
from stages.compile.config import CompileConfig
from stages.compile.flags import blamed_flag
from stages.compile.sizes import addresses, measure, region_use
from stages.support.messages import escape
from stages.support.messages.stage_error import DoesNotFit
from stages.support.system.scratch import temporary_folder

KERNELS = "kernels"  # folder of the emitted sources that all models share
SIMULATED, NOT_SIMULATED = "simulated.elf", "not_simulated.txt"
_OVERFLOW = re.compile(r"region `(\w+)' overflowed by (\d+) bytes?")


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
    """Compile the sources in `model`, link them with the harness, and return the sizes.

    `model` is the content of model.json.

    Writes firmware.elf, firmware.map and sizes.json into `out`, and simulated.elf if the board is simulated at other
    addresses. Equal sources give equal bytes in any folder. With a `cache` and the versions of `tools`, kernels and
    runtime are compiled once for all models. `inspect` gets the object files by source file (`layers.c`,
    `kernels/rvp/quads.c`); they exist only during its call.

    Raises StageError with the compiler's first errors, and DoesNotFit with the sizes.
    """
    config = config or CompileConfig()
    debugged = config.host == "debugger"
    runtime = runtime_for(target, debugged=debugged)
    with temporary_folder("compile") as build:
        elf, map_file = build / "firmware.elf", build / "firmware.map"
        # Debug information has paths of the project, not of this machine.
        # For .S files, GCC for bare metal passes only the second flag to the assembler.
        places = ((src, "src"), (BACKENDS, "backends"), (build, "build"))
        prefix_maps = [
            f"-f{kind}-prefix-map={folder}={short}" for folder, short in places for kind in ("file", "debug")
        ]
        shared = (config.optimize, *WARNINGS, *config.flags, *prefix_maps)
        object_cache = (
            None if cache is None else ObjectCache(cache, _compiler(tools or {}), (src / KERNELS, BACKENDS), places)
        )
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
                    objects=object_cache,
                    log=log,
                    progress=lambda message, part, group=group: progress(
                        message, 0.8 * part if group == "model" else 0.9
                    ),
                )
            names |= {f"{group}/{path.name}": _shown(s.path, src) for path, s in zip(compiled, sources, strict=True)}
            objects += compiled
        inspect({names[f"{path.parent.name}/{path.name}"]: path for path in objects})
        progress("linking", 0.95)
        _link(target, runtime, model, objects, elf, map_file, log)
        sizes = {
            **measure(elf, map_file, model, names),
            "regions": region_use(elf, target.memory),
            "blocks": addresses(elf, blocks_of(model, target), target.memory),
        }
        _check_shared(sizes["regions"], model, target)
        for path in (elf, map_file):
            shutil.move(path, out / path.name)
        if target.simulated is not None and not debugged:
            _link_for_simulation(target, model, objects, build / SIMULATED, out, log)
    (out / "sizes.json").write_text(json.dumps(sizes, indent=1) + "\n")
    return sizes


def _compiler(tools: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of the tools that determine object files."""
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
    """Raise DoesNotFit if regions that share one memory need more than it has.

    The linker checks each region alone.
    """
    used = {region["name"]: region["used"] for region in regions}
    for region in regions:
        names = () if target.memory is None or region["same_as"] else target.memory.same(region["name"])
        needed = sum(used[name] for name in names)
        if len(names) > 1 and needed > region["length"]:
            sizes = " and ".join(f"{name} {used[name]:,}" for name in names)
            parts = f"{sizes}, which are one memory, need {needed:,} bytes, but have {region['length']:,}"
            raise DoesNotFit(
                f"{escape.name(model['name'])} does not fit target {target.name}: {parts}\n"
                f"{size_line('weights', model, target)}",
                hint=remedy(target),
            )


def _link_for_simulation(
    target: Target, model: Mapping[str, Any], objects: list[Path], elf: Path, out: Path, log: Callable[[str], None]
) -> None:
    """Link the objects for the addresses of the simulator's machine.

    If they do not fit, simulate reports it.
    """
    machine = target.in_simulator
    try:
        link(machine, runtime_for(machine), objects, elf, map_file=elf.with_suffix(".map"), log=log)
        shutil.move(elf, out / SIMULATED)
    except CommandFailed as error:
        needs = _overflow(error, model, machine)
        if not needs:
            raise
        machine_name = f"{target.simulator.machine}, the simulated machine"
        text = f"{escape.name(model['name'])} fits {target.name}, but not {machine_name}: {needs}\n"
        (out / NOT_SIMULATED).write_text(text)


@contextmanager
def _blaming_flags(config: CompileConfig) -> Iterator[None]:
    """Set the place of a compiler error that one of the recipe's flags causes."""
    try:
        yield
    except CommandFailed as error:
        number = blamed_flag(config.flags, error.output, partial(_compiles, error.arguments, config.flags))
        if number is not None:
            error.at = ("stages", "compile", "flags", number)
        raise


def _compiles(arguments: tuple[str, ...], flags: tuple[str, ...], new_flags: tuple[str, ...]) -> bool:
    """Return whether a failed compiler call succeeds with other flags of the recipe."""
    old_flags = (*WARNINGS, *flags)
    start = next(start for start in range(len(arguments)) if arguments[start : start + len(old_flags)] == old_flags)
    try:
        run_command((*arguments[:start], *WARNINGS, *new_flags, *arguments[start + len(old_flags) :]), "compiling")
    except StageError:
        return False
    return True


def model_sources(src: Path, listed: Mapping[str, Any], sections: Sequence[str] = ()) -> list[Source]:
    """Return the model's files.

    Entries are paths, or {path, flags} for a file with additional flags.
    `sections` are flags for the files other than kernels, which define arenas and weights.
    """
    entries = [*listed.get("c", ()), *listed.get("assembly", ())]
    named = [(entry, ()) if isinstance(entry, str) else (entry["path"], entry.get("flags", ())) for entry in entries]
    return [
        Source(src / path, (*flags, *(() if path.startswith(f"{KERNELS}/") else sections))) for path, flags in named
    ]


def harness_sources(src: Path, model: Mapping[str, Any], target: Target, runtime: Runtime) -> list[Source]:
    """Return `main`, the traces and the target's runtime.

    `main` gets the sizes of inputs and outputs as macros.

    The traces' file defines the arenas if the caller of the model provides them.
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
    """Return a source file's path relative to `src` or to stages/backends."""
    return path.relative_to(src if path.is_relative_to(src) else BACKENDS).as_posix()


def _overflow(error: CommandFailed, model: Mapping[str, Any], target: Target) -> str:
    """Describe the linker's overflow: regions, sizes and the arena's peak.

    '' for another error.
    """
    overflows = _OVERFLOW.findall(error.output)
    if not overflows or target.memory is None:
        return ""
    regions = target.memory.regions
    needs = [
        f"{name} needs {regions[name].length + int(excess):,} bytes, but has {regions[name].length:,}"
        for name, excess in dict(overflows).items()
    ]
    sizes = [size_line(part, model, target) for part in ("weights", "arena")]
    parts = f"{', '.join(sizes)}, stack {target.memory.stack:,} bytes"
    arenas = {block["region"] for block in blocks_of(model, target) if block["part"] == "arena"}
    peak = f"\n{arena_peak(model)}" if arenas & {*dict(overflows)} and model.get("arena") else ""
    return f"{'; '.join(needs)}\n{parts}{peak}"


def _fewer_by_rules(error: CommandFailed, model: Mapping[str, Any], target: Target) -> str:
    """Return the hint if memory rules put something into a region that is too small, else ''."""
    full = {name for name, _ in _OVERFLOW.findall(error.output)}
    blocks = [block for block in blocks_of(model, target) if full & {block["region"], block["loaded_from"]}]
    rules = sorted({number for block in blocks for number in block["rules"]})
    if not rules:
        return ""
    which = f"rule{'s' if len(rules) > 1 else ''} {', '.join(map(str, rules))} of the recipe's memory.rules"
    filled = ", ".join(f"{block['part']} {block['bytes']:,} in {block['region']}" for block in blocks if block["rules"])
    return f"{which} put {filled}: change the rules, or use a smaller stack"


def _more_reserve(model: Mapping[str, Any], target: Target) -> str:
    """Return the hint to raise memory.reserve if arena or weights can move elsewhere, or ''."""
    if target.memory is None or not target.capacities:
        return ""
    for part in ("arena", "weights"):
        capacity = sum(region.length for region in target.memory.regions.values() if part in region.holds)
        if model[f"{part}_bytes"] > capacity:
            return ""
    reserve = target.memory.reserve
    return (
        f"raise memory.reserve of {target.name} in pipeline.yaml (code {reserve.code:,}, data {reserve.data:,} bytes): "
        "space that weights and arena leave free if they can use several regions"
    )


def remedy(target: Target) -> str:
    """Return the hint for a model that is too large for the target's memory."""
    machine = target.simulator.machine
    if target.board is None:
        if machine:
            return (
                f"use a smaller model, or declare a core `like: {target.name}` with more memories of {machine} in "
                "pipeline.yaml (docs/reference/targets.md#memories)"
            )
        return f"use a smaller model, or raise memory.*.length of {target.name} in pipeline.yaml"
    return "use a smaller model or another board"


def arena_peak(model: Mapping[str, Any]) -> str:
    """Describe the arena's peak in a line: bytes, layer, and the largest buffers."""
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
