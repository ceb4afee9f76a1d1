"""The steps of normalization, and the notes for the user about each change."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stages.import_model.checks import check_all_counts
from stages.import_model.normalize.bidirectional import BIDIRECTIONAL, split_directions
from stages.import_model.normalize.dilate import dilate, dilated
from stages.import_model.normalize.fold import FOLDED, known_results
from stages.import_model.normalize.graph import OneGraph, one_graph
from stages.import_model.normalize.variables import OPERATORS as VARIABLES
from stages.import_model.normalize.variables import plain_variables
from stages.import_model.normalize.versions import has_newer_versions, lower_versions
from stages.import_model.operators import has_effects
from stages.ir.model_info import ModelInfo, OperatorInfo, TensorInfo
from stages.ir.models.graphs import Graphs, Signature, choose, composites, graphs
from stages.ir.models.onnx_names import OnnxNetwork
from stages.ir.models.tflite_reader import read
from stages.ir.operators.table import OPERATORS
from stages.ir.reference.partitions import litert_has
from stages.ir.reference.probe import tensor_shapes
from stages.support.messages import escape
from stages.support.messages.wording import several

_ROUNDS = 8  # of inferring shapes and folding results


@dataclass(frozen=True)
class Normalized:
    """A normalized TFLite file.

    signature: the selected one; '' if the file has none
    notes: sentences for the user about choices and changes
    rules: arithmetic of operators, by number, where it is ONNX Runtime's instead of LiteRT's (stages.import_model.onnx)
    onnx: the ONNX networks in it, and their files
    """

    data: bytes
    info: ModelInfo
    signature: str
    notes: tuple[str, ...]
    rules: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    onnx: tuple[tuple[OnnxNetwork, bytes], ...] = ()


def normalized(data: bytes, name: str, signature: str | None = None) -> Normalized:
    """Return the graph of `signature` (default: the first) of the file `data`, normalized.

    - Remove operators that no output needs.
    - Replace composites by their operators, bidirectional layers by two, and resource variables by variable tensors.
    - Move scales on an invalid axis to axis 0.
    - Fill in shapes that LiteRT infers, unless an operator is unsupported.
    - Fold results that are known at import, and form dilated convolutions.

    Raises StageError for a corrupt file or an unknown signature, RunError if LiteRT cannot infer the shapes.
    """
    file_graphs, file = graphs(data, name), data
    chosen = choose(file_graphs, signature, name)
    subgraph = chosen.subgraph if chosen is not None else 0
    info = read(data, name, subgraph)
    check_all_counts(info)
    composite_operators = composites(data, name, subgraph)
    has_helper_graphs = bool(composite_operators) or any(operator.op == "CALL_ONCE" for operator in info.operators)
    notes = _graph_notes(file_graphs, None if signature is None else chosen, has_helper_graphs=has_helper_graphs)
    misplaced = [tensor for tensor in info.tensors if tensor.misplaced]
    if subgraph or composite_operators or misplaced:
        graph = one_graph(data, name, subgraph)
        data, info = _packed(graph, name)
        check_all_counts(info)
        if graph.composites:
            replaced = several([f"{count} x {composite!r}" for composite, count in sorted(graph.composites.items())])
            notes.append(f"composites are replaced by their operators: {replaced}")
        if misplaced:
            notes.append(
                f"{_listed(misplaced)}: quantized_dimension is an axis that the tensor does not have; "
                "0 is used instead, for LiteRT too"
            )
    data, info = _without_unused(data, info, name, notes)
    if any(operator.op in BIDIRECTIONAL for operator in info.operators):
        graph = one_graph(data, name, 0)
        notes += split_directions(graph, name)
        data, info = _packed(graph, name)
        check_all_counts(info)
    if has_newer_versions(data):
        graph = one_graph(data, name, 0)
        versions = several(lower_versions(graph.codes))
        data, info = _packed(graph, name)
        notes.append(f"operator versions ({versions}) are lowered to versions that LiteRT's reference kernels list")
    if any(operator.op in VARIABLES for operator in info.operators):
        graph = one_graph(data, name, 0)
        variables = plain_variables(graph, file, name)
        data, info = _packed(graph, name)
        notes.append(f"{len(variables)} x resource variable ({several(variables)}): imported as state of the model")
    data, info = _with_known_results(data, info, name, notes)
    dilations = dilated(info)
    if dilations:
        graph = one_graph(data, name, 0)
        dilate(graph, dilations, info)
        data, info = _packed(graph, name)
        notes.append(
            f"{len(dilations)} x SPACE_TO_BATCH_ND, convolution, BATCH_TO_SPACE_ND: imported as dilated convolutions"
        )
    return Normalized(data, info, chosen.name if chosen is not None else "", tuple(notes))


def _packed(graph: OneGraph, name: str) -> tuple[bytes, ModelInfo]:
    """Return the file of a changed graph."""
    graph.fix_axes()
    data = graph.pack()
    return data, read(data, name)


def _without_unused(data: bytes, info: ModelInfo, name: str, notes: list[str]) -> tuple[bytes, ModelInfo]:
    """Return the file without operators that no output needs; inputs stay."""
    operators = unused(info)
    if not operators:
        return data, info
    graph = one_graph(data, name, 0)
    graph.remove({operator.index for operator in operators})
    notes.append(unused_note(operators))
    return _packed(graph, name)


def _with_shapes(data: bytes, info: ModelInfo, name: str, notes: list[str]) -> tuple[bytes, ModelInfo]:
    """Return the file with its missing shapes filled in, if LiteRT knows all operators."""
    if not all((op.op in OPERATORS or op.op in FOLDED) and litert_has(op) for op in info.operators):
        return data, info
    shapes = _inferred_shapes(info, data, name)
    if not shapes:
        return data, info
    graph = one_graph(data, name, 0)
    graph.set_shapes(shapes)
    notes.append(f"{_listed([info.tensors[index] for index in shapes])}: shape missing in the file; LiteRT infers it")
    return _packed(graph, name)


def _with_known_results(data: bytes, info: ModelInfo, name: str, notes: list[str]) -> tuple[bytes, ModelInfo]:
    """Return the file with all shapes, and with constants for results that are known at import."""
    for _ in range(_ROUNDS):
        data, info = _with_shapes(data, info, name, notes)
        operators, values = known_results(data, info, name)
        if not operators:
            break
        graph = one_graph(data, name, 0)
        graph.make_constant(values)
        graph.remove({operator.index for operator in operators})
        data, info = _packed(graph, name)
        notes.append(_folded_note(operators))
        data, info = _without_unused(data, info, name, notes)
    return data, info


def _folded_note(operators: Sequence[OperatorInfo]) -> str:
    count = Counter(operator.op for operator in operators)
    listed = several([f"{number} x {op}" for op, number in sorted(count.items())])
    return f"{listed}: folded at import, as the results follow from constants and fixed shapes"


def _graph_notes(file_graphs: Graphs, requested: Signature | None, *, has_helper_graphs: bool) -> list[str]:
    names = [escape.quoted(signature.name) for signature in file_graphs.signatures]
    if len(names) > 1 and requested is None:
        all_named = f"the file has {len(names)} signatures ({several(names)})"
        return [f"{all_named}: the first is imported; choose with model: {{file: ..., signature: NAME}}"]
    if file_graphs.count > 1 and not names and not has_helper_graphs:
        return [f"the file has {file_graphs.count} subgraphs and no signature: the first is imported"]
    return []


def _inferred_shapes(info: ModelInfo, data: bytes, name: str) -> dict[int, tuple[int, ...]]:
    """Return the shapes of computed tensors that the file lacks and LiteRT infers."""
    computed = {index for operator in info.operators for index in operator.outputs}
    unknown = [index for index in sorted(computed) if not info.tensors[index].shape or info.tensors[index].dynamic]
    # LiteRT allocates the inputs' sizes and can crash on sizes below 1.
    if not unknown or any(size < 1 for index in info.inputs for size in info.tensors[index].shape):
        return {}
    invalid = [index for index in unknown if any(size < 1 for size in info.tensors[index].shape)]
    if invalid:  # LiteRT refuses these, but accepts missing shapes
        graph = one_graph(data, name, 0)
        graph.set_shapes(dict.fromkeys(invalid, ()))
        data = graph.pack()
    inferred = tensor_shapes(data, name)
    shapes = {index: inferred[index] for index in unknown if index in inferred}
    return {index: shape for index, shape in shapes.items() if shape != info.tensors[index].shape}


def _listed(tensors: Sequence[TensorInfo]) -> str:
    """Return `tensor 3 'bias'`, or `4 tensors (3 'a', 5 'b', 7 'c' and 1 more)`."""
    named = [f"{tensor.index} {escape.quoted(tensor.name)}" for tensor in tensors]
    return f"tensor {named[0]}" if len(named) == 1 else f"{len(named)} tensors ({several(named)})"


def unused(info: ModelInfo) -> list[OperatorInfo]:
    """Return the operators that neither an output nor an operator with an effect depends on."""
    needed, operators = set(info.outputs), []
    for operator in reversed(info.operators):
        if has_effects(operator.op) or needed & set(operator.outputs):
            needed |= set(operator.inputs)
        else:
            operators.append(operator)
    return operators[::-1]


def unused_note(operators: Sequence[OperatorInfo]) -> str:
    """Return the note: `removed operators that no output needs: 2 x RELU, 1 x ADD`."""
    count = Counter(operator.op for operator in operators)
    counts = several([f"{number} x {op}" for op, number in sorted(count.items())])
    return f"removed operators that no output needs: {counts}"
