"""Invalid `model:` entries are refused at their position, before anything is built."""

import pytest

from tests.unit.pipeline.conftest import FakeProject
from tests.unit.pipeline.recipes.test_loader import refused

CONV = "op: conv2d, shape: [8, 8, 8], out_channels: 4"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{file: ''}", "4:15: model.file: should be the name of a file, is empty"),
        ("{file: ~nouser/x}", "4:15: model.file: there is no user 'nouser' with a home folder"),
        ('{file: "a\\0b"}', "4:15: model.file: should be the name of a file, has a NUL character in it"),
        ("", "4:7: model: should be a mapping with one of file, url, zoo, op"),
        ("{zoo: dscnn}", "4:14: model.zoo: unknown zoo model 'dscnn'; did you mean 'ds_cnn'? Known: autoencoder, "),
        ("{op: conv3d, shape: [1]}", "4:13: model.op: unknown operator 'conv3d'; did you mean 'conv2d'?"),
        (f"{{{CONV}, kernel: [3, 3, 3]}}", "4:64: model.kernel: should have at most 2 items, has 3"),
        (f"{{{CONV}, input: {{scale: 1, zero_point: 300}}}}", "4:86: model.input.zero_point: a zero point of int8 is"),
        (f"{{{CONV}, input: {{scale: .nan}}}}", "model.input.scale: should be a finite number, is .nan"),
        (f"{{{CONV}, input: {{scale: 0}}}}", "model.input.scale: should be greater than or equal to 1.17549e-38, is 0"),
        (f"{{{CONV}, groups: 3}}", "model.groups: groups 3 must divide the input's and the output's channels"),
        ("{op: add, shape: [99999, 99999]}", "4:25: model.shape: makes a tensor of 9,999,800,001 elements"),
        ("{op: pad, shape: [4], pads: [[0, 4294967296]]}",
         "model.pads.0.1: should be less than or equal to 2147483647"),
        ("{op: dequantize, shape: [4], dtype: float32}", "4:44: model.dtype: dequantize reads int8, uint8 or int16"),
        ("{chain: [{frontend: {kind: mfc}}]}",
         "frontend.kind: should be microfrontend, log_mel, mfcc; is mfc; did you mean 'mfcc'?"),
        ("{chain: [{frontend: {mels: 40}}]}", "frontend: needs a kind: microfrontend, log_mel, mfcc"),
        ("{chain: [{zoo: ds_cnn}, {file: a.tflite, incremental: {axis: 9}}]}",
         "4:69: model.chain.1.incremental.axis: should be less than or equal to 7, is 9"),
        ("{chain: [{frontend: {kind: microfrontend}}, {smooth: {}}]}",
         "4:53: model.chain.1.smooth: smooth reads the scores of a network, but the part before it is the front end"),
        ("{chain: [{zoo: ds_cnn}, {file: vad.onnx, incremental: true}]}",
         "4:49: model.chain.1.incremental: incremental is an option of a TFLite file, and 'vad.onnx' is not one"),
    ],
)  # fmt: skip
def test_invalid_models_are_refused_at_their_position(project: FakeProject, entry: str, message: str) -> None:
    project.edit("recipes/demo.yaml", "{file: model.txt}", entry)
    first = refused(project).splitlines()[0]
    assert first.startswith("recipes/demo.yaml:4:") and message in first


@pytest.mark.parametrize(
    ("entry", "message", "last"),
    [
        (
            "{op: add, shape: [4], dtype: float32, input: {scale: 1}}",
            "model.input",
            "dtype is at recipes/demo.yaml:4:37",
        ),
        (
            "{chain: [{frontend: {kind: mfcc, window_ms: 32, window_samples: 400}}]}",
            "frontend.window_samples: states the window a second time; remove it or window_ms",
            "window_ms is at recipes/demo.yaml:4:52",
        ),
        (
            "{chain: [{frontend: {kind: log_mel, step_samples: 160, step_ms: 10}}]}",
            "frontend.step_samples: states the step a second time; remove it or step_ms",
            "step_ms is at recipes/demo.yaml:4:72",
        ),
    ],
)
def test_a_conflicting_value_is_named_too(project: FakeProject, entry: str, message: str, last: str) -> None:
    project.edit("recipes/demo.yaml", "{file: model.txt}", entry)
    first, *_, end = refused(project).splitlines()
    assert message in first and end == last


@pytest.mark.parametrize(
    ("entry", "message", "known"),
    [
        ("{zoo: ds_cnn, layout: nhwc}", "'layout'; it belongs to a model given by file or url",
         "incremental, zoo, dtype, seed, weights"),
        ("{file: a.tflite, zo: a}", "'zo'", "incremental, signature, shapes, constants, states, layout, file"),
        ("{op: relu, shape: [4], layuot: a}", "'layuot'", "op, shape, batch, dtype, input, output, seed"),
        ("{chain: [{frontend: {kind: log_mel, coefficients: 13}}]}", "'coefficients'",
         "kind, sample_rate, window_ms, step_ms, frames, window_samples"),
        ("{chain: [{zoo: ds_cnn}, {smooth: {}, inputs: {a: b}}]}",
         "'inputs'; it belongs to a part given by file or url or zoo", "name, smooth"),
        ("{chain: [{zoo: ds_cnn}, {smooth: {}, incremental: true}]}",
         "'incremental'; it belongs to a part given by file or url or zoo", "name, smooth"),
        ("{chain: [{file: a.tflite, incremental: {frame: 2}}]}", "'frame'; did you mean 'frames'?", "frames, axis"),
        ("{chain: [{zoo: ds_cnn}, {file: a.tflite}, {smooth: {}}], incremental: true}",
         "'incremental'; it is model.chain.0.incremental or model.chain.1.incremental", "chain"),
    ],
)  # fmt: skip
def test_unknown_keys_list_the_keys_of_the_kind(project: FakeProject, entry: str, message: str, known: str) -> None:
    project.edit("recipes/demo.yaml", "{file: model.txt}", entry)
    first, *_, last = refused(project).splitlines()
    assert first.endswith(f": unknown key {message}") and last.startswith(f"known keys: {known}")
    assert "kernel" not in last
