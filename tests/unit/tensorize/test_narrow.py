"""Weights of few bits that are kept so in ROM: the same bytes out, less of constants, whatever kernel reads them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stages.backends.kernels import registry
from stages.base import StageError
from stages.ir.models.builder import ModelBuilder, Tensor
from stages.ir.reference.interpreter import Reference, random_inputs
from stages.tensorize import TensorizeConfig
from stages.tensorize.build import decide
from stages.tensorize.narrow import CODE, bits_of_constant
from stages.tensorize.packing import pack_and_lower
from stages.tensorize.pass_context import PassContext
from tests.support.emitted import run_emitted, target_named
from tests.support.integer import integer_graph
from tests.support.stages_run import run_stages


def network(bits: int) -> bytes:
    """Three kinds of weights in so many bits; odd numbers of them, so that the last byte is half full."""
    rng, b, most = np.random.default_rng(bits), ModelBuilder(), 1 << bits - 1

    def weights(*shape: int) -> np.ndarray:
        return rng.integers(-most, most, shape).astype(np.int8)

    x = b.input("x", (1, 6, 5, 9), "int8", 0.05, 3)
    y = b.conv2d(x, weights(11, 3, 3, 9), weight_scale=0.02, out=(0.1, -4))
    y = b.depthwise_conv2d(y, weights(1, 3, 3, 11), weight_scale=0.03, out=(0.1, 2))
    b.output(b.fully_connected(b.reshape(y, (1, -1)), weights(3, 330), weight_scale=0.02, out=(0.5, 1)))
    return b.build()


def made(
    folder: Path, target: str, tflite: bytes, *, narrow: bool | None, until: str = "emit", **options: object
) -> Path:
    given = {"narrow_weights": narrow, **options}
    configs = {"tensorize": {name: value for name, value in given.items() if value is not None}}
    return run_stages(tflite, target, folder, until=until, configs=configs)[until]


@pytest.mark.parametrize(("bits", "target"), [(4, "host"), (4, "rv32-rvp"), (2, "host"), (1, "host")])
def test_they_take_less_rom_and_change_nothing(tmp_path: Path, bits: int, target: str) -> None:
    tflite = network(bits)
    reference = Reference(tflite)
    given = [random_inputs(reference.info, seed) for seed in (1, 2)]
    kept, wide = (made(tmp_path / str(narrow), target, tflite, narrow=narrow) for narrow in (True, False))
    for inputs, inference in zip(given, run_emitted(kept, target_named(target), given), strict=True):
        np.testing.assert_array_equal(inference.outputs[0], reference.run(inputs)[0])
    small, large = (json.loads((folder / "model.json").read_text())["weights_bytes"] for folder in (kept, wide))
    assert large - small > 0.9 * (11 * 81 + 3 * 330) * (8 - bits) / 8
    if target == "host":  # the plan of wide weights tells what narrow ones would save
        plan = json.loads(
            (made(tmp_path / "plan", target, tflite, narrow=False, until="tensorize") / "plan.json").read_text()
        )
        packable = [layer["packable"] for layer in plan["layers"] if layer["packable"]]
        assert {each["bits"] for each in packable} == {bits}
        assert abs(large - small - sum(each["bytes"] for each in packable)) < 16 * len(packable)  # alignment


def weights_bytes(emitted: Path) -> int:
    return int(json.loads((emitted / "model.json").read_text())["weights_bytes"])


def arena_bytes(emitted: Path) -> int:
    return int(json.loads((emitted / "model.json").read_text())["arena_bytes"])


def test_what_the_recipe_wants_decides_where_it_says_nothing_of_them(tmp_path: Path) -> None:
    """Few bytes of ROM: they are kept narrow within the arena's limit, or where it does not grow. Speed: never."""
    tflite, wide = network(4), 11 * 81
    plain = weights_bytes(made(tmp_path / "speed", "host", tflite, narrow=None))
    assert weights_bytes(made(tmp_path / "off", "host", tflite, narrow=False, optimize_for="rom")) == plain
    assert weights_bytes(made(tmp_path / "rom", "host", tflite, narrow=None, optimize_for="rom")) == plain
    sizes = []
    for limit in (4000, 1500):
        options = {"optimize_for": "rom", "arena_limit": limit}
        emitted = made(tmp_path / str(limit), "host", tflite, narrow=None, **options)
        assert arena_bytes(emitted) <= limit
        sizes.append(weights_bytes(emitted))
    small, between = sizes
    assert plain - small > 0.9 * (wide + 3 * 330) / 2
    assert small < between < plain


def large_layer(before: int) -> bytes:
    """A matrix of 40 KB in whole bytes, more than the RAM of a Longan Nano; the first tensor is larger than others."""
    rng, b = np.random.default_rng(before), ModelBuilder()
    x = b.input("x", (1, before, 1, 8), "int8", 0.05, 3)

    def product(x: Tensor, outputs: int, inputs: int) -> Tensor:
        weights = rng.integers(-8, 8, (outputs, inputs)).astype(np.int8)
        return b.fully_connected(x, weights, weight_scale=0.02, out=(0.5, 1))

    y = product(b.mean(x, (1, 2), keep_dims=False, out=(0.05, 3)), 640, 8)
    b.output(product(product(y, 64, 640), 24, 64))
    return b.build()


@pytest.mark.parametrize("before", [1, 1000])
def test_what_fits_a_board_with_little_ram_still_does(tmp_path: Path, before: int) -> None:
    """Nobody asked for RAM: only layers below the peak of the arena are widened into it. Who asks for it, gets it."""
    tflite = large_layer(before)
    whole = made(tmp_path / "whole", "longan-nano", tflite, narrow=False, optimize_for="rom")
    own = made(tmp_path / "own", "longan-nano", tflite, narrow=None, until="compile", optimize_for="rom")
    emitted = own.parent / "emit"
    assert arena_bytes(emitted) == arena_bytes(whole)
    assert (own / "firmware.elf").is_file()
    saved = weights_bytes(whole) - weights_bytes(emitted)
    assert saved == 0 if before == 1 else 0.9 * (24 * 64 + 640 * 8) / 2 < saved < 4000
    with pytest.raises(StageError, match="does not fit target longan-nano: ram needs"):
        made(tmp_path / "asked", "longan-nano", tflite, narrow=True, until="compile", optimize_for="rom")


@pytest.mark.parametrize("limit", [None, 1500, 4000])
def test_a_price_has_the_bytes_that_are_packed(limit: int | None) -> None:
    core, options = target_named("cortex-m55"), TensorizeConfig(optimize_for="rom", arena_limit=limit)
    setting = PassContext.of(core, options, registry.kernels_of(core).values())
    chosen, _ = decide(integer_graph(network(4)), setting)
    made = pack_and_lower(chosen, setting)
    widened = 0
    assert chosen.rom is not None
    for index, choice in chosen.choices.items():
        plan = made.plan.layers[index]
        one = chosen.graph.view(chosen.graph.layers[index]), choice.kernel, choice.params
        kept = chosen.rom.storage(*one)
        constants = [made.weights[key] for key in plan.constants.values()]
        assert kept.bytes == sum(array.nbytes for array in constants) + CODE * len(kept.scratch)
        assert len(plan.steps) == 1 + len(kept.scratch)
        assert choice.worth == pytest.approx((choice.cost or 0) + kept.instructions + chosen.rom.rate * kept.bytes)
        assert not replace(chosen.rom, rate=0.0).storage(*one).scratch  # where bytes are worth nothing
        widened += len(kept.scratch)
    assert widened == {None: 0, 1500: 1, 4000: 2}[limit]


@pytest.mark.parametrize(
    ("values", "dtype", "bits"),
    [([-8, 7], "int8", 4), ([-9], "int8", 0), ([8], "int8", 0), ([-2, 1], "int8", 2), ([-1, 0], "int8", 1),
     ([1], "uint8", 0), ([1], "int32", 0), ([-5], "int8", 4)],
)  # fmt: skip
def test_bits_of_constants(values: list[int], dtype: str, bits: int) -> None:
    assert bits_of_constant(np.resize(np.array(values, dtype), 64)) == bits
    assert bits_of_constant(np.resize(np.array(values, dtype), 63)) == (0 if dtype != "int32" else bits)
