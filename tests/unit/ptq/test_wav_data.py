"""Calibration and evaluation on WAV files."""

from pathlib import Path

import numpy as np
import pytest

from stages.base import StageError
from stages.ir.models.builder import ModelBuilder
from stages.ir.models.tflite_reader import read
from stages.ptq.data import calibration, check_data, evaluation, external_files
from stages.quantize.options import QuantizeOptions
from tests.support.recordings import write_wav


def test_samples_of_a_recording_are_real_numbers(tmp_path: Path) -> None:
    b = ModelBuilder()
    b.output(b.relu(b.input("samples", (1, 400), "float32")))
    info = read(b.build())
    write_wav(tmp_path / "a.wav", np.arange(1000) * 16, rate=8_000)
    encoding = {"dtype": "int16", "scale": 1 / 32768}
    source = {"files": ["*.wav"], "encoding": encoding, "audio": {"sample_rate": 8_000, "step": "25ms"}}
    options = QuantizeOptions.model_validate({"mode": "calibrate", "data": source, "samples": 2, "evaluate": source})
    files = external_files(options, tmp_path)
    check_data(options, files, info)
    chosen, rest = calibration(options, files, info), evaluation(options, files, info)
    assert rest is not None
    assert [sample.name for sample in chosen] == ["a.wav[0]", "a.wav[2]"]
    assert [sample.first for sample in rest] == [True, False, False, False]
    assert np.array_equal(rest[3].inputs[0][0], np.arange(600, 1000, dtype=np.float32) / 2048)
    with pytest.raises(StageError, match="front end reads 16,000") as caught:
        check_data(options, files, info, 16_000)
    assert caught.value.at == ("stages", "quantize", "data", "audio", "sample_rate")
