"""ReLU and its like on a core for which the compiler vectorizes floats."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from stages.ir.models.spec import OpModel
from stages.tensorize.float_schedule import with_vector_extremes
from tests.support.emitted import Inference, run_emitted, target_named
from tests.support.stages_run import run_stages


@pytest.mark.parametrize(
    ("extreme", "constant", "function"),
    [
        ("Max", 0.0, "fmaxf"),
        ("Min", 6.0, "fminf"),
        # v > -0.0 ? v : -0.0 is -0 for 0, and v < 0.0 ? v : 0.0 is 0 for -0; the functions are not
        ("Max", -0.0, ""),
        ("Min", 0.0, ""),
        ("Min", float("nan"), ""),
    ],
)
def test_only_exact_extremes_become_functions(extreme: str, constant: float, function: str) -> None:
    from tvm import tirx

    v = tirx.Var("v", "float32")
    body = tirx.Evaluate(getattr(tirx, extreme)(v, tirx.FloatImm("float32", constant)))
    text = str(with_vector_extremes(tirx.PrimFunc([v], body)).body)
    assert function in text if function else "call" not in text


@pytest.mark.parametrize(
    ("name", "commands", "most"),
    [
        ("aarch64", ("qemu-aarch64", "aarch64-linux-gnu-gcc"), 1.3),
        ("cortex-m55", ("qemu-system-arm", "arm-none-eabi-gcc"), 1.8),
    ],
)
def test_a_convolution_with_relu6_is_vectorized_and_exact(
    name: str, commands: tuple[str, ...], most: float, tmp_path: Path
) -> None:
    """The host computes the same with choices instead of functions. NaN, infinities and zeros are among the inputs."""
    if not all(map(shutil.which, commands)):
        pytest.skip(f"{' or '.join(commands)} is not installed")
    shape = {"shape": (12, 12, 8), "out_channels": 20, "kernel": (3, 3), "stride": (2, 2)}
    model = OpModel.model_validate({"op": "conv2d", "dtype": "float32", "activation": "relu6", **shape})
    x = np.random.default_rng(1).uniform(-3, 3, (1, 12, 12, 8)).astype(np.float32)
    x[0, ::5, ::4, 0] = [np.nan, np.inf, -np.inf]
    x[0, 3:5] = -0.0

    def run(name: str) -> Inference:
        target = target_named(name)
        emitted = run_stages(model, target, tmp_path / name)["emit"]
        return run_emitted(emitted, target, [[x]], flags=("-O2",))[0]

    expected, actual = run("host"), run(name)
    assert expected.outputs[0].tobytes() == actual.outputs[0].tobytes()
    assert sum(actual.instructions) < most * 36 * 20 * 72
