"""Count calls on the simulator: many in one firmware, built by the usual stages.

The firmware's network is a graph of independent layers. Each has its own inputs and output, and a rule names its
kernel. So the counted code is the code of a recipe, and every output byte is compared with the integer reference in
the same run. Cycles are from the target's timing model.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.backends.kernels import registry
from stages.backends.targets.spec import Target
from stages.backends.timing.table import timing_table
from stages.base import Cache, StageError, no_progress
from stages.compile.firmware import compile_firmware
from stages.count.call import Memory, memory_for, memory_of
from stages.count.code import Sections
from stages.count.parallel import results
from stages.emit.build import emit
from stages.emit.config import EmitConfig
from stages.ir.graph import Graph, Tensor, storage_of
from stages.ir.graph.layer_rules import LayerMatch
from stages.ir.packed import limits
from stages.ir.reference.integer import advance_layer, to_logical, to_physical
from stages.ir.samples.files import Inference
from stages.simulate.cycles import layer_intervals
from stages.simulate.firmware import run_firmware
from stages.support.messages.stage_error import DoesNotFit
from stages.support.system.scratch import temporary_folder
from stages.tensorize.artifact import Tensorized
from stages.tensorize.build import tensorize_graph
from stages.tensorize.config import TensorizeConfig, TensorizeRule
from stages.tensorize.costs import CallRom, KernelCall
from stages.tensorize.lowering import function_name

# Limits of one firmware: layers, bytes of activations and packed weights, estimated instructions.
_LAYERS, _BYTES, _INSTRUCTIONS = 64, 12_000_000, 1_500_000_000
_ASSUMED = 10_000_000  # instructions of a layer without an estimate
_PLACES = re.compile(r"^enum \{\n(.*?)^\};\n", re.MULTILINE | re.DOTALL)  # offsets of tensors in model.c
_PLACE = re.compile(r"^ +(\w+) = (\d+),", re.MULTILINE)
_CALL = re.compile(r"^(    \w+\([^;]*\);\n)    MODEL_LAYER_DONE\((\d+)\);", re.MULTILINE)
_NO_RELAXATION = '#ifdef __riscv\n__asm__(".option norelax");\n#endif\n'
_TVM = Lock()  # TVM is not thread-safe (stages.base.Stage.exclusive)


@dataclass(frozen=True)
class Counted:
    """Instructions (or estimated cycles) and ROM bytes of a call."""

    count: int
    rom: CallRom


class NotRun(StageError):
    """A firmware with kernels did not finish: fault, time limit, or crashed simulator."""


def counted(
    calls: Sequence[KernelCall],
    target: Target,
    *,
    in_cycles: bool = False,
    cache: Cache | None = None,
    tools: Mapping[str, str] | None = None,
    log: Callable[[str], None] = lambda line: None,
    progress: Callable[..., None] = no_progress,
) -> Iterator[tuple[KernelCall, Counted]]:
    """Yield each call with its count, one firmware after the other, in order.

    Calls that do not fit the target or do not finish are logged and left out; a firmware with several calls is halved
    to find them. `cache` and `tools` as in compile_firmware. Raises StageError for an output that differs from the
    reference's.
    """
    rest = list(calls)
    while rest:
        done = 0
        groups = list(batches(rest, memory_of(target)))
        try:
            work = [(group, target, in_cycles, cache, tools) for group in groups]
            with closing(results(count_batch, work, None)) as counts:
                for group, figures in zip(groups, counts, strict=True):
                    yield from zip(group, figures, strict=True)
                    done += len(group)
                    progress(f"counted {done} of {len(rest)} kernels", done / len(rest))
            return
        except DoesNotFit:
            reason = "it does not fit the target"
        except NotRun as error:
            reason = error.message.splitlines()[0]
        rest = rest[done:]
        group = next(batches(rest, memory_of(target)))
        if len(group) == 1:
            log(f"not counted, {reason}: {group[0].variant}: {group[0].signature}")
        else:
            half = len(group) // 2
            for part in (group[:half], group[half:]):
                yield from counted(part, target, in_cycles=in_cycles, cache=cache, tools=tools, log=log)
        rest = rest[len(group) :]


def batches(calls: Sequence[KernelCall], memory: Memory) -> Iterator[list[KernelCall]]:
    """Yield the calls, in order, in groups that fit one firmware on a target with this memory.

    A call that takes more than a quarter of it is alone.
    """
    most = memory.half  # `count_batch` adds one call
    group: list[KernelCall] = []
    size, work = Memory(0, 0), 0.0
    for call in calls:
        needed, instructions = memory_for(call.view), call.estimate or _ASSUMED
        total = size + needed
        fits = total <= most and total.activations + total.weights <= _BYTES and work + instructions <= _INSTRUCTIONS
        large = not all(memory_for(other.view) <= most.half for other in (call, *group[:1]))
        if group and (len(group) == _LAYERS or not fits or large):
            yield group
            group, size, work = [], Memory(0, 0), 0.0
        group.append(call)
        size, work = size + needed, work + instructions
    if group:
        yield group


def count_batch(
    batch: Sequence[KernelCall],
    target: Target,
    in_cycles: bool = False,
    cache: Cache | None = None,
    tools: Mapping[str, str] | None = None,
) -> list[Counted]:
    """Return the counts of calls in one firmware. Raises StageError, DoesNotFit and NotRun."""
    target = target.in_simulator
    # The first layer's count includes a few instructions of model_run for each input and output. So an extra call comes
    # first, unless the call is large and alone.
    small = memory_for(batch[0].view) <= memory_of(target).half.half
    first = [min(batch, key=lambda call: call.estimate or _ASSUMED)] if small else []
    calls = [*first, *batch]
    graph = joined(calls)
    rules = tuple(
        TensorizeRule(
            match=LayerMatch(name=layer.name), kernel=call.kernel.name, params=call.params.model_dump(mode="json")
        )
        for layer, call in zip(graph.layers, calls, strict=True)
    )
    kernels = {call.kernel.name: call.kernel for call in calls}
    with temporary_folder("count") as folder:
        emitted, built = folder / "emitted", folder / "built"
        for part in (emitted, built):
            part.mkdir()
        folders = registry.folders_of(target) | {
            kernel.folder.name: kernel.folder.on(target) for kernel in kernels.values()
        }
        with _TVM:
            tensorized = tensorize_graph(graph, target, TensorizeConfig(rules=rules), kernels.values())
            described = emit(tensorized, emitted, EmitConfig(), target, name="count", folders=folders)
            _make_calls_alike(emitted / "src", described)
        code: list[Sections] = []
        compile_firmware(
            *(emitted / "src", described, target, built),
            cache=cache,
            tools=tools,
            inspect=lambda objects: code.append(Sections.of(objects)),
        )
        elf, inputs = built / "firmware.elf", dict[str, NDArray[np.generic]]()
        for layer in graph.layers:
            inputs |= random_inputs(graph, [name for name in layer.inputs if name in graph.inputs])
        inputs |= random_inputs(graph, [name for name in graph.inputs if name not in inputs])
        timing = timing_table(elf, target) if in_cycles else b""
        try:
            run = run_firmware(
                elf,
                target,
                [one_inference(graph, inputs)],
                layers=len(graph.layers),
                output_bytes=sum(graph.tensors[n].bytes for n in graph.outputs),
                timing=timing,
            )
        except StageError as error:
            raise NotRun(error.message, hint=error.hint) from error
        cycles = [item.cycles[1] for (item,) in layer_intervals(run, elf, target)[0]] if in_cycles else []
    _compare(graph, calls, inputs, run.outputs)
    counts = list(cycles or run.counts[0])
    return [Counted(*item) for item in zip(counts, _rom_of(tensorized, code[0]), strict=True)][len(first) :]


def _rom_of(tensorized: Tensorized, sections: Sections) -> Iterator[CallRom]:
    """Yield the ROM of each layer."""
    for layer, plan in zip(tensorized.graph.layers, tensorized.plan.layers, strict=True):
        layer_bytes = sum(tensorized.weights[key].nbytes for key in plan.constants.values())
        code: dict[str, int] = {}
        for section in sections.reached([function_name(layer)]):
            if section[0].startswith("kernels/"):
                code[sections.names[section]] = sections.sizes[section]
            else:
                layer_bytes += sections.sizes[section]
        yield CallRom(layer_bytes, code)


def _make_calls_alike(src: Path, described: dict[str, Any]) -> None:
    """Make the instructions of a layer's call independent of the firmware's other layers.

    A pointer's instructions depend on its offset and on registers from the call before. So offsets are read from
    memory, and each call is in a separate function. Layers with equal code are not merged. RISC-V's linker must not
    relax addresses of near data.
    """
    sources = described["sources"]
    sources["c"] = [
        {"path": source, "flags": ["-fno-ipa-icf"]} if source == "layers.c" else source for source in sources["c"]
    ]
    path, prefix = src / "model.c", described["prefix"]
    text = path.read_text(encoding="utf-8")
    text = _PLACES.sub(lambda block: _PLACE.sub(r"static const volatile size_t \1 = \2;", block[1]), text)
    calls: list[str] = []

    def apart(match: re.Match[str]) -> str:
        calls.append(f"static __attribute__((noinline)) void call_{match[2]}(void)\n{{\n{match[1]}}}\n\n")
        return f"    call_{match[2]}();\n    MODEL_LAYER_DONE({match[2]});"

    text = _NO_RELAXATION + _CALL.sub(apart, text)
    path.write_text(text.replace(f"void {prefix}_run(", "".join(calls) + f"void {prefix}_run(", 1), encoding="utf-8")


def joined(calls: Sequence[KernelCall]) -> Graph:
    """Return a graph with one independent layer for each call: `call0`, `call1`, ..."""
    graph = Graph()
    for index, call in enumerate(calls):
        layer = call.view.layer
        names = {name: f"call{index}.{name}" for name in (*layer.inputs, *layer.outputs, *layer.state)}
        for old, new in names.items():
            tensor = call.view.tensors[old]
            home, offset = storage_of(call.view.tensors, old)
            root = call.view.tensors[home]
            changes = {"name": new, "alias_of": None, "offset": 0, "tflite_index": None, "constant": root.constant}
            if old in layer.outputs and home in layer.state:
                changes |= {"alias_of": names[home], "offset": offset}
            changes["state"] = old in layer.state  # a state that the layer only reads becomes an input
            graph.tensors[new] = tensor.model_copy(update=changes)
            if root.constant:
                values = call.view.arrays[root.name]
                graph.constants[new] = values if tensor.layout.bits else values.reshape(tensor.physical_shape)
            elif old in layer.inputs:
                graph.inputs.append(new)
            elif old in layer.outputs:
                graph.outputs.append(new)
        constants = {role: f"call{index}.{name}" for role, name in layer.constants.items()}
        graph.constants.update({constants[role]: call.view.constant(role) for role in constants})
        graph.layers.append(
            layer.model_copy(
                update={
                    "index": index,
                    "name": f"call{index}",
                    "inputs": tuple(names[n] for n in layer.inputs),
                    "outputs": tuple(names[n] for n in layer.outputs),
                    "state": tuple(names[n] for n in layer.state),
                    "constants": constants,
                }
            )
        )
    if not graph.inputs:  # the calls read only states; a firmware has an input
        graph.tensors["unused"] = Tensor(name="unused", shape=(1,), dtype="int8")
        graph.inputs.append("unused")
    return graph


def random_inputs(graph: Graph, names: Iterable[str]) -> dict[str, NDArray[np.generic]]:
    """Return random values over the range of each input's type, in logical order.

    float32 values are from -1 to 1. Values depend only on the input's type, shape and position in `names`.
    """
    inputs: dict[str, NDArray[np.generic]] = {}
    for seed, name in enumerate(names):
        tensor, random = graph.tensors[name], np.random.default_rng(seed)
        if tensor.dtype == "float32":
            inputs[name] = random.uniform(-1, 1, tensor.shape).astype(np.float32)
        else:
            width = 1 if tensor.dtype == "bool" else 8 * np.dtype(tensor.dtype).itemsize
            bits, signed = tensor.layout.bits or width, tensor.dtype.startswith("int")
            inputs[name] = random.integers(*limits(bits, signed=signed), tensor.shape, tensor.dtype, endpoint=True)
    return inputs


def one_inference(graph: Graph, inputs: Mapping[str, NDArray[np.generic]]) -> bytes:
    """Return the inputs, arrays in logical order, as the firmware reads them.

    State starts as after a reset.
    """
    data = b"".join(to_physical(inputs[name], graph.tensors[name]).tobytes() for name in graph.inputs)
    inference = Inference(data, "count")
    return inference.fed if any(tensor.state for tensor in graph.tensors.values()) else data


def _compare(graph: Graph, calls: Sequence[KernelCall], inputs: dict[str, NDArray[np.generic]], outputs: bytes) -> None:
    """Raise StageError for the first layer whose output differs from the integer reference."""
    position = 0
    for layer, call in zip(graph.layers, calls, strict=True):
        view = graph.view(layer)
        out = view.outputs[0]
        raw = np.frombuffer(outputs, np.uint8, out.bytes, position)
        got = to_logical(raw if out.layout.bits else raw.view(out.dtype), out)
        position += out.bytes
        values = [to_logical(graph.constants[t.name], t) if t.constant else inputs[t.name] for t in view.inputs]
        states = [graph.initial_state(name) for name in layer.state]
        wrong = int((got != advance_layer(view, values, states)[0]).sum())
        if wrong:
            raise StageError(
                f"kernel {call.variant} computes {wrong} of {out.elements} elements wrongly\n{call.signature}",
                hint=f"layer {call.view.layer.name}",
            )
