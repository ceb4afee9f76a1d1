"""Files that leave things out, say them wrongly or hold several graphs: what is imported, and that LiteRT agrees."""

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from stages.base import StageError
from stages.import_model.build import build_module
from stages.import_model.normalize import Normalized, normalized
from stages.import_model.normalize.versions import VERSIONS
from stages.ir.models.builder import ModelBuilder
from stages.ir.operators.table import OPERATORS
from stages.ir.reference import Reference, RunError, random_inputs
from tests.support.edited_models import composite, together
from tests.support.malformed import altered, indices, tensor
from tests.support.relax_run import run_relax


def layers(scale: float = 0.1, channels: int = 4) -> bytes:
    """A convolution with a scale per channel, and pooling behind it."""
    b = ModelBuilder()
    x = b.input("x", (1, 6, 6, 2), "int8", 0.05, -3)
    kernel = np.arange(channels * 18, dtype=np.int8).reshape(channels, 3, 3, 2)
    y = b.conv2d(x, kernel, weight_scale=[scale + 0.01 * c for c in range(channels)], out=(0.3, 7), name="conv")
    b.output(b.max_pool2d(y, (2, 2), name="pool"))
    return b.build()


def function_of(op: str) -> bytes:
    """One float operator."""
    b = ModelBuilder()
    x = b.input(f"{op}_in", (1, 8), "float32")
    b.output(getattr(b, op)(x, name=f"{op}_out"))
    return b.build()


def outcome(result: Normalized) -> list[np.ndarray[Any, Any]]:
    """What LiteRT computes of it, after a check that the imported module gives the same."""
    inputs = random_inputs(result.info, 5)
    expected = Reference(result.data).run(inputs)
    for ours, theirs in zip(run_relax(build_module(result.data, result.info), inputs), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1)
    return expected


def test_a_file_that_says_everything_is_left_as_it_is() -> None:
    data = layers()
    result = normalized(data, "net")
    assert result.data is data
    assert (result.signature, result.notes) == ("", ())


# ---- versions and shapes that LiteRT reads otherwise than they stand ---------------------------------------------


def with_code(op: str, version: int) -> bytes:
    """A file that also lists an operator, which it does not use."""
    code = getattr(schema.BuiltinOperator, op)
    entry = schema.OperatorCodeT(builtinCode=code, deprecatedBuiltinCode=min(code, 127), version=version)
    return altered(layers(), lambda model, graph: model.operatorCodes.append(entry))


def accepts(data: bytes, kernels: Any) -> bool:
    from ai_edge_litert.interpreter import Interpreter

    try:
        Interpreter(model_content=data, experimental_op_resolver_type=kernels)
    except ValueError:
        return False
    return True


def test_the_newest_versions_are_those_that_litert_lists() -> None:
    from ai_edge_litert.interpreter import OpResolverType

    for name, operator in OPERATORS.items():
        if operator.litert.optimized or name.startswith("CUSTOM"):
            continue
        version, listed = 1, []
        for kernels in (OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
            while accepts(with_code(name, version + 1), kernels):
                version += 1
            listed.append(version)
        assert VERSIONS.get(name, (listed[0], listed[0])) == tuple(listed), name


@pytest.mark.parametrize("shape", [np.array([[2, 6]], np.int32), np.array([4, 3], np.int64), np.array(12, np.int32)])
def test_reshape_takes_its_options_unless_the_shape_is_a_list_of_int32(shape: np.ndarray[Any, Any]) -> None:
    b = ModelBuilder()
    x = b.input("x", (3, 4), "float32")
    y = b.tensor("y", (2, 6), "float32")
    b.operator("RESHAPE", [x, b.constant("shape", shape)], [y], "ReshapeOptions", {"newShape": [2, 6]})
    b.output(y)
    assert outcome(normalized(b.build(), "net"))[0].shape == (2, 6)


# ---- operators that no output needs ------------------------------------------------------------------------------


def test_what_no_output_needs_is_left_out() -> None:
    """Whatever it is, here an operator that is not supported; inputs stay, and the operator in use is as it was."""
    b = ModelBuilder()
    x, spare = b.input("x", (1, 4), "float32"), b.input("spare", (1, 2), "float32")
    used = b.relu(x, name="used")
    taps = b.emit("COMPLEX_ABS", [b.logistic(used, name="tap")], (1, 4), None, "unknown")
    b.reshape(taps, (4, 1), name="last")
    b.relu(spare, name="other")
    b.output(used)
    result = normalized(b.build(), "net")
    assert [operator.op for operator in result.info.operators] == ["RELU"]
    assert [result.info.tensors[index].name for index in result.info.inputs] == ["x", "spare"]
    note = "removed operators that no output needs: 1 x COMPLEX_ABS, 1 x LOGISTIC, 1 x RELU, 1 x RESHAPE"
    assert result.notes == (note,)


# ---- scales on an axis that the tensor does not have, and shapes that the file leaves out --------------------------


def test_scales_of_a_bias_on_axis_3_are_on_its_only_axis() -> None:
    data = altered(layers(), tensor("conv/bias", axis=3))
    with pytest.raises(RunError, match="quantized_dimension"):
        Reference(data)
    result = normalized(data, "net")
    assert result.info.tensors[2].axis == 0
    assert not any(tensor.misplaced for tensor in result.info.tensors)
    note = "quantized_dimension is an axis that the tensor does not have; 0 is used instead, for LiteRT"
    assert result.notes == (f"tensor 2 'conv/bias': {note} too",)
    np.testing.assert_array_equal(outcome(result)[0], outcome(normalized(layers(), "net"))[0])


@pytest.mark.parametrize("axis", [4, 99, -1])
def test_one_scale_has_no_axis_whatever_the_file_says(axis: int) -> None:
    data = altered(layers(), *(tensor(name, axis=axis) for name in ("x", "conv", "pool")))
    with pytest.raises(RunError):
        Reference(data)
    result = normalized(data, "net")
    assert result.notes[0].startswith("3 tensors (0 'x', 3 'conv', 4 'pool'): quantized_dimension is an axis")
    np.testing.assert_array_equal(outcome(result)[0], Reference(layers()).run(random_inputs(result.info, 5))[0])


@pytest.mark.parametrize("shape", [None, [], [-1, 6, 6, 4], [1, 1, 1, 4]])
def test_shapes_between_operators_are_inferred(shape: list[int] | None) -> None:
    # An exporter that does not know a size writes 1 for it, and -1 here.
    fields = {"shape": shape, **({"shapeSignature": [1, -1, -1, 4]} if shape else {})}
    result = normalized(altered(layers(), tensor("conv", **fields), tensor("pool", **fields)), "net")
    assert [result.info.tensors[index].shape for index in (3, 4)] == [(1, 6, 6, 4), (1, 3, 3, 4)]
    assert not any(tensor.dynamic for tensor in result.info.tensors)
    assert result.notes == ("2 tensors (3 'conv', 4 'pool'): shape missing in the file; LiteRT infers it",)
    np.testing.assert_array_equal(outcome(result)[0], Reference(layers()).run(random_inputs(result.info, 5))[0])


def test_a_name_that_is_not_utf_8_hides_no_other_shape() -> None:
    """LiteRT tells nothing of such a tensor; here it is the one before the shape that is looked for."""
    result = normalized(altered(layers(), tensor("pool", shape=None), tensor("conv", name=b"caf\xe9")), "net")
    assert [result.info.tensors[index].shape for index in (3, 4)] == [(1, 6, 6, 4), (1, 3, 3, 4)]


def test_an_empty_list_of_sizes_makes_a_scalar() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 1), "float32")
    y = b.tensor("y", (), "float32")
    b.operator("RESHAPE", [x, b.constant("sizes", np.array([7], np.int32))], [y], "ReshapeOptions")
    b.output(y)
    result = normalized(altered(b.build(), tensor("sizes", shape=[0], buffer=0)), "net")
    assert result.info.tensors[2].values().shape == (0,)
    assert outcome(result)[0].shape == ()


# ---- several graphs --------------------------------------------------------------------------------------------


def two_signatures() -> bytes:
    return together(function_of("tanh"), function_of("relu"), signatures={"squash": 0, "clip": 1})


@pytest.mark.parametrize(("signature", "op"), [("squash", "TANH"), ("clip", "RELU")])
def test_the_graph_of_the_signature_is_imported(signature: str, op: str) -> None:
    result = normalized(two_signatures(), "net", signature)
    assert ([operator.op for operator in result.info.operators], result.signature) == ([op], signature)
    assert result.notes == ()
    x = random_inputs(result.info, 5)[0]
    np.testing.assert_allclose(outcome(result)[0], np.tanh(x) if op == "TANH" else np.maximum(x, 0), rtol=1e-5)


def test_the_first_signature_is_the_default_and_stated() -> None:
    result = normalized(two_signatures(), "net")
    assert (result.signature, result.info.operators[0].op) == ("squash", "TANH")
    note = "the file has 2 signatures ('squash', 'clip'): the first is imported"
    assert result.notes == (f"{note}; choose with model: {{file: ..., signature: NAME}}",)
    turned = together(function_of("tanh"), function_of("relu"), signatures={"clip": 1, "squash": 0})
    assert normalized(turned, "net").info.operators[0].op == "RELU"


def scaled_tanh() -> bytes:
    """tanh(x), then a composite of it that `with_composite` puts there, then a clip."""
    b = ModelBuilder()
    x = b.input("x", (1, 8), "float32")
    inner = b.relu(b.tanh(x, name="first"), name="inner")
    b.output(b.relu6(inner, name="last"), inner)
    return b.build()


def square_and_add() -> bytes:
    """What the composite stands for: a * a + 1, of two operators."""
    b = ModelBuilder()
    a = b.input("a", (1, 8), "float32")
    squared = b.mul(a, a, name="squared")
    b.output(b.add(squared, b.constant("one", np.ones(1, np.float32)), name="sum"))
    return b.build()


def with_composite(*graphs: bytes) -> bytes:
    return altered(together(scaled_tanh(), *graphs), composite("test.square", 1, (0, 1)))


def test_a_composite_is_the_operators_it_stands_for() -> None:
    result = normalized(with_composite(square_and_add()), "net")
    assert [operator.op for operator in result.info.operators] == ["TANH", "MUL", "ADD", "RELU6"]
    assert result.notes == ("composites are replaced by their operators: 1 x 'test.square'",)
    x = random_inputs(result.info, 5)[0]
    last, inner = outcome(result)
    np.testing.assert_allclose(inner, np.tanh(x) ** 2 + 1, rtol=1e-5)
    np.testing.assert_allclose(last, np.tanh(x) ** 2 + 1, rtol=1e-5)
    # Tensors of the file keep their numbers and names.
    assert [result.info.tensors[index].name for index in result.info.outputs] == ["last", "inner"]


def test_composites_of_composites() -> None:
    inputs = indices("inputs", [0])
    nested = altered(
        with_composite(square_and_add(), function_of("logistic")),
        composite("test.inner", 2, (1, 0)),
        lambda model, graph: inputs(model, model.subgraphs[1]),
    )
    result = normalized(nested, "net")
    assert [operator.op for operator in result.info.operators] == ["TANH", "LOGISTIC", "ADD", "RELU6"]
    assert result.notes[0].endswith("1 x 'test.inner', 1 x 'test.square'")
    x = np.tanh(random_inputs(result.info, 5)[0])
    np.testing.assert_allclose(outcome(result)[1], 1 / (1 + np.exp(-x)) + 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("data", "signature", "message"),
    [
        (altered(layers(), tensor("conv/weights", axis=4)), None,
         "tensor 1 (conv/weights) has 4 scales on axis 4 of [4, 3, 3, 2]"),
        (altered(layers(), tensor("x", shape=[1, 6, 6, 3]), tensor("conv", shape=None)), None,
         "operator 0 (CONV_2D) is refused by LiteRT: input_channel % filter_input_channel"),
        (two_signatures(), "clop", "net has no signature 'clop'; did you mean 'clip'?\nIts signatures: squash, clip"),
        (layers(), "clip", "net has no signatures, so none is called 'clip'"),
        (together(function_of("tanh"), signatures={"serve": 3}), None, "signature serve refers to subgraph 3 of 1"),
        (altered(with_composite(square_and_add()), composite("test.square", 1, (1, 0))), None,
         "net: composite 'test.square' is recursive"),
        (with_composite(scaled_tanh()), None,
         "1 inputs and 1 outputs, its decomposition (subgraph 1) has 1 and 2"),
    ],
)  # fmt: skip
def test_files_that_contradict_themselves_are_refused(data: bytes, signature: str | None, message: str) -> None:
    with pytest.raises((StageError, RunError)) as caught:
        normalized(data, "net", signature)
    assert message in str(caught.value)


def test_damage_that_only_unpacking_finds_is_corruption_and_no_surprise() -> None:
    """Options of operators that the reader does not know are followed when a file is written anew."""
    data = bytearray(with_composite(square_and_add()))
    refused = set()
    for at in range(8, len(data)):
        damaged = bytes(data[:at]) + bytes([data[at] ^ 0x41]) + bytes(data[at + 1 :])
        try:
            normalized(damaged, "net", None)
        except StageError as error:
            refused.add(str(error).splitlines()[0].partition(": ")[2])
    assert any(message.startswith("a table of subgraph 0 points beyond the file") for message in refused)
    assert len(refused) > 10


def test_of_graphs_without_a_signature_the_first_is_imported_and_stated() -> None:
    data = together(function_of("tanh"), function_of("relu"))
    result = normalized(data, "net")
    assert result.data is data
    assert result.notes == ("the file has 2 subgraphs and no signature: the first is imported",)
    outcome(result)


def test_composites_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stages.import_model.normalize.graph._MOST_OPERATORS", 3)
    with pytest.raises(StageError, match="net has composites with 3 operators or more"):
        normalized(with_composite(square_and_add()), "net")
