"""The kernel descriptor: supported layers, packing of constants, and the meaning in TIR.

A kernel has three parts that tests compare:

  workload     a TIR function that computes the layer and *is* its meaning. Lowered to plain C, it runs without a kernel
  intrinsics   for named blocks of the workload: the block's meaning (desc) and the call of the C micro-kernel (impl).
               `Schedule.tensorize` replaces one by the other only if TVM finds them structurally equal
  sources      the C (or assembly) of the micro-kernels

The loop nest, tiling and packing stay in TIR. The C micro-kernel is the body of one tile.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict

from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView
from stages.ir.layers import ROUNDINGS, LayerOp
from stages.ir.layers.flat import flat
from stages.support.lazy import np

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from stages.backends.kernels.folder import KernelFolder


class KernelParams(BaseModel):
    """Tunable parameters of a kernel (block sizes, unrolling).

    They validate the `params` of a recipe rule.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Intrinsic:
    """Replacement of `block` in the workload: its meaning (desc) and the C call (impl)."""

    block: str
    desc: PrimFunc
    impl: PrimFunc


@dataclass(frozen=True)
class Lowering:
    """A layer as TIR.

    Every buffer parameter of `workload` has a role in `roles`, same order: `input:0`, `output:0`, `state:0`,
    `constant:<key>` (a key of `pack_for`), `scratch:<name>`. Buffers allocated inside the function become scratch when
    it is emitted.
    """

    workload: PrimFunc
    roles: tuple[str, ...]
    intrinsics: Sequence[Intrinsic] = ()


# Layers that round so have no others' sums: kernels that do nothing else are for no other layers.
_OF_OTHER_SUMS = frozenset(name for name, rule in ROUNDINGS.items() if rule.special)


class Kernel(ABC):
    """A kernel. Stateless: everything about a layer comes in through its view.

    name      `<isa>.<kernel>`, as in recipes and reports
    ops       the supported values of `Layer.op.op`
    sources   files of the kernel's folder to compile into firmware that uses it (.c, .S); a file of another kernel
              folder is `../neon/windows.c`
    headers   files of the kernel's folder that declare the functions of its intrinsics; the emitted layers include
              them. Their includes are searched in the same folder, in the `include` folders of its record and in
              `stages/backends/kernels/include`. Default: the one named as the first source, `add.h` for `add.c`
    layouts   supported layouts of 4-D tensors. `why_not_layer` restricts them for a layer, and `cost` gives their
              price; tensorize chooses each tensor's layout by both
    band_layouts  further layouts, for streamed layers only: tensorize does not consider them for whole images
    roundings supported values of `Rounding` (stages.ir.layers.rounding); a kernel with only `special` ones supports
              no other layers
    lowers    whether `lower` returns the layer; other kernels emit programs (`stages.lower.offload`)
    calls     its workload is a call of its C, without a meaning in TIR: the layer's `compute` is the only reference
    bits      supported activation bits, if other kernels are for 16 bits
    estimate_error  the factor by which `cost` may exceed the counted instructions: an uncounted kernel may be the best
              if its estimate, divided by this, is below another's count
    row_alignment  bytes at which its input and output may begin where they are a band of a larger image: any row of the
              image that is a multiple of this; 1 for any row
    in_place  element i of the output depends on element i of each input only, and is written after they are read. The
              output may reuse the memory of an input of the same size that nothing reads afterwards. If all
              tensors have one shape, they may have any block layout, the same for all (`seen`)
    """

    name: ClassVar[str]
    ops: ClassVar[frozenset[str]]
    sources: ClassVar[tuple[str, ...]]
    headers: ClassVar[tuple[str, ...]] = ()
    params: ClassVar[type[KernelParams]] = KernelParams
    layouts: ClassVar[tuple[str, ...]] = ("NHWC", "NCHW")
    band_layouts: ClassVar[tuple[str, ...]] = ()
    roundings: ClassVar[frozenset[str]] = frozenset({"double", "single"})
    lowers: ClassVar[bool] = True
    calls: ClassVar[bool] = False
    bits: ClassVar[int] = 8
    row_alignment: ClassVar[int] = 16
    in_place: ClassVar[bool] = False
    estimate_error: ClassVar[float] = 2.0

    def __init_subclass__(cls) -> None:
        """Set the default of `headers`, if neither the class nor a base class has some."""
        super().__init_subclass__()
        if vars(cls).get("sources") and not cls.headers:
            cls.headers = (str(PurePosixPath(cls.sources[0]).with_suffix(".h")),)

    @property
    def folder(self) -> KernelFolder:
        """The kernel's folder: FOLDER of its package or of the nearest base class with one."""
        packages = (sys.modules[sys.modules[cls.__module__].__package__ or ""] for cls in type(self).__mro__[:-1])
        folder: KernelFolder = next(vars(package)["FOLDER"] for package in packages if "FOLDER" in vars(package))
        return folder

    def seen(self, view: LayerView) -> LayerView:
        """Return the layer as the kernel sees it: in memory order where only that matters.

        An `in_place` kernel sees tensors of one shape in equal blocks as tensors without blocks, including the padding
        of the blocks.
        """
        return flat(view) if self.in_place else view

    def is_for(self, op: LayerOp) -> bool:
        """Return whether the kernel computes layers of this kind.

        `why_not` checks the single layer.
        """
        is_own = not self.roundings <= _OF_OTHER_SUMS or getattr(op, "rounding", "") in self.roundings
        return op.op in self.ops and is_own

    def why_not(self, view: LayerView, target: Target) -> str:
        """Return why this kernel cannot compute the layer on the target, '' if it can."""
        view = self.seen(view)
        reason = self.folder.why_not(target) or self.why_not_layouts(view) or self.why_not_rounding(view)
        return reason or self.why_not_layer(view, target)

    def why_not_layouts(self, view: LayerView) -> str:
        """Return why the kernel supports none of the tensors' possible layouts, or ''."""
        layouts = (*self.layouts, *self.band_layouts)
        for tensor in (*view.inputs, *view.outputs):
            if len(tensor.shape) == 4 and (tensor.layout or "NHWC") not in layouts:
                return f"tensor {tensor.name} is {tensor.layout or 'NHWC'}; this kernel is for {', '.join(layouts)}"
        return ""

    def why_not_rounding(self, view: LayerView) -> str:
        """Return why the kernel's rounding differs from the layer's, '' if it does not."""
        rounding = getattr(view.op, "rounding", "")
        return "" if not rounding or rounding in self.roundings else ROUNDINGS[rounding].why_not

    @abstractmethod
    def why_not_layer(self, view: LayerView, target: Target) -> str:
        """Return why the kernel cannot compute the layer: types, bounds; '' if it can.

        The core has the features of the folder, and tensors are in the kernel's `layouts`.
        """

    def pack(self, view: LayerView, params: Any) -> Mapping[str, np.ndarray]:
        """Return the constants as the kernel reads them, by key, for the weights' section."""
        return {}

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, np.ndarray]:
        """Return the constants for one target.

        Tensorize calls this. Override it if packing depends on the target, such as its word size; else override `pack`.
        """
        return self.pack(view, params)

    def sources_for(self, view: LayerView, params: Any, target: Target) -> tuple[str, ...]:
        """Return the files to compile for this layer: `sources`, or a selection and generated ones.

        A generated file's name has all that its text depends on (`KernelFolder.generate`), so networks share it.
        """
        return self.sources

    def headers_for(self, view: LayerView, params: Any, target: Target) -> tuple[str, ...]:
        """Return the headers for this layer, as `sources_for` does."""
        return self.headers

    def candidates(self, view: LayerView, target: Target) -> Sequence[KernelParams]:
        """Return parameters to compare for a layer that the kernel can compute, the defaults first.

        Tensorize takes the cheapest unless a rule sets parameters.
        """
        return (self.params(),)

    def smaller(self, view: LayerView, target: Target) -> Sequence[KernelParams]:
        """Return parameters that need less scratch than the candidates.

        Tensorize compares them where the arena is largest.
        """
        return ()

    def overlays(self, view: LayerView) -> bool:
        """Return whether this layer's output may reuse the memory of an input of the same size.

        Nothing reads that input afterwards. `in_place` kernels always may. Others may if they write each result after
        all reads from its place.
        """
        return self.in_place

    @abstractmethod
    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return the layer as TIR with named blocks. Imports tvm."""

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the estimated instructions of a call. Tensorize counts the cheapest candidates."""
        raise LookupError(f"{self.name} has no cost estimate")


class RowSumKernel(Kernel):
    """A kernel that reduces a whole image by bands of rows, such as a global average.

    The caller keeps the sums, int32 [channels], between the calls. It fills their bytes with `begin`, calls
    `lower_rows` for each band until each row was added once, then `lower_result`.
    """

    lowers = False

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        """Return why it computes no whole layers: the reason is the same for all."""
        return "only for layers that run by rows"

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Raise RuntimeError: a layer takes `lower_rows` and `lower_result`."""
        raise RuntimeError(f"internal error: {self.name} computes layers by rows")

    @abstractmethod
    def why_not_rows(self, view: LayerView, target: Target) -> str:
        """Return why the layer cannot be computed by bands of rows, '' if it can."""

    @abstractmethod
    def begin(self, view: LayerView) -> int:
        """Return the byte that fills the sums before the first band."""

    @abstractmethod
    def lower_rows(self, view: LayerView, rows: int, target: Target) -> Lowering:
        """Add a band [1, rows, width, channels] to the sums; roles input:0, scratch:sums."""

    @abstractmethod
    def lower_result(self, view: LayerView, target: Target) -> Lowering:
        """Return the output from the sums of all rows; roles scratch:sums, constants, output:0."""

    @abstractmethod
    def cost_rows(self, view: LayerView, rows: int, target: Target) -> float:
        """Return the estimated instructions of a band."""

    @abstractmethod
    def cost_result(self, view: LayerView, target: Target) -> float:
        """Return the estimated instructions of `lower_result`."""
