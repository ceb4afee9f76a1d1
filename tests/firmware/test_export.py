"""Exports are built as their ecosystems build them, and run on their test."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stages.backends.qemu.run import qemu_command
from stages.backends.riscv.spike.build import plugin_path
from stages.backends.riscv.spike.run import spike_command
from stages.backends.simulators.program import run_program
from stages.backends.targets.load import load_target, load_targets
from stages.backends.targets.runtime import runtime_for
from stages.backends.targets.spec import Target
from stages.delivery.export.content import Content
from stages.delivery.export.form import Files
from stages.delivery.export.registry import form_of
from stages.delivery.export.render import files_of
from stages.delivery.export.simulated import machine_of
from stages.ir.models import zoo
from stages.ir.reference import Reference
from tests.support.exports import LSTM, content, pair, written

STRICT = ("-Wall", "-Wextra", "-Werror")
STUBS = Path(__file__).parents[1] / "support" / "ecosystems"


# CMake and Ninja are Python packages of this environment.
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def finished(*words: str | Path, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in words]
    return subprocess.run(command, cwd=cwd, env=ENVIRONMENT | more, capture_output=True, text=True, check=False)


def run(*words: str | Path, cwd: Path | None = None, **more: str) -> str:
    done = finished(*words, cwd=cwd, **more)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def cmake(source: Path, build: Path, *options: str) -> Path:
    run("cmake", "-G", "Ninja", "-S", source, "-B", build, *options)
    run("cmake", "--build", build)
    return build


@pytest.mark.parametrize("weights", ["incbin", "caller"])
def test_cmake_for_another_core_runs_in_its_simulator(tmp_path: Path, weights: str) -> None:
    made = written(tmp_path / "made ä here", "cmake", content("cortex-m4", weights=weights))
    build = tmp_path / "build here"
    run("cmake", "-G", "Ninja", "-S", made, "-B", build, f"-DCMAKE_TOOLCHAIN_FILE={made}/cmake/toolchain.cmake")
    told = run("cmake", "--build", build)
    assert "warning" not in told.lower(), told
    assert "small: 0 output values differ" in run("ctest", "--test-dir", build, "-V")
    # One value expected otherwise, and the test fails.
    data = made / "example/test_data.h"
    head, mark, rest = data.read_text().partition("static const int8_t small_test_output0[SMALL_TEST_STEPS]")
    first = rest.split("{\n        ", 1)[1].split(",", 1)[0]
    data.write_text(head + mark + rest.replace(f"{{\n        {first},", f"{{\n        {int(first) ^ 1},", 1))
    run("cmake", "--build", build)
    failed = finished("ctest", "--test-dir", build, "-V")
    assert failed.returncode != 0 and "1 output values differ" in failed.stdout


def emulator(folder: Path, files: Files, *options: str) -> list[str]:
    """What the toolchain file says runs the example, as CMake reads it."""
    (folder / "toolchain.cmake").write_bytes(files["cmake/toolchain.cmake"])
    (folder / "probe.cmake").write_text(
        "include(${CMAKE_CURRENT_LIST_DIR}/toolchain.cmake)\n"
        'foreach(word IN LISTS CMAKE_CROSSCOMPILING_EMULATOR)\n  message(STATUS "${word}")\nendforeach()\n'
    )
    told = run("cmake", *options, "-P", folder / "probe.cmake")
    return [line.removeprefix("-- ") for line in told.splitlines()]


def own_command(target: Target) -> list[str]:
    """What Firmline itself runs the target's programs with, but what counts."""
    if target.simulator.kind == "spike":
        return ["spike", *spike_command(Path("elf"), target)[1:-1]]
    words = qemu_command(Path("elf"), target)[:-1]
    counter = words.index("-plugin")
    return words[:counter] + words[counter + 2 :]


CROSS = [name for name, target in load_targets().items() if target.family != "host"]


@pytest.mark.parametrize("name", CROSS)
def test_cmake_names_the_simulator_or_has_no_test(tmp_path: Path, name: str) -> None:
    """The emulator of every target is Firmline's own command; else there is none, and the README says so."""
    target = load_target(name)
    files = files_of(form_of("cmake"), replace(content("cortex-m4"), target=target))
    readme = files["README.md"].decode()
    found = emulator(tmp_path, files)
    if found:
        assert found == own_command(target.in_simulator) and "cmake --build build && ctest" in readme
        return
    assert "is built but not run" in readme and "cmake --build build && ctest" not in readme
    if target.accelerator is None:
        assert "-DFIRMLINE_RVP_PLUGIN=PATH" in readme
        draft = target.extensions["rvp"]
        assert f"spike.build {draft}`" in readme
        library = plugin_path(draft)
        assert emulator(tmp_path, files, f"-DFIRMLINE_RVP_PLUGIN={library}") == own_command(target.in_simulator)
    else:
        assert "FIRMLINE_RVP_PLUGIN" not in readme


def test_cmake_with_the_plug_in_of_spike(tmp_path: Path) -> None:
    """Without its path no test, with a wrong one no build, with the right one the test of the network runs."""
    made = written(tmp_path / "made here", "cmake", content("rv64-rvp", weights="incbin"))
    tools = f"-DCMAKE_TOOLCHAIN_FILE={made}/cmake/toolchain.cmake"
    build = tmp_path / "build here"
    words = ("cmake", "-G", "Ninja", "-S", made, "-B", build, tools)
    assert "no test" in run(*words)
    assert "Total Tests: 0" in run("ctest", "--test-dir", build, "-N")
    failed = finished(*words, "-DFIRMLINE_RVP_PLUGIN=/nowhere/librvp.so")
    assert failed.returncode != 0 and "there is no /nowhere/librvp.so" in failed.stderr
    cmake(made, build, tools, f"-DFIRMLINE_RVP_PLUGIN={plugin_path('0.9.11')}")
    assert "0 output values differ" in run("ctest", "--test-dir", build, "-V")


@pytest.mark.parametrize("options", [(), ("-O3", "-ffast-math")])
def test_floats_that_are_no_numbers_fail_where_others_are_expected(tmp_path: Path, options: tuple[str, ...]) -> None:
    """The header beside a network of which the test says what it gives."""
    integer = content("host")
    wanted = np.array([1.5, -2000, np.inf, -np.inf, np.nan], np.float32)
    (small,) = integer.networks
    port = {**small.model["outputs"][0], "dtype": "float32", "shape": [5], "bytes": 20}
    model = {**small.model, "outputs": [port]}
    network = replace(
        integer, networks=(replace(small, model=model, sample=replace(small.sample, outputs=[[wanted]])),)
    )
    written(tmp_path, "platformio", network)
    (tmp_path / "small.h").write_text(
        "#include <stdint.h>\n#define SMALL_INPUT0_BYTES 144\n"
        "static int8_t in[144];\nstatic float out[5];\n"
        "static void small_init(void) {}\nstatic void *small_input(int i) { return in + i; }\n"
        "static void small_run(void *a, void *b) { (void)a; (void)b; }\n"
        "static void *small_output(int i) { return out + i; }\n"
    )
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "test_data.h"\n'
        "int main(void)\n{\n    while (fread(out, sizeof out, 1, stdin) == 1)\n"
        '        printf("%u\\n", small_test());\n    return 0;\n}\n'
    )
    (tmp_path / "test_data.h").write_bytes((tmp_path / "examples/test/src/test_data.h").read_bytes())
    for language in (("-std=c11",), ("-x", "c++", "-std=gnu++11")):
        run("gcc", *language, *options, *STRICT, f"-I{tmp_path}", tmp_path / "main.c", "-o", tmp_path / "test")
    inf, nan = np.inf, np.nan
    given = [
        ([1.5, -2000, inf, -inf, nan], 0),
        ([1.6, -2000.1, inf, -inf, nan], 0),
        ([2.5, -2000, inf, -inf, nan], 1),
        ([nan] * 5, 4),
        ([inf] * 5, 4),
        ([1.5, -2000, -inf, inf, 0], 3),
        ([1.5, -2000, 3e38, -3e38, inf], 3),
        ([-3e38, 3e38, inf, -inf, -nan], 2),
    ]
    data = np.array([values for values, _ in given], np.float32).tobytes()
    done = subprocess.run([tmp_path / "test"], input=data, capture_output=True, check=True)
    assert [int(line) for line in done.stdout.split()] == [count for _, count in given]


def test_several_exports_in_one_program(tmp_path: Path) -> None:
    """All objects of both are linked, so names that both had would be an error; one has its arena handed in."""
    written(tmp_path / "ic", "cmake", content("host", "ic"))
    written(tmp_path / "two", "cmake", content("host", "two", arena="caller"))
    (tmp_path / "main.c").write_text(
        '#include "ic/example/test_data.h"\n#include "two/example/test_data.h"\n'
        "int main(void) { return (int)(ic_test() + two_test()); }\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(both C)\nadd_subdirectory(ic)\nadd_subdirectory(two)\n"
        "add_executable(both main.c)\n"
        "target_link_libraries(both -Wl,--whole-archive ic two -Wl,--no-whole-archive)\n"
    )
    run(cmake(tmp_path, tmp_path / "build") / "both")


def on_simulator(objects: Sequence[str | Path], folder: Path, target: str = "cortex-m4") -> str:
    """What a program of these objects prints on the target's machine."""
    described = load_target(target)
    runtime = runtime_for(described)
    script = folder / "machine.ld"
    script.write_text(runtime.linker_script)
    include = [f"-I{one}" for one in runtime.include]
    command = (described.compiler.command, *described.compiler.flags, *runtime.compile_flags, *runtime.link_flags)
    sources = [*runtime.sources, *runtime.console]
    run(*command, *include, *sources, *objects, "-T", script, "-Wl,--gc-sections", "-lm", "-o", folder / "made.elf")
    ended = run_program(folder / "made.elf", described, folder, timeout=60)
    assert ended.exit_code == 0, ended.output
    return ended.output


def test_several_networks_in_one_export(tmp_path: Path) -> None:
    """Kernels exist once, both tests pass, and a shared arena needs the RAM of the larger network only."""
    ram = {}
    for share in (False, True):
        networks = pair("cortex-m4", weights="incbin", share=share)
        folder = written(tmp_path / f"made {share}", "cmake", networks)
        tools = f"-DCMAKE_TOOLCHAIN_FILE={folder}/cmake/toolchain.cmake"
        build = cmake(folder, tmp_path / f"build {share}", tools)
        output = run("ctest", "--test-dir", build, "-V")
        assert "small: 0 output values differ" in output and "other: 0 output values differ" in output
        listed = [line.split() for line in run("arm-none-eabi-nm", build / "libsmall_other.a").splitlines()]
        kernels = [words[2] for words in listed if len(words) == 3 and words[1] == "T" and "_gemm_" in words[2]]
        assert kernels and all(name.startswith("small_other_") for name in kernels)
        assert len(kernels) == len(set(kernels))
        _, data, bss, *_ = run("arm-none-eabi-size", build / "small_other_example").splitlines()[1].split()
        ram[share] = int(data) + int(bss)
    smaller = min(network.model["arena_bytes"] for network in networks.networks)
    # Each network has a pointer to the shared arena, and alignment may cost some bytes.
    assert smaller - 32 <= ram[False] - ram[True] <= smaller


def test_networks_with_a_shared_arena_keep_their_state_apart(tmp_path: Path) -> None:
    """An inference of one network between the steps of the other changes nothing."""
    folder = written(tmp_path / "made", "platformio", pair("host", share=True, second=LSTM))
    call = "other_init(small_other_arena, sizeof small_other_arena, other_state, sizeof other_state)"
    assert call in (folder / "src/small_other/arena.c").read_text()
    test = folder / "examples/test/src/test_data.h"
    text = test.read_text()
    assert text.count("OTHER_TEST_STEPS 4") == 1
    # Between the steps, the other network overwrites the arena. The outputs are read before.
    changed = text.replace("    if (small_other_init() != 0)\n        return 1;\n    for", "    for")
    changed = changed.replace(
        "        memcpy(other_input(0)", "        small_run(NULL, NULL);\n        memcpy(other_input(0)"
    )
    assert changed.count("small_run(NULL, NULL)") == 2 and "small_other_init" not in changed
    test.write_text(changed)
    main = folder / "examples/test/src/main.c"
    main.write_text(main.read_text().replace("unsigned differing = 0;\n", "unsigned differing = small_other_init();\n"))
    sources = [*folder.glob("src/**/*.c"), main]
    run("gcc", "-O1", *STRICT, f"-I{folder}/src", *sources, "-lm", "-o", tmp_path / "test")
    assert "PASS" in run(tmp_path / "test")


@pytest.mark.parametrize(("rows", "share"), [(("output",), True), (("input", "output"), False)])
def test_networks_whose_output_comes_by_rows(tmp_path: Path, rows: tuple[str, ...], share: bool) -> None:
    """The test compares each row, and misses one that is not passed on."""
    folder = written(tmp_path / "made", "arduino", pair("host", rows=rows, share=share))
    test = next(folder.glob("examples/*/test_data.h"))
    main = tmp_path / "main.c"
    main.write_text(
        f'#include <stdio.h>\n#include "{test}"\n'
        'int main(void) { printf("%u %u", small_test(), other_test()); return 0; }\n'
    )
    flags = ("-O1", *STRICT, "-fsanitize=address,undefined", f"-I{folder}/src")

    def output() -> str:
        run("gcc", *flags, *folder.glob("src/**/*.c"), main, "-lm", "-o", tmp_path / "test")
        return run(tmp_path / "test")

    assert output() == "0 0"
    run("g++", "-fsyntax-only", "-x", "c++", f"-I{folder}/src", main)
    model = next(folder.glob("src/**/small/model.c"))
    text = model.read_text()
    assert text.count("    if (emitted.receive != NULL)") == 1
    model.write_text(text.replace("(emitted.receive != NULL)", "(emitted.receive != NULL && first != 2)"))
    assert output() == f"{6 * 8} 0"


ONE_AND_TWO = pytest.mark.parametrize("networks", [content, pair], ids=["one", "two"])


@ONE_AND_TWO
def test_arduino_library_and_sketch(tmp_path: Path, networks: Callable[..., Content]) -> None:
    """As the Arduino builder does: all of src with one folder to search, the sketch as C++ behind Arduino.h."""
    made = written(tmp_path / "made", "arduino", networks("cortex-m4"))
    flags = load_target("cortex-m4").compiler.flags
    objects = []
    for number, source in enumerate(sorted([*made.glob("src/**/*.c"), *made.glob("src/**/*.S")])):
        objects.append(tmp_path / f"{number}.o")
        language = ["-std=gnu11"] if source.suffix == ".c" else ["-x", "assembler-with-cpp"]
        run("arm-none-eabi-gcc", *flags, "-Os", *language, f"-I{made}/src", "-c", source, "-o", objects[-1])
    sketch = next(made.glob("examples/*/*.ino"))
    assert sketch.stem == sketch.parent.name
    objects.append(tmp_path / "sketch.o")
    options = ("-std=gnu++11", "-fno-exceptions", "-fno-rtti", "-Wall", "-Werror", "-include", STUBS / "Arduino.h")
    run(
        *("arm-none-eabi-g++", *flags, *options, f"-I{made}/src", f"-I{sketch.parent}"),
        *("-x", "c++", "-c", sketch, "-o", objects[-1]),
    )
    assert "PASS" in on_simulator(objects, tmp_path)


@ONE_AND_TWO
def test_platformio_library_and_example(tmp_path: Path, networks: Callable[..., Content]) -> None:
    made = written(tmp_path / "made", "platformio", networks("host"))
    sources = [*made.glob("src/**/*.c"), made / "examples/test/src/main.c"]
    run("gcc", "-O2", *STRICT, f"-I{made}/src", *sources, "-lm", "-o", tmp_path / "test")
    assert "PASS" in run(tmp_path / "test")


@ONE_AND_TWO
def test_zephyr_module_and_sample(tmp_path: Path, networks: Callable[..., Content]) -> None:
    """With Zephyr's functions of CMake as a stub: the module's library, and the sample against it."""
    made = written(tmp_path / "made", "zephyr", networks("cortex-m4", weights="incbin"))
    (sample,) = (made / "samples").iterdir()
    options = (f"-DZephyr_DIR={STUBS}/zephyr", f"-DCMAKE_TOOLCHAIN_FILE={STUBS}/cortex-m4.cmake")
    build = cmake(sample, tmp_path / "build", *options)
    libraries = [*build.rglob(f"lib{sample.name}.a"), *build.rglob("libapp.a")]
    assert "PASS" in on_simulator(["-Wl,--whole-archive", *libraries, "-Wl,--no-whole-archive"], tmp_path)
    # Without its symbol of Kconfig the module adds nothing.
    (sample / "prj.conf").write_text(f"CONFIG_FIRMLINE_{sample.name.upper()}=n\n")
    run("cmake", "-G", "Ninja", "-S", sample, "-B", tmp_path / "none", *options)
    assert not list((tmp_path / "none").rglob(f"*{sample.name}.dir"))


def cube_project(folder: Path, networks: Content) -> Path:
    """A project of STM32CubeMX with an export in it, and the simulated machine in place of ST's drivers."""
    made = written(shutil.copytree(STUBS / "stm32cube", folder / "project") / networks.name, "stm32cube", networks)
    (made.parent / "Core/Inc").mkdir()
    tests = " + ".join(f"{network.name}_test()" for network in networks.networks)
    defines = f'#define TEST_DATA "{networks.name}_test_data.h"\n#define TESTS {tests}\n'
    main = made.parent / "Core/Src/main.c"
    main.write_text(defines + main.read_text())
    return made


@ONE_AND_TWO
@pytest.mark.parametrize("preset", ["Debug", "Release"])
def test_stm32cube_in_a_cmake_project(tmp_path: Path, networks: Callable[..., Content], preset: str) -> None:
    """The two lines of the README are all that the project needs."""
    made = cube_project(tmp_path, networks("cortex-m4"))
    project = made.parent
    machine = machine_of(load_target("cortex-m4"), [])
    assert machine is not None
    for name, data in machine.files.items():
        path = project / (name if name == machine.script else f"Drivers/{name}")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    (lines,) = re.findall(r"^```cmake\n(.*?)^```", (made / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    with (project / "CMakeLists.txt").open("a") as file:
        file.write(lines)
    run(
        *("cmake", "-G", "Ninja", "-S", project, "-B", tmp_path / "build", f"-DCMAKE_BUILD_TYPE={preset}"),
        f"-DCMAKE_TOOLCHAIN_FILE={project}/cmake/gcc-arm-none-eabi.cmake",
        f"-DMACHINE_FLAGS={';'.join(machine.flags)}",
        f"-DMACHINE_LINK={';'.join(machine.link)}",
    )
    output = run("cmake", "--build", tmp_path / "build", "-v")
    assert "warning" not in output.lower(), output
    compiled = [line for line in output.splitlines() if f"-c {made}" in line and line.endswith(".c")]
    assert compiled and all(line.rindex(" -O2") > max(line.find(" -O0"), line.find(" -Os")) > 0 for line in compiled)
    assert "PASS" in run_program(tmp_path / "build/app.elf", load_target("cortex-m4"), tmp_path, timeout=60).output


def test_stm32cube_in_a_managed_build(tmp_path: Path) -> None:
    """As STM32CubeIDE does: all C and assembly of the folder with the flags of its preset, and one include path."""
    made = cube_project(tmp_path, pair("cortex-m4"))
    flags = ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", f"-I{made}/src", "-Wall", "-Werror")
    objects = []
    sources = [made.parent / "Core/Src/main.c", *made.rglob("*.c"), *made.rglob("*.[sS]")]
    for number, source in enumerate(sources):
        objects.append(tmp_path / f"{number}.o")
        language = ("-std=gnu11", "-O0", "-g3", "-DDEBUG") if source.suffix == ".c" else ("-x", "assembler-with-cpp")
        run("arm-none-eabi-gcc", *flags, *language, "-c", source, "-o", objects[-1])
    assert "PASS" in on_simulator(objects, tmp_path)


@ONE_AND_TWO
def test_esp_idf_component_and_example(tmp_path: Path, networks: Callable[..., Content]) -> None:
    """With ESP-IDF's functions of CMake as a stub, for this machine."""
    made = written(tmp_path / "made", "esp-idf", networks("host"))
    build = tmp_path / "build"
    run("cmake", "-G", "Ninja", "-S", made / "examples/test", "-B", build, IDF_PATH=str(STUBS / "idf"))
    run("cmake", "--build", build)
    assert "PASS" in run(build / "app")


@pytest.mark.parametrize("name", ["small", "ic", "ad"])
def test_mlperf_tiny_harness(tmp_path: Path, name: str) -> None:
    """The benchmark's side as a stub: one input for several inferences, results as its runner reads them."""
    size = [6, 6, 4] if name != "ad" else [16]
    model = {"op": "fully_connected", "shape": size, "out_channels": 16} if name == "ad" else None
    network = content("host", name, **({"model": model} if model else {}))
    made = written(tmp_path / "made", "mlperf-tiny", network)
    (tmp_path / "data.h").write_text((made / "example/test_data.h").read_text())
    kind = {"small": "KIND_RAW", "ic": "KIND_PIXELS", "ad": "KIND_FEATURES"}[name]
    run(
        *("g++", "-std=c++14", *STRICT, "-Wno-unused-function", '-DTH_MODEL_VERSION="x"'),
        *(f"-DNAME={name}", f"-DMACRO={name.upper()}", f"-D{kind}", "-c"),
        *(f"-I{STUBS}/mlperf", f"-I{made}/api", f"-I{made}/src", f"-I{tmp_path}"),
        *(made / "api/submitter_implemented.cpp", STUBS / "mlperf/stub.cpp"),
        cwd=tmp_path,
    )
    sources = sorted(made.glob("src/**/*.c"))
    run("gcc", "-O1", "-c", f"-I{made}/src", *sources, cwd=tmp_path)
    run("g++", *sorted(tmp_path.glob("*.o")), "-lm", "-o", tmp_path / "harness")
    assert "as expected" in run(tmp_path / "harness")


def log_mel(samples: np.ndarray) -> np.ndarray:
    """Features of MLPerf Tiny's streaming wake word: [steps, 40] in 0 to 1, with silence before the first sample."""
    heard = np.concatenate([np.zeros(513), samples / 32768])
    windows = np.lib.stride_tricks.sliding_window_view(heard, 1025)[::512]
    emphasized = (windows[:, 1:] - 0.96875 * windows[:, :-1]) * np.hamming(1024)
    energy = np.abs(np.fft.rfft(emphasized)) ** 2 / 1024
    mel = 1127 * np.log1p(np.arange(513) * 15.625 / 700)
    edges = np.linspace(0, mel[-1], 42)
    bands = np.stack([np.interp(mel, edges[band : band + 3], [0, 1, 0]) for band in range(40)])
    return np.clip((10 * np.log10(np.maximum(energy @ bands.T, 1e-30)) + 52) / 64, 0, 1)


def streamed(folder: Path, made: Path, samples: np.ndarray) -> list[str]:
    """Expected output of the benchmark's stub: of its commands, then of each step."""
    stubs = STUBS / "mlperf_sww"
    flags = ("-std=c11", "-O1", *STRICT, f"-I{stubs}", f"-I{made}/api", f"-I{made}/src", "-c")
    run("gcc", *flags, "-Dmain=sww_main", made / "api/sww_main.c", cwd=folder)
    api = [path for path in sorted(made.glob("api/*.c")) if path.name != "sww_main.c"]
    run("gcc", *flags, *api, stubs / "stub.c", *sorted(made.glob("src/**/*.c")), cwd=folder)
    run("gcc", *sorted(folder.glob("*.o")), "-lm", "-o", folder / "sww")
    (folder / "recording").write_bytes(samples.astype("<i2").tobytes())
    return re.split(r"step (?=\d)", run(folder / "sww", folder / "recording", "-76"))


def test_mlperf_tiny_streaming_of_a_network_that_reads_samples(tmp_path: Path) -> None:
    """Its front end is in the network, whose state begins anew with each stream."""
    pytest.importorskip("tflite_micro", reason="./bootstrap --with audio pytest runs it")
    front = {"kind": "log_mel", "window_samples": 1024, "step_samples": 512, "per_point": True, "mean": -52, "std": 64}
    network = content("host", "sww", model={"chain": [{"frontend": front}, {"zoo": "ds_cnn_1d"}]})
    made = written(tmp_path / "made", "mlperf-tiny", network)
    assert not (made / "api/log_mel.c").exists()
    sample = network.networks[0].sample
    commands, *steps = streamed(tmp_path, made, np.concatenate([inputs[0].ravel() for inputs in sample.inputs]))
    scores = [outputs[0].ravel().tolist() for outputs in sample.outputs]
    assert [int(re.findall(r"score (.*)", step)[0]) for step in steps] == [score[0] for score in scores]
    loaded = re.findall(r"m-activations-\[(.*)\]", commands)[-len(scores) :]
    assert [[int(value) for value in line.split(",")] for line in loaded] == scores and scores[0] != scores[-1]


def test_mlperf_tiny_streaming_wake_word(tmp_path: Path) -> None:
    """The benchmark plays a recording: features, scores, detections and the duty cycle follow its rules."""
    made = written(tmp_path / "made", "mlperf-tiny", content("host", "sww", model={"zoo": "ds_cnn_1d"}))
    assert not (made / "api/port.h").exists() and "SWW01" in (made / "api/sww_ref_util_submitter.h").read_text()
    time = np.arange(512 * 40)
    loudness = np.repeat([30, 3000, 0, 12000], 512 * 10)
    tone = np.sin(time**2 * 1e-5) + np.random.default_rng(1).normal(0, 0.3, time.size)
    samples = np.clip(loudness * tone, -32768, 32767).astype("<i2")
    commands, *steps = streamed(tmp_path, made, samples)

    reference = Reference(zoo.build("ds_cnn_1d"))
    scale = reference.info.tensors[reference.info.inputs[0]].scale[0]
    want = np.clip(log_mel(samples) / scale - 128, -128, 127)
    scores, first = [], True
    for step in steps:
        window, score = re.findall(r"(?:window|score) (.*)", step)
        codes = np.array(window.split(), np.int8).reshape(30, 40)
        assert np.abs(codes[-1] - np.trunc(want[len(scores)])).max() <= 1
        scores.append(reference.run([codes.reshape(1, 30, 1, 40)])[0].ravel())
        assert int(score) == scores[-1][0], "a score of the network that was exported"
        pulse = "pin 2 0\ndelay 1\npin 2 1\n" if first or scores[-1][0] > -76 else ""
        assert step.split("\n", 1)[1].startswith(f"pin 1 1\n{pulse}pin 1 0\nwindow"), "the duty cycle, around all of it"
        first = False
    assert 1 < sum(score[0] > -76 for score in scores) < len(scores) and steps[-1].endswith("idle 1\n")

    activations = [[int(v) for v in line.split(",")] for line in re.findall(r"m-activations-\[(.*)\]", commands)]
    constant = np.zeros(1200, np.int8)
    constant[:2] = 2, 3
    assert activations[0] == reference.run([constant.reshape(1, 30, 1, 40)])[0].ravel().tolist()
    assert activations[-len(scores) :] == [score.tolist() for score in scores], "loaded by commands, the same"
    features = [line.split(",") for line in re.findall(r"m-features-\[(.*)\]", commands)]
    assert len(features) == len(scores) and [int(v) for v in features[-1]] == codes[-1].tolist()
    assert "captured" in commands
