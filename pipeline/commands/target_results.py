"""Work of a command for each target of `target=a,b`, with its results as lines or as JSON."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.documents.overrides import each_target
from pipeline.errors import PipelineError
from pipeline.terminal.progress import ProgressDisplay
from stages.base import StageError
from stages.support.messages import escape

Result = dict[str, Any]


def print_results(
    values: Mapping[str, str],
    work: Callable[[dict[str, str], ProgressDisplay], Result],
    summary: Callable[[Result], list[str]],
    *,
    as_json: bool,
    file: str = "",
) -> list[Result]:
    """Call `work` with the values of each target, then print the results. Returns them.

    file  `to=…: REASON`, the start of the error for several targets, if the user named an output path, else ''

    Raises PipelineError, also for a StageError.
    """
    of_targets = each_target(values)
    if file and len(of_targets) > 1:
        raise PipelineError(f"{file}, got {len(of_targets)}")
    display = ProgressDisplay()
    try:
        results = [work(of_target, display) for of_target in of_targets]
    except StageError as error:
        raise PipelineError(error.message, hint=error.hint) from None
    finally:
        display.close()
    if as_json:
        print(json.dumps(results if len(results) > 1 else results[0], indent=1))
    else:
        print("\n".join(escape.line(line) for result in results for line in summary(result)))
    return results
