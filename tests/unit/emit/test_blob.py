"""Weights that the caller provides: one program computes several networks, and refuses blobs for other code."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.backends.simulators.bench import compile_and_run_c
from stages.backends.toolchain.compiler import Source
from stages.emit.blob import Blob, BlobError
from stages.emit.blob_differences import differences
from stages.ir.graph import Quant
from tests.support.emitted import run_emitted, target_named
from tests.support.kernels.mini import mini_graph, mini_reference
from tests.support.mini_emit import KERNELS, PLAIN, emit_mini

MAIN = """
#include <stdio.h>
#include <string.h>
#include "model.h"
%(blobs)s
_Alignas(64) static unsigned char whole[MODEL_WEIGHTS_BYTES];
_Alignas(64) static unsigned char moved[MODEL_WEIGHTS_BYTES + 1];
static void show(void)
{
    for (unsigned i = 0; i < MODEL_INPUT0_BYTES; i++)
        ((signed char *)model_input(0))[i] = (signed char)(i * 37);
    model_run(NULL, NULL);
    for (unsigned i = 0; i < MODEL_OUTPUT0_BYTES; i++)
        printf("%%d ", ((const signed char *)model_output(0))[i]);
    printf("%%g %%d %%g %%d\\n", MODEL_INPUT0_SCALE, (int)MODEL_INPUT0_ZERO_POINT, MODEL_OUTPUT0_SCALE,
           (int)MODEL_OUTPUT0_ZERO_POINT);
}
int main(void)
{
    memcpy(moved + 1, other, sizeof other);
    printf("%%d %%d ", model_init(NULL, 0), model_init(other, sizeof other - 1));
    printf("%%d %%d ", model_init(moved + 1, sizeof other), model_init(foreign, sizeof foreign));
    printf("%%d\\n", model_init(model_weights, MODEL_WEIGHTS_BYTES));
    show();
    printf("%%d\\n", model_set_weights(other, sizeof other));
    show();
    memcpy(whole, other, sizeof other);
    printf("%%d %%d ", model_check_weights(whole, sizeof whole), model_check_weights(foreign, sizeof foreign));
    whole[MODEL_WEIGHTS_BYTES - 1] ^= 1;
    printf("%%d %%d\\n", model_check_weights(whole, sizeof whole), model_check_weights(whole, sizeof whole - 1));
    printf("%%d\\n", model_set_weights(foreign, sizeof foreign));
    show();
    return 0;
}
"""


def emitted(path: Path, seed: int = 0, **options: Any) -> tuple[dict[str, Any], bytes]:
    """Return model.json and the blob of a network. The scale of its input depends on the seed."""
    graph = mini_graph(seed=seed)
    quant = Quant(scale=(0.5 + seed,), zero_point=(3 - seed,))
    graph.tensors["x"] = graph.tensors["x"].model_copy(update={"quant": quant})
    described = emit_mini(path, graph, **{"weights": "caller", **options})
    return described, (path / "emitted/src/weights.bin").read_bytes()


@pytest.mark.parametrize("blob_array", [False, True])
@pytest.mark.parametrize("arena", ["static", "caller"])
def test_the_network_is_computed_with_its_first_blob(tmp_path: Path, blob_array: bool, arena: str) -> None:
    graph = mini_graph(units=(6, 9, 5))
    described = emit_mini(tmp_path, graph, weights="caller", blob_array=blob_array, arena=arena, prefix="net")
    assert ("weights.c" in described["sources"]["c"]) == blob_array
    x = np.random.default_rng(2).integers(-128, 128, (8, 12), dtype=np.int8)
    (inference,) = run_emitted(tmp_path / "emitted", target_named("host"), [[x]])
    np.testing.assert_array_equal(inference.outputs[0], mini_reference(graph, x)[-1])


def test_a_program_takes_blobs_for_its_code_and_no_others(tmp_path: Path) -> None:
    described, own = emitted(tmp_path / "own")
    _, other = emitted(tmp_path / "other", seed=1)
    _, foreign = emitted(tmp_path / "foreign", kernels=PLAIN)
    assert own[:64] != foreign[:64] and Blob.unpacked(own).fingerprint == Blob.unpacked(other).fingerprint
    blobs = "\n".join(
        f"_Alignas(64) static const unsigned char {name}[] = {{{', '.join(map(str, blob))}}};"
        for name, blob in (("other", other), ("foreign", foreign))
    )
    src = tmp_path / "own/emitted/src"
    files = [Source(src / file) for kind in ("c", "assembly") for file in described["sources"][kind]]
    run = compile_and_run_c(target_named("host"), files, MAIN % {"blobs": blobs}, include=[src])
    x = (np.arange(96) * 37).astype(np.int8).reshape(8, 12)
    first, second = (
        " ".join(map(str, mini_reference(mini_graph(seed=seed), x)[-1].reshape(-1)))
        + f" {0.5 + seed:g} {3 - seed} 0.5 3"
        for seed in (0, 1)
    )
    assert run.stdout.splitlines() == ["-2 -2 -2 -2 0", first, "0", second, "0 -1 -1 -1", "-1", second]


@pytest.mark.parametrize(
    ("options", "same"),
    [
        ({"prefix": "kws"}, True),
        ({"arena": "caller"}, True),
        ({"blob_array": True}, True),
        ({"name": "renamed"}, True),
        ({"alignment": 64}, False),
        ({"kernels": PLAIN}, False),
    ],
)
def test_the_fingerprint_is_that_of_the_code_that_reads_weights(
    tmp_path: Path, options: dict[str, Any], same: bool
) -> None:
    described, _ = emitted(tmp_path / "plain")
    other = emit_mini(tmp_path / "other", mini_graph(), **{"weights": "caller", **options})
    assert (described["fingerprint"] == other["fingerprint"]) == same


def test_offsets_do_not_depend_on_values(tmp_path: Path) -> None:
    """Constants with equal bytes are stored once elsewhere; in a blob that would change the code."""
    graph = mini_graph(units=(12, 12))
    plain = emit_mini(tmp_path / "different", graph, weights="caller")
    for role in "wb":
        graph.constants[f"dense_1.{role}"] = graph.constants[f"dense_0.{role}"]
    equal = emit_mini(tmp_path / "equal", graph, weights="caller")
    assert plain["fingerprint"] == equal["fingerprint"]


def test_what_differs_is_named(tmp_path: Path) -> None:
    emit_mini(tmp_path / "own", mini_graph(), weights="caller", kernels=PLAIN)
    assert [*differences(tmp_path / "own/emitted", tmp_path / "own/emitted")] == []
    emit_mini(tmp_path / "more", mini_graph(units=(6, 5, 4)), weights="caller")
    (line,) = differences(tmp_path / "own/emitted", tmp_path / "more/emitted")
    assert line == "layers: 2 in the firmware, 3 in the new network"
    emit_mini(tmp_path / "kernel", mini_graph(), weights="caller", kernels=KERNELS)
    lines = [*differences(tmp_path / "own/emitted", tmp_path / "kernel/emitted")]
    assert lines[0].startswith("layer 0 (dense_0): kernel ")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda blob: b"ELF!" + blob[4:], "it is not a blob of weights"),
        (lambda blob: blob[:40], "it is not a blob of weights"),
        (lambda blob: blob[:4] + b"\x02" + blob[5:], "its format is 2, and this version reads format 1"),
        (lambda blob: blob[:-1], r"it has \S+ bytes, and its header says"),
        (lambda blob: blob[:-1] + bytes([blob[-1] ^ 1]), "its checksum is wrong"),
    ],
)
def test_damaged_blobs(tmp_path: Path, damage: Any, said: str) -> None:
    _, blob = emitted(tmp_path)
    assert Blob.unpacked(blob).packed() == blob
    with pytest.raises(BlobError, match=said):
        Blob.unpacked(damage(blob))
