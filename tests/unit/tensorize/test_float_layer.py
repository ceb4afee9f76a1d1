"""Float operators through TVM: values against numpy after a trip through emit and GCC, and no intermediate tensor."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.emit import EmitConfig
from stages.emit.build import emit
from stages.ir.graph import Float, Graph, Layer, Tensor
from stages.tensorize import TensorizeConfig
from stages.tensorize.artifact import save
from stages.tensorize.build import tensorize_graph
from stages.tensorize.float_layer import lower_float
from tests.support.emitted import run_emitted, target_named

RNG = np.random.default_rng(5)


def relax_module(shape: tuple[int, ...], body: Callable[[Any, Any], Any]) -> Any:
    """A module with one function `f` of one float32 tensor; `body(emit, x)` builds it."""
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("f", [x]):
        with builder.dataflow():
            out = builder.emit_output(body(builder.emit, x))
        builder.emit_func_output(out)
    return builder.get()


def run(tmp_path: Path, module: Any, x: np.ndarray, *outputs: tuple[tuple[int, ...], str]) -> list[np.ndarray]:
    names = [f"y{i}" for i in range(len(outputs))]
    graph = Graph({"x": Tensor(name="x", shape=x.shape, dtype="float32")})
    for name, (shape, dtype) in zip(names, outputs, strict=True):
        graph.tensors[name] = Tensor(name=name, shape=shape, dtype=dtype)  # type: ignore[arg-type]
    op = Float(kind="float_op", function="f")
    graph.layers = [Layer(index=0, name="y0", op=op, inputs=("x",), outputs=tuple(names))]
    graph.inputs, graph.outputs = ["x"], names
    target = target_named("host")
    save(tensorize_graph(graph, target, TensorizeConfig(), [], float_module=module), tmp_path)
    graph.save(tmp_path)
    emit(tmp_path, tmp_path, EmitConfig(), target)
    return run_emitted(tmp_path, target, [[x]])[0].outputs


def convolution(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """NHWC, HWIO, stride 1, padding 1, by the definition."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    out = np.zeros((*x.shape[:3], w.shape[3]))
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            out += padded[:, i : i + x.shape[1], j : j + x.shape[2]] @ w[i, j].astype(np.float64)
    return out


@pytest.mark.parametrize(("size", "channels"), [(8, 8), (7, 6), (5, 3), (9, 16), (3, 11)])
def test_convolution_with_bias_and_relu(tmp_path: Path, size: int, channels: int) -> None:
    from tvm import relax

    w = RNG.normal(size=(3, 3, 4, channels)).astype(np.float32)
    b = RNG.normal(size=channels).astype(np.float32)

    def body(emit_: Any, x: Any) -> Any:
        y = relax.op.nn.conv2d(x, relax.const(w), padding=1, data_layout="NHWC", kernel_layout="HWIO")
        return emit_(relax.op.nn.relu(emit_(relax.op.add(emit_(y), relax.const(b)))))

    x = RNG.normal(size=(1, size, size, 4)).astype(np.float32)
    (y,) = run(tmp_path, relax_module(x.shape, body), x, ((1, size, size, channels), "float32"))
    np.testing.assert_allclose(y, np.maximum(convolution(x, w) + b, 0), rtol=1e-5, atol=1e-5)
    # Of all that TVM's operators allocate only the padded input is left in memory.
    code = (tmp_path / "src" / "layers.h").read_text()
    assert code.count("float *restrict") - code.count("const float *restrict") == 2


def test_an_operator_that_becomes_several_functions(tmp_path: Path) -> None:
    from tvm import relax

    def body(emit_: Any, x: Any) -> Any:
        pooled = emit_(relax.op.nn.max_pool2d(x, (2, 2), (2, 2), layout="NHWC"))
        return relax.op.split(emit_(relax.op.mean(pooled, [1, 2])), 2, axis=1)

    x = RNG.normal(size=(1, 6, 6, 4)).astype(np.float32)
    module = relax_module(x.shape, body)
    steps = lower_float(module, "f", "layer_000_x").steps
    assert [step.function for step in steps] == [f"layer_000_x_step{i}" for i in range(3)]
    found = run(tmp_path, module, x, ((1, 2), "float32"), ((1, 2), "float32"))
    expected = x.reshape(1, 3, 2, 3, 2, 4).max(axis=(2, 4)).mean(axis=(1, 2))
    np.testing.assert_allclose(np.concatenate(found, axis=1), expected, rtol=1e-6)


def test_quantize_uses_every_bit_of_the_scale(tmp_path: Path) -> None:
    from tvm import relax

    # 0.0123456791 needs nine digits; x / scale lies on a rounding edge for the neighbours of scale.
    scale = np.float32(0.0123456791)
    x = (np.arange(-50, 50).astype(np.float32) + np.float32(0.5)) * scale

    def body(emit_: Any, v: Any) -> Any:
        return emit_(relax.op.quantize(v, relax.const(scale), relax.const(np.int8(3)), axis=-1, out_dtype="int8"))

    (y,) = run(tmp_path, relax_module((100,), body), x, ((100,), "int8"))
    np.testing.assert_array_equal(y, np.clip(np.rint(x / scale) + 3, -128, 127).astype(np.int8))
