"""ONNX files that cannot be imported: what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
import yaml

from pipeline.plugins.registry import default_registry
from pipeline.recipes.loader import load_recipes
from stages.backends.targets.load import load_target
from stages.base import StageError
from stages.import_model.onnx import convert
from stages.import_model.stage import STAGE, ImportConfig
from stages.ir.models.spec import FileModel
from stages.ir.reference.onnx_runtime import OnnxReference
from stages.support.system.installation import INSTALLATION
from tests.support.onnx_graphs import drawn, model, node

ONES = np.ones(4, np.float32)
WEIGHTS = {"w": drawn(1, 4, 3, 3, 3)}


def conv(shape: Any = (1, 3, 8, 8), **more: Any) -> Any:
    return model([node("Conv", ["x", "w"], ["y"])], {"x": shape}, ["y"], WEIGHTS, **more)


def resized(scales: float = 0.0, sizes: int = 0, *, nearest: bool = False, **attributes: Any) -> Any:
    """A Resize of five rows and columns."""
    constants = {"s": np.float32([1, 1, scales, scales])} if scales else {"s": np.array([1, 2, sizes, sizes])}
    inputs = ["x", "", "s"] if scales else ["x", "", "", "s"]
    if nearest:
        attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    mode = "nearest" if nearest else "linear"
    return model([node("Resize", inputs, ["y"], mode=mode, **attributes)], {"x": (1, 2, 5, 5)}, ["y"], constants)


def refused(data: Any, shapes: Any = None) -> str:
    """The message, of one to five lines."""
    data = data if isinstance(data, bytes) else data.SerializeToString()
    with pytest.raises(StageError) as caught:
        convert(data, "net.onnx", shapes or {}, "nchw")
    text = str(caught.value)
    assert len(text.splitlines()) <= 5
    return text


def test_an_unknown_operator_is_known_before_anything_runs(tmp_path: Path) -> None:
    def preflight(proto: onnx.ModelProto) -> None:
        (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
        STAGE.preflight(ImportConfig(), FileModel(file="net.onnx"), load_target("host"), tmp_path, {})

    preflight(conv())
    unknown = model([node("Sinh", ["x"], ["y"])], {"x": (1, 4)}, ["y"])
    with pytest.raises(StageError) as caught:
        preflight(unknown)
    assert str(caught.value) == refused(unknown)
    # As it is where everything that is read is known: it is computed when the model is imported.
    preflight(model([node("Sinh", ["w"], ["s"]), node("Add", ["x", "s"], ["y"])], {"x": (1, 4)}, ["y"], {"w": ONES}))


def test_a_constant_of_other_bytes_than_its_shape_takes() -> None:
    proto = conv()
    proto.graph.initializer[0].dims[1] = 2
    assert refused(proto).startswith(
        "net.onnx is corrupt: the constant 'w' [4, 2, 3, 3] has a byte count that does not match"
    )


def test_scales_of_a_sum_that_no_integers_give() -> None:
    """They would be scaled up, not down."""
    quants = [name_of for name in "aby" for name_of in (f"{name}_s", f"{name}_z")]
    constants = {name: np.float32(0.02) if name.endswith("s") else np.int8(3) for name in quants}
    constants["y_s"] = np.float32(1e-9)
    proto = model(
        [
            *(node("QuantizeLinear", [x, f"{q}_s", f"{q}_z"], [q]) for x, q in (("x", "a"), ("z", "b"))),
            node("QLinearAdd", ["a", *quants[:2], "b", *quants[2:4], *quants[4:]], ["y"], "com.microsoft"),
        ],
        {"x": (1, 3, 4, 4), "z": (1, 3, 4, 4)},
        ["y"],
        constants,
        types={"y": 3},
    )
    with pytest.raises(StageError, match="integer arithmetic cannot match ONNX Runtime") as refused:
        convert(proto.SerializeToString(), "net.onnx", {}, "nchw")
    assert "quant_format=QDQ, or remove Add" in (refused.value.hint or "")


@pytest.mark.parametrize("called", ["x", "input:0", "on", "a b", "{x", "x: 1", "1", "'", "model/x-1.y"])
@pytest.mark.parametrize("sizes", [("batch", 3, "height", 8), (-1, 3, -1, 8), (0, 3, 8, 8), ("N", 3, 8, 8)])
def test_the_line_that_fixes_dynamic_axes_does_so_as_it_is_printed(called: str, sizes: Any) -> None:
    proto = model([node("Conv", [called, "w"], ["y"])], {called: sizes}, ["y"], WEIGHTS)
    two = model([node("Conv", ["x", "w"], ["y"]), node("Relu", ["z"], ["v"])], {"x": sizes, "z": ("n",)}, "yv", WEIGHTS)
    for network in (proto, two):
        text = refused(network)
        named = any(name in text for name in ("height", "size2"))
        assert (", with numbers for the names" in text) == named
        line = text.splitlines()[-1].replace("height", "8").replace("size2", "8")
        recipe = {"schema": 1, "target": "host", **yaml.safe_load(line)}
        (loaded,) = load_recipes(recipe, root=INSTALLATION, registry=default_registry())
        assert isinstance(loaded.recipe.model, FileModel) and loaded.recipe.model.file == "net.onnx"
        converted = convert(network.SerializeToString(), "net.onnx", loaded.recipe.model.shapes or {}, "nchw")
        theirs = OnnxReference(converted.data, converted.original, converted.names)
        theirs.run([np.ones(tensor.shape, np.float32) for tensor in theirs.inputs])
    if called == "x":
        assert f"net.onnx: input 'x' has dynamic axes: 0{' (' if isinstance(sizes[0], str) else ''}" in text


def test_constants_whose_integers_are_too_narrow_or_have_scales_for_blocks() -> None:
    narrow = onnx.helper.make_tensor("w", onnx.TensorProto.INT4, [4, 4], [1] * 16)
    nodes = [node("DequantizeLinear", ["w", "s"], ["wf"]), node("MatMul", ["x", "wf"], ["y"])]
    proto = model(nodes, {"x": (1, 4)}, ["y"], {"s": np.float32(0.1)}, opset=21)
    proto.graph.initializer.append(narrow)
    assert "dequantizes constants of int4; int8, uint8 and int32 are supported" in refused(proto)
    nodes[0] = node("DequantizeLinear", ["w", "s"], ["wf"], axis=0, block_size=2)
    blocks = {"w": np.ones((4, 4), np.int8), "s": np.full((2, 4), 0.1, np.float32)}
    proto = model(nodes, {"x": (1, 4)}, ["y"], blocks, opset=21)
    assert "has a scale per block of 2; one scale, or one per channel, is supported" in refused(proto)


def test_what_to_do_about_scales_that_are_found_at_run_time_and_shares_beyond_float32() -> None:
    dynamic = node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    assert "quantize: {mode: calibrate" in refused(model([dynamic], {"x": (1, 4)}, ["s"], {}))
    integers = node("QuantizeLinear", ["x", "s", "z"], ["q"])
    table = node("QLinearSoftmax", ["q", "s", "z", "s", "z"], ["y"], "com.microsoft", opset=13)
    proto = model([integers, table], {"x": (1, 4)}, ["y"], {"s": np.float32(1e-3), "z": np.int8(0)}, types={"y": 3})
    assert "quant_format=QDQ" in refused(proto)


@pytest.mark.parametrize(
    ("attributes", "what"),
    [
        ({"group": 3}, "has 3 groups for 4 channels"),
        ({"dilations": [2]}, "has the dilations [2]; 2 positive numbers are needed"),
        ({"output_padding": [2, 0], "strides": [2, 2]}, "output paddings [2, 0]"),
        ({"pads": [9, 9, 9, 9]}, "pads [9, 9, 9, 9]"),
        ({"kernel_shape": [2, 2]}, "has the window [2, 2], but weights for [3, 3]"),
        ({"strides": [2, 2], "output_shape": [12, 13]}, "output shape [12, 13]; on axis 3 the products end at 11"),
        ({"output_shape": [7, 0]}, "has strides [1, 1], pads"),
    ],
)
def test_transposed_convolutions_that_tflite_has_not(attributes: Any, what: str) -> None:
    proto = model(
        [node("ConvTranspose", ["x", "w"], ["y"], **attributes)],
        {"x": (1, 4, 5, 5)},
        ["y"],
        {"w": drawn(1, 4, 2, 3, 3)},
    )
    assert what in refused(proto)


def test_normalizations_with_more_results_or_other_scales() -> None:
    both = node("LayerNormalization", ["x", "s"], ["y", "m"])
    assert "also returns its mean or deviation" in refused(model([both], {"x": (2, 4)}, ["y", "m"], {"s": ONES}))
    proto = model([node("LayerNormalization", ["x", "s"], ["y"])], {"x": (2, 5)}, ["y"], {"s": ONES})
    assert "has the scale [4] for [5]" in refused(proto)


def test_products_of_vectors_and_of_places_that_differ() -> None:
    vector = model([node("MatMul", ["x", "z"], ["y"])], {"x": (1, 4, 5), "z": (5,)}, ["y"])
    assert "multiplies tensors of 3 and 1 axes; 2 to 5 are supported" in refused(vector)
    last = node("ArgMax", ["x"], ["y"], select_last_index=1)
    assert "selects the last of equal elements" in refused(model([last], {"x": (1, 4)}, ["y"], types={"y": 7}))


def test_shapes_that_do_not_fit() -> None:
    assert "input 'x' of net.onnx is [batch, 3, 8, 8], not [1, 4, 8, 8]" in refused(
        conv(("batch", 3, 8, 8)), {"x": [1, 4, 8, 8]}
    )
    assert "has no input 'image'; its inputs are 'x'" in refused(conv(), {"image": [1]})


def test_what_is_no_onnx_file() -> None:
    from stages.ir.models.builder import ModelBuilder

    b = ModelBuilder()
    b.output(b.relu(b.input("x", (1, 4), "float32")))
    complete = "Check that the download or export is complete."
    message = refused(b"hello")
    assert "net.onnx is not an ONNX file" in message and complete in message
    message = refused(b.build())
    assert "It is a TFLite file: its name should end in .tflite." in message and complete not in message
    assert "is not an ONNX file" in refused(conv().SerializeToString()[:40])


def test_an_unknown_opset() -> None:
    newest = onnx.defs.onnx_opset_version()
    assert f"has opset {newest + 1}; supported: 7 to {newest}" in refused(conv(opset=newest + 1))


@pytest.mark.parametrize(
    ("op", "domain", "hint"),
    [
        ("If", "", "Export each branch as a separate model"),
        ("Loop", "", "Unroll the loop"),
        ("Scan", "", "Unroll the loop"),
        ("Gate", "acme", "A plug-in can define it under this name"),
    ],
)
def test_control_flow_and_operators_of_others(op: str, domain: str, hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx.checker, "check_model", lambda proto: None)  # their graphs are left out
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node(op, ["x"], ["y"], domain)], "g", [value("x", 1, (1, 3))], [value("y", 1, (1, 3))]
    )
    with pytest.raises(StageError, match="is not supported") as refused:
        convert(onnx.helper.make_model(graph).SerializeToString(), "net.onnx", {}, "nchw")
    assert hint in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (model([node("Conv", ["x", "z"], ["y"])], {"x": (1, 3, 8, 8), "z": (4, 3, 3, 3)}, ["y"]),
         "operator 0 (Conv) 'y_node' takes its weights from 'z', a computed tensor; they must be a constant"),
        (
            model(
                [node("Resize", ["x", "", "s"], ["y"], mode="cubic")], {"x": (1, 3, 4, 4)}, ["y"], {"s": ONES}
            ),
            "operator 0 (Resize) 'y_node' resizes in the mode cubic",
        ),
        (
            model(
                [
                    node("QuantizeLinear", ["x", "s"], ["q"]),
                    node("ConvInteger", ["q", "b"], ["i"]),
                    node("Cast", ["i"], ["f"], to=1),
                    node("Mul", ["f", "m"], ["g"]),
                    node("QuantizeLinear", ["g", "s"], ["y"]),
                ],
                {"x": (1, 3, 4, 4)},
                ["y"],
                {"s": np.float32(0.1), "b": np.ones((4, 3, 1, 1), np.int8), "m": ONES},
                types={"y": 2},
            ),
            "operator 1 (ConvInteger) 'i_node' is followed by the constant [4], which does not have one value",
        ),
        (
            model(
                [
                    node("QuantizeLinear", ["x", "s"], ["q"]),
                    node("QuantizeLinear", ["z", "s"], ["r"]),
                    node("Max", ["q", "r"], ["y"]),
                ],
                {"x": (1, 6), "z": (1, 6)},
                ["y"],
                {"s": np.float32(0.1)},
                types={"y": 2},
            ),
            "operator 2 (Max) 'y_node' computes directly on the integers 'q'",
        ),
        (resized(scales=1.5), "operator 0 (Resize) 'y_node' reads other positions than TFLite's resize"),
        (resized(scales=0.1, nearest=True), "(Resize) 'y_node' resizes [1, 2, 5, 5] to [1, 2, 0, 0]"),
        (resized(scales=0.5, antialias=1), "operator 0 (Resize) 'y_node' is antialiased"),
        (resized(sizes=4, coordinate_transformation_mode="what"), "(Resize) 'y_node' is not computed by ONNX Runtime"),
        (model([node("Reshape", ["x", "s"], ["y"])], {"x": (1, 6), "s": (2,)}, ["y"], types={"s": 11}),
         "input 's' is double; float32, bool, int32, int64, float16, int8, uint8 are supported"),
        (model([node("Add", ["a", "b"], ["y"])], {"x": (1,)}, ["y"], {"a": drawn(1, 2), "b": drawn(2, 2)}),
         "computes nothing: its outputs are inputs or constants"),
    ],
)  # fmt: skip
def test_operators_say_what_is_wrong(proto: Any, message: str) -> None:
    assert message in refused(proto)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("op", "constants", "attributes", "message"),
    [
        ("Conv", [drawn(1, 4, 6, 3, 3)], {"strides": [2]}, "has 1 strides for 2 axes"),
        ("Conv", [drawn(1, 4, 6, 3, 3)], {"pads": [1, 1]}, "has 2 pads for 2 axes; two per axis are needed"),
        ("Conv", [drawn(1, 4, 6, 3, 3), drawn(2, 3)], {}, "has the bias [3], which does not fit 4 outputs"),
        ("MaxPool", [], {"kernel_shape": [2, 2], "strides": [2], "auto_pad": "SAME_UPPER"}, "has 1 strides for 2 axes"),
        ("Pad", [ints(1, 1)], {}, "has 2 pads for 4 axes; two per axis are needed"),
        ("Slice", [ints(1, 1), ints(3)], {}, "has 2 starts, 1 ends, 2 axes and 2 steps"),
        ("Unsqueeze", [ints(0, 0)], {}, "has the axes [0, 0]; one occurs twice"),
        ("Gather", [ints(99)], {"axis": 1}, "gathers the indices [99]; they must be from -6 to 5"),
        ("SpaceToDepth", [], {"blocksize": 2},
         "has the blocksize 2, which does not divide height and width of [1, 6, 9, 7]"),
        ("DepthToSpace", [], {"blocksize": 4}, "has the blocksize 4; 6 channels are not a multiple of 16"),
        ("PRelu", [drawn(1, 5, 1, 1)], {}, "has the slope [5, 1, 1], which does not broadcast to [1, 6, 9, 7]"),
        ("Concat", [drawn(1, 2)], {"axis": 0}, "joins a constant [2] to tensors with 4 axes; both must agree"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused(op: str, constants: Any, attributes: Any, message: str) -> None:
    names = [f"c{at}" for at in range(len(constants))]
    operator = node(op, ["x", *names], ["y"], **attributes)
    graph = onnx.helper.make_graph(
        [operator],
        "graph",
        [onnx.helper.make_tensor_value_info("x", 1, (1, 6, 9, 7))],
        [onnx.helper.make_tensor_value_info("y", 1, None)],
        [onnx.numpy_helper.from_array(value, name) for value, name in zip(constants, names, strict=True)],
    )
    graph.output[0].type.tensor_type.shape.SetInParent()
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=8)
    assert f"operator 0 ({op}) 'y_node' {message}" in refused(proto)
