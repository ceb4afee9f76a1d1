"""Helpers of model.h: conversions are those of TFLite, class names are the recipe's, and both cost nothing unused."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pipeline.keys.recipe_options import with_recipe_options
from pipeline.plugins.registry import default_registry
from pipeline.recipes.loader import load_recipes
from stages.emit import EmitConfig
from stages.ir.samples.files import quantized
from stages.support.system.installation import INSTALLATION
from tests.support.mini_emit import emit_mini

NAMES = ("cat", 'a "dog"', "Käfer \\ 甲", "what??/", "two\nlines", "")
STANDARDS = ("c90", "c99", "c17", "c++98", "c++17")
#: type, scale and zero point, among them the least and greatest zero points, and scales that are no binary fractions
PORTS = [
    ("int8", 0.5, 3),
    ("int8", np.float32(0.1), -128),
    ("int8", np.float32(1 / 255), 127),
    ("int8", np.float32(3e-7), 0),
    ("uint8", np.float32(0.0078125), 128),
    ("uint8", np.float32(1.7), 255),
    ("int16", np.float32(0.000244), 0),
    ("int16", np.float32(1e34), 0),
]


@pytest.fixture(scope="module")
def src(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("helpers")
    emit_mini(folder, prefix="kws", class_names=NAMES)
    return folder / "emitted/src"


def edges(dtype: str, scale: float, zero_point: int) -> np.ndarray:
    """Float32 numbers around all steps and halves of the range (of int16: around the ends and zero)."""
    limits = np.iinfo(dtype)
    steps = np.arange(limits.min - 3, limits.max + 4)
    steps = steps[(abs(steps) < 300) | (steps < limits.min + 300) | (steps > limits.max - 300)]
    with np.errstate(all="ignore"):
        halves = ((np.arange(-6, 7)[:, None] / 2 + steps - zero_point) * np.float64(scale)).astype(np.float32).ravel()
    values = [
        halves,
        np.array([0.0, -0.0, 1e-45, -1e-45, 0.49999997 * scale, 3e38, -3e38, 2**31, -(2.0**40)], "float32"),
    ]
    for direction in (-np.inf, np.inf):
        shifted = halves
        for _ in range(3):
            shifted = np.nextafter(shifted, np.float32(direction))
            values.append(shifted)
    every = np.concatenate(values)
    return every[np.isfinite(every)]


@pytest.mark.parametrize(("dtype", "scale", "zero_point"), PORTS)
@pytest.mark.parametrize("optimize", ["-O0", "-O2"])
def test_conversions_are_those_of_tflite(
    src: Path, tmp_path: Path, dtype: str, scale: float, zero_point: int, optimize: str
) -> None:
    """The functions of model.h with another quantization, against numpy."""
    text = (src / "model.h").read_text()
    limits = np.iinfo(dtype)
    for before, after in (
        (
            "INPUT0_SCALE 0.5f",
            f"INPUT0_SCALE {scale:.9g}{'' if '.' in f'{scale:.9g}' or 'e' in f'{scale:.9g}' else '.0'}f",
        ),
        ("INPUT0_ZERO_POINT 3", f"INPUT0_ZERO_POINT ({zero_point})"),
        ("KWS_INLINE int8_t", f"KWS_INLINE {dtype}_t"),
        ("return (int8_t)", f"return ({dtype}_t)"),
        ("_input0(int8_t value)", f"_input0({dtype}_t value)"),
        ("-128, 127)", f"{limits.min}, {limits.max})"),
    ):
        assert before in text
        text = text.replace(before, after)
    (tmp_path / "model.h").write_text(text)
    (tmp_path / "all.c").write_text(
        '#include "model.h"\n'
        f"void quantize(const float *x, {dtype}_t *q, int n)"
        " { while (n-- > 0) q[n] = kws_quantize_input0(x[n]); }\n"
        f"void dequantize(const {dtype}_t *q, float *x, int n)"
        " { while (n-- > 0) x[n] = kws_dequantize_input0(q[n]); }\n"
    )
    library = tmp_path / "all.so"
    subprocess.run(["gcc", optimize, "-std=c11", "-shared", "-fPIC", tmp_path / "all.c", "-o", library], check=True)
    functions = ctypes.CDLL(str(library))
    values = edges(dtype, scale, zero_point)
    found = np.empty(len(values), dtype)
    functions.quantize(values.ctypes.data_as(ctypes.c_void_p), found.ctypes.data_as(ctypes.c_void_p), len(values))
    with np.errstate(all="ignore"):
        expected = quantized("x", values, {"name": "x", "dtype": dtype, "scale": scale, "zero_point": zero_point})
    np.testing.assert_array_equal(found, expected)
    assert {limits.min, limits.max} <= set(found.tolist())
    others = np.array([np.inf, -np.inf, np.nan], np.float32)
    functions.quantize(others.ctypes.data_as(ctypes.c_void_p), found.ctypes.data_as(ctypes.c_void_p), len(others))
    assert found[:3].tolist() == [limits.max, limits.min, limits.min]

    steps = np.unique(expected)
    real = np.empty(len(steps), np.float32)
    functions.dequantize(steps.ctypes.data_as(ctypes.c_void_p), real.ctypes.data_as(ctypes.c_void_p), len(steps))
    np.testing.assert_array_equal(real, (np.float64(scale) * (steps.astype(np.int64) - zero_point)).astype(np.float32))


@pytest.mark.parametrize("standard", STANDARDS)
def test_each_standard_reads_the_header_and_unused_helpers_cost_nothing(
    src: Path, tmp_path: Path, standard: str
) -> None:
    language = "c++" if "++" in standard else "c"
    command = ["gcc", "-x", language, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{src}"]
    (tmp_path / "unused").write_text('#include "model.h"\nint here;\n')
    (tmp_path / "used").write_text(
        '#include <stdio.h>\n#include "model.h"\n'
        "int main(void)\n{\n    puts(kws_class_names[KWS_CLASS_COUNT - 1]);\n"
        "    return kws_quantize_input0(1.0f) + (kws_dequantize_output0(5) > 1.0f);\n}\n"
    )
    subprocess.run([*command, "-O1", "-c", tmp_path / "unused", "-o", tmp_path / "unused.o"], check=True)
    listed = subprocess.run(["nm", tmp_path / "unused.o"], check=True, capture_output=True, text=True).stdout
    assert [line.split()[-1] for line in listed.splitlines()] == ["here"]
    subprocess.run([*command, "-c", tmp_path / "used", "-o", tmp_path / "used.o"], check=True)


def test_class_names_are_the_recipes(src: Path, tmp_path: Path) -> None:
    (loaded,) = load_recipes("digits_rvp", root=INSTALLATION, registry=default_registry())
    names = with_recipe_options(EmitConfig(), loaded.recipe)
    assert isinstance(names, EmitConfig) and (names.class_names or ())[:2] == ("zero", "one")
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "model.h"\n'
        "int main(void)\n{\n    for (int i = 0; i < KWS_CLASS_COUNT; i++)\n"
        '        printf("%s%c", kws_class_names[i], 0);\n    return 0;\n}\n'
    )
    strict = ("-std=c11", "-trigraphs", "-Wall", "-Wextra", "-Werror", f"-I{src}")
    subprocess.run(["gcc", *strict, tmp_path / "main.c", "-o", tmp_path / "main"], check=True)
    printed = subprocess.run([tmp_path / "main"], check=True, capture_output=True).stdout
    assert printed.decode().split("\0")[:-1] == list(NAMES)
