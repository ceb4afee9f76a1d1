"""Dockerfile and dev container: without a container engine their steps run in a clean folder of this machine."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Dockerfile").read_text()
STEPS = [line.partition(" ")[::2] for line in TEXT.splitlines() if line and not line.startswith("#")]
DEVCONTAINER = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())


def copy(names: list[str], folder: Path) -> None:
    """A COPY step: tracked files, as a clone has them."""
    files = subprocess.run(["git", "ls-files", *names], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in files.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / name)


def test_steps_name_what_is_there() -> None:
    for step, rest in STEPS:
        if step == "COPY":
            assert all((ROOT / name).exists() for name in rest.split()[:-1]), rest
    runs = [rest for step, rest in STEPS if step == "RUN"]
    assert runs and all(run.startswith(("./bootstrap ", "apt-get update && apt-get install ")) for run in runs)
    assert json.loads(dict(STEPS)["ENTRYPOINT"]) == ["./bootstrap"]
    build = DEVCONTAINER["build"]
    assert (ROOT / ".devcontainer" / build["dockerfile"]).samefile(ROOT / "Dockerfile")
    assert (ROOT / ".devcontainer" / build["context"]).samefile(ROOT)
    assert DEVCONTAINER["postCreateCommand"].startswith("./bootstrap ")


def test_steps_run_in_a_clean_folder(tmp_path: Path) -> None:
    """All but apt-get; then the image's command and the dev container's."""
    folder = tmp_path / "firmline"
    folder.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FIRMLINE", "VIRTUAL", "PYTHON"))}
    kept["PATH"] = kept["PATH"].replace(f"{ROOT}/.venv/bin:", "")
    runs = ["./bootstrap " + " ".join(json.loads(dict(STEPS)["CMD"])), DEVCONTAINER["postCreateCommand"]]
    for step, rest in [*STEPS, *(("RUN", run) for run in runs)]:
        if step == "COPY":
            copy(rest.split()[:-1], folder)
        elif step == "RUN" and not rest.startswith("apt-get"):
            done = subprocess.run(["sh", "-c", rest], cwd=folder, env=kept, capture_output=True, text=True, check=False)
            if "error sending request" in done.stderr or "dns error" in done.stderr:
                pytest.skip("uv needs the package registry")
            assert done.returncode == 0, done.stdout + done.stderr
    assert "kws_rvp" in done.stdout or (folder / ".venv/bin/pytest").exists()
