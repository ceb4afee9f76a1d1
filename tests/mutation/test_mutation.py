"""The mutation command: what it changes, what it leaves alone, and that a change no test notices is listed."""

import pytest

from tests.mutation.packages import PACKAGES, Package, changes
from tests.support.emitted import ROOT


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_package_has_files_to_change_and_tests(package: Package) -> None:
    assert all((ROOT / test).exists() for test in package.tests if "/" in test)
    for pattern in package.files:
        assert list(ROOT.glob(pattern)), pattern
    assert sum(len(changes(path, (ROOT / path).read_text())) for path in package.paths()) > 50
