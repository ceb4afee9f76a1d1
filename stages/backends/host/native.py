"""Run programs on the build machine, under Address- and UndefinedBehaviorSanitizer."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from signal import SIGXCPU

from stages.backends.simulators.process import Finished, ProgramLimitReached, run_process
from stages.backends.targets.spec import Target
from stages.support.messages.stage_error import StageError
from stages.support.system.programs import ended_by_signal
from stages.support.tool import Tool

_SUMMARY = re.compile(
    r"^(?:SUMMARY: \w+: (?P<asan>.*)|(?P<where>\S+:\d+:\d+): runtime error: (?P<what>.*))$", re.MULTILINE
)
_FRAME = re.compile(r"^\s*#\d+ 0x\w+ in (?P<function>\w+) (?P<file>\S+):(?P<line>\d+)", re.MULTILINE)


# Nothing counts here: a limit of instructions is one of processor time, at a pace that even sanitizers keep.
_INSTRUCTIONS_PER_SECOND, _SECONDS_AT_LEAST = 20_000_000, 30


def tools(target: Target) -> tuple[Tool, ...]:
    """Return no tools."""
    return ()


def run(
    elf: Path, _: Target, folder: Path, *, timeout: float, most_instructions: int, watch: Callable[[], None]
) -> Finished:
    """Run `elf`. Raises StageError for a sanitizer report or signal, with its source line."""
    seconds = _SECONDS_AT_LEAST + most_instructions // _INSTRUCTIONS_PER_SECOND if most_instructions else 0
    options = "print_stacktrace=1"
    # LeakSanitizer needs ptrace, which containers forbid; the emitted code has no heap to leak.
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": options}
    finished = run_process(
        [str(elf)], folder, timeout=timeout, watch=watch, environment=environment, cpu_seconds=seconds
    )
    summary = _SUMMARY.search(finished.output)
    if summary is not None:
        raise StageError(_sanitizer_message(summary, finished.output))
    if finished.exit_code == -SIGXCPU:
        raise ProgramLimitReached(f"it took {seconds:,} s of processor time: it hangs, or needs more")
    if "Sanitizer failed to allocate" in finished.output:
        raise StageError(
            "AddressSanitizer cannot reserve the addresses that it needs", hint="raise the limit with ulimit -v"
        )
    if finished.exit_code < 0:
        raise ended_by_signal("the program was", finished.exit_code)
    return finished


def _sanitizer_message(summary: re.Match[str], output: str) -> str:
    what = summary["what"] or summary["asan"]
    frame = _FRAME.search(output)
    if frame is None:
        return f"sanitizer: {what}" + (f" at {summary['where']}" if summary["where"] else "")
    return f"sanitizer: {what}\nin {frame['function']}, {frame['file']}:{frame['line']}"
