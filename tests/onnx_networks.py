"""Drawn ONNX networks, as they are and as ONNX Runtime's static quantization writes them, held to ONNX Runtime.

    python -m tests.onnx_networks --count 100 --seed 1000

draws so many, each in three forms (float32; QDQ; QLinear operators), and prints how many layers were compared, which
forms were refused and what was wrong. Every layer of integers must be ONNX Runtime's, or differ in near ties alone.
"""

import argparse
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from stages.base import StageError
from stages.import_model.onnx import convert
from stages.ir.reference import Reference
from stages.ir.reference.onnx_runtime import OnnxReference
from tests.support.integer import LAYOUTS
from tests.support.onnx_graphs import model, node
from tests.unit.import_model.from_onnx.comparison import compare_layers

FORMS = ("float", "qdq", "qlinear")
OPSETS = (14, 17, 21)
MOST_LAYERS = 6
NEAR = 1e-4  # of float32, of the largest number of a tensor
_FUNCTIONS = ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "Clip", "Abs")


class Draft:
    """A network of images that grows: nodes, constants, and the values that are there with their shapes."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Any] = {}
        shape = (1, self.among(1, 2, 3, 5, 8), self.among(1, 4, 7, 9, 12), self.among(3, 5, 8, 11))
        self.input = shape
        self.images: list[tuple[str, tuple[int, ...]]] = [("x", shape)]

    def among(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(values, dtype)
        return name

    def weights(self, *shape: int) -> str:
        deviation = 1 / np.sqrt(max(np.prod(shape[1:]), 1))
        return self.constant(self.rng.normal(0, deviation, shape))

    def op(self, op: str, inputs: list[str], results: int = 1, **attributes: Any) -> list[str]:
        names = [f"v{len(self.nodes)}_{at}" for at in range(results)]
        self.nodes.append(node(op, inputs, names, **attributes))
        return names

    def put(self, name: str, shape: tuple[int, ...]) -> None:
        self.images.append((name, shape))

    def finished(self, opset: int) -> onnx.ModelProto:
        """With a classifier behind the last image, or that image itself."""
        name, shape = self.images[-1]
        if self.among(True, True, False):
            if self.among(True, False):
                (name,), shape = self.op("GlobalAveragePool", [name]), (*shape[:2], 1, 1)
            (name,) = self.op("Flatten", [name])
            depth, units = int(np.prod(shape)), self.among(1, 3, 10)
            if self.among(True, False):
                bias = [self.constant(self.rng.normal(0, 0.1, units))] if self.among(True, False) else []
                (name,) = self.op("Gemm", [name, self.weights(units, depth), *bias], transB=1)
            else:
                (name,) = self.op("MatMul", [name, self.weights(depth, units)])
        self.nodes.append(node("Identity", [name], ["y"]))
        return model(self.nodes, {"x": self.input}, ["y"], self.constants, opset=opset)


def _conv(d: Draft, name: str, shape: tuple[int, ...]) -> None:
    channels, units = shape[1], d.among(1, 4, 6, 9)
    group = d.among(1, 1, channels)
    units = units if group == 1 else channels * d.among(1, 1, 2)
    dilation, stride = d.among(1, 1, 2), d.among(1, 1, 2)
    kernel = [min(d.among(1, 2, 3, 5), size) for size in shape[2:]]
    pads = [d.among(0, 1, 2) for _ in range(4)] if d.among(True, False) else [0] * 4
    sizes = [
        (size + pads[at] + pads[at + 2] - dilation * (k - 1) - 1) // stride + 1
        for at, (size, k) in enumerate(zip(shape[2:], kernel, strict=True))
    ]
    if min(sizes) < 1:
        return
    inputs = [name, d.weights(units, channels // group, *kernel)]
    if d.among(True, True, False):
        inputs.append(d.constant(d.rng.normal(0, 0.3, units)))
    (made,) = d.op("Conv", inputs, pads=pads, strides=[stride] * 2, dilations=[dilation] * 2, group=group)
    d.put(made, (1, units, *sizes))


def _function(d: Draft, name: str, shape: tuple[int, ...]) -> None:
    op = d.among(*_FUNCTIONS)
    bounds = [d.constant(low) for low in d.among((0, 6), (-1, 1), (-0.3, 1.7))] if op == "Clip" else []
    attributes = {"alpha": 0.1} if op == "LeakyRelu" else {}
    (made,) = d.op(op, [name, *bounds], **attributes)
    d.put(made, shape)


def _pool(d: Draft, name: str, shape: tuple[int, ...]) -> None:
    kernel, stride = [min(d.among(1, 2, 3), size) for size in shape[2:]], d.among(1, 2)
    pads = [d.among(0, 1) if k > 1 else 0 for k in (*kernel, *kernel)]
    sizes = [(size + pads[at] + pads[at + 2] - kernel[at]) // stride + 1 for at, size in enumerate(shape[2:])]
    op = d.among("MaxPool", "AveragePool")
    counts = {"count_include_pad": 1} if op == "AveragePool" else {}
    (made,) = d.op(op, [name], kernel_shape=kernel, strides=[stride] * 2, pads=pads, **counts)
    d.put(made, (*shape[:2], *sizes))


def _pair(d: Draft, name: str, shape: tuple[int, ...]) -> None:
    """With an earlier image of this shape, or with a constant that broadcasts."""
    others = [other for other, size in d.images if size == shape]
    other = d.among(*others, d.weights(*d.among(shape[1:], (shape[1], 1, 1), ())))
    (made,) = d.op(d.among("Add", "Mul", "Sub"), d.among([name, other], [other, name]))
    d.put(made, shape)


def _concat(d: Draft, name: str, shape: tuple[int, ...]) -> None:
    others = [(other, size) for other, size in d.images if size[2:] == shape[2:]]
    other, size = d.among(*others)
    (made,) = d.op("Concat", [name, other], axis=1)
    d.put(made, (1, shape[1] + size[1], *shape[2:]))


def _where(d: Draft, name: str, shape: tuple[int, ...]) -> None:
    other = d.among(*(other for other, size in d.images if size == shape))
    if d.among(True, False):
        condition = d.constant(d.rng.random(shape[2:]) > 0.5, bool)
    else:
        (condition,) = d.op("Greater", [d.among(name, other), d.constant(d.rng.normal(0, 0.5))])
    (made,) = d.op("Where", [condition, name, other])
    d.put(made, shape)


def _move(d: Draft, name: str, shape: tuple[int, ...]) -> None:
    kind = d.among("Pad", "Slice", "Split", "Resize", "Transpose")
    if kind == "Pad":
        pads = [d.among(0, 1) for _ in range(4)]
        (made,) = d.op("Pad", [name, d.constant([0, 0, *pads[:2], 0, 0, *pads[2:]], np.int64)])
        d.put(made, (*shape[:2], shape[2] + pads[0] + pads[2], shape[3] + pads[1] + pads[3]))
    elif kind == "Slice":
        ends = [max(1, size - d.among(0, 1)) for size in shape[2:]]
        given = [d.constant(one, np.int64) for one in ([0, 0], ends, [2, 3])]
        (made,) = d.op("Slice", [name, *given])
        d.put(made, (*shape[:2], *ends))
    elif kind == "Split" and shape[1] > 1:
        sizes = [shape[1] // 2, shape[1] - shape[1] // 2]
        first, second = d.op("Split", [name, d.constant(sizes, np.int64)], 2, axis=1)
        d.put(first, (1, sizes[0], *shape[2:]))
        d.put(second, (1, sizes[1], *shape[2:]))
    elif kind == "Resize":
        (made,) = d.op(
            "Resize",
            [name, "", d.constant([1, 1, 2, 2])],
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
        d.put(made, (*shape[:2], 2 * shape[2], 2 * shape[3]))
    else:
        (made,) = d.op("Transpose", [name], perm=[0, 1, 3, 2])
        d.put(made, (*shape[:2], shape[3], shape[2]))


def network(seed: int) -> onnx.ModelProto:
    """A float32 network of images."""
    d = Draft(seed)
    for _ in range(int(d.rng.integers(1, MOST_LAYERS + 1))):
        step = d.among(_conv, _conv, _conv, _function, _function, _pool, _pair, _concat, _where, _move)
        name, shape = d.images[-1] if d.among(True, True, True, False) else d.among(*d.images)
        step(d, name, shape)
    return d.finished(d.among(*OPSETS))


def quantized(proto: onnx.ModelProto, form: str, seed: int, folder: Path) -> onnx.ModelProto:
    """What ONNX Runtime's static quantization makes of it; types and scales for channels are drawn."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    rng = np.random.default_rng(seed)
    shape = [dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim]

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.samples = iter([{"x": rng.normal(0, 1, shape).astype(np.float32)} for _ in range(4)])

        def get_next(self) -> Any:
            return next(self.samples, None)

    source, made = folder / "float.onnx", folder / f"{form}.onnx"
    onnx.save(proto, source)
    unsigned = bool(rng.integers(2))
    try:
        quantize_static(
            source,
            made,
            Reader(),
            quant_format=QuantFormat.QDQ if form == "qdq" else QuantFormat.QOperator,
            activation_type=QuantType.QUInt8 if unsigned else QuantType.QInt8,
            weight_type=QuantType.QUInt8 if unsigned and rng.integers(2) else QuantType.QInt8,
            per_channel=bool(rng.integers(2)),
            extra_options={"ForceQuantizeNoInputCheck": bool(rng.integers(2))},
        )
    except RuntimeError as error:  # it loses tensors that a Where or a Greater reads
        raise StageError(f"the quantizer fails: {error}") from error
    return onnx.load(made)


def check(seed: int, form: str) -> Counter[str]:
    """How many layers were compared, and how many of their numbers are near ties that differ.

    Raises StageError for a network that is refused or differs, and whatever else goes wrong.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        proto = network(seed)
        if form != "float":
            proto = quantized(proto, form, seed, folder)
        if form != "float":
            layers = compare_layers(proto, folder, sorted(LAYOUTS)[seed % len(LAYOUTS)], runs=2)
            differing = sum(ties.differing for ties in layers.ties.values())
            return Counter(layers=len(layers.graph.layers), differing=differing)
        data = proto.SerializeToString()
        made = convert(data, "net.onnx", {}, "nhwc" if seed % 2 else "nchw")
        theirs = OnnxReference(made.data, data, made.names)
        rng = np.random.default_rng(seed)
        inputs = [[rng.normal(0, 1, t.shape).astype(t.dtype) for t in theirs.inputs] for _ in range(2)]
        return _floats(Reference(made.data), theirs, inputs)


def _floats(ours: Reference, theirs: OnnxReference, inputs: list[list[Any]]) -> Counter[str]:
    count: Counter[str] = Counter()
    for given in inputs:
        theirs.run(given)
        ours.run(given)
        for index, wanted in theirs.computed().items():
            got = ours.tensor(index)
            most = NEAR * max(1.0, float(np.abs(wanted.astype(float)).max()))
            far = int((np.abs(got.astype(float) - wanted.astype(float)) > most).sum())
            if far > (got.dtype == bool):  # a sum may lie beside the number that it is compared with
                raise StageError(f"{far} numbers of '{theirs.info.tensors[index].name}' are not ONNX Runtime's")
            count["layers"] += 1
    return count


def main() -> int:
    """Returns the exit code: 1 where a network differs or ends otherwise than in a refusal."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=20, help="networks, each in three forms (20)")
    parser.add_argument("--seed", type=int, default=0, help="of the first; the others follow it")
    given = parser.parse_args()
    wrong = 0
    for form in FORMS:
        totals, refused = Counter[str](), Counter[str]()
        for seed in range(given.seed, given.seed + given.count):
            try:
                totals += check(seed, form) + Counter(networks=1)
            except StageError as error:
                refused[str(error)] += 1
                if "ONNX Runtime" in str(error):
                    wrong += 1
                print(f"{form} {seed}: {str(error).splitlines()[0]}")
            except Exception:
                wrong += 1
                print(f"{form} {seed}: {traceback.format_exc()}")
        told = ", ".join(f"{name} {count}" for name, count in totals.items())
        print(f"{form}: {told}; {sum(refused.values())} refused")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
