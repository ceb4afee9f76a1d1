"""TFLite files with one to three things changed that the format allows and a network does not, or hardly.

A mutation gets the schema's tables (ModelT) and changes them in place; a file is written from these, so that it is
sound as a flatbuffer. `damage` of mutate_bytes is for files that are not.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stages.models.tflite_writer import aligned_buffer
from tests.fuzz import hostile
from tests.fuzz.model_choices import (
    Unfit,
    changed_indices,
    last_is_random,
    maybe_fit,
    other_value,
    some,
    some_graph,
    some_operator,
    some_operators,
    some_quantization,
    some_tensor,
    supported_codes,
)
from tests.fuzz.model_seeds import seed_model
from tests.fuzz.mutate_bytes import damage


@dataclass(frozen=True)
class Mutant:
    """A model to import: what was done to which seed, and the file."""

    made: str
    data: bytes


class _Unwritable(Exception):
    """The format has no room for what a mutation put into a field."""


def model_mutant(seed: int, index: int) -> Mutant:
    """Mutant `index` of a seed; the same numbers give the same bytes."""
    rng = Random(f"models {seed} {index}")
    name, data = seed_model(rng)
    done = []
    if rng.random() < 0.75:
        tables = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
        wanted = rng.choice([1, 1, 1, 2, 3])
        while len(done) < wanted:
            mutation, before = rng.choice(MUTATIONS), copy.deepcopy(tables)
            try:
                mutation(rng, tables)
                data = serialize(tables)
                done.append(mutation.__name__)
            except (Unfit, _Unwritable):
                tables = before
            except (TypeError, IndexError):
                if not done:
                    raise
                tables = before  # what an earlier mutation left has no such thing
    if not done or rng.random() < 0.05:
        what, data = damage(rng, data)
        done.append(what)
    return Mutant(f"{name}: {', '.join(done)}", data)


def serialize(tables: Any) -> bytes:
    """The file of these tables, with constants aligned as the schema demands. Raises _Unwritable."""
    aligned = copy.copy(tables)
    if aligned.buffers is not None:
        aligned.buffers = [
            aligned_buffer(schema, bytes(np.asarray(buffer.data, np.uint8)))
            if buffer.data is not None and not buffer.offset
            else buffer
            for buffer in aligned.buffers
        ]
    builder = flatbuffers.Builder(1 << 16)
    try:
        builder.Finish(aligned.Pack(builder), file_identifier=b"TFL3")
    except Exception as error:  # flatbuffers has no class of its own for a number that is too large
        raise _Unwritable from error
    return bytes(builder.Output())


# ---- operators --------------------------------------------------------------------------------------------------


def change_operator(rng: Random, model: Any) -> None:
    """Another operator's code, with the options it has."""
    code = rng.choice(model.operatorCodes)
    codes = [value for value in vars(schema.BuiltinOperator).values() if isinstance(value, int)]
    code.builtinCode = rng.choice([*codes, *supported_codes() * 4, -1, 300])
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    if rng.random() < 0.3:
        code.customCode = hostile.text(rng)


def change_version(rng: Random, model: Any) -> None:
    rng.choice(model.operatorCodes).version = rng.choice(hostile.INT32)


def change_code_index(rng: Random, model: Any) -> None:
    some_operator(rng, model).opcodeIndex = rng.choice(
        [*range(len(model.operatorCodes)), len(model.operatorCodes), 2**31]
    )


def drop_operator(rng: Random, model: Any) -> None:
    last_is_random(rng, some_graph(rng, model).operators).pop()


def repeat_operator(rng: Random, model: Any) -> None:
    """Twice, which writes its outputs twice; or with outputs of its own."""
    graph = some_graph(rng, model)
    again = copy.deepcopy(rng.choice(some(graph.operators)))
    if rng.random() < 0.6:
        outputs = []
        # An index may point nowhere by now.
        for index in some([index for index in some(again.outputs) if 0 <= index < len(graph.tensors)]):
            outputs.append(len(graph.tensors))
            graph.tensors.append(copy.deepcopy(graph.tensors[index]))
        again.outputs = outputs
        if rng.random() < 0.5:
            graph.outputs = [*graph.outputs, *outputs]
    graph.operators.insert(rng.randrange(len(graph.operators) + 1), again)


def swap_operators(rng: Random, model: Any) -> None:
    rng.shuffle(some(some_graph(rng, model).operators, 2))


def change_operands(rng: Random, model: Any) -> None:
    """Inputs or outputs of an operator: one more, one less, twice, none, in another order, of somewhere else."""
    graph = some_graph(rng, model)
    operator = rng.choice(some(graph.operators))
    side = rng.choice(["inputs", "inputs", "inputs", "outputs"])
    setattr(operator, side, changed_indices(rng, getattr(operator, side), len(graph.tensors)))


def change_option(rng: Random, model: Any) -> None:
    """One field of an operator's options."""
    options = rng.choice(
        some([op.builtinOptions for op in some_operators(rng, model) if op.builtinOptions is not None])
    )
    name = rng.choice(some(list(vars(options))))
    setattr(options, name, other_value(rng, getattr(options, name)))


def change_options_table(rng: Random, model: Any) -> None:
    """Options of another kind, or none."""
    operator = some_operator(rng, model)
    kind = rng.random()
    if kind < 0.4:
        operator.builtinOptions, operator.builtinOptionsType = None, 0
    elif kind < 0.6:
        operator.builtinOptionsType = rng.randrange(1, 127)
    else:
        names = [name for name in vars(schema.BuiltinOptions) if name[0] != "_" and name != "NONE"]
        name = rng.choice(names)
        operator.builtinOptionsType = getattr(schema.BuiltinOptions, name)
        operator.builtinOptions = getattr(schema, f"{name}T")()
    if rng.random() < 0.2:
        operator.customOptions = list(rng.randbytes(rng.choice([0, 1, 20])))


# ---- tensors ----------------------------------------------------------------------------------------------------


def change_shape(rng: Random, model: Any) -> None:
    tensor = some_tensor(rng, model)
    shape = [int(size) for size in (tensor.shape if tensor.shape is not None else [])]
    kind = rng.random()
    if kind < 0.5 and shape:
        axis = rng.randrange(len(shape))
        shape[axis] = rng.choice([*hostile.INT32, shape[axis] + 1, shape[axis] - 1, shape[axis] * 2])
    elif kind < 0.6:
        shape.insert(rng.randrange(len(shape) + 1), rng.choice([0, 1, 1, 2, -1]))
    elif kind < 0.7 and shape:
        shape.pop(rng.randrange(len(shape)))
    elif kind < 0.8:
        rng.shuffle(shape)
    elif kind < 0.85:
        shape = [1] * rng.choice([5, 6, 9, 40])
    else:
        shape = []
    tensor.shape = None if rng.random() < 0.05 else shape
    maybe_fit(rng, model, tensor)


def change_shape_signature(rng: Random, model: Any) -> None:
    tensor = some_tensor(rng, model)
    shape = some(tensor.shape)
    tensor.shapeSignature = [rng.choice([-1, int(size), int(size)]) for size in shape]


def change_type(rng: Random, model: Any) -> None:
    tensor = some_tensor(rng, model)
    tensor.type = rng.choice([0, 2, 3, 7, 9, 17, *range(20), 100])
    maybe_fit(rng, model, tensor)


def change_name(rng: Random, model: Any) -> None:
    some_tensor(rng, model).name = hostile.text(rng) if rng.random() < 0.9 else rng.randbytes(8)


def repeat_name(rng: Random, model: Any) -> None:
    some_tensor(rng, model).name = some_tensor(rng, model).name


def change_variable(rng: Random, model: Any) -> None:
    some_tensor(rng, model).isVariable = True


def change_scale(rng: Random, model: Any) -> None:
    parameters = some_quantization(rng, model)
    scale = [float(value) for value in some(parameters.scale)]
    kind = rng.random()
    if kind < 0.6:
        scale[rng.randrange(len(scale))] = rng.choice(hostile.FLOATS)
    elif kind < 0.7:
        scale = [rng.choice(hostile.FLOATS)] * len(scale)
    elif kind < 0.8:
        scale = [value * rng.choice([1e-6, 1e-3, 1e3, 1e6]) for value in scale]
    else:
        scale = scale * rng.choice([0, 2, 3]) if kind < 0.9 else scale[:1]
    parameters.scale = scale
    if rng.random() < 0.5 and parameters.zeroPoint is not None:
        parameters.zeroPoint = [int(parameters.zeroPoint[0])] * len(scale)


def change_zero_point(rng: Random, model: Any) -> None:
    parameters = some_quantization(rng, model)
    points = [int(value) for value in some(parameters.zeroPoint)]
    kind = rng.random()
    if kind < 0.7:
        points[rng.randrange(len(points))] = rng.choice([-128, 127, 255, -129, 5, 2**31, -(2**63), 2**63 - 1])
    else:
        points = [rng.choice([5, -128, 300])] * len(points) if kind < 0.9 else points[1:]
    parameters.zeroPoint = points


def change_quantized_axis(rng: Random, model: Any) -> None:
    some_quantization(rng, model).quantizedDimension = rng.choice([0, 1, 2, 3, 4, *hostile.INT32])


def change_quantization(rng: Random, model: Any) -> None:
    """None where there was some, another tensor's, or per channel on what is computed."""
    tensor, kind = some_tensor(rng, model), rng.random()
    if kind < 0.3:
        tensor.quantization = None
    elif kind < 0.7:
        tensor.quantization = copy.deepcopy(some_tensor(rng, model).quantization)
    else:
        shape = some(tensor.shape)
        axis = rng.randrange(len(shape))
        count = max(0, min(int(shape[axis]), 1000))
        tensor.quantization = schema.QuantizationParametersT(
            scale=[0.01 * (i + 1) for i in range(count)], zeroPoint=[0] * count, quantizedDimension=axis
        )


def change_sparsity(rng: Random, model: Any) -> None:
    some_tensor(rng, model).sparsity = schema.SparsityParametersT(traversalOrder=[0, 1], blockMap=[0])


# ---- constants --------------------------------------------------------------------------------------------------


def change_constant(rng: Random, model: Any) -> None:
    """The values of a constant: ends of the type, random, or numbers that mean something else as axis or shape."""
    buffer = rng.choice(some([b for b in model.buffers if b.data is not None and len(b.data)]))
    size = len(buffer.data)
    kind = rng.random()
    if kind < 0.5 and size % 4 == 0:
        words = np.frombuffer(bytes(np.asarray(buffer.data, np.uint8)), np.int32).copy()
        words[rng.randrange(len(words))] = rng.choice(hostile.INT32)
        data = words.tobytes()
    elif kind < 0.7 and size % 4 == 0:
        floats = np.frombuffer(bytes(np.asarray(buffer.data, np.uint8)), np.float32).copy()
        with np.errstate(over="ignore"):
            floats[rng.randrange(len(floats))] = np.float32(rng.choice(hostile.FLOATS))
        data = floats.tobytes()
    elif kind < 0.85:
        data = bytes([rng.choice([0, 0x7F, 0x80, 0xFF])]) * size
    else:
        data = rng.randbytes(size)
    buffer.data = list(data)


def resize_constant(rng: Random, model: Any) -> None:
    buffer = rng.choice(some([b for b in model.buffers if b.data is not None and len(b.data)]))
    data = [int(value) for value in buffer.data]
    buffer.data = rng.choice([data[:-1], data[: len(data) // 2], [*data, 0], data + data, [], None])


def change_buffer_index(rng: Random, model: Any) -> None:
    """A tensor with another's constant, a constant computed, a computed tensor constant."""
    some_tensor(rng, model).buffer = rng.choice([0, *range(len(model.buffers)), len(model.buffers), 2**31])


def change_buffer_offset(rng: Random, model: Any) -> None:
    buffer = rng.choice(some(model.buffers))
    buffer.offset, buffer.size = rng.choice(_POSITIVE), rng.choice(_POSITIVE)


_POSITIVE = tuple(value for value in hostile.INTEGERS if 0 <= value < 2**64)


# ---- graph ------------------------------------------------------------------------------------------------------


def change_graph_ends(rng: Random, model: Any) -> None:
    """The graph's inputs or outputs."""
    graph = some_graph(rng, model)
    side = rng.choice(["inputs", "outputs"])
    setattr(graph, side, changed_indices(rng, getattr(graph, side), len(graph.tensors)))


def add_subgraph(rng: Random, model: Any) -> None:
    some(model.subgraphs)
    model.subgraphs.append(copy.deepcopy(model.subgraphs[0]))
    if rng.random() < 0.5:
        model.subgraphs[-1].name = hostile.text(rng)


def add_signatures(rng: Random, model: Any) -> None:
    """One signature or two, whose tensors and subgraphs need not be there."""
    graph = model.subgraphs[0]
    written = rng.choice([0, int(some(graph.outputs)[0]), 2**31])
    model.signatureDefs = [
        schema.SignatureDefT(
            inputs=[schema.TensorMapT(name=hostile.text(rng), tensorIndex=int(i)) for i in some(graph.inputs)],
            outputs=[schema.TensorMapT(name=hostile.text(rng), tensorIndex=written)],
            signatureKey=hostile.text(rng),
            subgraphIndex=rng.choice([0, 0, 1, 2**31]),
        )
        for _ in range(rng.choice([1, 2]))
    ]


def change_model_fields(rng: Random, model: Any) -> None:
    kind = rng.randrange(5)
    if kind == 0:
        model.version = rng.choice([0, 1, 2, 4, 2**32 - 1])
    elif kind == 1:
        model.description = hostile.text(rng)
    elif kind == 2:
        model.subgraphs[0].name = hostile.text(rng)
    elif kind == 3:
        model.metadata = [schema.MetadataT(name=hostile.text(rng), buffer=rng.choice([0, 1, 2**31]))]
    else:
        part = rng.choice(["operatorCodes", "subgraphs", "buffers"])
        setattr(model, part, rng.choice([None, []]))


def drop_tensor(rng: Random, model: Any) -> None:
    """The last tensor, which whatever names it then misses; or one in the middle, so that all after it move."""
    tensors = some(some_graph(rng, model).tensors)
    tensors.pop(rng.choice([-1, rng.randrange(len(tensors))]))


MUTATIONS: tuple[Callable[[Random, Any], None], ...] = (
    change_operator, change_operator, change_version, change_code_index, drop_operator, repeat_operator,
    repeat_operator, swap_operators, change_operands, change_operands, change_operands, change_operands, change_option,
    change_option, change_option, change_option, change_option, change_options_table, change_shape, change_shape,
    change_shape, change_shape_signature, change_type, change_type, change_name, change_name, repeat_name,
    change_variable, change_scale, change_scale, change_scale, change_zero_point, change_zero_point,
    change_quantized_axis, change_quantization, change_quantization, change_sparsity, change_constant,
    change_constant, change_constant, resize_constant, change_buffer_index, change_buffer_offset, change_graph_ends,
    change_graph_ends, add_subgraph, add_signatures, change_model_fields, drop_tensor,
)  # fmt: skip
