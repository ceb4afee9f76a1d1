"""A store by ssh://, of a machine whose key is known, and of others."""

from pathlib import Path

import pytest

from tests.support.optional import needs
from tests.unit.pipeline.conftest import FakeProject
from tests.unit.pipeline.remote.conftest import Server, all_of, how

pytestmark = needs("paramiko", "remote")


def known(home: Path, place: str, key: object) -> None:
    """Note a machine's key as ssh does."""
    name, _, port = place.partition(":")
    (home / ".ssh").mkdir(exist_ok=True)
    line = f"[{name}]:{port} {key.get_name()} {key.get_base64()}\n"  # type: ignore[attr-defined]
    (home / ".ssh/known_hosts").write_text(line)


def test_only_a_machine_that_is_known_gets_the_password(
    project: FakeProject,
    other: FakeProject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import paramiko

    from tests.support.sftp import PASSWORD, USER, sftp_server

    key, another = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()
    asked: list[str] = []
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setattr("pipeline.remote.ssh._SYSTEM", str(tmp_path / "none"))
    monkeypatch.setenv("FIRMLINE_REMOTE_PASSWORD", PASSWORD)
    with sftp_server(tmp_path / "shared", key, asked) as place:
        url = f"ssh://{place}{tmp_path}/shared/firmline"
        monkeypatch.setenv("FIRMLINE_REMOTE", url.replace("//", f"//{USER}@", 1))
        assert how(project) == all_of("ran")
        stderr = capsys.readouterr().err
        assert stderr.count("\n") == 1 and f"the remote store {url} cannot be used: " in stderr
        assert "is not in ~/.ssh/known_hosts" in stderr and asked == []

        monkeypatch.setattr("pipeline.remote.health._known", {})
        known(home, place, another)
        project.edit("recipes/demo.yaml", "opt: O2", "opt: O3")
        assert how(project)["compile"] == "ran"
        assert "differs from ~/.ssh/known_hosts" in capsys.readouterr().err and asked == []

        monkeypatch.setattr("pipeline.remote.health._known", {})
        known(home, place, key)
        project.edit("recipes/demo.yaml", "unroll: 4", "unroll: 5")
        other.edit("recipes/demo.yaml", "opt: O2", "opt: O3")
        other.edit("recipes/demo.yaml", "unroll: 4", "unroll: 5")
        ran = how(project)
        assert capsys.readouterr().err == "" and asked == [PASSWORD]
        Server("", tmp_path / "shared/firmline").check()
        stages = how(other)
        assert {kind for kind, word in stages.items() if word == "remote"} == {
            kind for kind, word in ran.items() if word == "ran"
        }
        assert capsys.readouterr().err == ""
