"""Clones that share a remote store, and every way in which it may fail them."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.artifacts.inventory import inventory
from pipeline.commands import show_store
from pipeline.commands.show_store import ShowStore
from pipeline.errors import RecipeError
from tests.support.optional import needs
from tests.support.servers import free_port, s3, webdav
from tests.unit.pipeline.conftest import Capture, Doit, FakeProject
from tests.unit.pipeline.fake_stages import FakeCompile
from tests.unit.pipeline.remote.conftest import ALL, Server, all_of, clone, found_elsewhere, how


def test_two_clones_share_all_work(project: FakeProject, other: FakeProject, server: Server) -> None:
    assert how(project) == all_of("ran")
    server.check()
    project.ran()
    assert how(other) == all_of("remote") and project.ran() == []
    assert how(other) == all_of("cached")
    for name in ("firmware.elf", "report.md", "src/model.c"):
        places = [machine.root / "build/demo/rv64-rvp" / name for machine in (project, other)]
        assert places[0].read_bytes() == places[1].read_bytes()
    # What one clone changes, the other gets; nothing else is sent.
    before = server.names()
    other.edit("recipes/demo.yaml", "opt: O2", "opt: O3")
    assert how(other) == {"import": "cached", "emit": "cached", "compile": "ran", "report": "ran"}
    assert len([name for name in {*server.names()} - {*before} if name.startswith("ac/")]) == 2
    project.edit("recipes/demo.yaml", "opt: O2", "opt: O3")
    assert how(project) == {"import": "cached", "emit": "cached", "compile": "remote", "report": "remote"}


def test_the_origin_of_work_is_stated(project: FakeProject, other: FakeProject, server: Server, doit: Doit) -> None:
    how(other)
    code, out, err = doit("run", "demo")
    assert (code, err) == (0, "")
    assert out.count("from the remote store\n") == len(ALL) and f"{server.url}: 4 artifacts from it" in out
    report = json.loads((project.root / "build/demo/rv64-rvp/report.json").read_text())
    assert [stage["remote"] for stage in report["stages"]] == [True] * 4
    assert "from the remote store; made 20" in (project.root / "build/demo/rv64-rvp/log.txt").read_text()
    with project.workspace() as workspace:
        assert {stage.remote for stage in inventory(workspace.store)} == {server.url}


def test_modes_and_logs_travel(project: FakeProject, other: FakeProject, server: Server) -> None:
    """An executable of the host stays one, and a stage's log is that of the machine that ran it."""
    with project.workspace() as workspace:
        artifact, _ = workspace.store.make({"stage": "emit"}, _write_program, recipe="demo")
        workspace.share(artifact)
    with other.workspace() as workspace:
        fetched = workspace.find(artifact.key)
        assert fetched is not None and fetched.log == "said\n" and fetched.content == artifact.content
        assert (fetched.files / "a/run").stat().st_mode & 0o777 == 0o555
        assert (fetched.files / "a/empty").read_bytes() == b""


def _write_program(out: Path, log: Callable[[str], None]) -> None:
    (out / "a").mkdir()
    (out / "a/run").write_text("#!/bin/sh\n")
    (out / "a/run").chmod(0o755)
    (out / "a/empty").write_text("")
    log("said")


@pytest.mark.parametrize("harm", ["altered", "longer", "gone", "other entry", "other key", "half entry"])
def test_whatever_is_there_nothing_wrong_is_taken(
    harm: str,
    project: FakeProject,
    other: FakeProject,
    server: Server,
    capsys: Capture,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    how(project)
    blob = server.blob("import", "files/module.json")
    entries = sorted((server.data / "ac").iterdir())
    right = blob.read_bytes()
    if harm == "altered":
        blob.write_bytes(bytes([right[0] ^ 1]) + right[1:])
    elif harm == "longer":
        blob.write_bytes(blob.read_bytes() + b"x" * 100_000)
    elif harm == "gone":
        # Servers forget what was not used for long: no reason to warn.
        blob.unlink()
        server.blob("compile", "manifest.json").unlink()
    else:
        for entry in entries:
            data = entry.read_bytes()
            entry.write_bytes({"other entry": b"<html>", "half entry": data[: len(data) // 2]}.get(harm, data))
        if harm == "other key":
            for entry, data in zip(
                entries, [entry_file.read_bytes() for entry_file in entries[1:] + entries[:1]], strict=True
            ):
                entry.write_bytes(data)
    project.ran()
    done = how(other)
    assert done["import"] == "ran" and set(project.ran()) == {kind for kind, word in done.items() if word == "ran"}
    warning = capsys.readouterr().err
    assert warning.count("warning") == (harm != "gone")
    assert harm != "altered" or f"cas/{blob.name} in the remote store {server.url} does not match" in warning
    server.check()
    assert how(clone(project, tmp_path_factory.mktemp("third"))) == all_of("remote")


def test_a_server_that_is_not_there_costs_one_line(
    project: FakeProject, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    url = f"http://ann:secret@127.0.0.1:{free_port()}"
    monkeypatch.setenv("FIRMLINE_REMOTE", url)
    started = time.monotonic()
    assert how(project) == all_of("ran")
    stderr = capsys.readouterr().err
    shown = url.replace("ann:secret@", "")
    assert stderr == f"warning: the remote store {shown} fails: connection refused; missing artifacts are made here\n"
    # Others of this process do not try either.
    monkeypatch.setenv("FAKE_MOOD", "")
    project.edit("recipes/demo.yaml", "opt: O2", "opt: O3")
    assert how(project)["compile"] == "ran" and capsys.readouterr().err == ""
    assert time.monotonic() - started < 30


def test_pipeline_yaml_names_one(
    project: FakeProject, other: FakeProject, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FIRMLINE_REMOTE")
    for machine, options in ((project, ""), (other, ", read_only: true")):
        with (machine.root / "pipeline.yaml").open("a") as stream:
            stream.write(f"store: {{remote: '{server.url}'{options}}}\n")
    how(project)
    before = server.names()
    other.edit("recipes/demo.yaml", "opt: O2", "opt: O3")
    assert how(other) == {"import": "remote", "emit": "remote", "compile": "ran", "report": "ran"}
    assert server.names() == before
    project.edit("pipeline.yaml", "store: {remote", "store: {remot")
    with pytest.raises(RecipeError, match=r"pipeline\.yaml:\d+:\d+: unknown key 'remot'; did you mean 'remote'"):
        project.run()


@needs("wsgidav", "servers")
def test_webdav_with_credentials(
    project: FakeProject, other: FakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """WsgiDAV makes no folders by itself, and asks who it is."""
    with webdav(tmp_path / "dav", "ann", "s@cret") as url:
        monkeypatch.setenv("FIRMLINE_REMOTE", url)
        monkeypatch.setenv("FIRMLINE_REMOTE_USER", "ann")
        monkeypatch.setenv("FIRMLINE_REMOTE_PASSWORD", "wrong")
        assert how(project) == all_of("ran")
        stderr = capsys.readouterr().err
        assert (
            f"warning: the remote store {url} cannot be read: 401 Unauthorized; the run continues without it" in stderr
        )
        assert stderr.count("warning") == 1 and "FIRMLINE_REMOTE_TOKEN" in stderr and "wrong" not in stderr
        assert not (tmp_path / "dav/ac").exists()
        monkeypatch.setenv("FIRMLINE_REMOTE_PASSWORD", "s@cret")
        project.edit("recipes/demo.yaml", "opt: O2", "opt: O3")
        other.edit("recipes/demo.yaml", "opt: O2", "opt: O3")
        how(project)
        assert how(other) == {"import": "ran", "emit": "ran", "compile": "remote", "report": "remote"}
        assert capsys.readouterr().err == ""
        Server(url, tmp_path / "dav").check()
        # And by the URL alone.
        monkeypatch.delenv("FIRMLINE_REMOTE_USER")
        monkeypatch.delenv("FIRMLINE_REMOTE_PASSWORD")
        monkeypatch.setenv("FIRMLINE_REMOTE", url.replace("//", "//ann:s%40cret@"))
        other.edit("recipes/demo.yaml", "opt: O3", "opt: O1")
        how(other)
        stored = [path.read_bytes() for path in other.store.rglob("*") if path.is_file()]
        assert not any(b"cret" in data for data in stored)


@needs("botocore", "remote")
@needs("moto", "servers")
def test_s3(project: FakeProject, other: FakeProject, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    with s3() as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        import boto3

        client = boto3.client("s3")
        client.create_bucket(Bucket="shared")
        monkeypatch.setenv("FIRMLINE_REMOTE", "s3://shared/firmline")
        assert how(project) == all_of("ran")
        sizes = {entry["Key"]: entry["Size"] for entry in client.list_objects_v2(Bucket="shared")["Contents"]}
        assert len([name for name in sizes if name.startswith("firmline/ac/")]) == 4
        altered = {"Bucket": "shared", "Key": max((name for name in sizes if "/cas/" in name), key=sizes.__getitem__)}
        text = client.get_object(**altered)["Body"].read()
        client.put_object(**altered, Body=b"x" + text[1:])
        done = how(other)
        assert sorted(done.values()).count("ran") == 1
        assert "does not match its SHA-256" in capsys.readouterr().err
        assert client.get_object(**altered)["Body"].read()[1:] == text[1:]
        monkeypatch.setenv("FIRMLINE_REMOTE", "s3://nobody/firmline")
        project.edit("recipes/demo.yaml", "opt: O2", "opt: O3")
        assert how(project)["compile"] == "ran"
        assert "warning: the remote store s3://nobody/firmline fails: " in capsys.readouterr().err


def test_a_folder(
    project: FakeProject, other: FakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("FIRMLINE_REMOTE", f"file://{tmp_path}/shared")
    how(project)
    shared = Server("", tmp_path / "shared")
    shared.check()
    assert not [name for name in shared.names() if name.endswith(".part")]
    blob = shared.blob("emit", "files/src/model.c")
    blob.chmod(0o644)
    blob.write_bytes(b"other")
    assert how(other) == {**all_of("remote"), "emit": "ran"}
    shared.check()
    if os.getuid():
        (tmp_path / "shared/cas").chmod(0o555)
        project.edit("recipes/demo.yaml", "opt: O2", "opt: O3")
        how(project)
        assert "cannot be written" in capsys.readouterr().err


def show(*words: str) -> int:
    return ShowStore().execute({"json": False}, list(words))


def test_store_shows_it(
    project: FakeProject, other: FakeProject, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    project.serve(monkeypatch, show_store)
    how(other)
    project.run()
    assert show() == 0 and f"{server.url} (remote): 4 artifacts," in capsys.readouterr().out
    assert show("remote") == 0 and capsys.readouterr().out == f"{server.url}: can be read and written\n"
    monkeypatch.setenv("FIRMLINE_REMOTE_READ_ONLY", "1")
    before = server.names()
    assert show("remote") == 0 and "read-only here" in capsys.readouterr().out
    assert server.names() == before
    monkeypatch.setenv("FIRMLINE_REMOTE", f"http://127.0.0.1:{free_port()}")
    assert show("remote") == 3 and capsys.readouterr().out.endswith("cannot be read: connection refused\n")
    assert show() == 0 and f"{server.url} (remote, not in use): 4 artifacts," in capsys.readouterr().out
    monkeypatch.setenv("FIRMLINE_REMOTE", "off")
    assert show("remote") == 1 and "no remote store is set" in capsys.readouterr().err


def test_what_is_of_use_to_nobody_is_not_sent(
    project: FakeProject, other: FakeProject, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is what is made of it."""
    monkeypatch.setattr(FakeCompile, "shared", lambda self, config: config.opt != "O2")
    how(project)
    assert how(other) == {"import": "remote", "emit": "remote", "compile": "ran", "report": "ran"}
    assert len(list((server.data / "ac").iterdir())) == 2
    project.edit("recipes/demo.yaml", "opt: O2", "opt: O3")
    how(project)
    assert len(list((server.data / "ac").iterdir())) == 4


def test_a_name_that_leads_elsewhere_is_refused(
    project: FakeProject, other: FakeProject, server: Server, tmp_path: Path, capsys: Capture
) -> None:
    """Whoever may write to a server may send any entry; none reaches beyond the artifact's folder."""
    for name in ("../../../../evil", str(tmp_path / "evil"), "a/../../../../evil", ""):
        assert found_elsewhere(other, server, {name: b"evil"}) is None
    assert [*tmp_path.rglob("evil"), *other.root.rglob("evil")] == []
    assert "warning" in capsys.readouterr().err
