"""Options of the whole test suite."""

import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.changed import affected, changed_files
from tests.support.optional import why_skipped
from tests.support.selection import TESTS, is_rare, left_out
from tests.support.tools import install_missing

# A store that others share is none of a test's.
for _name in [name for name in os.environ if name.startswith("FIRMLINE_REMOTE")]:
    del os.environ[_name]

# Hundreds of tests start processes. Without stored bytecode, each compiles what it imports (2 s of processor time).
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

_OBJECTS = "TEST_OBJECTS"  # names the folder that the processes of a run share
_AFFECTED = "TEST_AFFECTED"  # the test files of --changed, one a line
GOLDEN = Path(__file__).parent / "golden"
SHARE = 40  # without --all one case in so many runs


# The same examples in every run, so that what fails is the change; `--hypothesis-profile=search` draws new ones. A slow
# machine is no failure: neither profile has a deadline or a health check, and no test sets its own.
_ANY_SPEED: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("repeatable", derandomize=True, **_ANY_SPEED)
settings.register_profile("search", derandomize=False, **_ANY_SPEED)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew; read the diff before you commit"
    )
    parser.addoption("--all", action="store_true", help="all that is tested, as once a week: several hours")
    parser.addoption("--slow", action="store_true", help="also the slow tests of tests/rare.txt, as .ci/run")
    parser.addoption(
        "--changed", action="store_true", help="only test files that uncommitted changes and those since main affect"
    )
    parser.addoption("--fuzz", type=int, default=None, metavar="N", help="so many mutants of models and recipes")
    parser.addoption("--fuzz-seed", type=int, default=1, metavar="S", help="which mutants; 1 where it is not given")
    parser.addoption("--fuzz-only", default="", metavar="KIND:INDEX", help="one mutant again, such as models:421")
    parser.addoption(
        "--conformance-cases",
        type=int,
        default=24,
        help="drawn layers for each module of tests/conformance/operators (24)",
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
        "markers", "compiles_anew: no object comes from another test (tests/support/compiled_once.py)"
    )
    if not hasattr(config, "workerinput"):
        os.environ[_OBJECTS] = tempfile.mkdtemp(prefix="firmline-objects-")
        install_missing()
        if config.getoption("--changed"):
            os.environ[_AFFECTED] = "\n".join(sorted(affected(changed_files())))


def pytest_report_header(config: pytest.Config) -> list[str]:
    """How many test files --changed runs."""
    if not config.getoption("--changed"):
        return []
    return [f"--changed: {len(os.environ[_AFFECTED].split())} test files are affected by a change since main"]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Ends well where --changed finds nothing to run."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.getoption("--changed"):
        session.exitstatus = pytest.ExitCode.OK


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process per core for all tests; none for files that are named, since starting them takes longer."""
    return 0 if config.args_source == pytest.Config.ArgsSource.ARGS else len(os.sched_getaffinity(0))


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(_OBJECTS), ignore_errors=True)


def _named(config: pytest.Config) -> list[Path]:
    """Files and folders of the command line. --fuzz names the tests that read it."""
    fuzz = [TESTS / "fuzz/test_mutants.py"] if config.getoption("--fuzz") or config.getoption("--fuzz-only") else []
    return [*fuzz, *((config.invocation_params.dir / arg.partition("::")[0]).resolve() for arg in config.args)]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out files of rare tests alone, unless --all is given or the command line names them; and see --changed."""
    if config.getoption("--changed") and collection_path.name.startswith("test_") and collection_path.is_file():
        place = collection_path.relative_to(TESTS.parent).as_posix()
        if place not in os.environ[_AFFECTED].split("\n"):
            return True
    if config.getoption("--all") or not is_rare(collection_path, slow=config.getoption("--slow")):
        return None
    return True if not any(path.is_relative_to(collection_path) for path in _named(config)) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what only --all runs."""
    if not config.getoption("--all"):
        out = left_out(items, _named(config), slow=config.getoption("--slow"))
        config.hook.pytest_deselected(items=[item for item in items if id(item) in out])
        items[:] = [item for item in items if id(item) not in out]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What several tests compile or count is compiled and counted once in a run."""
    from stages.backends.toolchain import compiler as toolchain
    from stages.support.system.programs import run_tool
    from tests.support.compiled_once import compiled_once
    from tests.support.shared_results import keep_apart, share_results

    folder = Path(os.environ[_OBJECTS])
    if item.get_closest_marker("compiles_anew"):
        toolchain.run_tool = run_tool
        keep_apart()
    else:
        toolchain.run_tool = compiled_once(run_tool, folder)
        share_results(folder)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """A file that imports what an optional group of packages has is skipped without it, with the reason."""
    report = yield
    if not report.passed and (reason := why_skipped(str(report.longrepr))):
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: {reason}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test that fails since an optional group of packages is missing is skipped, with the reason."""
    try:
        return (yield)
    except Exception as error:
        if reason := why_skipped("".join(traceback.format_exception(error))):
            pytest.skip(reason)
        raise


@pytest.fixture
def every(request: pytest.FixtureRequest) -> int:
    """One case in so many of each class, one drawn network or file in so many; 1 for all."""
    named = request.config.getoption("--conformance-kernels")
    return 1 if named or request.config.getoption("--all") else SHARE


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The counts of tests/fuzz."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    counts = [
        value
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == "fuzz"
    ]
    if counts:
        terminalreporter.section("mutants")
        terminalreporter.write_line("\n".join(counts))


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
