"""Operators that a plug-in declares by their ONNX name: the gate of docs/how-to/add_operator.md in drawn networks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from pipeline.api import run_recipe
from pipeline.errors import PipelineError
from pipeline.project import Project
from stages.ir.operators.table import declare
from tests.firmware.test_extend_page import BLOCK, CUSTOM, NAMED
from tests.support import plugged
from tests.support.onnx_graphs import model
from tests.support.onnx_integers import Net

CORES = """\
schema: 1
cores:
  gated: {like: rv32-rvp, kernels: [gate, rvp, generic]}
  gated-m4: {like: cortex-m4, kernels: [gate, arm_dsp, generic]}
  gated-host: {like: host, kernels: [gate, generic]}
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    for language, text in BLOCK.findall(CUSTOM):
        name = NAMED.match(text)
        if language not in ("sh", "text") and name is not None:
            plugged.write(tmp_path, name[1], text.partition("\n")[2])
    plugged.write(tmp_path, "plugins/targets/gated.yaml", CORES)
    plugged.write(tmp_path, "pipeline.yaml", "schema: 1\n")
    yield plugged.with_operators(Project(tmp_path))
    declare(())


def whole(net: Net, x: str, quant: tuple[float, int]) -> str:
    """The real numbers `x` as integers and back; gives the name of the latter."""
    return net.dequantize(net.quantize(x, f"{x}_q", *quant))


def conv(net: Net, x: str, name: str, shape: tuple[int, ...]) -> str:
    return net.op("Conv", [x, net.real_weights(f"{name}_w", shape, "int8", 0, channels=False)], name)


def gate(net: Net, x: str, y: str, threshold: float) -> str:
    return net.op("Gate", [x], y, "acme", threshold=threshold)


def sizes(seed: int) -> tuple[int, int, list[tuple[float, int]], float]:
    """Drawn: channels, rows, a quantization of each tensor, and a threshold."""
    random = np.random.default_rng(seed)
    channels, rows = int(random.integers(2, 6)), int(random.integers(5, 9))
    quants = [(scale, int(random.integers(-20, 20))) for scale in (0.03, 0.04, 0.05)]
    return channels, rows, quants, float(random.uniform(0, 0.4))


def between(seed: int, kind: str) -> Any:
    """Gates in QDQ: behind a convolution, behind a transposed image of other axes, and before an output."""
    net, (channels, size, (image, first, last), threshold) = Net(kind), sizes(seed)
    y = whole(net, conv(net, whole(net, "x", image), "c", (channels, 3, 3, 3)), first)
    y = whole(net, gate(net, y, "g", threshold), first)
    y = whole(net, gate(net, net.op("Transpose", [y], "t", perm=[0, 1, 3, 2]), "h", -0.3), first)
    y = whole(net, conv(net, y, "d", (4, channels, 2, 2)), last)
    y = whole(net, gate(net, y, "k", 0.2), last)
    return model(net.nodes, {"x": (1, 3, size, size + 2)}, [y], net.constants)


def plain(seed: int, kind: str) -> Any:
    """Gates that read integers as they are, between QLinear operators."""
    net, (channels, size, (image, first, _), threshold) = Net(kind), sizes(seed)
    x = gate(net, net.quantize("x", "q", *image), "g", 0.1)
    weights = net.weights("w", (channels, 3, 3, 3), "int8", 0, channels=False)
    c = net.op("QLinearConv", [x, "q_s", "q_z", *weights, *net.quant("c", *first)], "c")
    y = net.op("DequantizeLinear", [gate(net, c, "h", threshold), "c_s", "c_z"], "y")
    return model(net.nodes, {"x": (1, 3, size, size + 1)}, [y], net.constants)


def verified(project: Project, proto: Any, target: str = "gated-host") -> dict[str, Any]:
    (project.root / "net.onnx").write_bytes(proto.SerializeToString())
    recipe = {"schema": 1, "name": "x", "target": target, "model": {"file": "net.onnx"}}
    recipe["stages"] = {"simulate": {"inputs": {"random": 3, "seed": 5}}}
    report = run_recipe(recipe, root=project, build=project.root / "build", store=project.root / "store").report
    assert report is not None
    kernels, kinds = ([layer[key] for layer in report["layers"]] for key in ("kernel", "op"))
    found: dict[str, Any] = report["verify"]
    return {**found, "gates": kernels.count("gate.row"), "transposes": kinds.count("transpose")}


@pytest.mark.parametrize(("target", "kind"), [("gated", "uint8"), ("gated-m4", "uint8"), ("gated-host", "int8")])
def test_firmware_of_drawn_networks(project: Project, target: str, kind: str) -> None:
    found = verified(project, between(1, kind), target)
    assert found["mismatches"] == 0 and found["gates"] == 3
    ours, theirs = found["reference"].removesuffix(", layer by layer").split(", ")
    assert ours.startswith("ONNX Runtime ") and ours.endswith(" for 17 of 20 operators"), found["reference"]
    assert theirs == "plugins/operators/gate.py for 3 x acme.Gate"


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_gates_between_integer_operators(project: Project, kind: str) -> None:
    found = verified(project, plain(2, kind))
    assert found["mismatches"] == 0 and found["gates"] == 2


def test_real_numbers_are_refused_where_the_plug_in_has_integers_alone(project: Project) -> None:
    real = model("y = acme.Gate <threshold=0.1> (x)", {"x": (1, 3, 4, 4)}, ["y"])
    with pytest.raises(PipelineError, match=r"computes in float32; the plug-in declares CUSTOM:Gate for int8 only"):
        verified(project, real)


@pytest.mark.parametrize(("images", "moves"), [(True, 3), (False, 5)])
def test_the_order_of_axes_is_the_operators(project: Project, images: bool, moves: int) -> None:
    """With images=False it reads all axes as the ONNX file has them: images are transposed before and behind it."""
    plugged.edit(project, "plugins/operators/gate.py", 'onnx="acme.Gate"', f'onnx="acme.Gate", images={images}')
    found = verified(project, between(6, "int8"))
    assert found["mismatches"] == 0 and found["transposes"] == moves
