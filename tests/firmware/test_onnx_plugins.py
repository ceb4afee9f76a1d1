"""Operators that a plug-in declares by their ONNX name: the gate of docs/how-to/add_operator.md in drawn networks."""

import shutil
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
from tests.support.onnx_graphs import model, node

CORES = """\
schema: 1
cores:
  gated: {like: rv32-rvp, kernels: [gate, rvp, generic]}
  gated-m4: {like: cortex-m4, kernels: [gate, arm_dsp, generic]}
  gated-host: {like: host, kernels: [gate, generic]}
"""
needs_compilers = pytest.mark.skipif(
    not all(map(shutil.which, ("arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"))), reason="needs both compilers"
)
KINDS = {"int8": (np.int8, 0), "uint8": (np.uint8, 128)}


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


class Drawn:
    """Nodes and constants of a network between integers of one kind, whose sizes and scales are drawn."""

    def __init__(self, seed: int, kind: str) -> None:
        self.random, self.constants = np.random.default_rng(seed), dict[str, Any]()
        self.nodes: list[Any] = []
        self.dtype, self.moved = KINDS[kind]

    def quant(self, name: str, scale: float) -> list[str]:
        zero = int(self.random.integers(-20, 20)) + self.moved
        self.constants |= {f"{name}_s": np.float32(scale), f"{name}_z": np.array(zero, self.dtype)}
        return [f"{name}_s", f"{name}_z"]

    def whole(self, name: str, quant: list[str]) -> str:
        """The real numbers `name` as integers and back; gives the name of the latter."""
        self.nodes += [
            node("QuantizeLinear", [name, *quant], [f"{name}_q"]),
            node("DequantizeLinear", [f"{name}_q", *quant], [f"{name}_r"]),
        ]
        return f"{name}_r"

    def conv(self, x: str, name: str, shape: tuple[int, ...]) -> str:
        weights = self.random.integers(-90, 90, shape).astype(np.int8)
        self.constants |= {f"{name}_w": weights, f"{name}_ws": np.float32(0.01), f"{name}_wz": np.int8(0)}
        self.nodes += [
            node("DequantizeLinear", [f"{name}_{part}" for part in ("w", "ws", "wz")], [f"{name}_wr"]),
            node("Conv", [x, f"{name}_wr"], [name]),
        ]
        return name


def gate(x: str, y: str, threshold: float) -> Any:
    return node("Gate", [x], [y], domain="acme", threshold=threshold)


def between(seed: int, kind: str) -> Any:
    """Gates in QDQ: behind a convolution, behind a transposed image of other axes, and before an output."""
    net = Drawn(seed, kind)
    channels, size = int(net.random.integers(2, 6)), int(net.random.integers(5, 9))
    first = net.quant("a", 0.04)
    y = net.whole("x", net.quant("x", 0.03))
    y = net.whole(net.conv(y, "c", (channels, 3, 3, 3)), first)
    net.nodes.append(gate(y, "g", float(net.random.uniform(0, 0.5))))
    y = net.whole("g", first)
    net.nodes += [node("Transpose", [y], ["t"], perm=[0, 1, 3, 2]), gate("t", "h", -0.3)]
    y = net.whole("h", first)
    last = net.quant("b", 0.05)
    y = net.whole(net.conv(y, "d", (4, channels, 2, 2)), last)
    net.nodes.append(gate(y, "k", 0.2))
    net.whole("k", last)
    return model(net.nodes, {"x": (1, 3, size, size + 2)}, ["k_r"], net.constants)


def plain(seed: int, kind: str) -> Any:
    """Gates that read integers as they are, between QLinear operators."""
    net = Drawn(seed, kind)
    channels, size = int(net.random.integers(2, 6)), int(net.random.integers(5, 9))
    names = [net.quant(name, scale) for name, scale in (("a", 0.03), ("b", 0.04))]
    net.constants |= {"w": net.random.integers(-90, 90, (channels, 3, 3, 3)).astype(np.int8), "ws": np.float32(0.01)}
    net.constants["wz"] = np.int8(0)
    net.nodes = [
        node("QuantizeLinear", ["x", *names[0]], ["q"]),
        gate("q", "g", 0.1),
        node("QLinearConv", ["g", *names[0], "w", "ws", "wz", *names[1]], ["c"]),
        gate("c", "h", float(net.random.uniform(-0.3, 0.4))),
        node("DequantizeLinear", ["h", *names[1]], ["y"]),
    ]
    return model(net.nodes, {"x": (1, 3, size, size + 1)}, ["y"], net.constants)


def verified(project: Project, proto: Any, target: str = "gated-host") -> dict[str, Any]:
    (project.root / "net.onnx").write_bytes(proto.SerializeToString())
    recipe = {"schema": 1, "name": "x", "target": target, "model": {"file": "net.onnx"}}
    recipe["stages"] = {"simulate": {"inputs": {"random": 3, "seed": 5}}}
    report = run_recipe(recipe, root=project, build=project.root / "build", store=project.root / "store").report
    assert report is not None
    kernels, kinds = ([layer[key] for layer in report["layers"]] for key in ("kernel", "op"))
    found: dict[str, Any] = report["verify"]
    return {**found, "gates": kernels.count("gate.row"), "transposes": kinds.count("transpose")}


@needs_compilers
@pytest.mark.parametrize(("target", "kind"), [("gated", "uint8"), ("gated-m4", "uint8"), ("gated-host", "int8")])
def test_firmware_of_drawn_networks(project: Project, target: str, kind: str) -> None:
    found = verified(project, between(1, kind), target)
    assert found["mismatches"] == 0 and found["gates"] == 3
    ours, theirs = found["reference"].removesuffix(", layer by layer").split(", ")
    assert ours.startswith("ONNX Runtime ") and ours.endswith(" for 17 of 20 operators"), found["reference"]
    assert theirs == "plugins/operators/gate.py for 3 x acme.Gate"


@pytest.mark.parametrize("kind", KINDS)
def test_gates_between_integer_operators(project: Project, kind: str) -> None:
    found = verified(project, plain(2, kind))
    assert found["mismatches"] == 0 and found["gates"] == 2


def test_real_numbers_are_refused_where_the_plug_in_has_integers_alone(project: Project) -> None:
    real = model([gate("x", "y", 0.1)], {"x": (1, 3, 4, 4)}, ["y"])
    with pytest.raises(PipelineError, match=r"computes in float32; the plug-in declares CUSTOM:Gate for int8 only"):
        verified(project, real)


@pytest.mark.parametrize(("images", "moves"), [(True, 3), (False, 5)])
def test_the_order_of_axes_is_the_operators(project: Project, images: bool, moves: int) -> None:
    """With images=False it reads all axes as the ONNX file has them: images are transposed before and behind it."""
    plugged.edit(project, "plugins/operators/gate.py", 'onnx="acme.Gate"', f'onnx="acme.Gate", images={images}')
    found = verified(project, between(6, "int8"))
    assert found["mismatches"] == 0 and found["transposes"] == moves
