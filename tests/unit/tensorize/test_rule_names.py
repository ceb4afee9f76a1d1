"""Names of kernels in rules, before any stage runs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stages.base import StageError
from stages.targets.load import load_target
from stages.tensorize import TensorizeRule
from stages.tensorize.rules import check_names


def check(name: str, target: str, modules: Mapping[str, str]) -> None:
    check_names(
        [TensorizeRule(kernel="generic.add"), TensorizeRule(kernel=name)],
        load_target(target).model_copy(update={"modules": modules}),
    )


@pytest.mark.parametrize(
    ("name", "target", "says"),
    [
        ("rvp.gem_s8", "rv64-rvp", "which target rv64-rvp does not have; did you mean 'rvp.gemm_s8'?"),
        ("rpv.gemm_s8", "rv64-rvp", "did you mean 'rvp.gemm_s8'?"),
        ("ne16.conv2d", "rv32-ne16", "did you mean 'ne16'?"),
        ("zzz", "host", "names kernel zzz, which target host does not have"),
    ],
)
def test_one_that_nothing_has_is_refused(name: str, target: str, says: str) -> None:
    with pytest.raises(StageError) as caught:
        check(name, target, {})
    assert says in str(caught.value) and caught.value.at == ("stages", "tensorize", "rules", 1, "kernel")


def test_one_of_another_target_may_match_no_layer() -> None:
    for name in ("mve.gemm_s8", "ne16", "outer16", "rvp.gemm_s8"):
        check(name, "rv64-rvp", {})


def test_a_plug_in_s_folder_may_be_another_target_s() -> None:
    modules = {"kernels/mine": "plugins.mine"}
    check("mine.conv", "host", modules)
    with pytest.raises(StageError, match="does not have"):
        check("generic.conv", "host", modules)
