"""Convolution and fully connected layers for cores with a declared dot product.

A plug-in names the declaration of its instructions:

    class Gemm(DotGemm):
        name = "acme.gemm"
        declaration = Path(__file__).with_name("acme-1.0.yaml")

    FOLDER = KernelFolder(__file__, kernels=(Gemm,), needs=("acme",), generate=Gemm.generate)
"""

from pathlib import Path, PurePath
from typing import ClassVar

from pydantic import Field

from stages.backends.kernels.eight_bit import INT8_OFFSET, sums, weight_zero_point
from stages.backends.kernels.kernel import KernelParams
from stages.backends.kernels.matrix import columns_of
from stages.backends.riscv.dot_program import OPERATIONS, STEP, DotVariant
from stages.backends.riscv.instructions.declaration import InstructionSet, load
from stages.backends.targets.spec import Target
from stages.backends.tiles.product_kernel import TileProduct, header
from stages.backends.tiles.product_sizes import Blocks, images, rounding_of
from stages.ir.graph import LayerView
from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import did_you_mean

_TILES = ((4, 4), (3, 4), (2, 4), (4, 2), (1, 4), (2, 2), (1, 2), (4, 1), (2, 1), (1, 1))
_MOST = 1 << 30  # sums below it, rounded, fit 32 bits


class DotParams(KernelParams):
    """A tile has `height` rows and `width` columns. 0: the best known."""

    height: int = Field(default=0, ge=0, le=4)
    width: int = Field(default=0, ge=0, le=4)


class DotGemm(TileProduct):
    """A product with the instructions of a declared instruction set.

    `declaration` is its file `<name>-<version>.yaml`.
    """

    declaration: ClassVar[Path]
    params = DotParams
    sources = ("../generic/windows.c",)
    headers: ClassVar[tuple[str, ...]] = ("../generic/windows.h",)
    gather = "fl_windows"

    @classmethod
    def generate(cls, name: str) -> str | None:
        """Return the text of a generated file, None for another name."""
        path, prefix = PurePath(name), cls.name.partition(".")[0]
        try:
            variant = DotVariant.of_name(path.stem, prefix)
        except ValueError:
            return None
        return header(path.stem) if path.suffix == ".h" else variant.text(prefix, cls._declared())

    @classmethod
    def _declared(cls) -> InstructionSet:
        """Return the instructions.

        Raise StageError for a wrong declaration, or one without a dot product.
        """
        declared = load(cls.declaration)
        for operation in OPERATIONS:
            expressions = declared.operations_on(32).get(operation, ([], ()))[1]
            name = expressions[0].partition("(")[0] if expressions else ""
            if operation == "dot" and not name:
                message = f"{cls.declaration.name}: operations lacks dot(d, a, b), which {cls.name} needs"
                raise StageError(message, at=("target",))
            if name and name not in declared.instructions:
                message = f"{cls.declaration.name}: operation {operation} uses the unknown instruction '{name}'"
                raise StageError(message + did_you_mean(name, declared.instructions), at=("target",))
        return declared

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        self._declared()
        if bad := super().why_not_layer(view, target):
            return bad
        if weight_zero_point(view):
            return "the weights have a zero point; this kernel supports none"
        layer_sums = sums(view, INT8_OFFSET[view.inputs[0].dtype])
        left = 2 ** max(int(layer_sums.shift.max()), 0)
        is_large = int(layer_sums.range.size.max()) * left >= _MOST
        return "sums of 30 bits and more; this kernel is for smaller ones" if is_large else ""

    def candidates(self, view: LayerView, target: Target) -> tuple[DotParams, ...]:
        """The tiles that fit into the layer, the cheapest first."""
        rows, columns = images(view, STEP)[1], columns_of(view)
        tiles = [DotParams(height=h, width=w) for h, w in _TILES if h <= rows and w <= columns]
        return tuple(sorted(tiles, key=lambda params: self.cost(view, params, target))[:4])

    def blocks(self, view: LayerView, params: DotParams, target: Target) -> Blocks:
        rows, columns = images(view, STEP)[1], columns_of(view)
        if not params.height or not params.width:
            params = self.candidates(view, target)[0]
        return Blocks(min(params.height, rows), min(params.width, columns), STEP, narrows=False)

    def program(self, view: LayerView, params: DotParams, target: Target) -> str:
        blocks, is_unsigned = self.blocks(view, params, target), view.outputs[0].dtype == "uint8"
        variant = DotVariant(blocks.height, blocks.width, rounding_of(view), is_unsigned)
        return variant.name(self.name.partition(".")[0])

    def cost(self, view: LayerView, params: DotParams, target: Target) -> float:
        """Return the instructions, estimated from the program's lines."""
        blocks = self.blocks(view, params, target)
        height, width = blocks.height, blocks.width
        return self.estimate(view, blocks, width + height * (1 + width) + (height + 2) / 4, 20 * width)
