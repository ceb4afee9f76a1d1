"""The reader takes sound files and their options as they are and refuses damaged ones with a message."""

import struct

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from stages.base import StageError
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.flatbuffer import Table
from stages.ir.models.operator_options import tables
from stages.ir.models.tflite_reader import read
from stages.ir.operators.declaration import CUSTOM


def small() -> bytes:
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 2), "int8", 0.5, 1)
    weights = np.arange(-9, 9, dtype=np.int8).reshape(1, 3, 3, 2)
    y = b.depthwise_conv2d(x, weights, np.array([5, -5], np.int32), weight_scale=[0.1, 0.2], out=(2.0, 3), name="dw")
    b.output(b.fully_connected(y, np.ones((3, 32), np.int8), weight_scale=0.25, out=(1.0, 0), name="fc"))
    return b.build()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "Check that the download or export is complete."),
        (b"TFL3", "Check that the download or export is complete."),
        (b"\0\0\0\0TFL3", "Export or download it again."),
        (b"\xff\xff\xff\xffTFL3\0\0", "Export or download it again."),
        (bytes(64), "Check that the download or export is complete."),
        (b"<html>not found</html>", "It is a page of HTML"),
        (b"\xef\xbb\xbf\n <!DOCTYPE html>", "It is a page of HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "`git lfs pull` brings the file"),
        (b"alignas(16) const unsigned char model[] = {0x1c, 0x00,", "It is C source"),
        (b"\x1f\x8b\x08\x00" + bytes(20), "It is a gzip archive"),
        (b"\x1c\x00\x00\x00ET12" + bytes(20), "It is a program of ExecuTorch"),
        (b"\x89HDF\r\n\x1a\n", "as Keras writes them"),
        (b"PK\x03\x04 a.keras", "It is a zip archive"),
        (b"\x08\x0a\x12\x07pytorch", "the name of one should end in .onnx"),
    ],
)
def test_other_kinds_of_files_are_named(data: bytes, says: str) -> None:
    with pytest.raises(StageError, match=r"thing\.tflite") as caught:
        read(data, "thing.tflite")
    assert says in caught.value.hint


def test_every_truncation_is_refused() -> None:
    # The root comes last in no table: cutting anywhere loses something that is referred to.
    data = small()
    for length in range(0, len(data) - 16, 7):
        with pytest.raises(StageError):
            read(data[:length])


def test_what_litert_refuses_without_a_place_has_one() -> None:
    """A text without its NUL, a list at an odd place."""
    data = small()
    end = data.index(b"\x02\0\0\0fc\0") + 6
    with pytest.raises(StageError, match=r"a text in tensor \d+ does not end: 'fc'"):
        read(data[:end] + b"x" + data[end + 1 :])
    end = data.index(b"\x08\0\0\0Firmline\0") + 12
    with pytest.raises(StageError, match="a text in the model does not end: 'Firmline'"):
        read(data[:end] + b"x" + data[end + 1 :])
    position = Table.root(memoryview(data)).tables(2, "subgraph")[0].place(1)
    distance = struct.unpack_from("<I", data, position)[0]
    shifted = data[:position] + struct.pack("<I", distance + 2) + data[position + 4 :]
    with pytest.raises(StageError, match=r"a list in subgraph 0 begins at \d+, no multiple of 4"):
        read(shifted)


def test_messages_name_the_tensor_and_the_operator() -> None:
    info = read(small())
    data = bytearray(small())
    inputs = struct.pack("<4i", 3, *info.operators[0].inputs)
    assert data.count(inputs) == 1
    at = data.index(inputs) + 4
    data[at : at + 4] = struct.pack("<i", 77)
    with pytest.raises(StageError, match=r"tensor 77 of \d+ among the inputs of operator 0 \(DEPTHWISE_CONV_2D\)"):
        read(bytes(data))


@pytest.mark.parametrize(
    ("code", "compiler"),
    [
        ("ethos-u", "Arm's Vela, for an Ethos-U NPU"),
        ("edgetpu-custom-op", "Google's edgetpu_compiler, for an Edge TPU"),
        ("XC_conv2d_v2", "XMOS' xcore optimizer, for an xcore.ai"),
    ],
)
def test_a_file_that_was_compiled_for_an_accelerator_is_named_as_such(code: str, compiler: str) -> None:
    """Its scratch tensors are written by nothing: it is not corrupt for that."""
    b = ModelBuilder()
    x, scratch = b.input("x", (1, 4), "int8", 0.5), b.tensor("scratch", (64,), "uint8")
    y = b.tensor("y", (1, 4), "int8", 0.5)
    b.operator(f"{CUSTOM}{code}", [x, scratch], [y], custom=b"code")
    b.output(y)
    with pytest.raises(StageError) as caught:
        read(b.build(), "net.tflite")
    assert str(caught.value) == (
        f"net.tflite was compiled by {compiler} (custom operator '{code}')\n"
        "Its layers are machine code. Use the .tflite file from before that compilation."
    )


# Ours -> the schema's, where it is more than another way to write the words.
_NAMES = {
    "cell_activation": "fusedActivationFunction",
    "activation": "fusedActivationFunction", "stride_w": "strideW", "stride_h": "strideH",
    "dilation_w": "dilationWFactor", "dilation_h": "dilationHFactor", "filter_w": "filterWidth",
    "filter_h": "filterHeight",
}  # fmt: skip


def schema_name(field: str) -> str:
    first, *rest = field.split("_")
    return _NAMES.get(field) or first + "".join(word.capitalize() for word in rest)


def one_operator(table: str, fields: dict[str, object]) -> bytes:
    """A file whose only operator has these options; the operator itself does not matter here."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 4), "float32"), b.tensor("y", (1, 4), "float32")
    b.operator("RELU", [x], [y], table, fields)
    b.output(y)
    return b.build()


@pytest.mark.parametrize("table", tables())
def test_every_field_is_found_at_its_place(table: str) -> None:
    """Each field gets a value of its own, so that two that change places are seen."""
    kinds = {"byte": int, "int": int, "one": int, "bool": lambda n: bool(n % 2), "float": lambda n: n + 0.25}
    values = {
        name: (n, n + 1) if kind == "ints" else kinds[kind](n)
        for n, (name, kind) in enumerate(tables()[table].kinds, start=3)
        if name
    }
    written = {schema_name(k): np.array(v, np.int32) if isinstance(v, tuple) else v for k, v in values.items()}
    (operator,) = read(one_operator(table, written)).operators
    assert operator.options is not None
    assert (operator.options.table, dict(operator.options.fields)) == (table, values)


@pytest.mark.parametrize("table", tables())
def test_fields_that_are_left_out_have_the_values_of_the_schema(table: str) -> None:
    (operator,) = read(one_operator(table, {})).operators
    assert operator.options is not None
    plain = getattr(schema, f"{table}T")()
    for name, value in operator.options.fields.items():
        expected = getattr(plain, schema_name(name))
        assert value == (() if expected is None else expected), name
    assert set(tables()[table].defaults) == set(operator.options.fields)
