"""Runs many command lines of this project, each in a process forked from one that has the project imported."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.commands.exit_codes import FAILED
from stages.support.system.installation import INSTALLATION as ROOT
from tests.support.processes import python

# stdin has a JSON list of command lines; stdout gets a JSON list of [exit code, stdout, stderr].
_SERVER = r"""
import json, os, signal, sys, tempfile
from pipeline.commands import dispatch, entry
dispatch.command_classes().to_dict()
from pipeline.plugins.registry import default_registry
default_registry()
results = []
for words in json.load(sys.stdin):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv = ["doit", *words]
            try:
                entry.main()
            except SystemExit as end:
                sys.stdout.flush()
                os._exit(end.code or 0)
            except BaseException:
                import traceback
                traceback.print_exc()
            os._exit(99)
        status = os.waitpid(child, 0)[1]
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "surrogateescape"))
        results.append([os.waitstatus_to_exitcode(status), *texts])
json.dump(results, sys.__stdout__)
"""


@dataclass(frozen=True)
class Ended:
    """How a command line ended."""

    words: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    def refused(self) -> str:
        """'' when it was refused as it should be: exit code 1, one to five lines of error; else what is wrong."""
        lines = self.stderr.splitlines()
        wrong = [
            text
            for text, found in (
                (f"exit code {self.code}", self.code != FAILED),
                ("a traceback", "Traceback" in self.stderr),
                ("unexpected", "unexpected" in self.stderr),
                (f"{len(lines)} lines", not 1 <= len(lines) <= 5),
                ("no ERROR", not self.stderr.startswith("ERROR: ")),
                ("a long line", max(map(len, lines), default=0) > 620),
                ("control characters", not all(line.isprintable() for line in lines)),
                ("output", bool(self.stdout)),
            )
            if found
        ]
        return f"{self.words!r}: {', '.join(wrong)}\n{self.stderr[:2000]}" if wrong else ""


def run_all(lines: Sequence[Sequence[str]], folder: Path, at: Path = ROOT) -> list[Ended]:
    """Run command lines one after another, in the folder `at`; the store is in `folder`."""
    environment = {"FIRMLINE_STORE": str(folder / "store"), "COVERAGE_PROCESS_START": "", "FIRMLINE_TRACEBACK": ""}
    typed = json.dumps([list(words) for words in lines])
    done = python("-P", "-c", _SERVER, cwd=at, env=environment, input=typed)
    return [Ended(tuple(words), *result) for words, result in zip(lines, json.loads(done.stdout), strict=True)]
