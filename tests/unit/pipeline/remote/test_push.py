"""`doit store push`: a store that was there before the remote one."""

import json
import os

import pytest

from pipeline.commands import show_store
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.show_store import ShowStore
from tests.unit.pipeline.conftest import Capture, FakeProject
from tests.unit.pipeline.fake_stages import FakeEmit
from tests.unit.pipeline.remote.conftest import ALL, Server, all_of, how
from tests.unit.pipeline.remote.test_limits import serving


def push(*words: str, **options: str | bool) -> int:
    options = {
        "json": False,
        "dry-run": False,
        "days": "",
        **{name.replace("_", "-"): value for name, value in options.items()},
    }
    return ShowStore().execute(options, list(words or ("push",)))


@pytest.fixture
def old(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> FakeProject:
    """A project whose store knows of no remote one yet."""
    project.serve(monkeypatch, show_store)
    with monkeypatch.context() as without:
        without.setenv("FIRMLINE_REMOTE", "off")
        project.run()
    project.ran()
    return project


def test_what_was_made_before_is_sent_once(
    old: FakeProject, other: FakeProject, server: Server, capsys: Capture
) -> None:
    capsys.readouterr()
    assert push(dry_run=True) == PENDING
    lines = capsys.readouterr().out.splitlines()
    assert (
        len(lines) == 5
        and lines[0].startswith("to be sent: ")
        and lines[-1].startswith(f"{server.url}: 4 to be sent (")
    )
    assert server.names() == []
    assert push() == 0
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line.split()[2] for line in lines[:-1]) == sorted(ALL)
    assert lines[-1].startswith(f"{server.url}: 4 sent (")
    server.check()
    assert push() == 0
    assert capsys.readouterr().out.startswith(f"{server.url}: 4 already there (")
    assert push(dry_run=True) == 0
    assert how(other) == all_of("remote") and other.ran() == []


def test_programs_read_what_became_of_each(
    old: FakeProject, server: Server, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is damaged stays, and what a board did; the rest goes, of them those that were used lately."""
    monkeypatch.setattr(FakeEmit, "shared", lambda self, config: False)
    monkeypatch.setattr(FakeEmit, "parameters", lambda self, config: {"moment": "now"})
    monkeypatch.setenv("FIRMLINE_REMOTE", "off")
    old.edit("recipes/demo.yaml", "unroll: 4", "unroll: 5")
    old.run()
    monkeypatch.setenv("FIRMLINE_REMOTE", server.url)
    damaged = next(path for path in old.store.rglob("files/module.json"))
    damaged.chmod(0o644)
    damaged.write_text("something else")
    capsys.readouterr()
    assert push(json=True) == PENDING
    records = json.loads(capsys.readouterr().out)
    outcomes = sorted((record["stage"], record["outcome"]) for record in records)
    stages = ("compile", "emit", "report")
    assert outcomes == sorted([("import", "damaged"), *((kind, word) for kind in stages for word in ("own", "sent"))])
    assert len(list((server.data / "ac").iterdir())) == 3
    # Stores of before say nothing of boards; what was made of a moment tells it.
    for path in old.store.glob("artifacts/*/*/manifest.json"):
        path.write_text(path.read_text().replace('"shared": false', '"recipe": "demo"'))
    assert push(json=True) == PENDING
    again = json.loads(capsys.readouterr().out)
    assert sorted((record["stage"], record["outcome"]) for record in again) == [
        (stage, "there" if word == "sent" else word) for stage, word in outcomes
    ]
    for folder in old.store.glob("artifacts/*/*"):
        os.utime(folder, (0, 0))
    assert push(json=True, days="2") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_server_that_has_whatever_it_is_asked_for_is_none(
    old: FakeProject, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page to log in on, say."""

    head = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
    with serving(lambda request: iter([head if request.startswith((b"HEAD", b"PUT")) else head + b"<html>"])) as page:
        monkeypatch.setenv("FIRMLINE_REMOTE", page.url)
        capsys.readouterr()
        for dry_run in (True, False):
            assert push(dry_run=dry_run) == 1
            assert (
                capsys.readouterr().err
                == f"ERROR: {page.url} claims to have an object with a random name: it is not a store\n"
            )
        assert push("remote") == PENDING
        assert "claims to have an object with a random name" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "options", "environment", "message"),
    [
        (("push",), {"days": "soon"}, {}, "days=soon: expected a number of days"),
        (("list",), {"dry_run": True}, {}, "--dry-run is an option of `doit store push`, not of `doit store list`"),
        (("push", "demo"), {}, {}, "doit store push does not take 'demo'"),
        (("push",), {}, {}, "no remote store is set\ndocs/explanation/store.md shows how"),
        (("push",), {}, {"": "http://127.0.0.1:9"}, "ERROR: http://127.0.0.1:9 cannot be read: "),
        (("push",), {}, {"": "http://127.0.0.1:9", "_READ_ONLY": "1"},
         "http://127.0.0.1:9 is read-only here\nFIRMLINE_REMOTE_READ_ONLY=0"),
    ],
)  # fmt: skip
def test_mistakes(
    words: tuple[str, ...],
    options: dict[str, str | bool],
    environment: dict[str, str],
    message: str,
    old: FakeProject,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(f"FIRMLINE_REMOTE{name}", value)
    assert push(*words, **options) == 1
    assert message in capsys.readouterr().err
