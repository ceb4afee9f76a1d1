"""The compile stage on a hand-written model: flags, sizes, determinism, and what a user sees when it fails."""

import subprocess
from pathlib import Path

import pytest

from stages.backends.targets.load import load_target
from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.compile import CompileConfig
from stages.compile.firmware import compile_firmware
from tests.support.tiny_model import write_tiny_model
from tests.unit.compile.test_preflight import with_memory

pytestmark = pytest.mark.compiles_anew


def build(folder: Path, target: Target, config: CompileConfig | None = None, **changes) -> dict:
    model = write_tiny_model(folder / "src", **changes)
    (folder / "out").mkdir(parents=True)
    return compile_firmware(folder / "src", model, target, folder / "out", config=config)


@pytest.mark.parametrize(
    ("name", "tool"), [("rv64-rvp", "riscv64-unknown-elf-size"), ("cortex-m55", "arm-none-eabi-size")]
)
def test_sizes_agree_with_binutils_and_the_sources(tmp_path, name, tool):
    """`size -A` is the independent measure of sections; the model's symbols have the sizes of their C types."""
    sizes = build(tmp_path, load_target(name), arena=1000)
    listing = subprocess.run(
        [tool, "-A", tmp_path / "out" / "firmware.elf"], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in listing.stdout.splitlines() if line.startswith(".")]
    sections = {row[0]: int(row[1]) for row in rows}
    assert sizes["text"] == sections[".text"]
    assert sizes["rodata"] == sections[".rodata"]
    assert sizes["data"] == sections[".data"] + sections.get(".tdata", 0)
    assert sizes["stack_reserved"] == sections[".stack"] == 16384
    assert sizes["ram_bytes"] == sections[".data"] + sections[".bss"] + 16384
    assert sizes["bss"] >= 1000
    symbols = {symbol["name"]: symbol for symbol in sizes["symbols"]}
    assert symbols["model_arena"] == {"name": "model_arena", "section": ".bss", "bytes": 1000, "file": "model.c"}
    assert symbols["model_run"]["file"] == "model.c"
    assert symbols["main"]["file"] == "harness/main.c"
    assert 16 < sizes["model_rom_bytes"] < sizes["rom_bytes"]


def test_model_too_large_for_ram_and_rom_is_reported_with_the_sizes(tmp_path):
    with pytest.raises(StageError) as raised:
        build(tmp_path, with_memory(1024, 65536, stack=16384), arena=100_000)
    message = str(raised.value)
    assert "tiny does not fit target rv64-rvp" in message
    assert "but has 1,024" in message
    assert "ram needs 11" in message  # 100,000 of arena, 16,384 of stack and less than a KiB of variables
    assert "weights 16, arena 100,000, stack 16,384 bytes" in message
    assert "pipeline.yaml" in message
    assert len(message.splitlines()) <= 5


def test_model_too_large_for_ram_alone_names_the_layer_at_the_arenas_peak(tmp_path):
    """The largest sum of what is live at one layer, which no single block shows."""
    model = write_tiny_model(tmp_path / "src", arena=600_000)
    blocks = [("in", 50_000, 0, 0), ("kept", 200_000, 0, 1), ("out", 300_000, 1, 1), ("scratch", 4_000, 1, 1)]
    model["arena"] = [
        {"name": name, "kind": "tensor", "offset": 0, "bytes": size, "first": first, "last": last}
        for name, size, first, last in blocks
    ]
    (tmp_path / "out").mkdir()
    with pytest.raises(StageError) as raised:
        compile_firmware(tmp_path / "src", model, load_target("cortex-m55"), tmp_path / "out")
    message = str(raised.value)
    assert "ram needs 61" in message  # 600,000 of arena, 16,384 of stack and less than 3 KiB of variables
    assert "but has 524,288" in message
    assert "declare a core `like: cortex-m55` with more memories of mps3-an547 in pipeline.yaml" in message
    assert "rom needs" not in message
    assert (
        "the arena's peak is 504,000 bytes at layer 1 relu (RELU): out 300,000, kept 200,000, scratch 4,000" in message
    )
    assert len(message.splitlines()) <= 5


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("undeclared();", "implicit declaration of function 'undeclared'"),
        ("int unused;", "unused variable 'unused'"),
        ("extern void absent(void); absent();", "undefined reference to `absent'"),
    ],
)
def test_error_of_compiler_or_linker_is_shown_briefly(tmp_path, fault, told):
    with pytest.raises(StageError) as raised:
        build(tmp_path, load_target("rv64-rvp"), fault=fault)
    message = str(raised.value)
    assert told in message
    assert len(message.splitlines()) <= 5


@pytest.mark.parametrize(
    ("target", "printed", "package"),
    [
        (
            "rv64-rvp",
            "gcc: fatal error: cannot read spec file 'picolibc.specs': No such file",
            "picolibc-riscv64-unknown-elf",
        ),
        ("cortex-m4", "model.c:3:10: fatal error: string.h: No such file or directory", "libnewlib-arm-none-eabi"),
        ("aarch64", "ld: cannot find crt1.o: No such file or directory", "libc6-dev-arm64-cross"),
    ],
)
def test_missing_c_library_is_named_with_its_package(tmp_path, monkeypatch, target, printed, package):
    """GCC is there, its C library is not: what GCC or ld print then, from a stand-in."""
    gcc = tmp_path / load_target(target).compiler.command
    gcc.write_text(f'#!/bin/sh\necho "{printed}" >&2\nexit 1\n')
    gcc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(StageError, match=f"the C library is missing: apt-get install {package}"):
        build(tmp_path, load_target(target))
