"""Replace each block of a workload that has an intrinsic by the call of its micro-kernel.

TVM compares the block with the intrinsic's description and refuses if they differ. Both come from the kernel, so a
refusal is the kernel's error: a RuntimeError with the names of kernel and layer.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from stages.backends.kernels.kernel import Intrinsic, Lowering
from stages.support.lazy import s_tir, tvm_ffi

_serial = itertools.count()


def schedule(lowering: Lowering, kernel: str, layer: str) -> Any:
    """Return the lowering's workload as a PrimFunc whose intrinsic blocks are calls."""
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


def _number_blocks(workload: Any, block_names: Sequence[str]) -> tuple[Any, dict[str, list[str]]]:
    """Return the workload with unique block names, and the new names of each old one.

    A loop nest may contain several blocks of one name.
    """
    names: dict[str, list[str]] = {name: [] for name in block_names}

    def rename(block: Any) -> Any:
        if block.name_hint not in names:
            return block
        numbered = names[block.name_hint]
        numbered.append(f"{block.name_hint}__{len(numbered)}" if numbered else block.name_hint)
        return _with_name(block, numbered[-1])

    return tvm_ffi.structural_map(workload, (s_tir.SBlock, rename)), names


def _with_name(block: Any, name: str) -> Any:
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
    """Register the intrinsic under a unique name. Entries of TVM's registry cannot be removed."""
    from tvm.s_tir import TensorIntrin

    name = f"firmline.{kernel}.{intrinsic.block}.{next(_serial)}"
    TensorIntrin.register(name, intrinsic.desc, intrinsic.impl)
    return name
