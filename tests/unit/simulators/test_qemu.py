"""How QEMU is called, and how its counting plug-in is built once and refused when it counts wrongly."""

import subprocess
from pathlib import Path

import pytest

from stages.backends.qemu import build
from stages.backends.qemu.machine import without_memory
from stages.backends.qemu.profile import profile
from stages.backends.qemu.run import plugin_option
from stages.backends.qemu.selftest import self_test
from stages.backends.simulators.bench import compile_and_run_c
from stages.backends.targets.load import load_target
from stages.backends.targets.runtime import runtime_for
from stages.backends.toolchain.compiler import Source, compile_sources, link
from stages.base import StageError


@pytest.mark.parametrize("emulator", build.EMULATORS)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("ran += block->instructions", "ran += 1"),
        ("excluded += before + 1 - stopped_at", "excluded += before - stopped_at"),
        ("uint64_t before = ran - at->remaining", "uint64_t before = ran"),
    ],
)
def test_plugin_that_miscounts_fails_its_self_test(tmp_path, emulator, right, wrong):
    """Whole blocks as one, a marker that is counted itself, and a block's rest that is not taken off."""
    text = (build.SOURCES / "counter.c").read_text()
    assert right in text
    (tmp_path / "counter.c").write_text(text.replace(right, wrong))
    library = tmp_path / "libcounter.so"
    sources = [tmp_path / "counter.c", build.SOURCES / "timing.c"]
    command = ["gcc", *build.FLAGS, "-I", build.SOURCES, "-I", build.CYCLES, *sources, "-o", library]
    subprocess.run(command, check=True)
    with pytest.raises(StageError, match=r"fails its self-test: counted \d+ instructions, not 201"):
        self_test(library, emulator)


def test_commas_in_the_path_of_the_clone_are_no_options() -> None:
    option = plugin_option(Path("/a, b=c/libcounter.so"), Path("/d,e"))
    assert option == "file=/a,, b=c/libcounter.so,profile=/d,,e"


PROFILED = """
#include "board.h"
__attribute__((noinline)) void spin(int turns);
__attribute__((noinline, naked)) void spin(int turns)
{
    __asm__ volatile("1: subs r0, r0, #1\\n\\tbne 1b\\n\\tbx lr");
}
int main(void)
{
    spin(700);
    spin(300);
    return 0;
}
"""


def test_profile_gives_each_function_its_instructions(tmp_path):
    """A thousand turns of two instructions, and two returns."""
    target = load_target("cortex-m4")
    runtime = runtime_for(target)
    (tmp_path / "main.c").write_text(PROFILED)
    sources = [Source(tmp_path / "main.c"), *map(Source, runtime.sources)]
    link(target, runtime, compile_sources(target, runtime, sources, tmp_path, flags=("-O1",)), tmp_path / "a.elf")
    (tmp_path / "inputs.bin").write_bytes(b"")
    assert profile(tmp_path / "a.elf", target, tmp_path / "inputs.bin")["spin"] == 2 * 1000 + 2


def test_memory_map_that_the_machine_does_not_have_is_reported_instead_of_a_lockup():
    """The firmware of an STM32 on a machine without memory at its flash."""
    target = load_target("nucleo-l4r5zi")
    assert target.simulated is not None, "it is simulated at other addresses"
    with pytest.raises(StageError) as raised:
        compile_and_run_c(target, [], "int main(void) { return 0; }")
    lines = str(raised.value).splitlines()
    assert lines[0] == "mps2-an386 has no memory where nucleo-l4r5zi declares rom (0x08000000, 2,097,152 bytes)"
    assert lines[1].startswith("it has memory at 0x00000000 to 0x003fffff, ")
    assert lines[2] == "correct the memory of nucleo-l4r5zi in pipeline.yaml, or name another machine"


@pytest.mark.parametrize(
    "name", ["cortex-m0plus", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "nucleo-f446re"]
)
def test_machines_have_memory_where_targets_declare_it(name):
    assert without_memory(load_target(name)) == ""


def test_memory_that_is_a_mirror_of_other_memory_is_no_room():
    """The 4 MB at 0 appear once more at 4 MB."""
    target = load_target("cortex-m4")
    rom = target.memory.rom.model_copy(update={"length": 8 << 20})
    wide = target.model_copy(update={"memory": target.memory.model_copy(update={"rom": rom})})
    assert "has no memory where cortex-m4 declares rom" in without_memory(wide)
