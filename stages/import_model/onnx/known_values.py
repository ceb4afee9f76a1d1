"""Small values of an ONNX graph that follow from its constants and from shapes, which conditions and shapes need."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from stages.import_model.onnx.subgraphs import subgraphs

Array = npt.NDArray[np.generic]

_LARGEST = 4096  # elements: conditions and shapes have fewer, weights have more
_ROUNDS = 32  # of shapes that follow from values that follow from shapes
_GROWING = frozenset({"ConstantOfShape", "EyeLike", "Expand", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample"})


def known_constants(model: onnx.ModelProto) -> dict[str, Array]:
    """Return values by name, those of initializers too, of at most 4096 elements.

    The shapes of inputs are fixed. Shapes are inferred with all values known so far, and the other way round, until
    nothing new follows: Pad by amounts that Slice and Concat compute hides the shape of its result otherwise.
    """
    part = onnx.ModelProto()
    part.CopyFrom(model)
    part.ir_version = max(part.ir_version, 4)  # before it, inference looks at constants that are inputs alone
    graph, values = part.graph, dict[str, Array]()
    for one in graph.initializer:
        if _elements(one.dims) <= _LARGEST:
            with suppress(ValueError, TypeError, KeyError):  # reported where it is translated
                values[one.name] = numpy_helper.to_array(one)
    for _ in range(_ROUNDS):
        try:
            inferred = onnx.shape_inference.infer_shapes(part, data_prop=True).graph
        except Exception:  # what is unsound is reported where it is translated
            return values
        sizes, kept = _sizes(inferred), []
        for node in graph.node:
            found = _computed(node, values, sizes, model)
            if found is None:
                kept.append(node)
                continue
            values.update(found)
            graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in found.items())
        if len(kept) == len(graph.node):
            return values
        del graph.node[:]
        graph.node.extend(kept)
    return values


def _computed(
    node: onnx.NodeProto, values: Mapping[str, Array], sizes: Mapping[str, tuple[int, ...]], model: onnx.ModelProto
) -> dict[str, Array] | None:
    """The results of an operator by name; None where they are not known, or large."""
    if node.domain not in ("", "ai.onnx"):
        return None
    read = [name for name in node.input if name]
    if node.op_type in ("Shape", "Size") and read and read[0] in sizes:
        return {node.output[0]: _asked(node, sizes[read[0]])}
    if (
        not all(name in values for name in read)
        or node.op_type.startswith("Random")
        or any(True for _ in subgraphs(node))
    ):
        return None
    outs = [name for name in node.output if name]
    for name in outs:
        if _elements(sizes[name]) > _LARGEST if name in sizes else node.op_type in _GROWING:
            return None
    tensors = [numpy_helper.from_array(values[name], name) for name in dict.fromkeys(read)]
    ends = [helper.make_empty_tensor_value_info(name) for name in outs]
    whole = helper.make_model(
        helper.make_graph([node], "value", [], ends, tensors),
        opset_imports=model.opset_import,
        ir_version=model.ir_version,
    )
    with suppress(Exception):  # the evaluator raises anything for an operator that contradicts itself
        results = ReferenceEvaluator(whole).run(None, {})
        if all(isinstance(one, np.ndarray | np.generic) and one.size <= _LARGEST for one in results):
            return {name: np.asarray(one) for name, one in zip(outs, results, strict=True)}
    return None


def _sizes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """The shapes of tensors that are fixed."""
    found = {one.name: tuple(one.dims) for one in graph.initializer}
    for one in (*graph.input, *graph.value_info, *graph.output):
        shape = one.type.tensor_type.shape
        if one.type.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in shape.dim):
            found[one.name] = tuple(dim.dim_value for dim in shape.dim)
    return found


def _elements(shape: tuple[int, ...]) -> int:
    return int(np.prod([abs(int(size)) for size in shape], dtype=object)) if len(shape) else 1


def _asked(node: onnx.NodeProto, shape: tuple[int, ...]) -> Array:
    if node.op_type == "Size":
        return np.array(np.prod(shape, dtype=np.int64), np.int64)
    ends = {one.name: one.i for one in node.attribute}
    return np.array(shape[ends.get("start", 0) : ends.get("end", len(shape))], np.int64)
