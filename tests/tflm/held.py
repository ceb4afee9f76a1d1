"""Cases through Firmline, to the host with sanitizers, and through LiteRT; `python -m tests.tflm.held` counts them."""

import sys
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from stages.base import StageError
from stages.import_model.build import build_module
from stages.ir.models.tflite_reader import read
from stages.ir.reference.partitions import reference_of
from tests.support.selection import covering
from tests.support.stages_run import run_tflite
from tests.tflm.case import Case, files, load, model

FLOAT_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Result:
    """A case's outputs at each step: Firmline's and LiteRT's."""

    case: Case
    firmline: list[list[np.ndarray]]
    litert: list[list[np.ndarray]]

    @property
    def wrong(self) -> str:
        """What is not as it should be, '' when all is."""
        apart = ""
        for step in range(self.case.steps):
            for number, port in enumerate(self.case.outputs):
                ours, theirs = self.firmline[step][number], self.litert[step][number]
                where = f"{self.case.name}, output {number}, step {step}"
                if not _equal(ours, theirs, 0):
                    return f"{where}: {_shown(ours)} where LiteRT has {_shown(theirs)}"
                if not _equal(theirs, port.at(step), self.case.tolerance):
                    apart = f"{where}: LiteRT has {_shown(theirs)}, expected is {_shown(port.at(step))}"
        if self.case.differs:
            return "" if apart else f"{self.case.name}: LiteRT gives what is expected, it does not: {self.case.differs}"
        return apart


def results(cases: Sequence[Case]) -> list[Result]:
    """Runs them as one model, each as often as the one with most steps."""
    data, steps = model(cases), max(case.steps for case in cases)
    given = [[port.at(step) for case in cases for port in case.data] for step in range(steps)]
    reference = reference_of(data)
    expected = [reference.run(inputs) for inputs in given]
    with TemporaryDirectory() as folder:
        found = [inference.outputs for inference in run_tflite(data, given, Path(folder))]
    made, first = [], 0
    for case in cases:
        part = slice(first, first + len(case.outputs))
        made.append(Result(case, [step[part] for step in found], [step[part] for step in expected]))
        first += len(case.outputs)
    return made


def refusal(case: Case) -> str:
    """The sentence with which Firmline refuses a case, '' when it imports it."""
    data = model([case])
    try:
        build_module(data, read(data, case.name))
    except StageError as error:
        return str(error)
    return ""


def runnable(name: str) -> list[Case]:
    """The cases of a file that are computed."""
    return [case for case in load(name) if not case.impossible and not (case.refused and refusal(case))]


def share(cases: Sequence[Case]) -> list[Case]:
    """As few as have each type, rank and constant of each tensor, each value of each option, and all that differs."""
    kept = covering([set(_values(case)) for case in cases])
    return [case for number, case in enumerate(cases) if number in kept]


def _values(case: Case) -> Iterator[Hashable]:
    ports = [*case.inputs, *case.outputs]
    yield tuple(port and port.type for port in ports)
    yield len({port.shape for port in ports if port is not None}) == 1, case.version, case.steps > 1, case.differs
    for at, port in enumerate(ports):
        yield at, port and (len(port.shape), port.constant)
    yield from ((name, repr(value)) for name, value in case.options.items())


def _equal(found: np.ndarray, wanted: np.ndarray, tolerance: float) -> bool:
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    if found.dtype == np.float32:
        return np.allclose(found, wanted, rtol=FLOAT_TOLERANCE, atol=max(tolerance, 1e-7), equal_nan=True)
    return bool((np.abs(found.astype(np.float64) - wanted) <= tolerance).all())


def _shown(values: np.ndarray) -> str:
    return f"{values.dtype}{list(values.shape)} {values.reshape(-1)[:8].tolist()}"


def main(names: Sequence[str]) -> None:
    """A line for each operator: how many cases, how many equal, and what became of the others."""
    total: Counter[str] = Counter()
    for name in names or files():
        cases, computed = load(name), runnable(name)
        wrong = [result.wrong for result in results(computed) if result.wrong] if computed else []
        count = Counter(
            cases=len(cases),
            equal=len(computed) - len(wrong) - sum(bool(case.differs) for case in computed),
            differs=sum(bool(case.differs) for case in computed),
            impossible=sum(bool(case.impossible) for case in cases),
            wrong=len(wrong),
        )
        count["refused"] = len(cases) - len(computed) - count["impossible"]
        total += count
        print(f"{name:24}", *(f"{count[key]:4} {key}" for key in _KEYS), flush=True)
        print(*(f"    {line}" for line in wrong), sep="\n", end="\n" if wrong else "")
    print(f"{'all':24}", *(f"{total[key]:4} {key}" for key in _KEYS))


_KEYS = ("cases", "equal", "differs", "refused", "impossible", "wrong")

if __name__ == "__main__":
    main(sys.argv[1:])
