"""Names of kernels in rules, before any stage runs."""

import pytest

from stages.backends.targets.load import load_target
from stages.base import StageError
from stages.tensorize import TensorizeRule
from stages.tensorize.rules import check_names


def check(name: str, target: str) -> None:
    check_names([TensorizeRule(kernel="generic.add"), TensorizeRule(kernel=name)], load_target(target))


@pytest.mark.parametrize(
    ("name", "target", "says"),
    [
        ("rvp.gem_s8", "rv64-rvp", "unknown kernel rvp.gem_s8 in a tensorize rule; did you mean 'rvp.gemm_s8'?"),
        ("mve.gem_s8", "rv64-rvp", "did you mean 'mve.gemm_s8'?"),
        ("ne16.conv2d", "rv64-rvp", "did you mean 'ne16'?"),
        ("generic.zzzzzzzzzzz", "host", "in a tensorize rule\nKnown: generic.add"),
    ],
)
def test_one_that_nothing_has_is_refused(name: str, target: str, says: str) -> None:
    with pytest.raises(StageError) as caught:
        check(name, target)
    assert says in str(caught.value) and caught.value.at == ("stages", "tensorize", "rules", 1, "kernel")


def test_one_of_another_target_may_match_no_layer() -> None:
    for name in ("mve.gemm_s8", "ne16", "outer16", "rvp.gemm_s8"):
        check(name, "rv64-rvp")


def test_another_target_s_plug_in_is_left_to_a_run() -> None:
    check("mine.conv", "host")
