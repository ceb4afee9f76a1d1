"""The stage layout: its artifact, attributes, and the number of transforms in real topologies."""

import json
from pathlib import Path

import pytest

from stages.backends.targets.load import load_target
from stages.base import Job
from stages.import_model.build import build_module
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.resolve import resolve
from stages.ir.models.spec import ZooModel
from stages.ir.models.tflite_reader import read
from stages.ir.relax_module import load_module, operator_calls, save_module
from stages.layout import STAGE
from stages.layout.rules import LayoutConfig
from tests.support.relax_run import weights

PLANAR_DEPTHWISE = {
    "rules": [{"match": {"op": "conv2d"}, "data": "NHWC"}, {"match": {"op": "depthwise_conv2d"}, "data": "NCHW"}]
}


def lay_out_bytes(data: bytes, config: dict, folder: Path) -> Path:
    imported, out = folder / "import", folder / "layout"
    for path in (imported, out):
        path.mkdir(parents=True)
    save_module(build_module(data, read(data)), imported)
    model = ZooModel(zoo="ds_cnn")
    parsed = LayoutConfig.model_validate(config)
    STAGE.run(Job(parsed, model, load_target("host"), {"import": imported}, out))
    return out


def zoo(name: str) -> bytes:
    return resolve(ZooModel(zoo=name))


@pytest.mark.parametrize("name", ["ds_cnn", "mobilenet_v1_0.25_96", "resnet_8", "autoencoder"])
def test_mlperf_tiny_has_no_transform(name: str, tmp_path: Path) -> None:
    out = lay_out_bytes(zoo(name), PLANAR_DEPTHWISE, tmp_path)
    layouts = json.loads((out / "layouts.json").read_text())
    assert layouts["transforms"] == []
    calls = list(operator_calls(load_module(out)))
    assert len(calls) == len(layouts["operators"])
    for call, row in zip(calls, layouts["operators"], strict=True):
        facts = call.attributes
        assert (facts["data_layout"], facts["out_layout"]) == (row["data"], row["out"])
        if call.op == "DEPTHWISE_CONV_2D":
            assert row == row | {"data": "NCHW", "out": "NHWC", "why": "rule 2"}


def test_residual_network_all_planar_moves_only_its_input(tmp_path: Path) -> None:
    """ResNet-8 reads an RGB image in NHWC; its additions inherit NCHW from the convolutions around them."""
    layouts = json.loads((lay_out_bytes(zoo("resnet_8"), {"default": "NCHW"}, tmp_path) / "layouts.json").read_text())
    (moved,) = [transform for transform in layouts["transforms"] if transform["moves"]]
    assert (moved["shape"], moved["from"], moved["to"], moved["before"]) == ([1, 32, 32, 3], "NHWC", "NCHW", 0)
    assert moved["bytes"] == 32 * 32 * 3
    additions = [row for row in layouts["operators"] if row["op"] == "ADD"]
    assert len(additions) == 3
    assert {(row["data"], row["out"], row["why"]) for row in additions} == {("NCHW", "NCHW", "inherited")}


def test_remaining_transform_is_an_operator_of_its_own(tmp_path: Path) -> None:
    import numpy as np

    b, rng = ModelBuilder(), np.random.default_rng(0)
    x = b.input("x", (1, 6, 6, 4), "int8", 0.1, 0)
    b.output(b.depthwise_conv2d(x, weights(rng, (1, 3, 3, 4), "int8"), weight_scale=[0.1] * 4, out=(0.2, 0)))
    out = lay_out_bytes(b.build(), PLANAR_DEPTHWISE, tmp_path)
    module = load_module(out)
    transform, depthwise = operator_calls(module)
    assert (transform.op, transform.index, transform.inputs, transform.outputs) == ("LAYOUT", -1, (0,), (0,))
    assert transform.attributes["data_layout"] == "NHWC"
    assert transform.attributes["out_layout"] == depthwise.attributes["data_layout"] == "NCHW"
    assert tuple(int(size) for size in depthwise.function.params[0].ty.shape) == (1, 4, 6, 6)
    assert depthwise.arguments[0].same_as(transform.variable)
    assert [int(size) for size in module["main"].params[0].ty.shape] == [1, 6, 6, 4]


def test_report_has_a_line_for_each_operator(tmp_path: Path) -> None:
    out = lay_out_bytes(zoo("ds_cnn"), {"rules": [{"match": {"op": "tanh"}, "data": "NCHW"}]}, tmp_path)
    text = (out / "layouts.json").read_text()
    layouts = json.loads(text)
    assert layouts["unused_rules"] == [1]
    assert sum(line.startswith('  {"index"') for line in text.splitlines()) == len(layouts["operators"])
