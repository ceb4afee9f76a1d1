"""Options of the whole test suite."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.share import left_out

# A store that others share is none of a test's.
for _name in [name for name in os.environ if name.startswith("FIRMLINE_REMOTE")]:
    del os.environ[_name]

_OBJECTS = "TEST_OBJECTS"  # names the folder that the processes of a run share
GOLDEN = Path(__file__).parent / "golden"


# The same examples in every run, so that what fails is the change. `--hypothesis-profile=search` draws new ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("search", derandomize=False)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew; read the diff before you commit"
    )
    parser.addoption(
        "--fuzz", type=int, default=None, metavar="N", help="so many mutants of models, recipes and command lines"
    )
    parser.addoption("--fuzz-seed", type=int, default=1, metavar="S", help="which mutants; 1 where it is not given")
    parser.addoption("--fuzz-only", default="", metavar="KIND:INDEX", help="one mutant again, such as models:421")
    parser.addoption(
        "--conformance-cases",
        type=int,
        default=24,
        help="drawn layers for each module of tests/conformance/operators (24)",
    )
    parser.addoption(
        "--conformance-share",
        type=int,
        default=1,
        metavar="N",
        help="of each class of cases one in N, of drawn networks and files; of grids each value once (1: all)",
    )
    parser.addoption(
        "--conformance-kernels", default="", metavar="NAMES", help="only these, such as rvp.add_s8,mve.add_s8"
    )
    parser.addoption(
        "--ne16-jobs", type=int, default=12, help="drawn jobs for each mode of NE16's simulated device (12)"
    )
    parser.addoption(
        "--pulp-nnx",
        default="",
        metavar="FOLDER",
        help="a checkout of NE16's open driver, to run on the simulated engine",
    )
    parser.addoption("--conformance-seed", type=int, default=0, help="seed of the first of these; the others follow it")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "share: a grid; with --conformance-share each value once (tests/support/share.py)"
    )
    config.addinivalue_line(
        "markers", "compiles_anew: no object comes from another test (tests/support/compiled_once.py)"
    )
    if not hasattr(config, "workerinput"):
        os.environ[_OBJECTS] = tempfile.mkdtemp(prefix="firmline-objects-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(_OBJECTS), ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the rest of grids where a share is asked for; `-m share` is all tests that run a share then."""
    if config.getoption("--conformance-share") > 1:
        out = {id(item) for item in left_out(items)}
        config.hook.pytest_deselected(items=[item for item in items if id(item) in out])
        items[:] = [item for item in items if id(item) not in out]
    for item in items:
        if "every" in getattr(item, "fixturenames", ()):
            item.add_marker("share")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What several tests compile is compiled once in a run."""
    from stages.compile import toolchain
    from stages.system.programs import run_tool
    from tests.support.compiled_once import compiled_once

    anew = item.get_closest_marker("compiles_anew")
    toolchain.run_tool = run_tool if anew else compiled_once(run_tool, Path(os.environ[_OBJECTS]))


@pytest.fixture
def every(request: pytest.FixtureRequest) -> int:
    """One case in so many of each class, one drawn network, file or command line in so many; 1 for all."""
    return int(request.config.getoption("--conformance-share"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The counts of tests/fuzz, with the classes of messages where mutants were asked for."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    found = [
        json.loads(value)
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == "fuzz"
    ]
    if found:
        from tests.fuzz.table import table

        terminalreporter.section("mutants")
        terminalreporter.write_line(table(found, messages=25 if config.getoption("--fuzz") else 0))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the file of that name under tests/golden, or writes the file with --update-golden."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.is_file(), f"{path} is missing; run pytest --update-golden"
        assert text == path.read_text(), (
            f"differs from tests/golden/{name}; if that is meant, run pytest --update-golden"
        )

    return check
