"""`pytest --changed`: which test files a change affects, in a small project of its own."""

from pathlib import Path

import pytest

from tests.support.changed import affected

FILES = {
    "stages/quantize/lower.py": "from stages.quantize import rounding\n",
    "stages/quantize/rounding.py": "",
    "stages/quantize/shift.h": "",
    "stages/emit/stage.py": "if TYPE_CHECKING:\n    from stages.quantize import lower\n",
    "stages/emit/model.c.j2": "",
    "pipeline/store.py": "",
    "pipeline/commands/compare/table.py": "",
    "docs/store.md": "",
    "tests/support/networks.py": "def network():\n    import stages.quantize.lower\n",
    "tests/unit/quantize/test_lower.py": "from stages.quantize.lower import lower\n",
    "tests/unit/quantize/expected.json": "",
    "tests/unit/emit/test_emit.py": "from stages.emit.stage import STAGE\n",
    "tests/unit/pipeline/test_store.py": "from pipeline import store\n",
    "tests/unit/pipeline/commands/test_all.py": "",
    "tests/unit/pipeline/commands/compare/test_table.py": "",
    "tests/unit/pipeline/test_networks.py": "from tests.support.networks import network\n",
    "tests/unit/pipeline/test_page.py": "PAGE = 'store.md'\n",
    "tests/firmware/test_networks.py": "",
    "tests/docs/test_pages.py": "",
    "tests/conftest.py": "",
}
LOWER = {"unit/quantize/test_lower.py", "unit/pipeline/test_networks.py", "firmware/test_networks.py"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("stages/quantize/rounding.py", LOWER),
        ("stages/quantize/shift.h", LOWER),
        ("stages/emit/model.c.j2", {"unit/emit/test_emit.py", "firmware/test_networks.py"}),
        ("pipeline/commands/compare/table.py", {"unit/pipeline/commands/compare/test_table.py"}),
        ("tests/support/networks.py", {"unit/pipeline/test_networks.py"}),
        ("tests/unit/quantize/expected.json", {"unit/quantize/test_lower.py"}),
        ("docs/store.md", {"docs/test_pages.py", "unit/pipeline/test_page.py"}),
        ("tests/conftest.py", {name.removeprefix("tests/") for name in FILES if "/test_" in name}),
        ("LICENSE", set()),
    ],
)
def test_a_change_affects_what_imports_or_names_it(project: Path, changed: str, tests: set[str]) -> None:
    assert affected([changed], project) == {f"tests/{name}" for name in tests}
