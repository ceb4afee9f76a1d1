"""Networks on a core with outer16, which works in NCHW16c: exact, and transformed at their ends alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from stages.ir.graph import Graph, Layer
from stages.ir.models.spec import OpModel, ZooModel
from stages.tensorize.transforms import is_transform
from tests.support.stages_run import verified

INPUTS = {"simulate": {"inputs": {"random": 1, "seed": 3, "extremes": False}}}


def run(model: Any, folder: Path) -> tuple[Graph, dict[str, Any]]:
    """The graph that is computed and its plan, of a firmware whose every layer is what LiteRT says."""
    found = verified(model, "rv32-outer16", folder, INPUTS)
    assert found["mismatches"] == 0 and found["layers_checked"] > 0, found["first_mismatch"]
    tensorized = folder / "run/tensorize"
    return Graph.load(tensorized), json.loads((tensorized / "plan.json").read_text())


def moved(graph: Graph, plan: dict[str, Any]) -> list[Layer]:
    """Transforms of layout that move bytes."""
    return [one for one in graph.layers if is_transform(one) and plan["layers"][one.index]["kernel"] != "alias"]


@pytest.mark.parametrize("zoo", ["ds_cnn", "resnet_8", "mobilenet_v1_0.25_96_vww"])
def test_a_network_is_transformed_where_it_begins_and_where_its_images_end(tmp_path: Path, zoo: str) -> None:
    graph, plan = run(ZooModel(zoo=zoo), tmp_path)
    kernels = [layer["kernel"] for layer in plan["layers"]]
    convolutions = [layer.index for layer in graph.layers if layer.kind in ("conv2d", "depthwise_conv2d")]
    assert {kernels[index] for index in convolutions} == {"outer16"}
    entry, end = moved(graph, plan)
    assert entry.inputs == tuple(graph.inputs) and end.index > max(convolutions)
    (read_last,) = (layer for layer in graph.layers if end.outputs[0] in layer.inputs)
    assert read_last.kind == "avg_pool2d"
    # Between them the core computes in blocks as well.
    inner = [layer for layer in graph.layers if entry.index < layer.index < end.index]
    layouts = {str(graph.tensors[name].layout) for layer in inner for name in (*layer.inputs, *layer.outputs)}
    assert layouts == {"NCHW16c"}
    assert [layer.kind for layer in inner if kernels[layer.index] != "outer16"] == ["add"] * (3 * (zoo == "resnet_8"))


def test_units_have_no_layout(tmp_path: Path) -> None:
    graph, plan = run(OpModel.model_validate({"op": "fully_connected", "shape": [70], "out_channels": 41}), tmp_path)
    assert [layer["kernel"] for layer in plan["layers"]] == ["outer16"] and len(graph.layers) == 1
