"""Command lines drawn from a table of verbs, options and values: each that means nothing is refused in a few lines."""

import itertools
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pipeline.commands.command import MOST_JOBS
from pipeline.commands.exit_codes import FAILED, PENDING
from stages.ir.models import zoo
from stages.support.system.installation import INSTALLATION as ROOT
from tests.support.command_lines import run_all

VERBS = (
    *("run", "list", "explain", "gc", "matrix-json", "schema", "bench", "search"),
    *("targets", "boards", "kernels", "operators", "store", "doctor", "completion"),
)
# None of these names a recipe, an option or a number.
HOSTILE = (
    *("", " ", "-", "/", "../x", "*zzz", "zzz", "~nouser/x", "no.yaml", "kws_rvp:nope", "kws_rvp:", ":emit"),
    *("kws_rvp:emit:emit", "tiny_matrix:zzz", "a\nb", "\x1b[31mred", "[red]x[/]", "\udcff", "\u202eevil", "\u200b"),
    *("<script>", "x" * 100_000, "5" * 6000, "run", "--nope", "-Z", "--=x"),
)
OPTIONS = (
    *("--db-file=x", "--backend=json", "-d/tmp", "-f/dev/null", "--file=x", "--pdb", "-r=nope", "--reporter=nope"),
    *("-Pthread", "--verbosity=9", "-v-1", "-vx", "--single", "-s", "-k", "--failure-verbosity=2", "-p", "--deps"),
    *("--template={x}", "--sort=nope", "--sort", "--check=1", "--process", "-n", "-n=", "-nabc", "-n1.5", "-n-1"),
    *("-n65", "-n99999999999", "-n" + "9" * 6000, "-o", "-o/nonexistent/x", "-o/", "--output-file="),
    *("--days=-1", "--days=nan", "--days=1e400", "--days=", "--size=10X", "--size=-1", "--size=1e400", "--size=inf"),
    *("--only=nothing", "--only=", "--targets=nope", "--models=/nonexistent", "--recipe=zzz"),
)
ARGUMENTS = (
    *("recipe=", "recipe=,", "target=", "model= ", "set=", "=", "=x", "foo=1", "recip=kws_rvp", "recipe=zzz"),
    *("recipe=kws_rvp target=zzz", "recipe=kws_rvp target=host,zzz", "recipe=kws_rvp model=a.tflite,b.tflite"),
    *("recipe=kws_rvp target=host target=rv64-rvp", "recipe=kws_rvp recipe=ad_rvp", "recipe=kws_rvp set=x"),
    *("recipe=kws_rvp set=a=1", "recipe=kws_rvp set=stages.emit.zzz=1", "recipe=rvp_base", "recipes=zzz"),
    *("recipe=kws_rvp model=https://x/y", "recipe=kws_rvp set=stages.simulate.inputs.seed=" + "9" * 6000),
)
LINES = (
    *("runn kws_rvp", "runs", "lsit", "zzz", "kws_rvp:nope", "forget", "clean", "dumpdb", "strace", "ignore", "auto"),
    *("reset-dep", "tabcompletion", "info kws_rvp", "help zzz", "help run list", "help forget", "help kws_rvp"),
    *("--version x", "--check explain", "-v 2 run kws_rvp", "gc", "gc --days 1 --size zz"),
    *("explain", "explain kws_rvp zzz", "explain kws_rvp:nope", "run kws_rvp dry_run=2", "list target=hots"),
    *(
        "run kws_rvp dry_run=1 executor=nope",
        "explain kws_rvp dry_run=1",
        "list kws_rvp target=zzz",
        "kws_rvp dry_run=2",
    ),
    *("bench --check --update", "bench -n 0", "bench --json /nonexistent/x --only nothing", "run -c x"),
    "matrix-json zzz",
    *("run kws_rvp recipe=ad_rvp",),
)


def lines() -> Iterator[tuple[str, ...]]:
    yield from itertools.product(VERBS, (*HOSTILE, *OPTIONS))
    yield from itertools.product(("run", "list", "explain"), ("kws_rvp",), OPTIONS)
    for verb, arguments in itertools.product(VERBS, ARGUMENTS):
        yield verb, *arguments.split(" ")
    yield from (tuple(line.split()) for line in LINES)
    yield from ((word,) for word in HOSTILE if word != "run")


def test_what_means_nothing_is_refused(tmp_path: Path, every: int) -> None:
    drawn = list(lines())
    assert len(drawn) > 600
    wrong = [ended.refused() for ended in run_all(random.Random(0).sample(drawn, len(drawn) // every), tmp_path)]
    assert "\n".join(filter(None, wrong)) == ""


def test_what_is_right_is_not_refused(tmp_path: Path) -> None:
    lines = (
        *("", "--version", "help", "-h", "help run", "run --help", "list -q", "list kws* --sort=name"),
        *("list --all tiny_matrix", "list recipe=kws_rvp target=host", "explain kws_rvp --check target=host"),
        *("explain kws* tiny_matrix:kws-host", "gc --days 99999999999999999999", "gc --days 1.5 --size 0"),
        *("gc --size 99999999G", "matrix-json recipe=kws_rvp"),
    )
    for ended in run_all([line.split() for line in lines], tmp_path):
        assert (ended.code, ended.stderr) == (PENDING if "--check" in ended.words else 0, ""), ended.words
        assert ended.stdout


MESSAGES = (
    ("runn kws_rvp", "ERROR: 'runn' is not a command; did you mean 'run'?\nknown commands: run, list,"),
    ("run kws_rpv", "ERROR: unknown recipe 'kws_rpv'; did you mean 'kws_rvp'?\nknown recipes: "),
    ("run -n 65 kws_rvp", f"ERROR: -n 65: expected a number from 0 to {MOST_JOBS}\n"),
    ("run -o /nonexistent/x kws_rvp", "ERROR: /nonexistent/x cannot be written: No such file or directory\n"),
    ("bench --onyl x", "ERROR: unknown option --onyl; did you mean only=?\noptions: "),
    ("bench --only", "ERROR: only= is empty\n"),
    ("explain --check=1 kws_rvp", "ERROR: --check takes no value\n"),
    (
        "run kws_rvp model=a\nERROR.tflite",
        "ERROR: model=a\\nERROR.tflite: import: file a\\nERROR.tflite does not exist\n",
    ),
    ("bench tagret=rv64-rvp", "ERROR: doit bench takes no 'tagret='; did you mean target=?\nknown arguments: suite"),
    ("run kws_rvp --targets zzz", "ERROR: target=zzz: unknown target 'zzz'\nknown targets: "),
    ("gc kws_rvp", "ERROR: doit gc takes no 'kws_rvp'\n"),
    ("run recipe=kws_rvp recipe=ad_rvp", "ERROR: duplicate recipe=; recipe=kws_rvp,ad_rvp selects all of them"),
    ("run kws_rvp set=a=1 set=b=[2]", "ERROR: duplicate set=; set=a=1,b=[2] assigns all of them\n"),
    ("run kws_rvp run_on=gdb://a:1 run_on=gdb://b:1", "ERROR: duplicate run_on=; a run uses one board\n"),
    ("forget", "ERROR: 'forget' is a doit command that Firmline does not support: the artifact store decides"),
)


def test_messages(tmp_path: Path) -> None:
    """In one process: starting it takes longer than a line."""
    for ended, (line, message) in zip(
        run_all([line.split(" ") for line, _ in MESSAGES], tmp_path), MESSAGES, strict=True
    ):
        assert ended.stderr.startswith(message), line


def test_a_mistake_has_one_code_and_work_to_do_another(tmp_path: Path, every: int) -> None:
    """A step of CI that takes PENDING for work must not take a typo for it; nor what only a run would find."""
    np.save(tmp_path / "wrong.npy", np.zeros((3, 64), np.int8))
    (tmp_path / "cut.tflite").write_bytes(zoo.build("resnet_8")[:2000])
    (tmp_path / "page.onnx").write_bytes(b"<html>not found</html>")
    mistakes = (
        *("kws_rpv", "kws_rvp target=cortexm4", "kws_rvp foo=bar", "kws_rvp model=no.tflite", "no.yaml", "zzz*"),
        *("kws_rvp set=stages.emit.zzz=1", f"digits_rvp set=stages.simulate.inputs.files=[{tmp_path}/wrong.npy]"),
        'kws_rvp set=stages.tensorize.rules=[{"kernel":"rvp.gem_s8"}]',
        *("kws_rvp --nope", f"kws_rvp model={tmp_path}/cut.tflite", f"kws_rvp model={tmp_path}/page.onnx"),
    )
    asked = ("run {}", "run {} dry_run=1", "explain {}", "explain {} --check")
    lines = [form.format(mistake).split() for mistake in mistakes for form in asked]
    if every > 1:  # each mistake once, in each form three
        lines = lines[:: len(asked) + 1]
    codes = {" ".join(ended.words): ended.code for ended in run_all(lines, tmp_path)}
    assert {line: code for line, code in codes.items() if code != FAILED} == {}
    pending = ("run kws_rvp dry_run=1", "explain kws_rvp --check", "explain digits_rvp --check --json")
    ended = run_all([line.split() for line in pending], tmp_path)
    assert [(result.code, result.stderr) for result in ended] == [(PENDING, "")] * len(pending)


def test_quiet_prints_errors_alone(tmp_path: Path) -> None:
    right, wrong = run_all([["run", "-q", "digits_rvp:layout"], ["run", "--quiet", "digits_rvp", "target=x"]], tmp_path)
    assert (right.code, right.stdout, right.stderr) == (0, "", "")
    assert (wrong.code, wrong.stdout) == (FAILED, "") and wrong.stderr.startswith("ERROR: target=x: unknown target")


def shell(line: str, tmp_path: Path) -> tuple[int, str]:
    """Exit code and messages of `doit` with a shell's redirections; of a pipe, those of its first command."""
    command = line.replace("doit", f"{sys.executable} -m doit", 1)
    environment = {**os.environ, "FIRMLINE_STORE": str(tmp_path / "store")}
    done = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"],
        cwd=ROOT,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("doit list >&-", 1, "ERROR: standard output is closed; `> /dev/null` discards it\n"),
        ("doit list > /dev/full", 1, "ERROR: standard output cannot be written: No space left on device\n"),
        ("doit list --all | true", 141, ""),
        ("doit list 2>/dev/full", 0, ""),
        ("doit run zzz >&- 2>&- <&-", 1, ""),
    ],
)
def test_streams_that_are_closed_or_full(line: str, code: int, message: str, tmp_path: Path) -> None:
    assert shell(line, tmp_path) == (code, message)
