"""The steps of normalizing, and the sentences that say what was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stages.import_model.checks import check_all_counts
from stages.import_model.normalize.dilate import dilate, dilated
from stages.import_model.normalize.fold import FOLDED, known_results
from stages.import_model.normalize.graph import one_graph
from stages.import_model.normalize.unused import about_unused, unused
from stages.import_model.normalize.variables import OPERATORS as VARIABLES
from stages.import_model.normalize.variables import plain_variables
from stages.import_model.normalize.versions import has_newer_versions, lower_versions
from stages.ir.models.graphs import Graphs, Signature, choose, composites, graphs
from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo, TensorInfo, read
from stages.ir.operators.table import OPERATORS
from stages.ir.reference.partitions import litert_has
from stages.ir.reference.probe import tensor_shapes
from stages.support.messages import escape
from stages.support.messages.wording import several

_ROUNDS = 8  # of shapes from which results follow, from which shapes follow


@dataclass(frozen=True)
class Normalized:
    """A TFLite file of one graph and what it holds.

    `signature` is the name of the one that was chosen, '' when the file has none. `notes` are sentences for the user:
    what was chosen, what was changed. `rules` are facts of the operators, by number, where their arithmetic is not
    LiteRT's but ONNX Runtime's (stages.import_model.onnx); else None.
    """

    data: bytes
    info: ModelInfo
    signature: str
    notes: tuple[str, ...]
    rules: Mapping[int, Mapping[str, Any]] | None = None


def normalized(data: bytes, name: str, signature: str | None = None) -> Normalized:
    """The graph of `signature` (by default of the first) in the file `data`, with everything said.

    Operators that no output needs are left out, composites become the operators that they stand for, resource
    variables variable tensors, scales on an axis that their tensor does not have go to the only one that they can
    mean, shapes that the file leaves out are those that LiteRT infers (not where an operator is unsupported: LiteRT may
    not know it either), and results that are known are constants. Raises StageError for a corrupt file or an unknown
    signature, RunError when LiteRT cannot infer the shapes.
    """
    found, file = graphs(data, name), data
    chosen = choose(found, signature, name)
    subgraph = chosen.subgraph if chosen is not None else 0
    info = read(data, name, subgraph)
    check_all_counts(info)
    inner = composites(data, name, subgraph)
    of_others = bool(inner) or any(operator.op == "CALL_ONCE" for operator in info.operators)
    notes = _about_graphs(found, None if signature is None else chosen, of_others=of_others)
    misplaced = [tensor for tensor in info.tensors if tensor.misplaced]
    if subgraph or inner or misplaced:
        graph = one_graph(data, name, subgraph)
        graph.mend_axes()
        data = graph.pack()
        info = read(data, name)
        check_all_counts(info)
        if graph.composites:
            replaced = several([f"{count} x {called!r}" for called, count in sorted(graph.composites.items())])
            notes.append(f"composites are imported as the operators that they stand for: {replaced}")
        if misplaced:
            notes.append(
                f"{_listed(misplaced)}: quantized_dimension is an axis that the tensor does not have; "
                "it is taken as 0, and LiteRT is given the file so changed"
            )
    data, info = _without_unused(data, info, name, notes)
    if has_newer_versions(data):
        graph = one_graph(data, name, 0)
        versions = several(lower_versions(graph.codes))
        graph.mend_axes()
        data = graph.pack()
        info = read(data, name)
        notes.append(f"operator versions ({versions}) are lowered to those that LiteRT's reference kernels list")
    if any(operator.op in VARIABLES for operator in info.operators):
        graph = one_graph(data, name, 0)
        kept = plain_variables(graph, file, name)
        graph.mend_axes()
        data = graph.pack()
        info = read(data, name)
        notes.append(f"{len(kept)} x resource variable ({several(kept)}): kept by the model from one run to the next")
    for _ in range(_ROUNDS):
        data, info = _shaped(data, info, name, notes)
        operators, values = known_results(data, info, name)
        if not operators:
            break
        graph = one_graph(data, name, 0)
        graph.make_constant(values)
        graph.remove({operator.index for operator in operators})
        graph.mend_axes()
        data = graph.pack()
        info = read(data, name)
        notes.append(_about_known(operators))
        data, info = _without_unused(data, info, name, notes)
    three = dilated(info)
    if three:
        graph = one_graph(data, name, 0)
        dilate(graph, three, info)
        graph.mend_axes()
        data = graph.pack()
        info = read(data, name)
        notes.append(
            f"{len(three)} x SPACE_TO_BATCH_ND, convolution, BATCH_TO_SPACE_ND: imported as dilated convolutions"
        )
    return Normalized(data, info, chosen.name if chosen is not None else "", tuple(notes))


def _without_unused(data: bytes, info: ModelInfo, name: str, notes: list[str]) -> tuple[bytes, ModelInfo]:
    """The file without operators that no output needs; its inputs stay."""
    operators = unused(info)
    if not operators:
        return data, info
    graph = one_graph(data, name, 0)
    graph.remove({operator.index for operator in operators})
    graph.mend_axes()
    notes.append(about_unused(operators))
    data = graph.pack()
    return data, read(data, name)


def _shaped(data: bytes, info: ModelInfo, name: str, notes: list[str]) -> tuple[bytes, ModelInfo]:
    """The file with the shapes that it leaves out, where LiteRT knows all of its operators."""
    if not all((op.op in OPERATORS or op.op in FOLDED) and litert_has(op) for op in info.operators):
        return data, info
    shapes = _left_out(info, data, name)
    if not shapes:
        return data, info
    graph = one_graph(data, name, 0)
    graph.set_shapes(shapes)
    graph.mend_axes()
    notes.append(
        f"{_listed([info.tensors[index] for index in shapes])}: the file leaves the shape out; LiteRT infers it"
    )
    data = graph.pack()
    return data, read(data, name)


def _about_known(operators: Sequence[OperatorInfo]) -> str:
    count = Counter(operator.op for operator in operators)
    listed = several([f"{number} x {op}" for op, number in sorted(count.items())])
    return f"{listed}: what follows from constants and fixed shapes is computed once, when the model is imported"


def _about_graphs(found: Graphs, asked: Signature | None, *, of_others: bool) -> list[str]:
    names = [escape.quoted(signature.name) for signature in found.signatures]
    if len(names) > 1 and asked is None:
        all_named = f"the file has {len(names)} signatures ({several(names)})"
        return [f"{all_named}: the first is imported; choose with model: {{file: ..., signature: NAME}}"]
    if found.count > 1 and not names and not of_others:
        return [f"the file has {found.count} subgraphs and no signature: the first is imported"]
    return []


def _left_out(info: ModelInfo, data: bytes, name: str) -> dict[int, tuple[int, ...]]:
    """Shapes of computed tensors that the file leaves out, or gives as unknown, and that LiteRT infers otherwise."""
    computed = {index for operator in info.operators for index in operator.outputs}
    unknown = [index for index in sorted(computed) if not info.tensors[index].shape or info.tensors[index].dynamic]
    # LiteRT allocates what the inputs say; it may not live with sizes below 1.
    if not unknown or any(size < 1 for index in info.inputs for size in info.tensors[index].shape):
        return {}
    senseless = [index for index in unknown if any(size < 1 for size in info.tensors[index].shape)]
    if senseless:  # LiteRT refuses these, but not a shape that is not there
        graph = one_graph(data, name, 0)
        graph.set_shapes(dict.fromkeys(senseless, ()))
        data = graph.pack()
    inferred = tensor_shapes(data, name)
    shapes = {index: inferred[index] for index in unknown if index in inferred}
    return {index: shape for index, shape in shapes.items() if shape != info.tensors[index].shape}


def _listed(tensors: Sequence[TensorInfo]) -> str:
    """`tensor 3 'bias'`, `4 tensors (3 'a', 5 'b', 7 'c' and 1 more)`."""
    named = [f"{tensor.index} {escape.quoted(tensor.name)}" for tensor in tensors]
    return f"tensor {named[0]}" if len(named) == 1 else f"{len(named)} tensors ({several(named)})"
