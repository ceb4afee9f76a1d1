"""Errors of ONNX files that cannot be imported. docs/how-to/onnx.md names all operators that can."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from stages.import_model.onnx.operators import FOLDED, MOVES, TRANSLATORS

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import yaml

from pipeline.plugins.registry import default_registry
from pipeline.recipes.loader import load_recipes
from stages.backends.targets.load import load_target
from stages.base import StageError
from stages.import_model.onnx import convert
from stages.import_model.stage import STAGE, ImportConfig
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.spec import FileModel
from stages.ir.reference.onnx_runtime import OnnxReference
from stages.support.system.installation import INSTALLATION
from tests.support.onnx_graphs import drawn, model, node
from tests.unit.import_model.from_onnx.test_float import IMAGE, ints, one

ONES = np.ones(4, np.float32)
WEIGHTS = {"w": drawn(1, 4, 3, 3, 3)}
NEWEST = onnx.defs.onnx_opset_version()


def conv(shape: Any = (1, 3, 8, 8), **more: Any) -> Any:
    return model("y = Conv (x, w)", {"x": shape}, ["y"], WEIGHTS, **more)


def resized(scales: float = 0.0, sizes: int = 0, *, nearest: bool = False, **attributes: Any) -> Any:
    """A Resize of five rows and columns."""
    constants = {"s": np.float32([1, 1, scales, scales])} if scales else {"s": np.array([1, 2, sizes, sizes])}
    inputs = ["x", "", "s"] if scales else ["x", "", "", "s"]
    if nearest:
        attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    mode = "nearest" if nearest else "linear"
    return model([node("Resize", inputs, ["y"], mode=mode, **attributes)], {"x": (1, 2, 5, 5)}, ["y"], constants)


def enlarged(**attributes: Any) -> Any:
    return one("ConvTranspose", (1, 4, 5, 5), drawn(1, 4, 2, 3, 3), **attributes)


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
    unknown = model("y = Sinh (x)", {"x": (1, 4)}, ["y"])
    with pytest.raises(StageError) as caught:
        preflight(unknown)
    assert str(caught.value) == refused(unknown)
    # As it is where everything that is read is known: it is computed when the model is imported.
    preflight(model("s = Sinh (w)  y = Add (x, s)", {"x": (1, 4)}, ["y"], {"w": ONES}))


def scaled_up() -> Any:
    """A sum whose scales no integers give: they would be scaled up, not down."""
    names = [f"{name}_{part}" for name in "aby" for part in "sz"]
    constants = {name: np.float32(0.02) if name.endswith("s") else np.int8(3) for name in names}
    nodes = [
        "a = QuantizeLinear (x, a_s, a_z)  b = QuantizeLinear (z, b_s, b_z)",
        "y = com.microsoft.QLinearAdd (a, a_s, a_z, b, b_s, b_z, y_s, y_z)",
    ]
    shapes = {"x": (1, 3, 4, 4), "z": (1, 3, 4, 4)}
    return model(nodes, shapes, ["y"], constants | {"y_s": np.float32(1e-9)}, types={"y": 3})


@pytest.mark.parametrize("called", ["x", "input:0", "on", "a b", "{x", "x: 1", "1", "'", "model/x-1.y"])
@pytest.mark.parametrize("sizes", [("batch", 3, "height", 8), (-1, 3, -1, 8), (0, 3, 8, 8), ("N", 3, 8, 8)])
def test_the_line_that_fixes_dynamic_axes_does_so_as_it_is_printed(called: str, sizes: Any) -> None:
    proto = model([node("Conv", [called, "w"], ["y"])], {called: sizes}, ["y"], WEIGHTS)
    two = model("y = Conv (x, w)  v = Relu (z)", {"x": sizes, "z": ("n",)}, "yv", WEIGHTS)
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


def int4() -> Any:
    proto = model("wf = DequantizeLinear (w, s)  y = MatMul (x, wf)", {"x": (1, 4)}, ["y"], {"s": np.float32(0.1)})
    proto.graph.initializer.append(onnx.helper.make_tensor("w", onnx.TensorProto.INT4, [4, 4], [1] * 16))
    return proto


def short_constant() -> Any:
    proto = conv()
    proto.graph.initializer[0].dims[1] = 2
    return proto


def tflite() -> bytes:
    b = ModelBuilder()
    b.output(b.relu(b.input("x", (1, 4), "float32")))
    return b.build()


def test_shapes_that_do_not_fit() -> None:
    message = "input 'x' of net.onnx is [batch, 3, 8, 8], not [1, 4, 8, 8]"
    assert message in refused(conv(("batch", 3, 8, 8)), {"x": [1, 4, 8, 8]})
    assert "has no input 'image'; its inputs are 'x'" in refused(conv(), {"image": [1]})


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
        (b"hello", "net.onnx is not an ONNX file"),
        (b"hello", "Check that the download or export is complete."),
        (tflite(), "It is a TFLite file: its name should end in .tflite."),
        (conv().SerializeToString()[:40], "is not an ONNX file"),
        (short_constant(), "net.onnx is corrupt: the constant 'w' [4, 2, 3, 3] has a byte count that does not match"),
        (conv(opset=NEWEST + 1), f"has opset {NEWEST + 1}; supported: 7 to {NEWEST}"),
        (scaled_up(), "integer arithmetic cannot match ONNX Runtime"),
        (scaled_up(), "quant_format=QDQ, or remove Add"),
        (int4(), "dequantizes constants of int4; int8, uint8 and int32 are supported"),
        (
            model(
                "wf = DequantizeLinear <axis=0, block_size=2> (w, s)  y = MatMul (x, wf)", {"x": (1, 4)}, ["y"],
                {"w": np.ones((4, 4), np.int8), "s": np.full((2, 4), 0.1, np.float32)},
            ),
            "has a scale per block of 2; one scale, or one per channel, is supported",
        ),
        (model("y, s, z = DynamicQuantizeLinear (x)", {"x": (1, 4)}, ["s"]), "quantize: {mode: calibrate"),
        (
            model(
                "q = QuantizeLinear (x, s, z)  y = com.microsoft.QLinearSoftmax <opset=13> (q, s, z, s, z)",
                {"x": (1, 4)}, ["y"], {"s": np.float32(1e-3), "z": np.int8(0)}, types={"y": 3},
            ),
            "quant_format=QDQ",
        ),
        (enlarged(group=3), "has 3 groups for 4 channels"),
        (enlarged(dilations=[2]), "has the dilations [2]; 2 positive numbers are needed"),
        (enlarged(output_padding=[2, 0], strides=[2, 2]), "output paddings [2, 0]"),
        (enlarged(pads=[9, 9, 9, 9]), "pads [9, 9, 9, 9]"),
        (enlarged(kernel_shape=[2, 2]), "has the window [2, 2], but weights for [3, 3]"),
        (enlarged(strides=[2, 2], output_shape=[12, 13]), "output shape [12, 13]; on axis 3 the products end at 11"),
        (enlarged(output_shape=[7, 0]), "has strides [1, 1], pads"),
        (one("LayerNormalization", (2, 4), ONES, results=2), "also returns its mean or deviation"),
        (one("LayerNormalization", (2, 5), ONES), "has the scale [4] for [5]"),
        (model("y = MatMul (x, z)", {"x": (1, 4, 5), "z": (5,)}, ["y"]),
         "multiplies tensors of 3 and 1 axes; 2 to 5 are supported"),
        (model("y = ArgMax <select_last_index=1> (x)", {"x": (1, 4)}, ["y"], types={"y": 7}),
         "selects the last of equal elements"),
        (model("y = Conv (x, z)", {"x": (1, 3, 8, 8), "z": (4, 3, 3, 3)}, ["y"]),
         "operator 0 (Conv) 'y_node' takes its weights from 'z', a computed tensor; they must be a constant"),
        (one("Resize", (1, 3, 4, 4), None, ONES, mode="cubic"),
         "operator 0 (Resize) 'y0_node' resizes in the mode cubic"),
        (
            model(
                ["q = QuantizeLinear (x, s)  i = ConvInteger (q, b)  f = Cast <to=1> (i)  g = Mul (f, m)",
                 "y = QuantizeLinear (g, s)"],
                {"x": (1, 3, 4, 4)}, ["y"], {"s": np.float32(0.1), "b": np.ones((4, 3, 1, 1), np.int8), "m": ONES},
                types={"y": 2},
            ),
            "operator 1 (ConvInteger) 'i_node' is followed by the constant [4], which does not have one value",
        ),
        (
            model(
                "q = QuantizeLinear (x, s)  r = QuantizeLinear (z, s)  y = Max (q, r)",
                {"x": (1, 6), "z": (1, 6)}, ["y"], {"s": np.float32(0.1)}, types={"y": 2},
            ),
            "operator 2 (Max) 'y_node' computes directly on the integers 'q'",
        ),
        (resized(scales=1.5), "operator 0 (Resize) 'y_node' reads other positions than TFLite's resize"),
        (resized(scales=0.1, nearest=True), "(Resize) 'y_node' resizes [1, 2, 5, 5] to [1, 2, 0, 0]"),
        (resized(scales=0.5, antialias=1), "operator 0 (Resize) 'y_node' is antialiased"),
        (resized(sizes=4, coordinate_transformation_mode="what"), "(Resize) 'y_node' is not computed by ONNX Runtime"),
        (model("y = Reshape (x, s)", {"x": (1, 6), "s": (2,)}, ["y"], types={"s": 11}),
         "input 's' is double; float32, bool, int32, int64, float16, int8, uint8 are supported"),
        (model("y = Add (a, b)", {"x": (1,)}, ["y"], {"a": drawn(1, 2), "b": drawn(2, 2)}),
         "computes nothing: its outputs are inputs or constants"),
        (one("FooBar", (1, 3), opset=17), "operator 0 (FooBar) 'y0_node' is in no opset of ONNX\n"),
        (one("Gelu", (1, 3), opset=17), "operator 0 (Gelu) 'y0_node' needs opset 20; the file has 17\n"),
        (one("Upsample", (1, 3), drawn(1, 2), opset=13),
         "operator 0 (Upsample) 'y0_node' was removed in opset 10; the file has 13\n"),
        (one("Conv", IMAGE, drawn(1, 4, 6, 3, 3), strides=[2]), "operator 0 (Conv) 'y0_node' has 1 strides for 2 axes"),
        (one("Conv", IMAGE, drawn(1, 4, 6, 3, 3), pads=[1, 1]), "has 2 pads for 2 axes; two per axis are needed"),
        (one("Conv", IMAGE, drawn(1, 4, 6, 3, 3), drawn(2, 3)), "has the bias [3], which does not fit 4 outputs"),
        (one("MaxPool", kernel_shape=[2, 2], strides=[2], auto_pad="SAME_UPPER"), "has 1 strides for 2 axes"),
        (one("Pad", IMAGE, ints(1, 1)), "has 2 pads for 4 axes; two per axis are needed"),
        (one("Slice", IMAGE, ints(1, 1), ints(3)), "has 2 starts, 1 ends, 2 axes and 2 steps"),
        (one("Unsqueeze", IMAGE, ints(0, 0)), "has the axes [0, 0]; one occurs twice"),
        (one("Gather", IMAGE, ints(99), axis=1), "gathers the indices [99]; they must be from -6 to 5"),
        (one("SpaceToDepth", blocksize=2),
         "has the blocksize 2, which does not divide height and width of [1, 6, 9, 7]"),
        (one("DepthToSpace", blocksize=4), "has the blocksize 4; 6 channels are not a multiple of 16"),
        (one("PRelu", IMAGE, drawn(1, 5, 1, 1)), "has the slope [5, 1, 1], which does not broadcast to [1, 6, 9, 7]"),
        (one("Concat", IMAGE, drawn(1, 2), axis=0), "joins a constant [2] to tensors with 4 axes; both must agree"),
        (one("Pad", IMAGE, ints(0, 0, 9, 0, 0, 0, 0, 0), mode="reflect"), "reflects 9 elements of axis 2, which has 9"),
        (one("Expand", IMAGE, ints(5, 1, 1)), "expands [1, 6, 9, 7] to [5, 1, 1]"),
        (one("Tile", IMAGE, ints(1, 2, 0, 1)),
         "has the repeats [1, 2, 0, 1]; [1, 6, 9, 7] needs one per axis, each at least 1"),
        (one("Slice", IMAGE, ints(0), ints(3), ints(1), ints(0)), "has the step 0"),
        (one("Einsum", (3, 3), drawn(1, 3), equation="ii,i->i"), "'ii,i->i'; two tensors, with each axis named once"),
        (one("Einsum", (3, 4), drawn(1, 3), equation="ab,a->a"), "which sums an axis that only one tensor has"),
        (model("v, i = TopK (x, k)", {"x": IMAGE}, ["v"], {"k": ints(3)}), "has k = 3; only 1 is supported"),
    ],
)  # fmt: skip
def test_operators_say_what_is_wrong(proto: Any, message: str) -> None:
    assert message in refused(proto)


def test_an_operator_of_a_domain_that_is_not_imported() -> None:
    proto = model("y = com.acme.Gate (x)", {"x": (1, 3)}, ["y"])
    del proto.opset_import[1:]
    text = refused(proto)
    assert "(com.acme.Gate) 'y_node' is in the domain 'com.acme', for which the file imports no opset\n" in text
    del proto.graph.output[0].type.tensor_type.shape.dim[:]
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    assert refused(proto) == text


PAGE = Path(__file__).resolve().parents[4] / "docs/how-to/onnx.md"


def test_the_page_has_all_operators() -> None:
    rows = PAGE.read_text().partition("| operators | supported |")[2].split("\n\n")[0].splitlines()[2:]
    named = [name for row in rows for name in re.findall(r"\w+", row.split("|")[1])]
    assert sorted(named) == sorted({name.rpartition(".")[2] for name in (*TRANSLATORS, *MOVES, *FOLDED)})


def test_the_page_has_all_that_is_refused() -> None:
    """Of the newest opset of the package."""
    schemas = onnx.defs.get_all_schemas()
    standard = {schema.name for schema in schemas if schema.domain in ("", "ai.onnx") and not schema.deprecated}
    refused_list = re.search(r"except the random ones:\s(.*?)\.\n", PAGE.read_text(), re.DOTALL)
    assert refused_list is not None
    assert sorted(re.findall(r"\w+", refused_list[1])) == sorted(standard - {*TRANSLATORS, *MOVES, *FOLDED})
