"""The kernels of a target are found by importing the folders it names, and light."""

import pytest

from stages.backends.kernels.registry import kernels
from stages.base import StageError
from stages.tensorize.packing import unused_extensions
from tests.conformance.targets import load_target


def test_an_unknown_folder_is_an_error_with_the_list() -> None:
    with pytest.raises(StageError, match=r"no kernel folder 'simd'\nKnown: .*generic"):
        kernels(["simd"])


def test_a_core_with_an_extension_that_no_kernel_uses_gets_a_warning() -> None:
    targets = [load_target(name) for name in ("rv32-rvp", "rv32-p021", "rv32-zve32x-zvdot", "cortex-m55")]
    assert [warning for target in targets for warning in unused_extensions(target)] == []
    unused = targets[0].model_copy(update={"extensions": {"rvp": "0.9.11", "acme": "1.0"}})
    assert list(unused_extensions(unused)) == ["extension acme 1.0: no kernel of the core uses it (rvp, generic)"]
    later = targets[2].model_copy(update={"extensions": {"zvdot4a8i": "0.2"}})
    assert len(list(unused_extensions(later))) == 1
