"""Changes the project's code a little, many times, and lists the changes that no test notices.

    python -m tests.mutation --count 60 --seed 1                      some of every package
    python -m tests.mutation --count 30 --packages quantize,layout       of two packages
    python -m tests.mutation --at stages/lower/arena/planner.py:57          all changes of a line

Each change is made in a copy of the project, in which the package's tests run until the first fails. Hours, for all:
no part of CI. The exit code is 1 when a change survives, or pytest runs no test.
"""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.mutation.packages import PACKAGES
from tests.mutation.run import Copy, Mutant, chosen, report, run_mutant


def main() -> int:
    """Runs the command line; returns the exit code."""
    names = [package.name for package in PACKAGES]
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=30, help="how many changes, as many of each package (default 30)")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--packages", default=",".join(names), help="some of " + ",".join(names))
    parser.add_argument("--at", default="", metavar="FILE[:LINE]", help="only changes there")
    parser.add_argument("--unchecked", action="store_true", help="the tests are known to pass on unchanged code")
    given = parser.parse_args()
    wanted = given.packages.split(",")
    unknown = [name for name in wanted if name not in names]
    if unknown:
        parser.error(f"no package {unknown[0]!r}; packages: {', '.join(names)}")
    packages = [package for package in PACKAGES if package.name in wanted]
    mutants = chosen(packages, given.count, given.seed, given.at)
    if not mutants:
        parser.error("nothing to change there")
    done: list[tuple[Mutant, str]] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # as Ctrl-C: nothing stays behind
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = Copy(Path(folder))
        for package in () if given.unchecked else dict.fromkeys(mutant.package for mutant in mutants):
            copy.check(package, sorted({mutant.path for mutant in mutants if mutant.package == package}))
        for mutant in mutants:
            done.append((mutant, run_mutant(copy, mutant)))
            print(f"{done[-1][1]:8}  {mutant}", flush=True)
    print(report(done))
    return 1 if any(verdict in ("survived", "error") for _, verdict in done) else 0


if __name__ == "__main__":
    sys.exit(main())
