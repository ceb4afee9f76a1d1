"""Blocks become calls, all of them; a block that is not what its intrinsic computes is an internal error."""

import pytest

from stages.kernels.kernel import Intrinsic, Lowering
from stages.tensorize.schedule import schedule
from tests.support.kernels.mini import mini_functions

ROLES = ("input:0", "constant:weights", "constant:bias", "output:0")


def test_a_block_becomes_a_call() -> None:
    workload, desc, impl = mini_functions(8, 12, 6, 4)
    done = schedule(Lowering(workload, ROLES, [Intrinsic("tile", desc, impl)]), "mini.gemm", "0")
    assert 'T.call_extern("int32", "mini_gemm"' in done.script()
    assert "acc[0] = " not in done.script()  # the meaning is gone


def test_the_same_intrinsic_can_be_used_for_several_layers() -> None:
    for shape in ((8, 12, 6, 4), (8, 12, 6, 4), (4, 3, 2, 2)):
        workload, desc, impl = mini_functions(*shape)
        assert "mini_gemm" in schedule(Lowering(workload, ROLES, [Intrinsic("tile", desc, impl)]), "k", "0").script()


def test_a_mismatch_names_kernel_layer_and_block() -> None:
    workload = mini_functions(8, 12, 6, 4)[0]
    desc, impl = mini_functions(8, 12, 5, 4)[1:]
    with pytest.raises(RuntimeError, match=r"kernel mini\.gemm, layer 3 \(dense\): block tile is not what"):
        schedule(Lowering(workload, ROLES, [Intrinsic("tile", desc, impl)]), "mini.gemm", "3 (dense)")
