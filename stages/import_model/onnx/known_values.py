"""Small values of an ONNX graph that follow from constants and shapes."""

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
_ROUNDS = 32  # of inferring shapes from values and values from shapes
_GROWING = frozenset({"ConstantOfShape", "EyeLike", "Expand", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample"})


def known_constants(model: onnx.ModelProto) -> dict[str, Array]:
    """Return known values by name, initializers included, with at most 4096 elements.

    Input shapes are fixed. Shapes are inferred from known values, and values from shapes, until nothing new follows.
    Otherwise, for example, computed pads would hide the shape of a Pad's result.
    """
    working = onnx.ModelProto()
    working.CopyFrom(model)
    working.ir_version = max(working.ir_version, 4)  # older versions infer from constants only if they are inputs
    graph, values = working.graph, dict[str, Array]()
    for initializer in graph.initializer:
        if _elements(initializer.dims) <= _LARGEST:
            with suppress(ValueError, TypeError, KeyError):
                values[initializer.name] = numpy_helper.to_array(initializer)
    for _ in range(_ROUNDS):
        try:
            inferred = onnx.shape_inference.infer_shapes(working, data_prop=True).graph
        except Exception:  # invalid operators are reported during translation
            return values
        sizes, unknown = _sizes(inferred), []
        for node in graph.node:
            results = _computed(node, values, sizes, model)
            if results is None:
                unknown.append(node)
                continue
            values.update(results)
            graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in results.items())
        if len(unknown) == len(graph.node):
            return values
        del graph.node[:]
        graph.node.extend(unknown)
    return values


def _computed(
    node: onnx.NodeProto, values: Mapping[str, Array], sizes: Mapping[str, tuple[int, ...]], model: onnx.ModelProto
) -> dict[str, Array] | None:
    """Return an operator's results by name; None if they are unknown or large."""
    if node.domain not in ("", "ai.onnx"):
        return None
    input_names = [name for name in node.input if name]
    if node.op_type in ("Shape", "Size") and input_names and input_names[0] in sizes:
        return {node.output[0]: _shape_value(node, sizes[input_names[0]])}
    if (
        not all(name in values for name in input_names)
        or node.op_type.startswith("Random")
        or any(True for _ in subgraphs(node))
    ):
        return None
    output_names = [name for name in node.output if name]
    for name in output_names:
        if _elements(sizes[name]) > _LARGEST if name in sizes else node.op_type in _GROWING:
            return None
    tensors = [numpy_helper.from_array(values[name], name) for name in dict.fromkeys(input_names)]
    output_infos = [helper.make_empty_tensor_value_info(name) for name in output_names]
    submodel = helper.make_model(
        helper.make_graph([node], "value", [], output_infos, tensors),
        opset_imports=model.opset_import,
        ir_version=model.ir_version,
    )
    with suppress(Exception):  # the evaluator raises various exceptions for invalid operators
        results = ReferenceEvaluator(submodel).run(None, {})
        if all(isinstance(value, np.ndarray | np.generic) and value.size <= _LARGEST for value in results):
            return {name: np.asarray(value) for name, value in zip(output_names, results, strict=True)}
    return None


def _sizes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """Return the fixed shapes of tensors."""
    shapes = {entry.name: tuple(entry.dims) for entry in graph.initializer}
    for entry in (*graph.input, *graph.value_info, *graph.output):
        shape = entry.type.tensor_type.shape
        if entry.type.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in shape.dim):
            shapes[entry.name] = tuple(dim.dim_value for dim in shape.dim)
    return shapes


def _elements(shape: tuple[int, ...]) -> int:
    return int(np.prod([abs(int(size)) for size in shape], dtype=object)) if len(shape) else 1


def _shape_value(node: onnx.NodeProto, shape: tuple[int, ...]) -> Array:
    if node.op_type == "Size":
        return np.array(np.prod(shape, dtype=np.int64), np.int64)
    bounds = {attribute.name: attribute.i for attribute in node.attribute}
    return np.array(shape[bounds.get("start", 0) : bounds.get("end", len(shape))], np.int64)
