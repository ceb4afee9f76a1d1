"""Finding tools and their versions."""

import sys
from importlib import metadata
from pathlib import Path

import pytest

from pipeline.errors import ToolError
from pipeline.keys import package_groups
from pipeline.keys.tools import Tools
from stages.base import Tool
from stages.support.system.installation import INSTALLATION as ROOT
from tests.unit.pipeline.conftest import FakeProject

FAKECC = Tool("fakecc", command="fakecc", minimum="12", install="apt-get install fakecc")


def tools(project: FakeProject) -> Tools:
    return Tools(project.root / "tools.json")


def test_a_version_is_cached(project: FakeProject) -> None:
    identity = tools(project).identify(FAKECC)
    assert (identity.name, identity.version, identity.path) == ("fakecc", "13.2.0", str(project.root / "bin/fakecc"))
    assert tools(project).identify(FAKECC) == identity
    assert (project.root / "asked.txt").read_text() == "asked\n"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("#!/no/such/interpreter", "fakecc --version failed to start"),
        ("kill -9 $$", "fakecc --version was ended by SIGKILL\nanother process killed it"),
        ("echo /lib/x.so.6: cannot open >&2; exit 127", "fakecc --version failed: /lib/x.so.6: cannot open"),
    ],
)
def test_programs_without_a_version(project: FakeProject, script: str, expected: str) -> None:
    project.write("bin/fakecc", script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
    with pytest.raises(ToolError) as caught:
        tools(project).identify(FAKECC)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("gcc (Debian 12.2.0-14) 12.2.0", "12.2.0"),
        ("riscv64-unknown-elf-gcc (13.2.0-11ubuntu1+12) 13.2.0", "13.2.0"),
        ("arm-none-eabi-gcc (15:12.2.rel1-1) 12.2.1 20221205", "12.2.1"),
        ("QEMU emulator version 7.2.11 (Debian 1:7.2+dfsg-7+deb12u7)", "7.2.11"),
    ],
)
def test_versions_of_real_programs(project: FakeProject, line: str, version: str) -> None:
    program = project.write("bin/other", f"#!/bin/sh\necho '{line}'\n")
    program.chmod(0o755)
    assert tools(project).identify(Tool("other", command="other")).version == version


@pytest.mark.parametrize(("version", "minimum", "enough"), [
    ("12.0", "12", True), ("12", "12.0", True), ("12.10", "12.9", True), ("11.9", "12", False), ("2.0.0rc1", "2", True),
    ("0.0.5.dev20", "0.0.5.dev20", True), ("0.0.5.dev19", "0.0.5.dev20", False), ("0.0.5.dev9", "0.0.5.dev20", False),
    ("0.0.5", "0.0.5.dev20", True), ("0.0.6.dev1", "0.0.5.dev20", True), ("0.0.5.dev20", "0.0.5", False),
])  # fmt: skip
def test_versions_compare_by_number(project: FakeProject, version: str, minimum: str, enough: bool) -> None:
    project.tool(version)
    tool = Tool("fakecc", command="fakecc", minimum=minimum)
    if enough:
        assert tools(project).identify(tool).version == version
    else:
        with pytest.raises(ToolError, match="too old"):
            tools(project).identify(tool)


PICOLIBC = '#define _NEWLIB_VERSION "4.1.0"\n#define __PICOLIBC_VERSION__ "1.8"'
GLIBC = "#define __GLIBC__ 2\n#define __USE_MISC 1\n#define __GLIBC_MINOR__ 36"


@pytest.mark.parametrize(
    ("macros", "version"),
    [(PICOLIBC, "picolibc 1.8"), ('#define _NEWLIB_VERSION "3.3.0"', "newlib 3.3.0"), (GLIBC, "glibc 2.36"), ("", "")],
)
def test_c_libraries_are_identified_by_macros(project: FakeProject, macros: str, version: str) -> None:
    c_library(project, macros)
    assert tools(project).identify(LIBRARY).version == version


LIBRARY = Tool("C library", command="libcc", c_flags=("-mcpu=x",))


def c_library(project: FakeProject, macros: str) -> None:
    """A compiler, unchanged, that finds a header with these macros, as `-E -dD` prints it."""
    header = project.write("include/stdlib.h", macros)
    compiler = project.root / "bin/libcc"
    if not compiler.exists():
        script = f"#!/bin/sh\necho asked >>{project.root}/asked.txt\necho '# 1 \"{header}\"'\ncat {header}\n"
        project.write("bin/libcc", script).chmod(0o755)


def test_package(tmp_path: Path) -> None:
    identity = Tools(tmp_path / "tools.json").identify(Tool("pytest", package="pytest", minimum="1"))
    assert (identity.path, identity.version) == ("", pytest.__version__)
    with pytest.raises(ToolError) as caught:
        Tools(tmp_path / "tools.json").identify(Tool("x", package="no-such-package", install="pip install x"))
    assert (
        str(caught.value) == "Python package no-such-package is not installed; x is needed\ninstall it: pip install x"
    )


def test_a_reinstalled_package_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, cache = tmp_path / "site", tmp_path / "tools.json"
    described = site / "helper_of_tests-1.2.dist-info/METADATA"
    described.parent.mkdir(parents=True)
    monkeypatch.syspath_prepend(site)
    tool, read = Tool("helper", package="helper-of-tests"), list[str]()
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: read.append(name) or version(name))
    for number, times in (("1.2", 1), ("1.2", 1), ("1.3.1", 2)):
        if len(read) < times:
            described.write_text(f"Name: helper-of-tests\nVersion: {number}\n")
        look = Tools(cache)
        assert (look.identify(tool).version, look.changed_file(tool), len(read)) == (number, "", times)
    described.unlink()
    assert look.changed_file(tool) == "Python package helper-of-tests"


@pytest.mark.parametrize(
    ("clone", "command"), [(True, "./bootstrap --with ptq"), (False, "pip install 'firmline[ptq]'")]
)
def test_a_package_of_a_group_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clone: bool, command: str
) -> None:
    monkeypatch.setattr(package_groups, "is_clone", lambda: clone)
    monkeypatch.setattr(sys, "prefix", str(ROOT / ".venv"))
    for install in (None, lambda group: False):
        with pytest.raises(ToolError) as caught:
            Tools(tmp_path / "tools.json", install).identify(Tool("helper", package="no-such-helper", group="ptq"))
        assert str(caught.value) == (
            f"Python package no-such-helper is not installed; helper is needed\ninstall it: {command}"
        )
