"""TFLM's signal operators with state, in portable C."""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic.signal import Signal, remembered
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.signal import frames_of
from stages.backends.kernels.structure import Structure
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

FRAMER = Structure.of_header("fl_framer", __file__, "signal_memory.h")
STACKER = Structure.of_header("fl_stacker", __file__, "signal_memory.h")


class _Memory(Signal):
    sources = ("signal_memory.c",)
    headers: ClassVar[tuple[str, ...]] = ("signal_memory.h",)
    instructions = 4.0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return remembered(view, self.pack(view, params))


class Framer(_Memory):
    """Overlapping frames, their sum, and delays, which are frames of one step."""

    name = "generic.signal_framer"
    ops: ClassVar[frozenset[str]] = frozenset(
        {"signal_framer", "signal_framer_valid", "signal_overlap_add", "signal_delay"}
    )

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, shape = view.op, view.inputs[0].shape
        streams, samples = frames_of(shape), shape[-1]
        if op.op == "signal_framer":
            fields = [streams, samples // op.step, op.size, op.step, op.kept, op.unset]
        elif op.op == "signal_framer_valid":
            fields = [0, op.frames, 0, 0, 0, op.unset]
        elif op.op == "signal_overlap_add":
            fields = [frames_of(shape[:-1]), shape[-2], samples, op.step, samples - op.step, 0]
        else:
            fields = [streams, 1, samples, samples, op.length, 0]
        return {"framer": FRAMER.of(dict(zip(FRAMER.fields, fields, strict=True)))}


class Stacker(_Memory):
    """SignalStacker: join the last rows."""

    name = "generic.signal_stacker"
    ops: ClassVar[frozenset[str]] = frozenset({"signal_stacker", "signal_stacker_valid"})

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        op, shape = view.op, view.inputs[0].shape
        fields = [frames_of(shape), shape[-1], op.rows, op.left, op.step]
        return {"stacker": STACKER.of(dict(zip(STACKER.fields, fields, strict=True)))}


KERNELS: tuple[type[Kernel], ...] = (Framer, Stacker)
