"""TFLite files with one to three things changed that the format allows and a network does not, or hardly.

A mutation changes the schema's tables (ModelT) in place; the file is written from these, so it is sound as a
flatbuffer. `damage` of mutate_bytes is for files that are not.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stages.ir.models.tflite_writer import aligned_buffer
from tests.fuzz import hostile
from tests.fuzz.model_seeds import seed_model
from tests.fuzz.mutate_bytes import damage

Place = tuple[Any, str]  # a table and the name of a field
# Bytes of an element by the schema's TensorType, for types whose elements are whole bytes.
_ITEM = {0: 4, 1: 2, 2: 4, 3: 1, 4: 8, 6: 1, 7: 2, 8: 8, 9: 1, 10: 8, 11: 16, 12: 8, 15: 4, 16: 2}
# Fields that are changed more often than others, beside those of an operator's options.
_OFTEN = {"builtinCode", "inputs", "outputs", "shape", "type", "scale", "zeroPoint", "data", "quantization"}


@dataclass(frozen=True)
class Mutant:
    """A file to read: what was done to which seed, and its bytes."""

    made: str
    data: bytes


class _Unfit(Exception):
    """The mutation found nothing to change, or the format has no room for the value."""


def model_mutant(seed: int, index: int) -> Mutant:
    """Mutant `index` of a seed; the same numbers give the same bytes."""
    rng = Random(f"models {seed} {index}")
    name, data = seed_model(rng)
    done: list[str] = []
    if rng.random() < 0.75:
        tables = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
        wanted = rng.choice([1, 1, 1, 2, 3])
        while len(done) < wanted:
            mutation, before = rng.choice(MUTATIONS), copy.deepcopy(tables)
            try:
                mutation(rng, tables)
                data = serialize(tables)
                done.append(mutation.__name__)
            except (_Unfit, TypeError, IndexError):  # an earlier mutation may leave no such thing
                tables = before
    if not done or rng.random() < 0.05:
        what, data = damage(rng, data)
        done.append(what)
    return Mutant(f"{name}: {', '.join(done)}", data)


def serialize(tables: Any) -> bytes:
    """The file of these tables, with constants aligned as the schema demands. Raises _Unfit."""
    aligned = copy.copy(tables)
    builder = flatbuffers.Builder(1 << 16)
    try:
        if aligned.buffers is not None:
            aligned.buffers = [
                aligned_buffer(schema, bytes(np.asarray(buffer.data, np.uint8)))
                if buffer.data is not None and not buffer.offset
                else buffer
                for buffer in aligned.buffers
            ]
        builder.Finish(aligned.Pack(builder), file_identifier=b"TFL3")
    except Exception as error:  # flatbuffers has no class of its own for a number that is too large
        raise _Unfit from error
    return bytes(builder.Output())


def _is_table(value: Any) -> bool:
    return type(value).__module__ == schema.__name__


def _places(table: Any) -> list[Place]:
    """All fields of a table and of the tables in it."""
    found = []
    for name, value in vars(table).items():
        found.append((table, name))
        for part in value if isinstance(value, list) else [value]:
            found += _places(part) if _is_table(part) else []
    return found


def _some_place(rng: Random, model: Any, wanted: Callable[[Any], bool]) -> Place:
    """Each kind of field as often as another, however many there are, except for _OFTEN."""
    kinds: dict[tuple[str, str], list[Place]] = {}
    for table, name in _places(model):
        if wanted(getattr(table, name)):
            kinds.setdefault((type(table).__name__, name), []).append((table, name))
    if not kinds:
        raise _Unfit
    weights = [6 if name in _OFTEN else 3 if kind.endswith("OptionsT") else 1 for kind, name in kinds]
    return rng.choice(rng.choices(list(kinds.values()), weights)[0])


def other_value(rng: Random, model: Any) -> None:
    """Another number, text or list of numbers."""
    table, name = _some_place(rng, model, lambda value: not _is_table(value))
    value = getattr(table, name)
    if isinstance(value, bool):
        made: Any = not value
    elif isinstance(value, float):
        made = rng.choice(hostile.FLOATS)
    elif isinstance(value, int):
        codes = _supported_codes() * 4 if name == "builtinCode" else []
        made = rng.choice([*hostile.INT32, *range(8), value + 1, value - 1, *codes])
    elif isinstance(value, bytes):
        made = hostile.text(rng)
    elif name == "data":
        made = _other_bytes(rng, bytes(np.asarray(value if value is not None else [], np.uint8)))
    elif isinstance(value, list) and any(map(_is_table, value)):
        raise _Unfit
    else:
        made = _other_numbers(rng, value)
    setattr(table, name, made)
    if name == "builtinCode":
        table.deprecatedBuiltinCode = min(made, 127)
    if name in ("shape", "type") and rng.random() < 0.5:
        _fit_constant(model, table)


def _other_numbers(rng: Random, value: Any) -> Any:
    """One number of a list changed, left out or repeated, all in another order, or another list."""
    numbers = [] if value is None else np.asarray(value).tolist()
    kind = rng.random()
    if kind < 0.15 or not numbers:
        return rng.choice([None, [], [0], [1, -1], [2**30, 2**30], [-5], [1] * 9])
    place = rng.randrange(len(numbers))
    if kind < 0.7:
        near = [numbers[place] + 1, numbers[place] - 1, numbers[place] * 2]
        numbers[place] = rng.choice([*(hostile.FLOATS if isinstance(numbers[0], float) else hostile.INT32), *near])
    elif kind < 0.8:
        numbers.insert(place, rng.choice([1, *numbers]))
    elif kind < 0.9:
        numbers.pop(place)
    else:
        rng.shuffle(numbers)
    return numbers


def _other_bytes(rng: Random, data: bytes) -> Any:
    """A word or float32 to one of the ends, one value everywhere, random values, or another size."""
    kind, size = rng.random(), len(data)
    if kind < 0.6 and size and size % 4 == 0:
        dtype, values = rng.choice([(np.int32, hostile.INT32), (np.float32, hostile.FLOATS)])
        words = np.frombuffer(data, dtype).copy()
        with np.errstate(over="ignore"):
            words[rng.randrange(len(words))] = np.asarray(rng.choice(values)).astype(dtype)
        return list(words.tobytes())
    if kind < 0.8:
        return list(rng.choice([bytes([rng.choice([0, 0x7F, 0x80, 0xFF])]) * size, rng.randbytes(size)]))
    return rng.choice([list(data[:-1]), list(data[: size // 2]), [*data, 0], list(data + data), [], None])


def _fit_constant(model: Any, tensor: Any) -> None:
    """Let a constant have as many bytes as its shape and type now need."""
    if not 0 <= tensor.buffer < len(model.buffers) or tensor.shape is None:
        return
    buffer, size = model.buffers[tensor.buffer], _ITEM.get(tensor.type, 0)
    for extent in tensor.shape:
        size *= int(extent)
    if buffer.data is not None and len(buffer.data) and 0 <= size < 1 << 20:
        data = list(bytes(np.asarray(buffer.data, np.uint8)))
        buffer.data = (data * (size // len(data) + 1))[:size]


@cache
def _supported_codes() -> list[int]:
    from stages.ir.operators.table import OPERATORS

    return [getattr(schema.BuiltinOperator, name) for name in OPERATORS if not name.startswith("CUSTOM:")]


def copied(rng: Random, model: Any) -> None:
    """What another table of the kind has in that field: a name, a constant, inputs, a quantization."""
    table, name = _some_place(rng, model, lambda value: True)
    others = [getattr(one, name) for one, field in _places(model) if field == name and type(one) is type(table)]
    setattr(table, name, copy.deepcopy(rng.choice(others)))


def left_out(rng: Random, model: Any) -> None:
    """A field that is not there, or one entry less of a list."""
    table, name = _some_place(rng, model, lambda value: value is not None)
    value = getattr(table, name)
    if isinstance(value, list) and value and rng.random() < 0.8:
        value.pop(rng.randrange(len(value)))
    elif isinstance(value, bool | int | float):
        setattr(table, name, type(value)())
    else:
        setattr(table, name, None)


def repeated(rng: Random, model: Any) -> None:
    """A table for the second time: a tensor, a constant, a graph."""
    table, name = _some_place(rng, model, lambda value: isinstance(value, list) and any(map(_is_table, value)))
    values = getattr(table, name)
    values.insert(rng.randrange(len(values) + 1), copy.deepcopy(rng.choice(values)))


def exchanged(rng: Random, model: Any) -> None:
    """The tables of a list in another order."""
    table, name = _some_place(rng, model, lambda value: isinstance(value, list) and len(value) > 1)
    rng.shuffle(getattr(table, name))


def repeated_operator(rng: Random, model: Any) -> None:
    """With outputs of its own, which may be the graph's."""
    graph = model.subgraphs[0]
    again = copy.deepcopy(rng.choice(graph.operators))
    graph.tensors += [copy.deepcopy(graph.tensors[index]) for index in again.outputs]
    again.outputs = list(range(len(graph.tensors) - len(again.outputs), len(graph.tensors)))
    if rng.random() < 0.5:
        graph.outputs = [*graph.outputs, *again.outputs]
    graph.operators.insert(rng.randrange(len(graph.operators) + 1), again)


def other_options(rng: Random, model: Any) -> None:
    """Options of another operator."""
    operator = rng.choice(model.subgraphs[0].operators)
    names = [name for name in vars(schema.BuiltinOptions) if name[0] != "_" and name != "NONE"]
    name = rng.choice(names)
    operator.builtinOptionsType = getattr(schema.BuiltinOptions, name)
    operator.builtinOptions = getattr(schema, f"{name}T")()


def added_table(rng: Random, model: Any) -> None:
    """What a seed has none of: signatures, sparsity, quantization by channel."""
    graph = model.subgraphs[0]
    tensor, kind = rng.choice(graph.tensors), rng.randrange(3)
    if kind == 0:
        tensor.sparsity = schema.SparsityParametersT(traversalOrder=[0, 1], blockMap=[0])
    elif kind == 1:
        axis = rng.randrange(len(tensor.shape))
        count = max(0, min(int(tensor.shape[axis]), 1000))
        tensor.quantization = schema.QuantizationParametersT(
            scale=[0.01 * (i + 1) for i in range(count)], zeroPoint=[0] * count, quantizedDimension=axis
        )
    else:
        maps = [
            [schema.TensorMapT(name=hostile.text(rng), tensorIndex=int(rng.choice([i, 0, 2**31]))) for i in ends]
            for ends in (graph.inputs, graph.outputs)
        ]
        number = rng.choice([0, 0, 1, 2**31])
        signature = schema.SignatureDefT(
            inputs=maps[0], outputs=maps[1], signatureKey=hostile.text(rng), subgraphIndex=number
        )
        model.signatureDefs = [signature] * rng.choice([1, 2])


MUTATIONS: tuple[Callable[[Random, Any], None], ...] = (
    *([other_value] * 9),
    *([copied] * 3),
    left_out,
    left_out,
    repeated,
    exchanged,
    repeated_operator,
    repeated_operator,
    other_options,
    added_table,
)
