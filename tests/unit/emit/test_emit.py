"""The emitted folder: it computes the network, stands alone, keeps off the stack and is the same every time."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jinja2 import FileSystemLoader

from stages.backends.kernels.registry import folders
from stages.backends.simulators.bench import compile_and_run_c
from stages.backends.toolchain.compiler import Source
from stages.base import StageError
from stages.emit.requirement import requirements
from stages.support.messages.templates import environment
from tests.support.emitted import target_named
from tests.support.kernels.mini import FOLDER
from tests.support.mini_emit import KERNELS, PLAIN, emit_mini

STRICT = ("-Wall", "-Wextra", "-Werror", "-std=c11", "-O2")
GCCS = {
    "host": ("gcc",),
    "rv64": ("riscv64-unknown-elf-gcc", "--specs=picolibc.specs", "-march=rv64imac", "-mabi=lp64"),
    "rv32": ("riscv64-unknown-elf-gcc", "--specs=picolibc.specs", "-march=rv32imac", "-mabi=ilp32"),
}
TEMPLATES = Path(__file__).resolve().parents[3] / "stages/emit/templates"
RNG = np.random.default_rng(11)


def inputs(*shape: int) -> np.ndarray:
    return RNG.integers(-128, 128, shape, dtype=np.int8)


@pytest.mark.parametrize("gcc", GCCS)
def test_it_compiles_alone_from_any_folder_without_a_warning(tmp_path: Path, gcc: str) -> None:
    described = emit_mini(tmp_path)
    src = tmp_path / "emitted" / "src"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in [f for kind in ("c", "assembly", "trace") for f in described["sources"][kind]]:
        extra = [] if file.endswith(".c") else [f"-I{src}"]
        command = [*GCCS[gcc], *STRICT, *extra, "-c", str(src / file), "-o", "x.o"]
        done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("plain", [False, True])
def test_no_array_on_the_stack_no_heap_no_stdio_and_nothing_of_tvm(tmp_path: Path, plain: bool) -> None:
    emit_mini(tmp_path, kernels=PLAIN if plain else KERNELS)
    for path in (tmp_path / "emitted/src").rglob("*.[chS]"):
        text = path.read_text()
        assert not re.search(r"tvm|malloc|alloca|stdio|printf", text, re.IGNORECASE), path.name
        # An indented declaration with an extent is a local array; the arena and the weights are not indented.
        assert not re.search(r"^\s+(?:const )?\w+ \w+\[\w*\]", text, re.MULTILINE), path.name


COPIES = """
#include <stdio.h>
#include <string.h>
#include "model.h"
int main(void)
{
    static signed char in[MODEL_INPUT0_BYTES], out[MODEL_OUTPUT0_BYTES], first[MODEL_OUTPUT0_BYTES];
    const void *inputs[1] = {in};
    void *outputs[1] = {out};
    for (unsigned i = 0; i < sizeof in; i++)
        in[i] = (signed char)(i * 37);
    model_init();
    model_run(inputs, outputs);
    printf("copied out: %d\\n", memcmp(out, model_output(0), sizeof out) == 0);
    memcpy(first, out, sizeof out);
    memset(out, 0, sizeof out);
    memcpy(model_input(0), in, sizeof in);
    inputs[0] = NULL;
    outputs[0] = NULL;
    model_run(inputs, outputs);
    printf("in place: %d\\n", memcmp(first, model_output(0), sizeof first) == 0);
    memcpy(model_input(0), in, sizeof in);
    inputs[0] = model_input(0);
    model_run(inputs, outputs);
    printf("own pointer: %d\\n", memcmp(first, model_output(0), sizeof first) == 0);
    printf("not touched: %d\\n", out[0] == 0 && out[sizeof out - 1] == 0);
    memcpy(model_input(0), in, sizeof in);
    model_run(NULL, NULL);
    printf("no arrays: %d\\n", memcmp(first, model_output(0), sizeof first) == 0);
    printf("no such: %d\\n", model_input(1) == NULL && model_output(9) == NULL);
    return 0;
}
"""


def test_inputs_and_outputs_are_copied_only_when_they_lie_elsewhere(tmp_path: Path) -> None:
    described = emit_mini(tmp_path)
    src = tmp_path / "emitted" / "src"
    files = [Source(src / f) for kind in ("c", "assembly") for f in described["sources"][kind]]
    run = compile_and_run_c(target_named("host"), files, COPIES, include=[src])
    assert run.stdout.splitlines() == [
        f"{what}: 1" for what in ("copied out", "in place", "own pointer", "not touched", "no arrays", "no such")
    ]


def test_an_arena_above_the_recipes_limit(tmp_path: Path) -> None:
    needed = emit_mini(tmp_path / "free")["arena_bytes"]
    assert emit_mini(tmp_path / "enough", arena_limit=needed)["arena_bytes"] == needed
    text = rf"the arena needs {needed:,} bytes, the recipe's arena_limit is 200\. No .*\n.*layer \d.*\nwhat may help"
    with pytest.raises(StageError, match=text):
        emit_mini(tmp_path / "less", arena_limit=200)


def header_of(tmp_path: Path, **options: Any) -> Path:
    emit_mini(tmp_path, **options)
    return tmp_path / "emitted/src/model.h"


@pytest.mark.parametrize("arena", ["static", "caller"])
def test_the_header_compiles_alone_and_so_does_the_example_in_it(tmp_path: Path, arena: str) -> None:
    header = header_of(tmp_path, arena=arena)
    comment = header.read_text().split("*/")[1]
    example = [line[7:] for line in comment.splitlines() if line.startswith(" *     ")]
    assert any("model_run(NULL, NULL);" in line for line in example)
    for name, source in (
        ("example.c", "\n".join(example) + "\n"),
        ("alone.c", '#include "model.h"\nMODEL_INPUT0_TYPE x;\n'),
    ):
        (tmp_path / name).write_text(source)
        command = ["gcc", *STRICT, f"-I{header.parent}", "-c", name, "-o", "x.o"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("word_bits", "told"), [(64, "-march=rv64imac -mabi=lp64"), (32, "-march=rv32imac -mabi=ilp32")]
)
def test_another_compiler_gets_the_flags_once(tmp_path: Path, word_bits: int, told: str) -> None:
    (found,) = requirements(folders(["rvp", "generic"]).values(), target_named(f"rv{word_bits}-rvp"))
    assert requirements(folders(["generic"]).values(), target_named("rv64-scalar")) == []
    (tmp_path / "layers.h").write_text(
        environment(FileSystemLoader(TEMPLATES))
        .get_template("layers.h.j2")
        .render(macro="MODEL", requirements=[found], functions=[], uses_bool=False)
    )
    for name, (gcc, *flags) in GCCS.items():
        command = [gcc, *flags, "-x", "c", "-fsyntax-only", str(tmp_path / "layers.h")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == (name == f"rv{word_bits}"), done.stderr
        assert done.stderr.count("error:") == (name != f"rv{word_bits}")
        assert (told in done.stderr) == (name != f"rv{word_bits}")


def test_flags_of_a_kernel_folder_are_those_of_its_files(tmp_path: Path) -> None:
    described = emit_mini(tmp_path, folder=replace(FOLDER, flags=("-fno-builtin", "-O1")))
    kernel = {"path": "kernels/mini/mini.c", "flags": ["-fno-builtin", "-O1"]}
    assert described["sources"]["c"] == ["model.c", "layers.c", kernel]
    cmake = (tmp_path / "emitted/src/CMakeLists.txt").read_text()
    assert 'set_source_files_properties(kernels/mini/mini.c PROPERTIES COMPILE_FLAGS "-fno-builtin -O1")\n' in cmake


def test_every_emitted_file_names_its_licence(tmp_path: Path) -> None:
    emit_mini(tmp_path)
    texts = [path for path in (tmp_path / "emitted/src").rglob("*") if path.suffix in (".c", ".h", ".S", ".txt")]
    assert len(texts) > 8
    for path in texts:
        assert "SPDX-License-Identifier: Apache-2.0" in path.read_text().splitlines()[0], path.name
