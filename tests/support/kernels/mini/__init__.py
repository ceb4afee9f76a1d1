"""A small kernel for tests: y = clamp((x . w + bias) >> 7), four rows a tile, with its C beside it."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from stages.backends.kernels.folder import KernelFolder
from stages.backends.kernels.kernel import Intrinsic, Kernel, KernelParams, Lowering
from stages.backends.targets.spec import Target
from stages.ir.graph import FullyConnected, Graph, Layer, LayerView, Quant, Tensor

ROWS = 4


class MiniParams(KernelParams):
    rows: int = ROWS


class MiniGemm(Kernel):
    name = "mini.gemm"
    ops = frozenset({"fully_connected"})
    sources = ("mini.c",)
    headers = ("mini.h",)
    params = MiniParams

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return "" if view.op.batch % ROWS == 0 else f"{view.op.batch} rows are not a multiple of {ROWS}"

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        return {"weights": view.constant("weights"), "bias": view.constant("bias")}

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        workload, desc, impl = mini_functions(view.op.batch, view.op.depth, view.op.units, params.rows)
        roles = ("input:0", "constant:weights", "constant:bias", "output:0")
        return Lowering(workload, roles, [Intrinsic("tile", desc, impl)])

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return 2.0 * view.op.batch * view.op.depth * view.op.units


class PlainGemm(MiniGemm):
    """The same meaning without a micro-kernel."""

    name = "mini.plain"
    sources = ()
    headers = ()

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        lowering = super().lower(view, params, target)
        return Lowering(lowering.workload, lowering.roles)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return 8.0 * view.op.batch * view.op.depth * view.op.units


FOLDER = KernelFolder(__file__, kernels=(MiniGemm, PlainGemm), include=("include",))


@cache
def mini_functions(m: int, k: int, n: int, rows: int) -> tuple[Any, Any, Any]:
    """Workload, desc and impl for (m, k) x (n, k) -> (m, n). The workload copies its input first, to have scratch."""
    from tvm.script import tirx as T

    tiles = m // rows

    @T.prim_func(s_tir=True)
    def workload(
        x: T.Buffer((m, k), "int8"),
        w: T.Buffer((n, k), "int8"),
        b: T.Buffer((n,), "int32"),
        y: T.Buffer((m, n), "int8"),
    ):
        acc = T.sblock_alloc_buffer((1,), "int32")
        copy = T.sblock_alloc_buffer((m, k), "int8")
        for i, j in T.grid(m, k):
            with T.sblock("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                copy[vi, vj] = x[vi, vj]
        for t in range(tiles):
            with T.sblock("tile"):
                vt = T.axis.spatial(tiles, t)
                T.reads(copy[vt * rows : vt * rows + rows, 0:k], w[0:n, 0:k], b[0:n], acc[0:1])
                T.writes(y[vt * rows : vt * rows + rows, 0:n], acc[0:1])
                for i, j in T.grid(rows, n):
                    acc[0] = b[j]
                    for c in range(k):
                        acc[0] = acc[0] + T.Cast("int32", copy[vt * rows + i, c]) * T.Cast("int32", w[j, c])
                    y[vt * rows + i, j] = T.Cast("int8", T.max(T.min(T.shift_right(acc[0], 7), 127), -128))

    @T.prim_func(s_tir=True)
    def desc(
        x: T.Buffer((rows, k), "int8", offset_factor=1),
        w: T.Buffer((n, k), "int8", offset_factor=1),
        b: T.Buffer((n,), "int32", offset_factor=1),
        y: T.Buffer((rows, n), "int8", offset_factor=1),
        acc: T.Buffer((1,), "int32", offset_factor=1),
    ):
        with T.sblock("tile"):
            T.reads(x[0:rows, 0:k], w[0:n, 0:k], b[0:n], acc[0:1])
            T.writes(y[0:rows, 0:n], acc[0:1])
            for i, j in T.grid(rows, n):
                acc[0] = b[j]
                for c in range(k):
                    acc[0] = acc[0] + T.Cast("int32", x[i, c]) * T.Cast("int32", w[j, c])
                y[i, j] = T.Cast("int8", T.max(T.min(T.shift_right(acc[0], 7), 127), -128))

    @T.prim_func(s_tir=True)
    def impl(
        x: T.Buffer((rows, k), "int8", strides=[T.int32(), 1], offset_factor=1),
        w: T.Buffer((n, k), "int8", strides=[T.int32(), 1], offset_factor=1),
        b: T.Buffer((n,), "int32", offset_factor=1),
        y: T.Buffer((rows, n), "int8", strides=[T.int32(), 1], offset_factor=1),
        acc: T.Buffer((1,), "int32", offset_factor=1),
    ):
        with T.sblock("root"):
            T.reads(x[0:rows, 0:k], w[0:n, 0:k], b[0:n], acc[0:1])
            T.writes(y[0:rows, 0:n], acc[0:1])
            T.evaluate(
                T.call_extern(
                    "int32", "mini_gemm", x.access_ptr("r"), w.access_ptr("r"), b.access_ptr("r"), y.access_ptr("w"),
                    rows, k, n,
                )
            )  # fmt: skip

    return workload, desc, impl


def mini_graph(batch: int = 8, depth: int = 12, units: tuple[int, ...] = (6, 5), seed: int = 0) -> Graph:
    """Fully connected layers one after the other, with seeded weights."""
    rng = np.random.default_rng(seed)
    quant = Quant(scale=(0.5,), zero_point=(3,))
    graph = Graph({"x": Tensor(name="x", shape=(batch, depth), dtype="int8", quant=quant, tflite_index=0)})
    graph.inputs, previous = ["x"], "x"
    for index, count in enumerate(units):
        name = f"dense_{index}"
        graph.tensors[name] = Tensor(name=name, shape=(batch, count), dtype="int8", quant=quant, tflite_index=1 + index)
        graph.constants[f"{name}.w"] = rng.integers(-127, 128, (count, depth), dtype=np.int8)
        graph.constants[f"{name}.b"] = rng.integers(-4000, 4000, (count,), dtype=np.int32)
        op = FullyConnected(
            output_zero_point=0, act_min=-128, act_max=127, batch=batch, depth=depth, units=count, input_zero_point=0
        )
        constants = {"weights": f"{name}.w", "bias": f"{name}.b"}
        graph.layers.append(
            Layer(index=index, name=name, op=op, inputs=(previous,), outputs=(name,), constants=constants)
        )
        previous, depth = name, count
    graph.outputs = [previous]
    return graph


def mini_reference(graph: Graph, x: np.ndarray) -> list[np.ndarray]:
    """Every layer's output by numpy."""
    outputs = []
    for layer in graph.layers:
        weights, bias = (graph.constants[layer.constants[role]].astype(np.int32) for role in ("weights", "bias"))
        x = np.clip((x.astype(np.int32) @ weights.T + bias) >> 7, -128, 127).astype(np.int8)
        outputs.append(x)
    return outputs
