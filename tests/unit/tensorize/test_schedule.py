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


def test_an_intrinsic_for_a_block_that_is_not_there() -> None:
    workload, desc, impl = mini_functions(8, 12, 6, 4)
    with pytest.raises(RuntimeError, match="block tail is not in the workload"):
        schedule(Lowering(workload, ROLES, [Intrinsic("tail", desc, impl)]), "mini.gemm", "0")


def test_two_blocks_of_one_name_both_become_calls() -> None:
    from tvm.script import tirx as T

    @T.prim_func(s_tir=True)
    def workload(x: T.Buffer((8,), "int32"), y: T.Buffer((8,), "int32")):
        for i in range(4):
            with T.sblock("one"):
                v = T.axis.spatial(4, i)
                y[v] = x[v] + 1
        for i in range(4):
            with T.sblock("one"):
                v = T.axis.spatial(4, i)
                y[v + 4] = x[v + 4] + 1

    @T.prim_func(s_tir=True)
    def desc(x: T.Buffer((1,), "int32", offset_factor=1), y: T.Buffer((1,), "int32", offset_factor=1)):
        with T.sblock("one"):
            T.reads(x[0:1])
            T.writes(y[0:1])
            y[0] = x[0] + 1

    @T.prim_func(s_tir=True)
    def impl(x: T.Buffer((1,), "int32", offset_factor=1), y: T.Buffer((1,), "int32", offset_factor=1)):
        with T.sblock("one"):
            T.reads(x[0:1])
            T.writes(y[0:1])
            T.evaluate(T.call_extern("int32", "plus_one", x.access_ptr("r"), y.access_ptr("w")))

    done = schedule(Lowering(workload, ("input:0", "output:0"), [Intrinsic("one", desc, impl)]), "k", "0")
    assert done.script().count("plus_one") == 2
