"""ONNX files with one to three things changed that the format allows and a network does not, or hardly.

A mutation gets a place in the message: a field of a part of it, whichever onnx.proto has. A quarter of the files are
damaged as bytes instead (`mutate_bytes`).
"""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor

from tests.fuzz.mutate_bytes import damage
from tests.fuzz.mutate_model import Mutant
from tests.fuzz.onnx_seeds import seed_onnx

Place = tuple[Any, FieldDescriptor]
_INTEGERS = (-1, 0, 1, 2, 3, 7, 10, 16, 255, 2**31 - 1, -(2**31), 2**62, -(2**63))
_FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-45, 3e38, float("inf"), float("-inf"), float("nan"))
_TEXTS = ("", "x", "\u202e", "a\nb", "'", "../../etc/passwd", "{x}", "a" * 300, "com.microsoft", "Loop", "Identity")
_TYPES = {FieldDescriptor.CPPTYPE_FLOAT: _FLOATS, FieldDescriptor.CPPTYPE_DOUBLE: _FLOATS}


def places(message: Any) -> list[Place]:
    """All fields that are there, of the message and of all in it."""
    found: list[Place] = []
    for field, value in message.ListFields():
        found.append((message, field))
        if field.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                found += places(part)
    return found


def _is_list(place: Place) -> bool:
    return hasattr(getattr(place[0], place[1].name), "append")


def other_value(rng: Random, place: Place, model: onnx.ModelProto) -> None:
    """Another number, text or bytes."""
    message, field = place
    if field.message_type is not None:
        raise LookupError
    value: Any = rng.choice(_TYPES.get(field.cpp_type, _INTEGERS))
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        value = rng.choice(field.enum_type.values).number
    elif field.type == FieldDescriptor.TYPE_STRING:
        value = rng.choice(_TEXTS)
    elif field.type == FieldDescriptor.TYPE_BYTES:
        before = getattr(message, field.name)
        value = rng.choice([b"", before[:-1], before + b"\0", rng.randbytes(len(before)), b"\xff\xfe"])
    if _is_list(place):
        numbers = getattr(message, field.name)
        numbers[rng.randrange(len(numbers))] = value
    else:
        setattr(message, field.name, value)


def other_name(rng: Random, place: Place, model: onnx.ModelProto) -> None:
    """A text that stands elsewhere in the file: a tensor's name, an operator, a domain."""
    message, field = place
    if field.type != FieldDescriptor.TYPE_STRING:
        raise LookupError
    one, other = rng.choice([found for found in places(model) if found[1].type == FieldDescriptor.TYPE_STRING])
    value = getattr(one, other.name)
    text = value if isinstance(value, str) else rng.choice(list(value))
    if _is_list(place):
        names = getattr(message, field.name)
        names[rng.randrange(len(names))] = text
    else:
        setattr(message, field.name, text)


def left_out(rng: Random, place: Place, model: onnx.ModelProto) -> None:
    """A field that is not there, or one entry less."""
    message, field = place
    if _is_list(place):
        del getattr(message, field.name)[rng.randrange(len(getattr(message, field.name)))]
    else:
        message.ClearField(field.name)


def repeated(rng: Random, place: Place, model: onnx.ModelProto) -> None:
    """An entry of a list for the second time."""
    if not _is_list(place):
        raise LookupError
    entries = getattr(place[0], place[1].name)
    entries.extend([rng.choice(list(entries))] * rng.choice([1, 1, 5]))


def exchanged(rng: Random, place: Place, model: onnx.ModelProto) -> None:
    """The entries of a list in another order: inputs, operators, sizes."""
    if not _is_list(place) or len(getattr(place[0], place[1].name)) < 2:
        raise LookupError
    entries = list(getattr(place[0], place[1].name))
    rng.shuffle(entries)
    copies = [type(one).FromString(one.SerializeToString()) if hasattr(one, "ListFields") else one for one in entries]
    del getattr(place[0], place[1].name)[:]
    getattr(place[0], place[1].name).extend(copies)


def other_opset(rng: Random, place: Place, model: onnx.ModelProto) -> None:
    """The file says another opset than its operators are of."""
    rng.choice(list(model.opset_import)).version = rng.choice([1, 6, 7, 9, 11, 13, 17, 20, 23, 99])


def elsewhere(rng: Random, place: Place, model: onnx.ModelProto) -> None:
    """A tensor in another file."""
    tensors = [message for message, _ in places(model) if isinstance(message, onnx.TensorProto)]
    tensor = rng.choice(tensors)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=rng.choice(["/dev/zero", "no.bin", "../m.onnx", ""]))


MUTATIONS: tuple[Callable[[Random, Place, onnx.ModelProto], None], ...] = (
    other_value, other_value, other_name, other_name, left_out, left_out, repeated, exchanged, other_opset, elsewhere,
)  # fmt: skip


def onnx_mutant(seed: int, index: int) -> Mutant:
    """Mutant `index` of a seed; the same numbers give the same bytes."""
    rng = Random(f"onnx {seed} {index}")
    name, data = seed_onnx(rng)
    if rng.random() < 0.25:
        done, changed = damage(rng, data)
        return Mutant(f"{name}: {done}", changed)
    model = onnx.load_model_from_string(data)
    mutations: list[str] = []
    wanted = rng.choice([1, 1, 1, 2, 3])
    while len(mutations) < wanted:
        mutation = rng.choice(MUTATIONS)
        with suppress(LookupError, TypeError, ValueError):  # a place of another kind, or a value it has no room for
            mutation(rng, rng.choice(places(model)), model)
            mutations.append(mutation.__name__)
    return Mutant(f"{name}: {', '.join(mutations)}", model.SerializeToString())
