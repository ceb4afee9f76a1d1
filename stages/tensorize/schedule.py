"""Tensorize: each block of a workload that has an intrinsic becomes the call of its micro-kernel.

TVM compares the block with the intrinsic's meaning and refuses when they differ. Both come from the kernel, so a
refusal is an error of the kernel and not of the recipe: a RuntimeError with the kernel's and the layer's name.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.backends.kernels.kernel import Intrinsic, Lowering

_serial = itertools.count()


def schedule(lowering: Lowering, kernel: str, layer: str) -> Any:
    """The workload of `lowering` as a PrimFunc in which the blocks of its intrinsics are calls."""
    from tvm import s_tir

    workload, blocks = _number_blocks(lowering.workload, [intrinsic.block for intrinsic in lowering.intrinsics])
    sch = s_tir.Schedule(workload)
    for intrinsic in lowering.intrinsics:
        where = f"internal error: kernel {kernel}, layer {layer}: block {intrinsic.block}"
        if not blocks[intrinsic.block]:
            raise RuntimeError(f"{where} is not in the workload")
        registered = _register(intrinsic, kernel)
        for block in blocks[intrinsic.block]:
            try:
                sch.tensorize(sch.get_sblock(block), registered)
            except Exception as error:
                raise RuntimeError(f"{where} is not what the intrinsic computes\n{error}") from error
    return sch.mod["main"]


def _number_blocks(workload: Any, wanted: Sequence[str]) -> tuple[Any, dict[str, list[str]]]:
    """The workload with unique names for the blocks that intrinsics name, since a loop nest may hold several of a kind.

    Also returns the new names of each old one.
    """
    import tvm_ffi
    from tvm import s_tir

    names: dict[str, list[str]] = {name: [] for name in wanted}

    def rename(block: Any) -> Any:
        if block.name_hint not in names:
            return block
        numbered = names[block.name_hint]
        numbered.append(f"{block.name_hint}__{len(numbered)}" if numbered else block.name_hint)
        return _with_name(block, numbered[-1])

    return tvm_ffi.structural_map(workload, (s_tir.SBlock, rename)), names


def _with_name(block: Any, name: str) -> Any:
    from tvm import s_tir

    if block.name_hint == name:
        return block
    return s_tir.SBlock(
        block.iter_vars,
        block.reads,
        block.writes,
        name,
        block.body,
        block.init,
        block.alloc_buffers,
        block.match_buffers,
        block.annotations,
    )


def _register(intrinsic: Intrinsic, kernel: str) -> str:
    """Registers the intrinsic under a name of its own: TVM's registry is global and has no way to forget an entry."""
    from tvm.s_tir import TensorIntrin

    name = f"firmline.{kernel}.{intrinsic.block}.{next(_serial)}"
    TensorIntrin.register(name, intrinsic.desc, intrinsic.impl)
    return name
