"""silicon.json, which reports read, from the rows that ran."""

from types import SimpleNamespace
from typing import Any, cast

from pipeline.commands.bench.silicon import Outcome, accuracies
from stages.backends.timing.accuracy import accuracy_text


def outcome(model: str, error: float | None, *, fit: bool = False, compared: bool = True) -> Outcome:
    row: Any = SimpleNamespace(
        target=SimpleNamespace(timing_model=SimpleNamespace(name=model)),
        measurement=SimpleNamespace(fit=fit),
        published=1000,
        compared=compared,
    )
    result: Any = None if error is None else SimpleNamespace(cycles=(0, 1000 + round(1000 * error), 0))
    return Outcome(cast(Any, row), result)


def test_errors_are_those_of_rows_that_no_fit_used() -> None:
    rows = [
        outcome("m4", 0.9, fit=True),
        outcome("m4", 0.05),
        outcome("m4", -0.15),
        outcome("m4", None),
        outcome("m4", 0.5, compared=False),
    ]
    found = accuracies([*rows, outcome("m7", 0.02, fit=True)])
    assert found["m4"] == {"rows": 3, "held_out": 2, "mean": 0.1, "worst": 0.15}
    assert found["m7"] == {"rows": 1, "held_out": 0, "mean": 0.02, "worst": 0.02}
    assert accuracy_text(found["m4"]) == "on silicon: 3 rows, 2 held out, mean error 10 %, worst 15 %"
