"""The wheel, installed into an environment of its own: a project apart from the clone runs as with the clone.

The environment sees the packages that are installed here, so that nothing is downloaded. The whole of it is

    python3 -m venv there && there/bin/pip install path/to/firmline && there/bin/firmline init my_project
"""

import email
import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pipeline.api import run_recipe
from pipeline.project import Project
from stages.support.system.installation import INSTALLATION as ROOT

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
# One convolution, on a core whose simulator needs a plug-in that is compiled first.
RECIPE = """\
schema: 1
extends: cortex_m_base
name: small
target: my-board
model: {op: conv2d, shape: [6, 6, 8], out_channels: 8, kernel: [3, 3]}
"""
BOARD = """\
schema: 1
boards:
  my-board:
    core: cortex-m4
    title: mine
    memory: {rom: {origin: "0x08000000", length: 1M}, ram: {origin: "0x20000000", length: 192K}, stack: 4K}
"""

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None, reason="needs hatchling, see pyproject.toml"
)


def done(*command: str | Path, cwd: Path, environment: dict[str, str] | None = None) -> str:
    """What a command prints; it must succeed."""
    ended = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from what is in the repository's folder now."""
    folder = tmp_path_factory.mktemp("wheel")
    done(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel in it, and the packages of this one, but not this clone, within reach."""
    folder = tmp_path_factory.mktemp("environment")
    done(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    uv = Path(sys.executable).with_name("uv")
    options = ("--no-deps", "--no-index", "--compile-bytecode")  # as pip
    done(uv, "pip", "install", "--python", folder / "bin/python", *options, wheel, cwd=folder)
    packages(folder).joinpath("present.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def packages(environment: Path) -> Path:
    (found,) = environment.glob("lib/python*/site-packages")
    return found


def outside(cache: Path) -> dict[str, str]:
    """The variables of a user who has nothing of this clone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FIRMLINE"))}
    return {**kept, "XDG_CACHE_HOME": str(cache)}


def content(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


def test_the_wheel_has_what_the_repository_has(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0] for name in names} == {"firmline", f"firmline-{VERSION}.dist-info"}
    tracked = done("git", "ls-files", "pipeline", "stages", "recipes", "pipeline.yaml", cwd=ROOT).split("\n")
    present = [name for name in tracked if name and (ROOT / name).is_file()]
    own = {name.removeprefix("pipeline/wheel/") for name in present if name.startswith("pipeline/wheel/f")}
    wanted = own | {f"firmline/installed/{name}" for name in present if not name.startswith("pipeline/wheel/")}
    pages = {f"firmline/installed/{page.relative_to(ROOT)}" for page in (ROOT / "docs").rglob("*.md")}
    assert own and wanted | pages <= names
    assert not any("__pycache__" in name or name.endswith((".pyc", ".so", ".elf")) for name in names)


def test_its_description_renders_alone(wheel: Path) -> None:
    """A registry shows the text apart from the repository: no link to a file, and each extra is described."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = email.message_from_bytes(archive.read(f"firmline-{VERSION}.dist-info/METADATA"))
    text = metadata.get_payload()
    assert metadata["Author"] == "Firmline developers" and metadata["Description-Content-Type"] == "text/markdown"
    assert "](" not in text
    assert sorted(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == sorted(metadata.get_all("Provides-Extra") or [])


def test_it_installs_one_package(environment: Path, tmp_path: Path) -> None:
    found = {path.name for path in packages(environment).iterdir()}
    assert found == {"firmline", f"firmline-{VERSION}.dist-info", "present.pth"}
    script = "import importlib.util as u; print([u.find_spec(name) for name in ('pipeline', 'stages')])"
    python = environment / "bin/python"
    assert done(python, "-c", script, cwd=tmp_path, environment=outside(tmp_path)) == "[None, None]\n"
    script = "from firmline.api import run_recipe; import pipeline; print(run_recipe.__module__, pipeline.__file__)"
    shown = done(python, "-c", script, cwd=tmp_path, environment=outside(tmp_path)).split()
    assert shown == ["pipeline.api", str(packages(environment) / "firmline/installed/pipeline/__init__.py")]
    version = done(environment / "bin/firmline", "--version", cwd=tmp_path, environment=outside(tmp_path))
    assert version.startswith(f"firmline {VERSION}, doit ")
    text = done(environment / "bin/firmline", "help", cwd=tmp_path, environment=outside(tmp_path))
    (page,) = re.findall(r"pages begin at (\S+)\.$", text, re.MULTILINE)
    assert Path(page).is_file() and Path(page).is_relative_to(packages(environment))


def test_a_project_runs_as_with_the_clone(environment: Path, tmp_path: Path) -> None:
    cache, project = tmp_path / "cache", tmp_path / "my_project"
    variables = outside(cache)
    before = content(packages(environment))
    plain = (environment / "bin/python", "-m", "doit")
    done(*plain, "init", project.name, "target=cortex-m4", cwd=tmp_path, environment=variables)
    (project / "pipeline.yaml").write_text(BOARD)
    (project / "recipes/small.yaml").write_text(RECIPE)
    # Plain doit, which reads dodo.py.
    done(*plain, "run", "recipes/small.yaml", "-n", "2", cwd=project, environment=variables)
    assert "small on my-board" in done(
        environment / "bin/firmline", "explain", "small", "--check", cwd=project / "recipes", environment=variables
    )
    done(*plain, "explain", "--check", "small", cwd=project, environment=variables)
    assert content(packages(environment)) == before
    assert list(cache.glob("firmline/qemu/*/libcounter.so"))
    assert list(cache.glob("firmline/bytecode/stages/**/*.pyc"))

    own = report(project / "build/small/my-board")
    clone = run_recipe("small", root=Project(project), store=tmp_path / "store", build=tmp_path / "build")
    other = report(clone.folder)
    assert own["instructions"]["total"] > 0
    assert own["verify"]["outputs_checked"] > 0
    # How long it took differs, and nothing else: the keys neither.
    assert without_times(own) == without_times(other)


def report(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return found


def without_times(report: dict[str, Any]) -> dict[str, Any]:
    stages = [(stage["kind"], stage["key"]) for stage in report["stages"]]
    return {**report, "stages": stages}
