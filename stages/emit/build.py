"""Run the stage: lower functions, plan arena and weights, write src/ and model.json."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stages.backends.kernels import registry
from stages.backends.kernels.folder import KernelFolder
from stages.backends.targets.spec import Target
from stages.base import StageError, no_progress
from stages.emit.blob import HEADER_BYTES, PORTS, port_table
from stages.emit.config import EmitConfig
from stages.emit.kernel_sources import copy_kernels
from stages.emit.model import Model
from stages.emit.placement import Placement, Placer
from stages.emit.render import KernelFiles, port_quantization, render
from stages.emit.weights import lay_out
from stages.ir.arrays import Array
from stages.ir.graph import Graph, storage_of
from stages.lower.arena import Buffer, liveness
from stages.lower.arena.planner import bytes_alive
from stages.lower.arena.rules import Contents
from stages.lower.codegen.layers import FLOAT_VECTORS, LayerFunction, layer_function
from stages.lower.codegen.lower import to_c
from stages.lower.offload.attach import folders_of
from stages.lower.offload.c import ahead_function, program_function
from stages.lower.offload.residence import begins, fixed_in_l1
from stages.support.messages import escape
from stages.tensorize import artifact as tensorized
from stages.tensorize.artifact import Tensorized
from stages.tensorize.lowering import function_name

# Offsets in emitted loops are int32.
_LARGEST_ARENA = 2**31
_WEIGHTS = ("stages", "emit", "weights")  # the option, in the recipe


def emit(
    source: Path | Tensorized,
    out: Path,
    config: EmitConfig,
    target: Target,
    *,
    name: str = "model",
    folders: Mapping[str, KernelFolder] | None = None,
    ranges: Mapping[int, tuple[int, int]] | None = None,
    sample_rate: int | None = None,
    progress: Callable[..., None] = no_progress,
) -> dict[str, Any]:
    """Write `out`/src and `out`/model.json of tensorize's result; return model.json's content.

    source   tensorize's artifact: its folder or its content
    target   the target of the artifact
    folders  kernel folders by name; default: the target's
    ranges   value ranges of inputs that are indices, by the tensors' numbers in the imported file
    sample_rate  of input 0, if it is sound

    Raises StageError if the arena is too large.
    """
    tensorized_model = tensorized.load(source) if isinstance(source, Path) else source
    graph = tensorized_model.graph
    progress("lowering to C", 0.1)
    steps = [step for layer in tensorized_model.plan.layers for step in (*layer.steps, *layer.rest, *layer.result)]
    printed = to_c(tensorized_model.functions, {step.function: step.roles for step in steps})
    groups = tensorized_model.plan.groups
    shared = {layer.index for group in groups for layer in group.layers if group.tensors[layer.output].place_of}
    printed = {n: replace(f, name=config.layer_prefix + f.name) for n, f in printed.items()}
    functions = {
        layer.index: layer_function(
            [printed[step.function] for step in layer.steps], layer.may_overlay or layer.index in shared
        )
        for layer in tensorized_model.plan.layers
        if layer.steps
    }
    rests = {
        layer.index: layer_function([printed[step.function] for step in layer.rest], layer.index in shared)
        for layer in tensorized_model.plan.layers
        if layer.rest
    }
    results = {
        layer.index: layer_function([printed[step.function] for step in layer.result], may_overlay=False)
        for layer in tensorized_model.plan.layers
        if layer.result
    }
    programs = {layer.index: layer.program for layer in tensorized_model.plan.layers if layer.program is not None}
    names = {index: config.layer_prefix + function_name(graph.layers[index]) for index in programs}
    functions |= {index: program_function(names[index], program) for index, program in programs.items()}
    ahead: dict[int, list[tuple[int, LayerFunction]]] = {}
    for index, program in sorted(programs.items()):
        if program.during is not None and (function := ahead_function(names[index], program)) is not None:
            ahead.setdefault(program.during, []).append((index, function))
    progress("planning the arena", 0.8)
    constants, of_layers = _constants(graph, tensorized_model)
    scratch = {
        index: largest(function.scratch, rests[index].scratch) if index in rests else function.scratch
        for index, function in functions.items()
    }
    overlaid = frozenset(layer.index for layer in tensorized_model.plan.layers if layer.may_overlay)
    contents = Contents(graph, liveness(graph, scratch, overlaid, begins(programs), groups), scratch, of_layers)
    idle = frozenset(layer.index for layer in tensorized_model.plan.layers if not layer.steps and layer.program is None)
    fixed = fixed_in_l1(tensorized_model.plan.attachment, programs)
    placed = _placed(contents, constants, idle, config, target, fixed)
    _check_limit(placed, config, tensorized_model)
    model = Model(contents, tensorized_model, functions, placed, ahead, rests, results)
    progress("writing the sources", 0.9)
    src = out / "src"
    src.mkdir()
    files = [f for layer in tensorized_model.plan.layers for f in (*layer.sources, *layer.headers)]
    if any(FLOAT_VECTORS in function.headers for function in functions.values()):
        files.append(FLOAT_VECTORS)
    if tensorized_model.plan.attachment is not None:
        files += [*tensorized_model.plan.attachment.sources, *tensorized_model.plan.attachment.headers]
    folders = {**registry.folders_of(target), **folders_of(target)} if folders is None else folders
    kernels = copy_kernels(files, src / "kernels", folders) if files else []
    described = render(model, src, config, target, name, KernelFiles(kernels, folders), sample_rate)
    for port, tensor in zip(described["inputs"], (graph.tensors[name] for name in graph.inputs), strict=True):
        if ranges and tensor.tflite_index is not None and tensor.tflite_index in ranges:
            port["range"] = list(ranges[tensor.tflite_index])
    if any(layer.distance for layer in tensorized_model.plan.layers):
        # The accelerator's arithmetic differs from the model file's, so the integer graph is the reference.
        (out / "reference").mkdir()
        graph.save(out / "reference")
    (out / "model.json").write_text(json.dumps(described, indent=1) + "\n")
    return described


def largest(*scratch: Mapping[str, int]) -> dict[str, int]:
    """Return the largest size of each name."""
    names = dict.fromkeys(name for sizes in scratch for name in sizes)
    return {name: max(sizes.get(name, 0) for sizes in scratch) for name in names}


def _placed(
    contents: Contents,
    constants: Mapping[str, Array],
    idle: frozenset[int],
    config: EmitConfig,
    target: Target,
    fixed: Mapping[str, frozenset[str]],
) -> Placement:
    """Place buffers and constants.

    A blob of weights is one block; the application decides where it lies.
    """
    rules = config.memory_rules or ()
    if not config.is_blob:
        return Placer(contents, constants, idle, config.alignment, target, rules, fixed).place()
    if not constants:
        raise StageError("the network has no constants, so `weights: caller` has no effect", at=_WEIGHTS)
    for number, rule in enumerate(rules):
        if rule.part == "weights":
            message = (
                f"memory rule {number + 1} places weights, which the caller provides (`emit: {{weights: caller}}`)"
            )
            raise StageError(message, at=("memory", "rules", number))
    placed = Placer(replace(contents, constants={}), {}, idle, config.alignment, target, rules, fixed).place()
    tensors = [contents.graph.tensors[name] for name in (*contents.graph.inputs, *contents.graph.outputs)]
    constants = {PORTS: port_table(map(port_quantization, tensors)), **constants}
    return replace(placed, weights=(lay_out(constants, config.alignment, start=HEADER_BYTES, separate=True),))


def _check_limit(placed: Placement, config: EmitConfig, tensorized_model: Tensorized) -> None:
    limit, total, plans = config.arena_limit, placed.arena_bytes, [arena.plan for arena in placed.arenas]
    if total >= _LARGEST_ARENA:
        raise StageError(
            f"the model does not fit any target: its arena needs {total:,} bytes, the limit is {_LARGEST_ARENA - 1:,}"
        )
    if limit is not None and total > limit:
        graph, groups = tensorized_model.graph, tensorized_model.plan.groups
        buffers = [buffer for plan in plans for buffer in plan.buffers]
        alive = [[b for b in buffers if b.first <= layer.index <= b.last] for layer in graph.layers]
        in_use = bytes_alive(buffers, range(len(graph.layers)))
        peak = max(range(len(alive)), key=in_use.__getitem__)
        largest = sorted(alive[peak], key=lambda b: -b.bytes)[:3]
        named = ", ".join(f"{escape.name(b.name)} {b.bytes:,}" for b in largest)
        group = next((g for g in groups if g.first <= peak < g.end), None)
        rows = "" if group is None else f", with layers {group.first} to {group.end - 1} by rows"
        layer = graph.layers[peak]
        raise StageError(
            f"the arena needs {total:,} bytes, the recipe's arena_limit is {limit:,}. No smaller arena was found\n"
            f"{placed.arena_lower_bound:,} bytes are in use in layer {peak} ({layer.kind} "
            f"{escape.name(layer.name)}){rows}: {named}",
            hint=_what_helps(tensorized_model, alive[peak], config.may_stream),
            at=("stages", "emit", "arena_limit"),
        )


def _what_helps(tensorized_model: Tensorized, alive: Sequence[Buffer], may_stream: bool) -> str:
    """Return what could make the arena smaller where these buffers are in use."""
    plan, names = tensorized_model.plan, {buffer.name for buffer in alive}
    options = []
    if not may_stream:
        options.append("layers by rows (without memory.streaming: false)")
    elif plan.groups and names & set(tensorized_model.graph.inputs) and not any(group.pushed for group in plan.groups):
        options.append("emit: {input: rows}, if the first layers can run by rows")
        if plan.groups[0].distance is None:
            options.append("memory: {overwrite_input: true}")
    if plan.groups and names & set(tensorized_model.graph.outputs) and not plan.groups[-1].emitted:
        options.append("emit: {output: rows}, if the last layers can run by rows")
    if any(buffer.kind == "scratch" for buffer in alive) and plan.objective != "ram":
        options.append("optimize_for: ram (less scratch)")
    return f"what may help: {'; '.join([*options, 'a smaller image or fewer channels in this layer'])}"


def _constants(graph: Graph, tensorized_model: Tensorized) -> tuple[dict[str, Array], dict[int, list[str]]]:
    """Return constants by key, and the keys that each layer reads.

    Packed constants come first, in the order of the layers, then constant tensors that layers read as data.
    """
    of_layers = {layer.index: list(layer.constants.values()) for layer in tensorized_model.plan.layers}
    constants = {key: tensorized_model.weights[key] for keys in of_layers.values() for key in keys}
    for layer in graph.layers:
        for name in layer.inputs:
            root, _ = storage_of(graph.tensors, name)
            if graph.tensors[root].constant:
                constants[root] = graph.constants[root]
                of_layers[layer.index].append(root)
    return constants, of_layers
