"""Measures layers on the target's simulator: many in one firmware, made by the same stages as any other.

The firmware's network is a graph of layers that have nothing to do with each other: each reads inputs of its own and
writes an output of its own, and a rule for each names its kernel. So what is measured is what a recipe gets, and every
output byte is compared with the integer reference in the same run. Cycles are those of the target's timing model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from stages.base import StageError, no_progress
from stages.calibrate.cases import Room, room_for, room_of
from stages.calibrate.side_work import results
from stages.compile.firmware import compile_firmware
from stages.emit import EmitConfig
from stages.emit.build import emit
from stages.graph import Graph, place
from stages.graph.packed import limits
from stages.kernels import registry
from stages.options.layer_rules import LayerMatch
from stages.reference.integer import run_layer, to_logical, to_physical
from stages.samples.files import Inference
from stages.simulate.cycles import layer_intervals
from stages.simulate.firmware import run_firmware
from stages.system.scratch import temporary_folder
from stages.tensorize import TensorizeConfig, TensorizeRule
from stages.tensorize.artifact import save
from stages.tensorize.build import tensorize_graph
from stages.timing.table import timing_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stages.calibrate.cases import Case
    from stages.calibrate.side_work import Begin
    from stages.compile.config import CompileConfig
    from stages.targets.spec import Target

# Of one firmware: layers, bytes of activations and packed weights, and estimated instructions.
_LAYERS, _BYTES, _INSTRUCTIONS = 64, 12_000_000, 1_500_000_000
_ASSUMED = 10_000_000  # instructions of a layer whose kernel states no estimate
_TVM = Lock()  # held while TVM works, which may not do two things at once (stages.base.Stage.exclusive)


class NotRun(StageError):
    """A firmware in which kernels are measured came to no end: a fault, no time left, a simulator that died."""


def measure(
    cases: Sequence[Case],
    target: Target,
    *,
    options: CompileConfig | None = None,
    in_cycles: bool = False,
    progress: Callable[..., None] = no_progress,
    begin: Begin | None = None,
) -> Iterator[tuple[Case, int]]:
    """Each case with its instructions (or estimated cycles), as they become known, a firmware's at a time.

    `options` are those of the compiler. `begin` as of `results`: with it they are measured elsewhere.

    Raises StageError for a layer whose output is not the reference's, DoesNotFit and NotRun for a firmware that gives
    none: that of the cases that come next.
    """
    for case, instructions, cycles in measure_both(
        cases, target, options=options, timed=in_cycles, progress=progress, begin=begin
    ):
        yield case, cycles if in_cycles else instructions


def measure_both(
    cases: Sequence[Case],
    target: Target,
    *,
    options: CompileConfig | None = None,
    timed: bool = True,
    progress: Callable[..., None] = no_progress,
    begin: Begin | None = None,
) -> Iterator[tuple[Case, int, int]]:
    """As `measure`: each case with its instructions and its estimated cycles, 0 if not `timed`."""
    groups, done = list(batches(cases, room_of(target))), 0
    progress(f"measuring {len(cases)} layers", 0.0)
    counts = results(run_batch, [(group, target, options, timed) for group in groups], begin)
    with closing(counts):
        for group, found in zip(groups, counts, strict=True):
            yield from ((case, *both) for case, both in zip(group, found, strict=True))
            done += len(group)
            progress(f"measured {done} of {len(cases)} layers", done / len(cases))


def batches(cases: Sequence[Case], room: Room) -> Iterator[list[Case]]:
    """The cases, in order, in groups that fit one firmware on a target with this room."""
    most = Room(room.activations / 2, room.weights / 2)  # half: `run_batch` adds one of them
    group: list[Case] = []
    size, work = Room(0, 0), 0.0
    for case in cases:
        own, instructions = room_for(case.view), case.estimate or _ASSUMED
        both = size + own
        fits = both <= most and both.activations + both.weights <= _BYTES and work + instructions <= _INSTRUCTIONS
        if group and (len(group) == _LAYERS or not fits):
            yield group
            group, size, work = [], Room(0, 0), 0.0
        group.append(case)
        size, work = size + own, work + instructions
    if group:
        yield group


def run_batch(
    batch: Sequence[Case], target: Target, options: CompileConfig | None = None, timed: bool = False
) -> list[tuple[int, int]]:
    """Instructions and cycles (`timed`, else 0) of each case, all in one firmware. Raises StageError as `measure`."""
    target = target.in_simulator
    # What model_run does about its arguments is counted with the first layer: a few instructions for each input and
    # output. So the first is one that nobody asked for; not so where there is just one case, which may fill the memory.
    first = [min(batch, key=lambda case: case.estimate or _ASSUMED)] if len(batch) > 1 else []
    cases = [*first, *batch]
    graph = joined(cases)
    rules = tuple(
        TensorizeRule(
            match=LayerMatch(name=layer.name), kernel=case.kernel.name, params=case.params.model_dump(mode="json")
        )
        for layer, case in zip(graph.layers, cases, strict=True)
    )
    kernels = {case.kernel.name: case.kernel for case in cases}
    with temporary_folder("calibrate") as folder:
        tensorized, emitted, built = (folder / part for part in ("tensorized", "emitted", "built"))
        for part in (tensorized, emitted, built):
            part.mkdir()
        folders = registry.folders_of(target) | {kernel.folder.name: kernel.folder for kernel in kernels.values()}
        with _TVM:
            save(tensorize_graph(graph, target, TensorizeConfig(rules=rules), kernels.values()), tensorized)
            described = emit(tensorized, emitted, EmitConfig(), target, name="calibrate", folders=folders)
        compile_firmware(emitted / "src", described, target, built, config=options)
        inputs, elf = random_inputs(graph), built / "firmware.elf"
        timing = timing_table(elf, target) if timed else b""
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
        each = layer_intervals(run, elf, target)[0] if timed else []
    _compare(graph, cases, inputs, run.outputs)
    cycles = [one.cycles[1] for one in each] or [0] * len(cases)
    return list(zip(run.counts[0], cycles, strict=True))[len(first) :]


def joined(cases: Sequence[Case]) -> Graph:
    """One graph with a layer for each case, `case0`, `case1`, ..., that shares nothing with the others."""
    graph = Graph()
    for index, case in enumerate(cases):
        layer = case.view.layer
        names = {name: f"case{index}.{name}" for name in (*layer.inputs, *layer.outputs, *layer.state)}
        for old, new in names.items():
            tensor = case.view.tensors[old]
            root = case.view.tensors[place(case.view.tensors, old)[0]]
            changes = {"name": new, "alias_of": None, "offset": 0, "tflite_index": None, "constant": root.constant}
            changes["state"] = old in layer.state  # a layer that only reads a state gets it as an input
            graph.tensors[new] = tensor.model_copy(update=changes)
            if root.constant:
                values = case.view.arrays[root.name]
                graph.constants[new] = values if tensor.layout.bits else values.reshape(tensor.physical_shape)
            elif old in layer.inputs:
                graph.inputs.append(new)
            elif old in layer.outputs:
                graph.outputs.append(new)
        constants = {role: f"case{index}.{name}" for role, name in layer.constants.items()}
        graph.constants.update({constants[role]: case.view.constant(role) for role in constants})
        graph.layers.append(
            layer.model_copy(
                update={
                    "index": index,
                    "name": f"case{index}",
                    "inputs": tuple(names[n] for n in layer.inputs),
                    "outputs": tuple(names[n] for n in layer.outputs),
                    "state": tuple(names[n] for n in layer.state),
                    "constants": constants,
                }
            )
        )
    return graph


def random_inputs(graph: Graph) -> dict[str, NDArray[np.generic]]:
    """Random values over the whole range of each input's type (float32: -1 to 1), in logical order."""
    random = np.random.default_rng(0)
    made: dict[str, NDArray[np.generic]] = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if tensor.dtype == "float32":
            made[name] = random.uniform(-1, 1, tensor.shape).astype(np.float32)
        else:
            bits, signed = tensor.layout.bits or 8 * np.dtype(tensor.dtype).itemsize, tensor.dtype.startswith("int")
            made[name] = random.integers(*limits(bits, signed=signed), tensor.shape, tensor.dtype, endpoint=True)
    return made


def one_inference(graph: Graph, inputs: Mapping[str, NDArray[np.generic]]) -> bytes:
    """The graph's inputs, arrays in logical order, as its firmware reads them; state begins as after a reset."""
    data = b"".join(to_physical(inputs[name], graph.tensors[name]).tobytes() for name in graph.inputs)
    inference = Inference(data, "calibration")
    return inference.fed if any(tensor.state for tensor in graph.tensors.values()) else inference.data


def _compare(graph: Graph, cases: Sequence[Case], inputs: dict[str, NDArray[np.generic]], outputs: bytes) -> None:
    """Raises StageError for the first layer whose output is not that of the integer reference."""
    position = 0
    for layer, case in zip(graph.layers, cases, strict=True):
        view = graph.view(layer)
        out = view.outputs[0]
        raw = np.frombuffer(outputs, np.uint8, out.bytes, position)
        got = to_logical(raw if out.layout.bits else raw.view(out.dtype), out)
        position += out.bytes
        values = [to_logical(graph.constants[t.name], t) if t.constant else inputs[t.name] for t in view.inputs]
        wrong = int((got != run_layer(view, values)).sum())
        if wrong:
            raise StageError(
                f"kernel {case.variant} computes {wrong} of {out.elements} elements wrongly\n{case.signature}",
                hint=f"layer {case.view.layer.name}; nothing was written",
            )
