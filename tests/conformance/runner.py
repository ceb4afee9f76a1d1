"""Runs many layers in one program on a target's simulator: their micro-kernels, or the TIR that states their meaning.

A program reads its layers from `trials.bin` one after the other into a pool, runs each on all its inputs and writes the
outputs to `results.bin`. What lies around and in the buffers before a run differs from run to run, so that a byte read
from outside of a tensor, or one that is not written, shows. On the machine that builds, each buffer is a heap block of
its exact size under AddressSanitizer.
"""

import atexit
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stages.backends.kernels import places, registry
from stages.backends.kernels.folder import INCLUDE, KernelFolder
from stages.backends.kernels.kernel import Kernel, KernelParams
from stages.backends.simulators.program import run_program
from stages.backends.targets.runtime import runtime_for
from stages.backends.targets.spec import Target
from stages.backends.toolchain.compiler import WARNINGS, Source, compile_sources, link
from stages.base import StageError
from stages.ir.graph import Tensor
from stages.ir.reference.integer import to_logical, to_physical
from stages.lower.codegen.lower import CFunction, Param, to_c
from stages.lower.codegen.printer import ctype
from stages.support.system.scratch import make_folder, remove_folder, temporary_folder
from stages.tensorize.schedule import schedule
from tests.conformance.case import Case

MAIN = Path(__file__).resolve().parent / "main.c"
TIMEOUT = 300
MOST = 6000  # trials of a program, so that their code fits into the ROM of every machine
_KINDS = {"constant": 0, "input": 1, "output": 2, "scratch": 3, "state": 4}
_DAMAGE = {1: "wrote outside of its buffers", 2: "changed an input or a constant"}


@dataclass(frozen=True)
class Trial:
    """A case by a kernel. `tensorized` False: the TIR alone. `overlay`: the input whose memory the output takes."""

    case: Case
    kernel: Kernel
    params: KernelParams
    tensorized: bool = True
    overlay: int | None = None

    def __str__(self) -> str:
        how = [str(self.params)] if type(self.params).model_fields else []
        how += [] if self.tensorized else ["TIR alone"]
        how += [] if self.overlay is None else [f"in place of input {self.overlay}"]
        return f"{self.kernel.name}: {self.case.name}{''.join(f', {part}' for part in how)}"


@dataclass(frozen=True)
class Outcome:
    """`wrong` is '' or what was wrong; `calls` are the names of the functions in the layer's C."""

    trial: Trial
    wrong: str
    body: str


@dataclass
class _Lowered:
    trial: Trial
    function: int
    constants: dict[str, np.ndarray]


def run(trials: Sequence[Trial], target: Target, machine: Target | None = None) -> list[Outcome]:
    """What became of each trial. Kernels see `target`; `machine`, where given, is what runs them (their TIR alone).

    Raises StageError when the program does not compile or ends early.
    """
    machine = machine or target
    if len(trials) > MOST:
        parts = [trials[start : start + MOST] for start in range(0, len(trials), MOST)]
        return [outcome for part in parts for outcome in run(part, target, machine)]
    if not trials:
        raise StageError(f"no case of the suite is a layer that {', '.join(target.kernels)} can compute")
    layers, functions = lowered(trials, target)
    with temporary_folder("conformance") as folder:
        elf = build(trials, functions, machine, folder)
        (folder / "trials.bin").write_bytes(_image(layers, functions))
        finished = run_program(elf, machine, folder, timeout=TIMEOUT)
        if finished.exit_code != 0:
            raise StageError(f"the program ended with status {finished.exit_code}:\n{finished.output[-400:].strip()}")
        results = (folder / "results.bin").read_bytes()
    return _outcomes(layers, functions, results)


def lowered(trials: Sequence[Trial], target: Target) -> tuple[list[_Lowered], list[CFunction]]:
    """Each trial with its constants, and the functions; trials of equal TIR share one."""
    import tvm_ffi

    layers: list[_Lowered] = []
    numbers: dict[Any, int] = {}
    scheduled: dict[str, Any] = {}
    roles: dict[str, Sequence[str]] = {}
    known = _Known()
    for trial in trials:
        number = known.find(trial)
        if number is None:
            read: set[str] = set()
            view = replace(trial.case.view, arrays=_Recorded(trial.case.view.arrays, read))
            lowering = trial.kernel.lower(trial.kernel.seen(view), trial.params, target)
            intrinsics = lowering.intrinsics if trial.tensorized else ()
            parts = (lowering.workload, *(part for made in intrinsics for part in (made.desc, made.impl)))
            key = (trial.kernel.name, tuple(tvm_ffi.structural_hash(part) for part in parts), lowering.roles)
            if key not in numbers:
                name = f"layer{len(numbers)}"
                numbers[key] = len(numbers)
                made = schedule(lowering, trial.kernel.name, trial.case.name) if trial.tensorized else lowering.workload
                scheduled[name] = made.with_attr("global_symbol", name)
                roles[name] = lowering.roles
            number = numbers[key]
            known.add(trial, read, number)
        constants = dict(trial.kernel.pack_for(trial.kernel.seen(trial.case.view), trial.params, target))
        layers.append(_Lowered(trial, number, constants))
    return layers, list(to_c(scheduled, roles).values())


class _Recorded(Mapping[str, np.ndarray]):
    """The constants of a layer; `read` gets the names of those that are looked at."""

    def __init__(self, arrays: Mapping[str, np.ndarray], read: set[str]) -> None:
        self.arrays, self.read = arrays, read

    def __getitem__(self, name: str) -> np.ndarray:
        self.read.add(name)
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)


class _Known:
    """Functions of layers that differ from an earlier one in nothing that their lowering looked at."""

    def __init__(self) -> None:
        self.entries: dict[Any, list[tuple[dict[str, bytes], int]]] = {}

    @staticmethod
    def _key(trial: Trial) -> Any:
        layer, params = trial.case.view.layer, trial.params
        tensors = tuple(t.model_dump_json() for t in (*trial.case.view.inputs, *trial.case.view.outputs))
        return trial.kernel.name, params.model_dump_json(), layer.model_dump_json(), tensors, trial.tensorized

    def find(self, trial: Trial) -> int | None:
        arrays = trial.case.view.arrays
        for looked_at, number in self.entries.get(self._key(trial), []):
            if all(_content(arrays[name]) == content for name, content in looked_at.items()):
                return number
        return None

    def add(self, trial: Trial, read: set[str], number: int) -> None:
        arrays = trial.case.view.arrays
        entry = ({name: _content(arrays[name]) for name in read}, number)
        self.entries.setdefault(self._key(trial), []).append(entry)


def _content(array: np.ndarray) -> bytes:
    return str((array.dtype, array.shape)).encode() + array.tobytes()


def build(trials: Sequence[Trial], functions: Sequence[CFunction], machine: Target, folder: Path) -> Path:
    """The program of the functions and the micro-kernels they call."""
    kernels = {trial.kernel.name: trial.kernel for trial in trials if trial.tensorized}.values()
    headers = sorted(
        {
            str(places.kernel_file(kernel.folder.path, header).resolve())
            for kernel in kernels
            for header in kernel.headers
        }
    )
    sources = sorted(
        {places.kernel_file(kernel.folder.path, source).resolve() for kernel in kernels for source in kernel.sources}
    )
    for path in _generated(trials, machine):
        if path.suffix == ".h":
            headers.append(str(path))
        else:
            sources.append(path)
    built_in = registry.folders(places.folder_names()).values()
    of = {each.path: each for each in (*built_in, *(kernel.folder for kernel in kernels))}
    lines = [f'#include "{header}"' for header in headers]
    for number, function in enumerate(functions):
        parameters = ", ".join(f"{ctype(p.dtype)} *{p.name}" for p in function.params)
        lines.append(f"static __attribute__((noinline)) void layer{number}({parameters})\n{{\n{function.body}\n}}")
        arguments = ", ".join(f"({ctype(p.dtype)} *)b[{index}]" for index, p in enumerate(function.params))
        lines.append(f"static void run{number}(uint8_t **b) {{ layer{number}({arguments}); }}")
    table = ", ".join(f"run{number}" for number in range(len(functions)))
    lines.append(f"static void (*const runs[])(uint8_t **) = {{{table}}};")
    pool = max(sum(p.bytes + 208 for p in function.params) for function in functions) + 256
    (folder / "layers.c").write_text("\n".join(lines) + "\n")
    (folder / "main.c").write_text(f"enum {{ POOL_BYTES = {pool} }};\n" + MAIN.read_text())
    runtime = runtime_for(machine)
    level = "-O0" if machine.simulator.kind == "native" else "-O1"  # sanitizers and optimization take long together
    wraps = [] if all(trial.tensorized for trial in trials) else ["-fwrapv"]  # the integers of TIR do
    flags = (
        level,
        *wraps,
        "-Wno-unused-parameter",
        "-Wno-unused-variable",
        "-Wno-unused-but-set-variable",
        f'-DLAYERS="{folder / "layers.c"}"',
    )
    main = compile_sources(
        machine, runtime, [Source(folder / "main.c")], folder / "objects", flags=("-std=gnu11", *WARNINGS, *flags),
        include=[INCLUDE, *dict.fromkeys(f for kernel in kernels for f in _for_core(kernel.folder, machine))],
    )  # fmt: skip
    board = [*runtime.sources, *runtime.console]
    elf = folder / "layers.elf"
    objects = [_object(machine, source, of.get(source.parent)) for source in (*sources, *board)]
    link(machine, runtime, [*main, *objects], elf)
    return elf


def _generated(trials: Sequence[Trial], machine: Target) -> list[Path]:
    """The generated files of the trials' kernels, written once in a process."""
    paths: dict[Path, None] = {}
    for trial in trials:
        kernel, view = trial.kernel, trial.case.view
        if trial.tensorized and kernel.folder.generate is not None:
            arguments = kernel.seen(view), trial.params, machine
            for name in (*kernel.sources_for(*arguments), *kernel.headers_for(*arguments)):
                text = kernel.folder.generate(name)
                path = _compiled / "generated" / kernel.folder.name / name
                if text is not None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text)
                    paths[path] = None
    return list(paths)


def _for_core(of: KernelFolder, machine: Target) -> list[Path]:
    """The folder with the headers that are generated for the machine's core, if there are any."""
    if of.generate_for_core is None:
        return []
    folder = _compiled / machine.name / "generated" / of.name
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in of.generate_for_core(machine).items():
        (folder / name).write_text(text)
    return [folder]


_compiled = make_folder("conformance-objects")
atexit.register(remove_folder, _compiled)


_objects: dict[tuple[str, Path], Path] = {}


def _object(machine: Target, source: Path, of: KernelFolder | None) -> Path:
    """The compiled source, of a kernel folder where one is given; once in a process."""
    if (machine.name, source) not in _objects:
        folder = _compiled / machine.name / str(source).strip("/").replace("/", "_")
        flags = ("-std=gnu11", *WARNINGS, "-O2", "-Wno-unused-parameter", *(of.flags if of else ()))
        include = (INCLUDE, *(places.include_path(of.path, name) for name in of.include)) if of else ()
        include += tuple(_for_core(of, machine)) if of else ()
        made = compile_sources(machine, runtime_for(machine), [Source(source)], folder, flags=flags, include=include)
        _objects[machine.name, source] = made[0]
    return _objects[machine.name, source]


def compiled(machine: Target, source: Path) -> Path:
    """The object file of a source that some program of this process has."""
    return _objects[machine.name, source]


def _image(layers: Sequence[_Lowered], functions: Sequence[CFunction]) -> bytes:
    """trials.bin, which main.c describes."""
    parts = [np.int32(len(layers)).tobytes()]
    for layer in layers:
        case, params = layer.trial.case, functions[layer.function].params
        overlaid = next((i for i, p in enumerate(params) if p.role == f"input:{layer.trial.overlay}"), -1)
        numbers = [layer.function, len(params), len(case.inputs)]
        for param in params:
            kind = param.role.partition(":")[0]
            numbers += [param.bytes, _KINDS[kind], overlaid if kind == "output" else -1, _start(layer.trial, param)]
        parts.append(np.array(numbers, np.int32).tobytes())
        for param in params:
            if param.role.startswith("constant:"):
                parts.append(_bytes(layer.constants[param.role.partition(":")[2]], param, layer.trial))
        for run in zip(case.inputs, case.states, strict=True):
            given = dict(zip(("input", "state"), run, strict=True))
            tensors = {"input": case.view.inputs, "state": case.view.states}
            for param in params:
                kind, _, number = param.role.partition(":")
                if kind in given:
                    physical = to_physical(given[kind][int(number)], tensors[kind][int(number)])
                    parts.append(_bytes(physical, param, layer.trial))
    return b"".join(parts)


def _start(trial: Trial, param: Param) -> int:
    """Bytes from a multiple of 16 to the buffer: a row, where the kernel computes bands that start there."""
    kind, _, number = param.role.partition(":")
    tensors = {"input": trial.case.view.inputs, "output": trial.case.view.outputs}.get(kind)
    if tensors is None:
        return 0
    tensor = tensors[int(number)]
    if len(tensor.shape) != 4 or tensor.layout not in ("", "NHWC", "NHCW"):
        return 0
    row = tensor.bytes // (tensor.shape[0] * tensor.shape[1])
    return 0 if row % trial.kernel.row_alignment else row % 16


def _bytes(array: np.ndarray, param: Param, trial: Trial) -> bytes:
    assert array.nbytes == param.bytes and str(array.dtype) == param.dtype, (str(trial), param, array.dtype)
    return np.ascontiguousarray(array).tobytes()


def _outcomes(layers: Sequence[_Lowered], functions: Sequence[CFunction], results: bytes) -> list[Outcome]:
    found, position = [], 0
    for layer in layers:
        case, wrong = layer.trial.case, ""
        written = _written(case, functions[layer.function].params)
        for number, expected in enumerate(case.expected):
            status = int.from_bytes(results[position : position + 4], "little")
            position += 4
            for at, tensor in written:
                got = to_logical(np.frombuffer(results, tensor.dtype, tensor.elements, position), tensor)
                position += tensor.bytes
                what = f"run {number}{f', state {at - 1}' if at else ''}"
                wrong = wrong or _difference(got, expected[at], status, what, case.within)
        found.append(Outcome(layer.trial, wrong, functions[layer.function].body))
    assert position == len(results)
    return found


def _written(case: Case, params: Sequence[Param]) -> list[tuple[int, Tensor]]:
    """What results.bin has of each run: the tensors, with their places in `Case.expected`."""
    found = []
    for param in params:
        kind, _, number = param.role.partition(":")
        if kind == "output":
            found.append((0, case.view.outputs[0]))
        elif kind == "state":
            found.append((1 + int(number), case.view.states[int(number)]))
    return found


def _difference(got: np.ndarray, expected: np.ndarray, status: int, where: str, within: float) -> str:
    damage = [text for bit, text in _DAMAGE.items() if status & bit]
    if damage:
        return f"{where} {' and '.join(damage)}"
    flat = [np.ascontiguousarray(array).reshape(-1) for array in (got, expected)]
    if within:
        differ = np.flatnonzero(~np.isclose(*flat, rtol=within, atol=within))
    else:
        differ = np.flatnonzero(flat[0].view(f"u{got.itemsize}") != flat[1].view(f"u{got.itemsize}"))
    if not differ.size:
        return ""
    first = tuple(int(i) for i in np.unravel_index(differ[0], got.shape))
    return f"{where}: {differ.size} of {got.size} differ, at {first} {got[first]} is not {expected[first]}"
