"""What the metadata of each form must have, and what no form may depend on."""

import io
import json
import re
import xml.etree.ElementTree as ElementTree
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from kconfiglib import Kconfig

from stages.backends.targets.load import load_target
from stages.base import StageError
from stages.delivery.export.collect import Run, content_of
from stages.delivery.export.content import Content
from stages.delivery.export.names import identifier, renamed
from stages.delivery.export.registry import form_of, names
from stages.delivery.export.render import files_of
from stages.delivery.export.sample import Sample, rows
from tests.support import exports


def host() -> Content:
    return exports.content("host")


def text(form: str, content: Content, path: str) -> str:
    return files_of(form_of(form), content)[path].decode()


@pytest.mark.parametrize("form", names())
def test_every_form_has_a_readme_a_licence_an_example_and_the_same_bytes_again(form: str) -> None:
    content = host()
    files = files_of(form_of(form), content)
    assert files == files_of(form_of(form), replace(content)) and list(files) == sorted(files)
    readme = files["README.md"].decode()
    assert "small_run(NULL, NULL)" in readme and "LiteRT" in readme and "small_input(0)" in readme
    assert b"Apache License" in files["LICENSE"] and b"conv2d" in files["LICENSE"][:200]
    tests = [data for path, data in files.items() if path.endswith("test_data.h")]
    assert len(tests) == 1 and b"small_test_output0" in tests[0]
    has_main = any(path.rpartition("/")[2] in ("main.c", "app_main.c", "small_test.ino") for path in files)
    assert has_main == (form != "stm32cube")  # whose projects have their own
    for path, data in files.items():
        if path.endswith((".c", ".h", ".S", ".cpp", ".ino")):
            assert data.startswith(
                (b"/* SPDX-License-Identifier: Apache-2.0", b"// SPDX-License-Identifier: Apache-2.0")
            ), path
    assert form != "arduino" or not any(path.endswith(".bin") for path in files)


def test_the_readme_of_a_chain_with_a_front_end_says_what_a_run_reads() -> None:
    micro = {"frontend": {"kind": "microfrontend", "frames": 3}}
    chain = {"chain": [micro, {"zoo": "ds_cnn_1d"}, {"smooth": {"index": 1, "threshold": 0.5}}]}
    files = files_of(form_of("cmake"), exports.content("host", "word", model=chain))
    readme = files["README.md"].decode()
    step = "of one channel, {} samples per second. Each run reads the next 480 samples (30 ms)."
    assert step.format("16,000") in readme and "| output 1 | `smooth/detected` | `bool` | 1x1 |" in readme
    (header,) = (data.decode() for path, data in files.items() if path.endswith("/model.h"))
    assert step.format("16000") in header


# Arduino's library specification, and the rules of its linter for library.properties in strict mode.
ARDUINO = {
    "name": r"(?!arduino)(?!.*library)[a-z][a-z0-9_.-]{0,31}",
    "version": r"\d+\.\d+\.\d+",
    "author": r".+",
    "maintainer": r"(?!.*arduino).+",
    "sentence": r"[^_]+\.",
    "paragraph": r"[^_]+\.",
    "category": r"data processing",
    "url": r"https://\S+",
    "architectures": r"\*",
    "license": r"apache-2\.0",
    "includes": r"small\.h",
}


@pytest.mark.parametrize("target", ["host", "cortex-m4"])
def test_arduino_library(target: str) -> None:
    """Keys and values of the metadata, and the layout of a library with the folder src."""
    files = files_of(form_of("arduino"), exports.content(target))
    properties = dict(line.split("=", 1) for line in files["library.properties"].decode().splitlines())
    assert properties.keys() == ARDUINO.keys()
    for key, rule in ARDUINO.items():
        assert re.fullmatch(rule, properties[key], re.IGNORECASE), key
    for line in files["keywords.txt"].decode().splitlines():
        assert re.fullmatch(r"\w+\tKEYWORD[12]", line)
    assert f"src/{properties['includes']}" in files
    # Files of `utility` would be compiled twice, and a sketch must have the name of its folder.
    allowed = (
        r"src/.+\.(c|S|h)|examples/(\w+)/(\2\.ino|test_data\.h)|library\.properties|keywords\.txt|README\.md|LICENSE"
    )
    assert all(re.fullmatch(allowed, path) for path in files)


def test_platformio_manifest() -> None:
    files = files_of(form_of("platformio"), host())
    given = json.loads(files["library.json"])
    assert re.fullmatch(r"[a-z0-9_-]{1,100}", given["name"]) and re.fullmatch(r"\d+\.\d+\.\d+", given["version"])
    assert given["license"] == "Apache-2.0" and 0 < len(given["description"]) <= 255
    assert f"{given['build']['srcDir']}/{given['headers']}" in files
    (example,) = given["examples"]
    assert all(f"{example['base']}/{path}" in files for path in example["files"])


def test_zephyr_metadata() -> None:
    """Keys and types are those of Zephyr's schemas of modules, west manifests and samples."""
    content = host()
    files = files_of(form_of("zephyr"), content)
    module = yaml.safe_load(files["zephyr/module.yml"])
    assert module.keys() <= {"name", "build", "tests", "samples", "boards", "blobs"}
    assert f"{module['build']['cmake']}/CMakeLists.txt" in files and module["build"]["kconfig"] in files
    assert all(any(path.startswith(f"{root}/") for path in files) for root in module["samples"])
    west = yaml.safe_load(files["west.yml"])["manifest"]
    assert isinstance(west["version"], str) and west["self"] == {"path": "small"}
    assert all(re.fullmatch(r"v\d+\.\d+\.\d+", project["revision"]) for project in west["projects"])
    assert {project["remote"] for project in west["projects"]} <= {remote["name"] for remote in west["remotes"]}
    sample = yaml.safe_load(files["samples/small/sample.yaml"])
    assert sample["sample"].keys() <= {"name", "description"}
    (case,) = sample["tests"].values()
    assert case["harness"] == "console" and case["harness_config"]["type"] == "one_line"
    assert any(re.match(rule, "PASS") for rule in case["harness_config"]["regex"])
    symbol = re.search(r"^config (\w+)\n\tbool ", files["zephyr/Kconfig"].decode(), re.MULTILINE)
    assert symbol and f"CONFIG_{symbol[1]}=y" in files["samples/small/prj.conf"].decode()
    assert f"if(CONFIG_{symbol[1]})" in files["zephyr/CMakeLists.txt"].decode()


# Symbols of Zephyr that an export uses, with their types.
ZEPHYR = {"FPU": "bool", "MAIN_STACK_SIZE": "int", "PRINTK": "bool", "REQUIRES_FULL_LIBC": "bool"}


@pytest.mark.parametrize(("target", "source"), [("host", b""), ("cortex-m4", b"#include <math.h>\n")])
def test_zephyr_kconfig(tmp_path: Path, target: str, source: bytes) -> None:
    """Zephyr's parser reads the module's symbols, and prj.conf sets only symbols that exist."""
    content = exports.content(target)
    exports.written(tmp_path, "zephyr", replace(content, sources={**content.sources, "more.c": source}))
    known = "".join(f"config {name}\n\t{kind}\n" for name, kind in ZEPHYR.items())
    (tmp_path / "Kconfig").write_text(f'{known}osource "{tmp_path}/zephyr/Kconfig"\n')
    kconfig = Kconfig(str(tmp_path / "Kconfig"), warn_to_stderr=False)
    kconfig.warn_assign_undef = True
    kconfig.load_config(str(tmp_path / "samples/small/prj.conf"))
    assert not kconfig.warnings and kconfig.syms["FIRMLINE_SMALL"].str_value == "y"
    assert kconfig.syms["REQUIRES_FULL_LIBC"].str_value == ("y" if source else "n")


def test_esp_idf_metadata() -> None:
    files = files_of(form_of("esp-idf"), host())
    manifest = yaml.safe_load(files["idf_component.yml"])
    assert manifest["license"] == "Apache-2.0" and isinstance(manifest["version"], str) and manifest["description"]
    assert "targets" not in manifest  # plain C
    inner = yaml.safe_load(files["examples/test/main/idf_component.yml"])
    assert inner["dependencies"]["small"]["override_path"] == "../../.."
    assert "config SMALL_OPTIMIZE_SPEED" in files["Kconfig"].decode()


def test_cmsis_pack() -> None:
    """Elements and their order are those of PACK.xsd; the archive has what is named, with the same bytes each time."""
    content = exports.content("cortex-m4")
    files = files_of(form_of("cmsis-pack"), content)
    root = ElementTree.fromstring(files["Firmline.small.pdsc"])
    order = ["vendor", "name", "description", "url", "license", "releases", "keywords", "conditions", "components"]
    assert root.tag == "package" and [child.tag for child in root] == order and root.get("schemaVersion")
    (component,) = root.iter("component")
    assert {"Cclass", "Cgroup", "Cversion"} <= {*component.keys()} and component.get("condition") == "Cortex-M4"
    (condition,) = root.iter("condition")
    assert [one.attrib for one in condition.iter("require")] == [{"Dcore": "Cortex-M4"}]
    kinds = {"doc", "include", "header", "source", "sourceC", "sourceAsm", "other"}
    for one in component.iter("file"):
        assert one.get("category") in kinds
        name = one.get("name") or ""
        assert name in files or any(path.startswith(name) for path in files if name.endswith("/"))
    compiled = {
        one.get("name") for one in component.iter("file") if (one.get("category") or "") in ("sourceC", "sourceAsm")
    }
    assert compiled == {f"src/small/{one['path']}" for one in content.compiled}
    archive = files["Firmline.small.0.1.0.pack"]
    packed = zipfile.ZipFile(io.BytesIO(archive))
    assert packed.testzip() is None
    assert {name: packed.read(name) for name in packed.namelist()} == {
        path: data for path, data in files.items() if not path.endswith(".pack")
    }
    assert {entry.date_time for entry in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert archive == files_of(form_of("cmsis-pack"), content)["Firmline.small.0.1.0.pack"]


def with_model(content: Content, **changes: Any) -> Content:
    network = content.networks[0]
    return replace(content, networks=(replace(network, model={**network.model, **changes}),))


def test_what_a_form_cannot_have_is_refused() -> None:
    content = host()
    model = content.networks[0].model
    two = [*model["inputs"], *model["inputs"]]
    harness = form_of("mlperf-tiny")
    assert (
        harness.why_not(with_model(content, inputs=two))
        == "the harness supports one input and one output, the network has 2 and 1"
    )
    wide = [{**model["outputs"][0], "dtype": "int16"}]
    assert "the output is int16" in harness.why_not(with_model(content, outputs=wide))
    assert "state" in harness.why_not(with_model(content, state={"symbol": "small_state", "bytes": 4, "tensors": []}))
    named = replace(content, name="my_sww")
    assert "30 frames of 40 int8 features" in harness.why_not(named)
    frames = [{**model["inputs"][0], "shape": [1, 30, 1, 40]}]
    assert "the output is int16" in harness.why_not(with_model(content, inputs=frames, outputs=wide))
    assert harness.why_not(with_model(content, inputs=frames)) == ""
    pixels = [{**model["inputs"][0], "shape": [1, 32, 32, 3]}]
    for macs, version in ((12_500_000, "IC01"), (76_000_000, "IC02")):
        image = with_model(content, inputs=pixels, layers=[{**model["layers"][0], "macs": macs}])
        source = text("mlperf-tiny", image, "api/submitter_implemented.cpp")
        assert f"EE_MODEL_VERSION_{version} " in source and "unsigned pixels" in source
    assert harness.why_not(content) == "" and form_of("esp-idf").why_not(content) == ""
    arm = exports.content("cortex-m4")
    assert "not a core of an ESP32" in form_of("esp-idf").why_not(arm) and form_of("cmsis-pack").why_not(arm) == ""
    riscv = replace(content, target=load_target("rv64-scalar"))
    for name in ("cmsis-pack", "stm32cube"):
        assert "not a Cortex-M core" in form_of(name).why_not(riscv)


def test_files_with_flags_of_their_own_and_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """A form that compiles a file otherwise than it was verified refuses it, or its README tells."""
    made = exports._artifacts(exports._Key("host", "small", "c", "static"), repr(dict(exports.CONV)))
    listed = [{"path": "kernels/fast/dot.c", "flags": ["-O3", "-mtune=x"]}]
    monkeypatch.setattr(Content, "compiled", property(lambda self: listed))
    for form in names():
        taken = form_of(form).gives_flags
        assert taken == (form in ("cmake", "zephyr", "esp-idf"))
        if taken:
            content = content_of([Run(made, "small")], load_target("host"), form=form_of(form), version="1")
            files = files_of(form_of(form), content)
            assert any(b"-ffp-contract=off" in data and b"-O3;-mtune=x" in data for data in files.values())
        else:
            with pytest.raises(StageError, match=r"kernels/fast/dot\.c needs the flags -O3 -mtune=x"):
                content_of([Run(made, "small")], load_target("host"), form=form_of(form), version="1")
    monkeypatch.undo()
    (network,) = host().networks
    ports = [{**network.model["outputs"][0], "dtype": "float32"}]
    (network,) = with_model(host(), outputs=ports).networks
    sample = replace(network.sample, outputs=[[np.array([1.0], np.float32)]])
    floats = replace(host(), networks=(replace(network, sample=sample),))
    for form in names():
        given = b"-ffp-contract=off" in files_of(form_of(form), host()).get("library.json", b"")
        said = "-ffp-contract=off" in text(form, floats, "README.md")
        assert said == (form in ("arduino", "cmsis-pack", "mlperf-tiny", "stm32cube")) and "-ffp-contract" not in text(
            form, host(), "README.md"
        )
        assert given == (form == "platformio")


def test_an_accelerator_needs_a_linker_script() -> None:
    made = exports._artifacts(exports._Key("host", "small", "c", "static"), repr(dict(exports.CONV)))
    target = load_target("rv32-ne16")
    with pytest.raises(StageError, match="ne16, whose memory l1") as caught:
        content_of([Run(made, "small")], target, form=form_of("arduino"), version="1")
    assert "target=rv32-rvp" in str(caught.value)
    assert form_of("cmake").places_memory and not any(form_of(n).places_memory for n in names() if n != "cmake")


def test_several_inputs_state_and_an_arena_of_the_caller_are_in_test_and_readme() -> None:
    content = host()
    (network,) = content.networks
    port = {**network.model["inputs"][0], "dtype": "float32", "shape": [2], "bytes": 8, "scale": None}
    values = np.array([1.5, -np.inf], np.float32)
    steps = [[network.sample.inputs[0][0], values]] * 2
    state = {"symbol": "small_state", "bytes": 32}
    (changed,) = with_model(content, inputs=[*network.model["inputs"], port], state=state).networks
    sample = Sample("two steps", steps, [network.sample.outputs[0]] * 2)
    more = replace(content, networks=(replace(changed, sample=sample, caller=True),))
    data = text("cmake", more, "example/test_data.h")
    assert "#define SMALL_TEST_STEPS 2" in data and "static const float small_test_input1[SMALL_TEST_STEPS][2]" in data
    assert data.count("1.5f, (-1.0f / 0.0f),") == 2 and "memcpy(small_input(1), small_test_input1[step]" in data
    assert "small_init(small_test_small_arena, sizeof small_test_small_arena, small_test_small_state" in data
    readme = text("cmake", more, "README.md")
    assert "small_reset();" in readme and "memcpy(small_input(1), data1," in readme and "32 bytes of state" in readme
    assert "small_reset\tKEYWORD2" in text("arduino", more, "keywords.txt")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (np.array([-128, 127], np.int8), "-128, 127"),
        (np.array([True, False]), "1, 0"),
        (np.array([-(2**31)], np.int32), "(-2147483647 - 1)"),
        (np.array([-(2**63), 5], np.int64), "(-9223372036854775807LL - 1), 5LL"),
        (np.array([1, 1e-9, np.nan, 0.1], np.float32), "1.0f, 9.99999972e-10f, (0.0f / 0.0f), 0.100000001f"),
    ],
)
def test_values_are_c(values: np.ndarray, shown: str) -> None:
    assert rows(values) == [shown]


def test_names_are_c_identifiers_that_nobody_has() -> None:
    assert identifier("tiny_matrix:kws-rv64.O2") == "tiny_matrix_kws_rv64_o2"
    assert identifier("layers/conv1x1") == "layers_conv1x1" and identifier("8bit") == "net_8bit"
    assert identifier("string") == "string_model" and identifier("Test") == "test_model" and identifier("é") == "net"


def test_functions_of_kernels_are_renamed_where_they_are_named() -> None:
    sources = {
        "model.c": b"/* SPDX-License-Identifier: Apache-2.0 */\nint net_run(void) { return dot(1); }\n",
        "model.h": b"int net_run(void);\n",
        "kernels/fast/dot.c": b"#define F(x) fast_##x\nint F(two)(void); int dot(int x) { return x; }\n",
        "kernels/fast/rows.S": b".macro row suffix\n.globl fast_row_\\suffix\n1: b .Lfast_row_\\@\n.endm\n",
    }
    made = renamed(sources, {"net_run", "dot", "fast_two", "fast_row_a"}, "net")
    assert made["symbols.h"].decode().splitlines()[5:8] == [
        "#define dot net_dot",
        "#define fast_row_a net_fast_row_a",
        "#define fast_two net_fast_two",
    ]
    assert made["model.c"].startswith(b'/* SPDX-License-Identifier: Apache-2.0 */\n#include "symbols.h"\n')
    assert made["model.h"] == sources["model.h"]
    assert made["kernels/fast/dot.c"].startswith(b'#include "../../symbols.h"\n')
    assert (
        b".globl net_fast_row_\\suffix" in made["kernels/fast/rows.S"]
        and b"b .Lfast_row_\\@" in made["kernels/fast/rows.S"]
    )
    assert renamed(sources, {"net_run"}, "net") == sources
