"""`./bootstrap` in a copied project, with a PATH of fake programs that write down how they were called."""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What the script itself calls.
REAL = ("bash", "env", "cat", "cp", "cut", "dirname", "rm", "sha256sum")
# The Debian package of each tool, C libraries apart.
PACKAGES = {
    "gcc": "gcc",
    "g++": "g++",
    "dtc": "device-tree-compiler",
    "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf",
    "arm-none-eabi-gcc": "gcc-arm-none-eabi",
    "qemu-system-arm": "qemu-system-arm",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "qemu-aarch64": "qemu-user",
}
LIBRARIES = {
    "riscv64-unknown-elf-gcc": "picolibc-riscv64-unknown-elf",
    "arm-none-eabi-gcc": "libnewlib-arm-none-eabi",
    "aarch64-linux-gnu-gcc": "libc6-dev-arm64-cross",
}
GOING_ON = "bootstrap: going on with what is on PATH"
INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300"

# A cross compiler finds its C library where there is a file `with-library` beside it.
COMPILER = """
if [ -e "$here/with-library" ]; then echo "$here/with-library"; else echo "${1#*=}"; fi
"""

# Makes an environment whose Python is this script too. -P: without it Python would load modules of the current folder.
PYTHON = """
case "$*" in
    *version_info*) [ ! -e "$here/old-python" ] ;;
    '-P -c import ensurepip, venv') [ ! -e "$here/without-venv" ] ;;
    '-P -m venv '*)
        note "python -m venv"
        /bin/mkdir -p "$4/bin" "$4/lib/python3.11/site-packages"
        /bin/cp "$0" "$4/bin/python" ;;
    '-P -c import sysconfig'*) echo "${0%/bin/python}/lib/python3.11/site-packages" ;;
    '-P -m pip install '*)
        group=${!#} group=${group##*/requirements-} group=${group%lock.txt}
        note "pip install${group:+ ${group%-}}"
        if [ -e "$here/broken-pip" ]; then echo 'ERROR: no network' >&2; exit 1; fi ;;
    *) note "python $*" ;;
esac
"""

APT_GET = """
note "DEBIAN_FRONTEND=${DEBIAN_FRONTEND:-} apt-get $*"
if [ "$1" = install ] && [ -e "$here/apt-fails" ]; then
    read -r left <"$here/apt-fails"
    if [ "$left" -gt 0 ]; then
        echo $((left - 1)) >"$here/apt-fails"
        echo 'E: Unable to locate package' >&2
        exit 100
    fi
fi
"""

# As the real one resets the environment.
SUDO = """
note "sudo $*"
if [ -e "$here/sudo-refuses" ]; then echo 'not in the sudoers file' >&2; exit 1; fi
unset DEBIAN_FRONTEND
"$@"
"""

SPIKE_BUILT = "python -m stages.simulators.spike.build"
ENVIRONMENT_MADE = ["python -m venv", "pip install", SPIKE_BUILT]


class Machine:
    """A project below `folder` and the programs of a machine; everything is there at first, and the user is root."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "the project"
        self.bin = folder / "bin"
        self._log = folder / "calls.txt"
        self.project.mkdir(parents=True)
        self.bin.mkdir()
        shutil.copy(ROOT / "bootstrap", self.project)
        (self.project / "requirements-lock.txt").write_text("numpy==2\n")
        for name in REAL:
            found = shutil.which(name)
            assert found is not None
            (self.bin / name).symlink_to(found)
        for name in PACKAGES:
            self.program(name, COMPILER if name in LIBRARIES else "")
        self.program("python3", PYTHON)
        self.program("apt-get", APT_GET)
        self.user(0)
        self.flag("with-library")

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
        """What the fakes look for."""
        (self.bin / name).write_text(text)

    def bootstrap(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.project / "bootstrap"), *words]
        return subprocess.run(
            command, env={"PATH": str(self.bin), **environment}, capture_output=True, text=True, check=False
        )

    def calls(self) -> list[str]:
        """What was called since this was last asked."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return lines


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_makes_the_environment_then_runs_its_arguments_in_it(machine: Machine) -> None:
    machine.program("show", 'echo "$1 $VIRTUAL_ENV ${PATH%%:*}"; exit 3')
    done = machine.bootstrap("show", "a b")
    venv = machine.project / ".venv"
    assert (done.returncode, done.stdout) == (3, f"a b {venv} {venv}/bin\n")
    assert machine.calls() == ENVIRONMENT_MADE


def test_second_call_does_nothing(machine: Machine) -> None:
    assert machine.bootstrap().returncode == 0
    machine.calls()
    done = machine.bootstrap("env")
    assert done.returncode == 0 and f"VIRTUAL_ENV={machine.project}/.venv\n" in done.stdout
    assert (machine.calls(), done.stderr) == ([], "")


def test_changed_lock_file_installs_into_the_same_environment(machine: Machine) -> None:
    machine.bootstrap()
    machine.calls()
    (machine.project / "requirements-lock.txt").write_text("numpy==3\n")
    machine.bootstrap()
    assert machine.calls() == ["pip install", SPIKE_BUILT]
    machine.bootstrap()
    assert machine.calls() == []


def test_two_at_once_install_one_after_the_other(machine: Machine) -> None:
    found = shutil.which("flock")
    assert found is not None
    (machine.bin / "flock").symlink_to(found)
    with (machine.project / "bootstrap").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        command = [str(machine.project / "bootstrap"), "env"]
        waiting = subprocess.Popen(
            command, env={"PATH": str(machine.bin)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == "bootstrap: another bootstrap of this project is at work; waiting for it\n"
        assert machine.calls() == []
    assert waiting.communicate()[0].count("VIRTUAL_ENV=") == 1
    assert machine.calls() == ENVIRONMENT_MADE
    assert machine.bootstrap().stderr.startswith("bootstrap: ready.")
    assert machine.calls() == []


def test_the_command_of_the_environment_is_the_projects(machine: Machine) -> None:
    assert machine.bootstrap().returncode == 0
    command = machine.project / ".venv/bin/doit"
    command.write_text("#!/bin/sh\necho as pip makes it\n")
    command.chmod(0o755)
    (machine.project / "requirements-lock.txt").write_text("numpy==3\n")
    assert machine.bootstrap().returncode == 0
    machine.calls()
    assert machine.bootstrap("doit", "list", "a b").returncode == 0
    assert machine.calls() == ["python -P -m pipeline list a b"]
    assert "--block-signal=INT" in command.read_text()
    assert machine.bootstrap("firmline", "list").returncode == 0
    assert machine.calls() == ["python -P -m pipeline list"]


def test_moved_project_gets_a_new_environment(machine: Machine) -> None:
    machine.bootstrap()
    machine.calls()
    stale = machine.project / ".venv/stale"
    stale.touch()
    machine.project = machine.project.rename(machine.project.with_name("elsewhere"))
    assert machine.bootstrap().returncode == 0
    assert machine.calls() == ENVIRONMENT_MADE
    assert not (machine.project / ".venv/stale").exists()
    importable = (machine.project / ".venv/lib/python3.11/site-packages/firmline.pth").read_text().splitlines()
    assert importable == [str(machine.project), f"{machine.project}/pipeline/wheel"]


def test_environment_whose_python_is_gone_is_made_anew(machine: Machine) -> None:
    """As after an upgrade of the system: `bin/python` is a link into nowhere."""
    machine.bootstrap()
    machine.calls()
    (machine.project / ".venv/bin/python").unlink()
    (machine.project / ".venv/bin/python").symlink_to("/no/such/python")
    assert machine.bootstrap().returncode == 0
    assert machine.calls() == ENVIRONMENT_MADE


def test_an_activated_environment_hides_no_python(machine: Machine) -> None:
    """After `source .venv/bin/activate` and a new lock file."""
    machine.bootstrap()
    machine.calls()
    shutil.copy(machine.project / ".venv/bin/python", machine.project / ".venv/bin/python3")
    (machine.project / "requirements-lock.txt").write_text("numpy==3\n")
    done = machine.bootstrap(PATH=f"{machine.project}/.venv/bin:{machine.bin}")
    assert done.returncode == 0, done.stderr
    assert machine.calls() == ["pip install", SPIKE_BUILT]


@pytest.mark.parametrize("tool", PACKAGES)
def test_a_tool_that_is_missing_is_installed_by_its_package(machine: Machine, tool: str) -> None:
    machine.without(tool)
    machine.bootstrap()
    wanted = [PACKAGES[tool], *([LIBRARIES[tool]] if tool in LIBRARIES else [])]
    assert machine.calls()[0] == f"{INSTALL} {' '.join(wanted)}"


def test_c_libraries_are_packages_of_their_own(machine: Machine) -> None:
    machine.without("with-library")
    machine.bootstrap()
    assert machine.calls()[0] == f"{INSTALL} {' '.join(LIBRARIES.values())}"


def test_python_without_venv_gets_it(machine: Machine) -> None:
    machine.flag("without-venv")
    machine.bootstrap()
    assert machine.calls()[0] == f"{INSTALL} python3-venv"


def test_everything_is_installed_on_a_bare_system(machine: Machine) -> None:
    machine.without(*PACKAGES, "python3")
    done = machine.bootstrap()
    packages = machine.calls()[0].removeprefix(INSTALL).split()
    assert sorted(packages) == sorted([*PACKAGES.values(), *LIBRARIES.values(), "python3", "python3-venv"])
    # This apt-get installs nothing.
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("bootstrap: Python 3.11 or newer is needed")


def test_a_tool_that_went_away_is_installed_again(machine: Machine) -> None:
    machine.bootstrap()
    machine.calls()
    machine.without("qemu-aarch64")
    machine.bootstrap()
    assert machine.calls()[0] == f"{INSTALL} qemu-user"


def test_user_who_is_not_root_goes_through_sudo(machine: Machine) -> None:
    machine.user(1000)
    machine.program("sudo", SUDO)
    machine.without("dtc", "qemu-aarch64")
    assert machine.bootstrap().returncode == 0
    install = f"{INSTALL} device-tree-compiler qemu-user"
    assert machine.calls()[:2] == [f"sudo env {install}", install]


def test_user_who_lacks_nothing_needs_no_sudo(machine: Machine) -> None:
    machine.user(1000)
    done = machine.bootstrap()
    assert (done.returncode, machine.calls()) == (0, ENVIRONMENT_MADE)
    assert "root" not in done.stderr


@pytest.mark.parametrize(
    ("sudo", "said"),
    [
        (False, "not root, and no sudo here; please run as root: apt-get install qemu-user"),
        (True, "sudo did not run apt-get; please run as root: apt-get install qemu-user"),
    ],
)
def test_user_who_may_not_install_is_told_the_command_and_goes_on(machine: Machine, sudo: bool, said: str) -> None:
    machine.user(1000)
    if sudo:
        machine.program("sudo", SUDO)
        machine.flag("sudo-refuses")
    machine.without("qemu-aarch64")
    done = machine.bootstrap("env")
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert [f"bootstrap: {said}", GOING_ON] == lines[lines.index(GOING_ON) - 1 :][:2]
    calls = machine.calls()
    assert calls[-3:] == ENVIRONMENT_MADE
    # Whom sudo refuses is not asked for the password again.
    assert len([call for call in calls if call.startswith("sudo")]) == sudo
    # What cannot be had is not asked for at every call.
    assert (machine.bootstrap("env").stderr, machine.calls()) == ("", [])


def test_without_apt_get_packages_are_named_and_the_rest_goes_on(machine: Machine) -> None:
    machine.without("apt-get", "riscv64-unknown-elf-gcc", "qemu-system-arm")
    done = machine.bootstrap("env")
    packages = "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-arm"
    assert done.stderr.splitlines()[:2] == [
        f"bootstrap: no apt-get here; please install what Debian has as: {packages}",
        GOING_ON,
    ]
    assert (done.returncode, machine.calls()) == (0, ENVIRONMENT_MADE)


def test_without_apt_get_but_with_all_tools_nothing_is_said_of_packages(machine: Machine) -> None:
    machine.without("apt-get")
    done = machine.bootstrap()
    assert (done.returncode, machine.calls()) == (0, ENVIRONMENT_MADE)
    assert "install what" not in done.stderr


def test_without_cxx_compiler_the_plugin_is_left_out_in_words(machine: Machine) -> None:
    machine.without("apt-get", "g++")
    done = machine.bootstrap("env")
    assert (done.returncode, machine.calls()) == (0, ENVIRONMENT_MADE[:2])
    assert "bootstrap: the simulator of RISC-V targets needs g++ and dtc; its plug-in is not compiled" in done.stderr


def test_apt_get_that_fails_is_tried_again_with_a_fresh_index(machine: Machine) -> None:
    machine.flag("apt-fails", "1\n")
    machine.without("dtc")
    assert machine.bootstrap().returncode == 0
    install = f"{INSTALL} device-tree-compiler"
    assert machine.calls()[:3] == [install, "DEBIAN_FRONTEND=noninteractive apt-get update", install]


@pytest.mark.parametrize("number", [0, 1000])
def test_apt_get_that_fails_twice_is_an_error(machine: Machine, number: int) -> None:
    machine.user(number)
    machine.program("sudo", SUDO)
    machine.flag("apt-fails", "2\n")
    machine.without("dtc")
    done = machine.bootstrap("env")
    assert (done.returncode, done.stdout) == (1, "")
    said = "apt-get could not install the packages, see above; mend that, or run as root: apt-get install"
    assert done.stderr.splitlines()[-2:] == [
        "E: Unable to locate package",
        f"bootstrap: {said} device-tree-compiler",
    ]
    assert not (machine.project / ".venv").exists()


def test_pip_that_fails_is_an_error_and_the_next_call_goes_on_from_there(machine: Machine) -> None:
    machine.flag("broken-pip")
    done = machine.bootstrap("env")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-2:] == [
        "ERROR: no network",
        "bootstrap: pip could not install the packages of requirements-lock.txt, see above",
    ]
    machine.calls()
    machine.without("broken-pip")
    assert machine.bootstrap("env").returncode == 0
    assert machine.calls() == ["pip install", SPIKE_BUILT]


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "Python 3.11 or newer is needed; FIRMLINE_PYTHON can name one"),
        ({"FIRMLINE_PYTHON": "python3"}, "FIRMLINE_PYTHON=python3 is no Python 3.11 or newer"),
    ],
)
def test_python_that_is_too_old_is_an_error(machine: Machine, environment: dict[str, str], said: str) -> None:
    machine.flag("old-python")
    done = machine.bootstrap("env", **environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == f"bootstrap: {said}"


def test_newer_python_beside_an_old_one_is_taken(machine: Machine) -> None:
    machine.program("python3.12", PYTHON.replace("old-python", "no-such-file"))
    machine.flag("old-python")
    machine.flag("without-venv")
    assert machine.bootstrap().returncode == 0
    assert machine.calls() == [f"{INSTALL} python3.12-venv", *ENVIRONMENT_MADE]


@pytest.fixture
def groups(machine: Machine) -> Machine:
    """With two groups of packages."""
    for name in ("ptq", "onnx"):
        (machine.project / f"requirements-{name}-lock.txt").write_text(f"{name}==1\n")
    return machine


def test_a_group_is_installed_when_it_is_named_and_then_kept_as_its_lock_file(groups: Machine) -> None:
    assert groups.bootstrap("--with", "ptq", "env").returncode == 0
    assert groups.calls() == [*ENVIRONMENT_MADE, "pip install ptq"]
    done = groups.bootstrap("--with", "ptq", "env")
    assert (done.returncode, done.stderr, groups.calls()) == (0, "", [])
    (groups.project / "requirements-ptq-lock.txt").write_text("ptq==2\n")
    (groups.project / "requirements-onnx-lock.txt").write_text("onnx==2\n")
    assert groups.bootstrap("env").returncode == 0
    assert groups.calls() == ["pip install ptq"]
    assert groups.bootstrap("--with", "onnx,ptq", "env").returncode == 0
    assert groups.calls() == ["pip install onnx"]
    assert (groups.bootstrap("env").returncode, groups.calls()) == (0, [])


def test_a_new_environment_has_no_groups(groups: Machine) -> None:
    groups.bootstrap("--with", "ptq,onnx")
    shutil.rmtree(groups.project / ".venv")
    groups.calls()
    assert groups.bootstrap("env").returncode == 0
    assert groups.calls() == ENVIRONMENT_MADE


def test_a_group_that_cannot_be_installed_is_an_error_and_tried_again(groups: Machine) -> None:
    groups.bootstrap()
    groups.flag("broken-pip")
    done = groups.bootstrap("--with", "ptq", "env")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == (
        "bootstrap: pip could not install the packages of requirements-ptq-lock.txt, see above"
    )
    groups.without("broken-pip")
    groups.calls()
    assert groups.bootstrap("--with", "ptq", "env").returncode == 0
    assert groups.calls() == ["pip install ptq"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--with", "pqt", "env"], "there is no group 'pqt'; groups: onnx, ptq"),
        (["--with", "ptq,../x", "env"], "there is no group '../x'; groups: onnx, ptq"),
        (["--with"], "--with needs groups of packages: onnx, ptq"),
    ],
)
def test_an_unknown_group_installs_nothing(groups: Machine, words: list[str], said: str) -> None:
    done = groups.bootstrap(*words)
    assert (done.returncode, done.stderr, groups.calls()) == (1, f"bootstrap: {said}\n", [])


@pytest.mark.parametrize(("word", "code"), [("--help", 0), ("-h", 0), ("--wiht", 1)])
def test_usage_is_said_before_anything_is_installed(groups: Machine, word: str, code: int) -> None:
    done = groups.bootstrap(word)
    assert (done.returncode, groups.calls()) == (code, [])
    assert "Usage: ./bootstrap [--with GROUP,...] COMMAND" in done.stderr


def test_a_command_that_is_not_there_is_named(machine: Machine) -> None:
    done = machine.bootstrap("dooit", "list")
    assert done.returncode == 127
    assert "bootstrap: there is no command 'dooit'. Usage: " in done.stderr


def pinned(name: str) -> dict[str, str]:
    """The versions of a lock file of this repository, by package, without what only Windows installs."""
    lines = (line for line in (ROOT / name).read_text().splitlines() if "==" in line and "'win32'" not in line)
    return dict(line.split(" ")[0].split("==", 1) for line in lines)


def test_lock_files_of_groups_add_to_the_others() -> None:
    """So what is installed later takes nothing from what is there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    base, groups = pinned("requirements-lock.txt"), project["optional-dependencies"]
    assert groups and base
    found: dict[str, str] = {}
    for group, wanted in groups.items():
        added = pinned(f"requirements-{group}-lock.txt")
        assert {re.split(r"[\[=><]", one)[0] for one in wanted} <= added.keys()
        assert not added.keys() & base.keys()
        assert all(found.get(name, version) == version for name, version in added.items())
        found |= added
    assert {path.name for path in ROOT.glob("requirements-*-lock.txt")} == {
        f"requirements-{group}-lock.txt" for group in groups
    }


def test_no_module_needs_a_group_to_be_imported() -> None:
    """They are imported inside of functions, and so is the front end of ONNX: most recipes do without."""
    front = "stages.import_model.onnx"
    top = re.compile(rf"^(?:import|from) (?:ai_edge_quantizer|onnx|onnxruntime|{re.escape(front)})\b", re.MULTILINE)
    modules = [path for folder in ("stages", "pipeline") for path in (ROOT / folder).rglob("*.py")]
    others = [path for path in modules if not path.is_relative_to(ROOT / front.replace(".", "/"))]
    assert len(others) < len(modules)
    assert [path for path in others if top.search(path.read_text())] == []
