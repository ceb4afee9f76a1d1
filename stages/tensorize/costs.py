"""What a kernel costs for a layer, in instructions: measured, fitted to measurements, or the kernel's own estimate.

Where a recipe chooses by cycles, in these: instructions times what one takes (stages.tensorize.cycles).

`doit calibrate target=NAME` writes the target's table, `stages/kernels/costs/NAME.json`:

  format, target, tools   of the file, what was measured, and the versions it was measured with
  close                   layers beside the grid that were measured because of little difference between kernels
  kernels                 kernel name -> digest of its code when it was measured (stages.kernels.digest)
  fits                    variant, or `of_kind` -> {layers, error, factors}
  layers                  signature -> {work: {...}, variant: [instructions, the kernel's own estimate or null]}

A variant is a kernel with its parameters, `rvp.gemm_s8 mr=5`. A signature has all that decides the instruction count of
a layer, but not its data. What was measured with another version of a kernel does not count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import fsum, isfinite, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.base import StageError
from stages.graph import Graph
from stages.kernels.digest import kernel_digest
from stages.kernels.generic.copies import parts
from stages.kernels.windows import taps_inside
from stages.operators.layer import Window
from stages.operators.windows import Pool2D
from stages.system.json_text import parsed_json
from stages.tensorize.nearby import Nearby

if TYPE_CHECKING:
    from stages.graph import LayerView, Tensor
    from stages.kernels.kernel import Kernel
    from stages.targets.spec import Target
    from stages.tensorize.cycles import CycleTable

FORMAT = 2
QUANTITIES = ("products", "strips", "taps", "outputs", "inputs", "rows", "channels", "runs")
_WINDOW = ("kernel", "stride", "padding", "dilation", "groups", "axis", "axes", "rounding")
_BLOCKS = re.compile(r"\][A-Z]+[0-9]+[a-z]")  # of a tensor's layout
_USUAL = {"padding": "0x0x0x0", "dilation": "1x1", "groups": "1", "rounding": "double"}  # not written


@dataclass(frozen=True)
class Price:
    """Instructions (or cycles) of one call, None when nobody knows; `source` is tuned, measured, fitted, modelled,
    estimated or ''."""

    cost: float | None = None
    source: str = ""


@dataclass(frozen=True)
class CostTable:
    """A target's table.

    digests   kernel name -> digest
    measured  layer signature -> variant -> instructions
    factors   variant, or `of_kind` -> quantity of `quantities` -> instructions for one of it
    tuned     measurements of the network's own layers, which count first (stages.tensorize.tuning)
    settled   what was measured of the network because estimates left it open: signature -> variant -> instructions, or
              cycles where these are wanted (stages.calibrate.settle)
    nearby    how far the models are off for layers that were measured
    cycles    where cycles are wanted: how many an instruction takes; what is `tuned` are cycles then
    """

    digests: Mapping[str, str] = field(default_factory=dict)
    measured: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    factors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    tuned: CostTable | None = None
    settled: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    nearby: Nearby | None = None
    cycles: CycleTable | None = None

    @classmethod
    def read(cls, path: Path) -> CostTable:
        """Reads a table. Raises StageError for one that is damaged or of another format."""
        raw = read_file(path)
        measured = {
            layer: {name: counts[0] for name, counts in row.items() if name != "work"}
            for layer, row in raw["layers"].items()
        }
        factors = {name: fit["factors"] for name, fit in raw["fits"].items()}
        modelled = {
            layer: {
                name: (
                    entry[0],
                    _modelled(_factors_of(factors, name, layer), known_of(row["work"], entry[1])),
                    entry[1],
                )
                for name, entry in row.items()
                if name != "work"
            }
            for layer, row in raw["layers"].items()
        }
        return cls(raw["kernels"], measured, factors, nearby=Nearby(modelled))

    def of_table(self) -> CostTable:
        """These costs without what was measured of the network because they left it open, and without doubts."""
        return CostTable(**{one.name: getattr(self, one.name) for one in fields(CostTable)} | {"settled": {}})

    def knows(self, kernel: Kernel) -> bool:
        """Whether the table has measurements of this very version of the kernel."""
        digest = self.digests.get(kernel.name)
        return digest is not None and digest == kernel_digest(kernel)

    def outdated(self, kernel: Kernel) -> bool:
        """Whether the table has measurements of the kernel, but of another version of it."""
        return kernel.name in self.digests and not self.knows(kernel)

    def price(self, kernel: Kernel, view: LayerView, params: Any, target: Target) -> Price:
        """The best that is known about a call of the kernel for this layer."""
        view = kernel.seen(view)
        name, text = variant(kernel, params), signature(view)
        if self.tuned is not None and self.tuned.knows(kernel):
            own = self.tuned.measured.get(text, {}).get(name)
            if own is not None:
                return Price(own, "tuned")
        settled = self.settled.get(text, {}).get(name)
        if settled is not None:
            return Price(settled, "measured")
        price = self._instructions(kernel, view, params, target)
        return price if self.cycles is None else self._in_cycles(self.cycles, price, kernel, name, text)

    def _instructions(self, kernel: Kernel, view: LayerView, params: Any, target: Target) -> Price:
        name = variant(kernel, params)
        estimate = estimated(kernel, view, params, target)
        if self.knows(kernel):
            measured = self.measured.get(signature(view), {}).get(name)
            if measured is not None:
                return Price(measured, "measured")
            text = signature(view)
            modelled = _modelled(_factors_of(self.factors, name, text), quantities(view, estimate))
            if modelled:
                if self.nearby is not None:
                    modelled = self.nearby.instructions(name, text, modelled, estimate)
                return Price(round(modelled), "fitted")
        return Price() if estimate is None else Price(estimate, "estimated" if kernel.lowers else "modelled")

    @staticmethod
    def _in_cycles(cycles: CycleTable, price: Price, kernel: Kernel, name: str, text: str) -> Price:
        exactly = cycles.exactly(kernel, name, text)
        if exactly is not None:
            return Price(exactly, "measured")
        if price.cost is None:
            return price
        is_known = price.source != "estimated" and cycles.knows(kernel)
        rate = cycles.per_instruction(kernel, name, text)
        return Price(round(price.cost * rate), "fitted" if is_known else "estimated")


def known_of(work: Mapping[str, float], estimate: float | None) -> dict[str, float]:
    """The quantities of a layer, of which a table has those that are no kernel's own."""
    known = {**work, "call": 1.0}
    return known if estimate is None else {**known, "estimate": estimate}


def _factors_of(factors: Mapping[str, Mapping[str, float]], name: str, text: str) -> Mapping[str, float]:
    """The model of a variant for layers of the signature's kind; empty where there is none."""
    return factors.get(of_kind(name, kind_of(text)), factors.get(name, {}))


def _modelled(factors: Mapping[str, float], known: Mapping[str, float]) -> float:
    """What a model says of these quantities; 0 where it wants others."""
    if not all(quantity in known for quantity in factors):
        return 0.0
    return fsum(factor * known[quantity] for quantity, factor in factors.items())


def read_file(path: Path) -> dict[str, Any]:
    """A table as it is in the file, where `work` of a layer are numbers without their names (QUANTITIES).

    Raises StageError for one that is damaged or of another format.
    """
    hint = f"write it again: doit calibrate target={path.stem}"
    try:
        raw = parsed_json(path.read_text())
    except ValueError as error:
        raise StageError(f"cost table {path.name} is damaged: {error}", hint=hint) from None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise StageError(f"cost table {path.name} is not of format {FORMAT}", hint=hint)
    for row in raw.get("layers", {}).values():
        if isinstance(numbers := row.get("work"), list):
            row["work"] = dict(zip(QUANTITIES, numbers, strict=False))
    return raw


def least_per_product(path: Path, kernels: Mapping[str, Kernel]) -> dict[str, float]:
    """Fewest instructions for a product, by `reach_of`, of what a table has of these versions of the kernels."""
    raw, found = read_file(path), dict[str, float]()
    current = {name for name, one in kernels.items() if raw["kernels"].get(name) == kernel_digest(one)}
    for text, row in raw["layers"].items():
        kind, dtype = text.split(" ", 2)[:2]
        counts = [row[name][0] for name in row if name.partition(" ")[0] in current]
        if counts and (products := row.get("work", {}).get("products")):
            key = reach_of(kind, dtype.partition("[")[0])
            found[key] = min(found.get(key, float("inf")), min(counts) / products)
    return found


def reach_of(kind: str, dtype: str) -> str:
    """What layers have one least of `least_per_product`: those of an operator whose first input is of one type."""
    return f"{kind} of {dtype}"


def variant(kernel: Kernel, params: Any) -> str:
    """A kernel with its parameters: `rvp.gemm_s8 mr=5`."""
    tuned = [f"{key}={value}" for key, value in sorted(params.model_dump(mode="json").items())]
    return " ".join([kernel.name, *tuned])


def kind_of(text: str) -> str:
    """The kind of layers that a signature belongs to, of which one model holds: its operator.

    Transforms into blocks and out of them copy runs of channels, others one element after the other: two kinds.
    """
    kind = text.partition(" ")[0]
    return f"{kind} in blocks" if kind == "layout" and _BLOCKS.search(text) else kind


def of_kind(name: str, kind: str) -> str:
    """A variant where it computes layers of one kind: `rvp.pool2d (avg_pool2d)`."""
    return f"{name} ({kind})"


def estimated(kernel: Kernel, view: LayerView, params: Any, target: Target) -> float | None:
    """The kernel's own estimate; None when it states none, or no number."""
    try:
        cost = kernel.cost(view, params, target)
    except LookupError:
        return None
    return cost if isfinite(cost) else None


def signature(view: LayerView) -> str:
    """All that decides a kernel's instruction count, but not its data: operator, shapes, types, layouts, window.

    Multipliers and names are left out, and of zero points only counts whether the weights have one, so that layers of
    one shape share one measurement.
    """
    op = view.op.model_dump(mode="json")
    window = [f"{key}={_compact(op[key])}" for key in _WINDOW if key in op and _compact(op[key]) != _USUAL.get(key)]
    if op["op"] == "move":
        window += [f"{key}={_compact(value)}" for key, value in sorted(op["params"].items()) if key != "value"]
    if view.has("weights"):
        shifted = "-zp" if op.get("weight_zero_point") else ""
        window.append(f"weights={view.constant('weights').dtype}{shifted}")
    inputs = [_tensor(tensor) for tensor in view.inputs]
    outputs = [_tensor(tensor) for tensor in view.outputs]
    return " ".join([view.layer.kind, *inputs, "->", *outputs, *window])


def quantities(view: LayerView, estimate: float | None) -> dict[str, float]:
    """What the cost of a layer may be proportional to.

    products  multiplications; elements looked at for pooling
    strips    rows of windows inside of the image; 0 where nothing is gathered, as for every pixel by itself
    taps      elements of windows inside of the image, 0 likewise
    outputs   elements written
    inputs    elements read
    rows      pixels of the output, or rows of its last axis
    channels  elements of the output's last axis
    runs      of a concatenation: neighbours of an input that are neighbours in the output
    call      1
    estimate  the kernel's own
    """
    op, out = view.op, view.outputs[0]
    window = prod(op.kernel) if isinstance(op, Pool2D) else 0
    channels = out.shape[-1] if out.shape else 1
    strips, pixels = _inside(view)
    known = {
        "products": float(window * out.elements or Graph(tensors=dict(view.tensors)).macs(view.layer)),
        "strips": float(strips),
        "taps": float(pixels * (op.in_channels if op.op == "conv2d" else channels)),
        "outputs": float(out.elements),
        "inputs": float(sum(tensor.elements for tensor in view.inputs)),
        "rows": float(out.elements // channels),
        "channels": float(channels),
        "call": 1.0,
    }
    if op.op == "concatenation":
        known["runs"] = float(sum(prod(axis.extent for axis in copy.axes[:-1]) for copy in parts(view)))
    return known if estimate is None else {**known, "estimate": estimate}


def _inside(view: LayerView) -> tuple[int, int]:
    """Rows and pixels that the windows of one channel have inside of the images; none if each pixel is read in turn."""
    op, x, out = view.op, view.inputs[0].shape, view.outputs[0].shape
    if not isinstance(op, Window) or (op.kernel == op.stride == (1, 1) and not any(op.padding)):
        return 0, 0
    rows, columns = (sum(taps_inside(view, axis)) for axis in (0, 1))
    return x[0] * rows * out[2], x[0] * rows * columns


def _tensor(tensor: Tensor) -> str:
    order = "" if tensor.layout == "NHWC" else tensor.layout
    return f"{tensor.dtype}[{_compact(tensor.shape)}]{order}"


def _compact(value: Any) -> str:
    return "x".join(str(item) for item in value) if isinstance(value, list | tuple) else str(value).replace(" ", "")
