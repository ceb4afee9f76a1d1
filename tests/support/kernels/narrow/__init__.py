"""An engine for tests that keeps activations in 4 bits: it packs and unpacks tensors of NHWC:4."""

from typing import Any

from stages.backends.kernels.folder import KernelFolder
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.targets.spec import Target
from stages.ir.graph import LayerView


class Repack(Kernel):
    """int8 to two elements a byte, or back; values are -8 to 7."""

    name = "narrow.repack"
    ops = frozenset({"move"})
    sources = ()
    layouts = ("NHWC", "NHWC:4")

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        narrow = [bool(tensor.layout.bits) for tensor in (*view.inputs, *view.outputs)]
        return "" if view.op.kind == "layout" and narrow[0] != narrow[1] else "between 8 and 4 bits only"

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        from tests.support.kernels.narrow.repack_tir import packed, unpacked

        return (packed if view.outputs[0].layout.bits else unpacked)(view.outputs[0].elements)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return 4.0 * view.outputs[0].elements


FOLDER = KernelFolder(__file__, kernels=(Repack,))
