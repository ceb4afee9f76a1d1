"""From the emitted folder and the target's runtime to firmware.elf, firmware.map and sizes.json."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.base import StageError, no_progress
from stages.compile import CompileConfig
from stages.compile.sizes import measure
from stages.compile.toolchain import WARNINGS, CommandFailed, Source, compile_sources, link
from stages.targets.runtime import HARNESS, Runtime, runtime_for

if TYPE_CHECKING:
    from stages.targets.spec import Target

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
) -> dict[str, Any]:
    """Compile the sources that `model` (the content of model.json) lists, link them with the harness, measure.

    Writes firmware.elf, firmware.map and sizes.json into `out` and returns the sizes. The same sources give the same
    bytes wherever they lie. Raises StageError with the compiler's first errors, or with the sizes when the model does
    not fit the target's memory.
    """
    config = config or CompileConfig()
    runtime = runtime_for(target)
    with tempfile.TemporaryDirectory(prefix="firmline-compile-") as name:
        build = Path(name)
        elf, map_file = build / "firmware.elf", build / "firmware.map"
        # Debug information names files as in the project, not as on this machine.
        shown = [f"-ffile-prefix-map={folder}={short}" for folder, short in ((src, "src"), (HARNESS.parent, "targets"))]
        shared = (config.optimize, *WARNINGS, *config.flags, *shown, f"-ffile-prefix-map={build}=build")
        groups = (
            (model_sources(src, model["sources"]), ("-std=c11", "-DMODEL_HOOK"), "model"),
            (harness_sources(src, model, runtime), ("-std=gnu11",), "harness"),
        )
        objects: list[Path] = []
        names: dict[str, str] = {}  # of source files, by object file
        for sources, flags, group in groups:
            compiled = compile_sources(
                target,
                runtime,
                sources,
                build / group,
                flags=(*shared, *flags),
                include=(src,),
                log=log,
                progress=lambda message, done, group=group: progress(message, 0.8 * done if group == "model" else 0.9),
            )
            names |= {f"{group}/{made.name}": _shown(s.path, src) for made, s in zip(compiled, sources, strict=True)}
            objects += compiled
        progress("linking", 0.95)
        try:
            link(target, runtime, objects, elf, map_file=map_file, log=log)
        except CommandFailed as error:
            raise _does_not_fit(error, model, target) or error from None
        sizes = measure(elf, map_file, model, names)
        for made in (elf, map_file):
            shutil.move(made, out / made.name)
    (out / "sizes.json").write_text(json.dumps(sizes, indent=1) + "\n")
    return sizes


def model_sources(src: Path, listed: Mapping[str, Any]) -> list[Source]:
    """The model's own files: entries are paths, or {path, flags} for a file with flags of its own."""
    entries = [*listed.get("c", ()), *listed.get("assembly", ())]
    return [
        Source(src / entry) if isinstance(entry, str) else Source(src / entry["path"], tuple(entry.get("flags", ())))
        for entry in entries
    ]


def harness_sources(src: Path, model: Mapping[str, Any], runtime: Runtime) -> list[Source]:
    """`main`, the traces and the target's runtime; `main` learns the sizes of inputs and outputs here."""
    sizes = {
        macro: ",".join(str(port["bytes"]) for port in model[ports])
        for macro, ports in (("HARNESS_INPUT_BYTES", "inputs"), ("HARNESS_OUTPUT_BYTES", "outputs"))
    }
    main = Source(HARNESS / "main.c", tuple(f"-D{macro}={value}" for macro, value in sizes.items()))
    traces = [Source(src / path) for path in model["sources"].get("trace", ())]
    return [main, *traces, *(Source(path) for path in runtime.sources)]


def _shown(path: Path, src: Path) -> str:
    """A source file's name for people: within `src`, or within stages/targets."""
    return path.relative_to(src if path.is_relative_to(src) else HARNESS.parent).as_posix()


def _does_not_fit(error: CommandFailed, model: Mapping[str, Any], target: Target) -> StageError | None:
    """The linker's overflow in the user's words, or None when it was about something else."""
    overflows = _OVERFLOW.findall(error.output)
    if not overflows or target.memory is None:
        return None
    regions = {"rom": target.memory.rom, "ram": target.memory.ram}
    needs = [
        f"{name} needs {regions[name].length + int(excess):,} bytes and has {regions[name].length:,}"
        for name, excess in dict(overflows).items()
    ]
    parts = f"weights {model['weights_bytes']:,}, arena {model['arena_bytes']:,}, stack {target.memory.stack:,} bytes"
    machine = f", within what {target.simulator.machine} has" if target.simulator.machine else ""
    peak = f"\n{arena_peak(model)}" if "ram" in dict(overflows) and model.get("arena") else ""
    return StageError(
        f"{model['name']} does not fit target {target.name}: {'; '.join(needs)}\n{parts}{peak}",
        hint=f"take a smaller model, or raise memory.*.length of {target.name} in pipeline.yaml{machine}",
    )


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
    named = ", ".join(f"{block['name']} {block['bytes']:,}" for block in largest)
    used = sum(block["bytes"] for block in live[index])
    return f"the arena's peak is {used:,} bytes at layer {index} {layer['name']} ({layer['op']}): {named}"
