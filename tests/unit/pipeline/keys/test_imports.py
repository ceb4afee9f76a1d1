"""Keys contain imported modules; a run that loads another module fails."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.artifacts.digest import DigestCache
from pipeline.errors import PipelineError
from pipeline.keys.imports import Imports
from pipeline.runs.session import Session
from pipeline.runs.workspace import Workspace
from stages.base import Job
from stages.layout.stage import LayoutStage
from stages.support.system.installation import INSTALLATION as ROOT


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An installation with a stage, two packages and loose modules."""
    files = {
        "one/__init__.py": '"""one."""\nfrom stages.one.stage import STAGE\n',
        "one/stage.py": "class One:\n    def run(self):\n        from stages.one.work import work\n",
        "one/work.py": "import stages.loose\nfrom stages.base import Stage\n",
        "two/__init__.py": "from stages.two.inner import VALUE\n",
        "two/inner.py": "VALUE = 1\n",
        "two/other.py": "",
        "base.py": "import stages.two.other\n",
        "loose.py": "if TYPE_CHECKING:\n    from stages.two.other import that\nelse:\n    import stages.last\n",
        "last.py": "",
        "all/__init__.py": "import pkgutil\nfor entry in pkgutil.iter_modules(__path__):\n    load(entry.name)\n",
        "all/that.py": "import stages.last",
    }
    for name, text in files.items():
        path = tmp_path / "stages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def followed(tree: Path, text: str) -> list[str]:
    """Return the modules that a file with this text imports, without `stages/`."""
    (tree / "start.py").write_text(text)
    imports = Imports(tree, DigestCache(tree / "digests.json"), tree / "imports.json")
    modules = [name.removeprefix("stages/") for name in imports.followed([tree / "start.py"])]
    imports.save()
    return modules


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Imports in functions count; imports for type checkers and of declarations do not.
        ("from stages.one import stage", "last.py loose.py one/stage.py one/work.py"),
        # The reference of an operator of the graph is for tests; functions that are called so are not.
        ("class Add:\n    def compute(self):\n        import stages.loose\n    import stages.last", "last.py"),
        ("def compute():\n    import stages.loose", "last.py loose.py"),
        # Importing a module runs its packages. A stage's `__init__.py` counts only if a name is imported from it.
        ("from stages.two.other import x", "two/__init__.py two/inner.py two/other.py"),
        ("from stages.two import VALUE", "two/__init__.py two/inner.py"),
        ("from stages.one.work import work", "last.py loose.py one/work.py"),
        ("from stages.one import STAGE", "last.py loose.py one/__init__.py one/stage.py one/work.py"),
        ("class One:\n    def preflight(self):\n        import stages.last\n", ""),
        ("class One:\n    def run(self):\n        import stages.last\n", "last.py"),
        ("import stages.all", "all/__init__.py all/that.py last.py"),
    ],
)
def test_imported_modules(tree: Path, text: str, expected: str) -> None:
    assert followed(tree, text) == expected.split()


def test_the_cache_is_keyed_by_content(tree: Path) -> None:
    assert followed(tree, "import stages.last") == ["last.py"]
    assert followed(tree, "import stages.last") == ["last.py"]
    (tree / "stages/last.py").write_text("import stages.two.inner")
    assert followed(tree, "import stages.last") == ["last.py", "two/__init__.py", "two/inner.py"]


def test_loading_a_module_outside_of_the_key_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import by a computed name, in a thread that runs the stage."""
    from importlib import import_module
    from sys import modules

    name = "stages.backends.riscv.spike.wheel"
    before = modules.pop(name, None)

    def run(stage: Any, job: Job[Any]) -> None:
        import_module(name)

    monkeypatch.setattr(LayoutStage, "run", run)
    with Workspace(store=tmp_path / "store", build=tmp_path / "build") as workspace:
        session = Session(workspace, workspace.plan("conv2d_rvp", until="layout"))
        try:
            with pytest.raises(
                PipelineError, match=r"layout: loaded stages/backends/riscv/\S+\.py, which is not in its key"
            ):
                for action in session.plan:
                    session.run(action)
            assert not session.is_done(session.plan["layout"])
        finally:
            session.close()
    if before is not None:
        modules[name] = before
    assert (ROOT / "stages/backends/riscv/spike/wheel.py").is_file()
