"""Plug-ins and devices that a target brings: built from their sources, seen by the program, in the key."""

from pathlib import Path

import pytest

from pipeline.errors import RecipeError
from pipeline.project import Project
from pipeline.recipes.targets import load_targets
from stages.backends.qemu.run import qemu_command
from stages.backends.simulators.bench import compile_and_run_c
from stages.backends.targets.load import load_target
from stages.backends.targets.spec import Device
from stages.base import StageError
from tests.support.doubler import DOUBLER

BASE = 0x40000000
TARGETS = f"""\
schema: 1
cores:
  rv64-doubler:
    like: rv64-scalar
    memory:
      ram: {{origin: "0x90000000", length: 16M}}
    simulator:
      kind: spike
      plugins: [devices/doubler]
      devices: [{{name: doubler, base: "{BASE:#x}", parameters: {{plus: 3}}}}]
      arguments: [--pmpregions=8]
"""
MAIN = f"""
#include <stdint.h>
#include <stdio.h>
int main(void) {{
  volatile uint32_t *doubler = (volatile uint32_t *){BASE:#x};
  doubler[0] = 20;
  printf("%u %u\\n", (unsigned)doubler[1], (unsigned)doubler[2]);
  return 0;
}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "pipeline.yaml").write_text(TARGETS)
    (tmp_path / "devices/doubler").mkdir(parents=True)
    (tmp_path / "devices/doubler/doubler.cc").write_text(DOUBLER)
    return Project(tmp_path)


def test_a_program_reads_and_writes_a_device_of_the_target(project: Project) -> None:
    target = load_targets(project)["rv64-doubler"]
    assert compile_and_run_c(target, [], MAIN).stdout.split() == ["43", "1"]
    # Without the device there is nothing at its address; without the plug-in Spike has no such device.
    bare = target.simulator.model_copy(update={"devices": ()})
    with pytest.raises(StageError, match="store to an address without memory"):
        compile_and_run_c(target.model_copy(update={"simulator": bare}), [], MAIN)


def test_code_that_does_not_compile_is_named(project: Project) -> None:
    (project.root / "devices/doubler/doubler.cc").write_text("int broken(")
    with pytest.raises(StageError, match=r"compiling a Spike plug-in failed at doubler\.cc:\n.*doubler\.cc:1"):
        compile_and_run_c(load_targets(project)["rv64-doubler"], [], MAIN)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("devices/doubler]", "devices/none]", "pipeline.yaml:9:17: there is no plug-in devices/none"),
        (f"{BASE:#x}", "0x90000010", "devices.0.base: 0x90000010 lies in the memory ram"),
        ("kind: spike", "kind: native", "a native program has no simulator, so it has no plugins"),
        ("kind: spike", "kind: qemu", "give the address of a QEMU device in its parameters"),
    ],
)
def test_mistakes_are_shown_where_they_are(project: Project, old: str, new: str, told: str) -> None:
    (project.root / "pipeline.yaml").write_text(TARGETS.replace(old, new))
    with pytest.raises(RecipeError) as caught:
        load_targets(project)
    assert told in str(caught.value)


def test_qemu_gets_devices_and_plug_ins_too(tmp_path: Path) -> None:
    target = load_target("cortex-m4")
    (tmp_path / "empty.c").write_text(
        '#include "qemu_api.h"\n'
        "EXPORT int qemu_plugin_version = 1;\n"
        "EXPORT int qemu_plugin_install(qemu_plugin_id_t, const qemu_info_t *, int, char **);\n"
        "int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)\n"
        "{ (void)id; (void)info; (void)argc; (void)argv; return 0; }\n"
    )
    loader = Device(name="loader", parameters={"addr": "0x20300000", "data": "0x2a", "data-len": 4})
    simulator = target.simulator.model_copy(update={"plugins": ("x/empty.c",), "devices": (loader,)})
    target = target.model_copy(update={"simulator": simulator, "places": {"x/empty.c": tmp_path / "empty.c"}})
    assert "loader,addr=0x20300000,data=0x2a,data-len=4" in qemu_command(Path("x.elf"), target)
    main = '#include <stdio.h>\nint main(void) { printf("%d\\n", *(volatile int *)0x20300000); return 0; }'
    assert compile_and_run_c(target, [], main).stdout.split() == ["42"]
