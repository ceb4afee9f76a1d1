"""Whoever uses the emitted C says where its arena and its weights lie."""

import subprocess
from pathlib import Path

import numpy as np

from tests.support.kernels.mini import mini_graph, mini_reference
from tests.support.mini_emit import emit_mini

STRICT = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-fsanitize=address,undefined", "-g")

SHARED = """
#include <stdio.h>
#include <string.h>
#include "one/emitted/src/model.h"
#include "two/emitted/src/model.h"
#define BYTES (ONE_ARENA_BYTES > TWO_ARENA_BYTES ? ONE_ARENA_BYTES : TWO_ARENA_BYTES)
static _Alignas(64) unsigned char memory[BYTES + 64];
int main(void)
{
    printf("%d %d %d %d\\n", one_init(NULL, BYTES), one_init(memory, ONE_ARENA_BYTES - 1),
           one_init(memory + ONE_ARENA_ALIGNMENT / 2, BYTES), two_init(memory, 0));
    for (int turn = 0; turn < 2; turn++) {
        unsigned char *where = memory + 64 * turn;
        memset(memory, 0x55, sizeof memory);
        if (one_init(where, BYTES) != 0)
            return 1;
        memset(one_input(0), 5, ONE_INPUT0_BYTES);
        one_run(NULL, NULL);
        fwrite(one_output(0), 1, ONE_OUTPUT0_BYTES, stdout);
        if (two_init(where, BYTES) != 0)
            return 2;
        memset(two_input(0), 5, TWO_INPUT0_BYTES);
        two_run(NULL, NULL);
        fwrite(two_output(0), 1, TWO_OUTPUT0_BYTES, stdout);
    }
    return 0;
}
"""


def test_two_models_share_memory_that_is_handed_in(tmp_path: Path) -> None:
    """One after the other in the same block, then both in another; memory that cannot be used is refused."""
    graphs = {"one": mini_graph(units=(6, 5)), "two": mini_graph(units=(9, 4))}
    sources: dict[str, Path] = {}
    for prefix, graph in graphs.items():
        described = emit_mini(tmp_path / prefix, graph, prefix=prefix, weights="c", arena="caller")
        src = tmp_path / prefix / "emitted/src"
        assert "_arena[" not in (src / "model.c").read_text()
        sources |= {
            file if "kernels/" in file else f"{prefix}/{file}": src / file for file in described["sources"]["c"]
        }
    (tmp_path / "main.c").write_text(SHARED)
    program = tmp_path / "shared"
    command = ["gcc", *STRICT, f"-I{tmp_path}", "main.c", *map(str, sources.values()), "-o", str(program)]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    codes, _, data = subprocess.run([program], capture_output=True, check=True).stdout.partition(b"\n")
    assert codes == b"-1 -1 -1 -1"
    expected = [mini_reference(graph, np.full((8, 12), 5, np.int8))[-1].tobytes() for graph in graphs.values()]
    assert data == 2 * b"".join(expected)


def test_every_emitted_file_names_its_licence(tmp_path: Path) -> None:
    emit_mini(tmp_path)
    texts = [path for path in (tmp_path / "emitted/src").rglob("*") if path.suffix in (".c", ".h", ".S", ".txt")]
    assert len(texts) > 8
    for path in texts:
        assert "SPDX-License-Identifier: Apache-2.0" in path.read_text().splitlines()[0], path.name
