"""WAV files as inputs: how they are cut, what is refused, and their labels."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from stages.base import StageError
from stages.ir.samples.label_times import Label, read_label_times
from stages.ir.samples.wav import Audio, audio_of, read_windows
from stages.simulate import InputsConfig
from stages.simulate.inputs import check_files, external_files, make_inputs, recordings
from stages.support.options.audio import AudioOptions
from stages.support.options.encoding import Encoding
from tests.support.recordings import write_wav

PORT = {"name": "samples", "dtype": "int16", "shape": [1, 480], "bytes": 960}
RAMP = np.arange(1000, dtype=np.int16)


def inputs(folder: Path, ports: Any = (PORT,), *, stateful: bool = False, **options: Any) -> list[Any]:
    config = InputsConfig(**{"random": 0, "extremes": False, "files": ("*.wav",), **options})
    files = external_files(config, folder)
    check_files(config, files, list(ports), 4)
    return make_inputs(config, list(ports), files, 4, stateful=stateful)


@pytest.mark.parametrize(
    ("audio", "begins"),
    [
        ({}, [0, 480]),
        ({"step": 320}, [0, 320]),
        ({"step": "10ms"}, [0, 160, 320, 480]),
        ({"step": "10ms", "seconds": 0.041}, [0, 160]),
        ({"step": 600}, [0]),
    ],
)
def test_a_file_is_a_sequence_of_windows_and_the_rest_is_dropped(
    tmp_path: Path, audio: dict[str, Any], begins: list[int]
) -> None:
    for name in ("b two.WAV", "a.wav", ".hidden.wav"):
        write_wav(tmp_path / name, RAMP)
    samples = inputs(tmp_path, audio=AudioOptions(**audio), files=("*.[wW][aA][vV]",))
    values = [np.frombuffer(sample.data, np.int16) for sample in samples]
    assert [int(window[0]) for window in values] == begins * 2
    assert all((window == np.arange(window[0], window[0] + 480)).all() for window in values)
    assert [sample.first for sample in samples] == ([True] + [False] * (len(begins) - 1)) * 2
    assert [sample.recording for sample in samples] == ["a.wav"] * len(begins) + ["b two.WAV"] * len(begins)


@pytest.mark.parametrize("step", [320, "20ms", 960])
def test_runs_of_a_network_with_state_read_contiguous_samples(tmp_path: Path, step: int | str) -> None:
    write_wav(tmp_path / "a.wav", RAMP)
    message = (
        rf"step is {step}, but the network has state: .* 480 samples \(30 ms\) of the run before it\n.*remove step"
    )
    with pytest.raises(StageError, match=message) as caught:
        inputs(tmp_path, audio=AudioOptions(step=step), stateful=True)
    assert caught.value.at == ("stages", "simulate", "inputs", "audio", "step")
    for same in (480, "30ms", None):
        assert len(inputs(tmp_path, audio=AudioOptions(step=same), stateful=True)) == 2


def test_samples_become_real_numbers_by_the_encoding(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", np.full(480, -16384))
    encoding = Encoding(dtype="int16", scale=1 / 32768)
    (sample,) = inputs(tmp_path, [{**PORT, "dtype": "float32", "bytes": 1920}], encoding=encoding)
    assert (np.frombuffer(sample.data, np.float32) == -0.5).all()
    narrow = {**PORT, "dtype": "int8", "bytes": 480, "scale": 1 / 64, "zero_point": 3}
    assert (np.frombuffer(inputs(tmp_path, [narrow], encoding=encoding)[0].data, np.int8) == -29).all()


def header(tag: int, channels: int = 1, rate: int = 16_000, bits: int = 16, size: int = 2000) -> bytes:
    frame = channels * bits // 8
    layout = struct.pack("<HHIIHH", tag, channels, rate, rate * frame, frame, bits)
    return (
        b"RIFF"
        + struct.pack("<I", min(36 + size, 2**32 - 1))
        + b"WAVEfmt "
        + struct.pack("<I", 16)
        + layout
        + b"data"
        + struct.pack("<I", size)
    )


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (header(1, channels=2) + bytes(2000), "is stereo, 16 bit; inputs are mono, 16 bit", "-ac 1"),
        (header(1, channels=6, size=2400) + bytes(2400), "is 6 channels, 16 bit", "-ac 1"),
        (header(1, bits=8) + bytes(2000), "is mono, 8 bit", "-c:a pcm_s16le"),
        (header(1, bits=24, size=2400) + bytes(2400), "is mono, 24 bit", "-c:a pcm_s16le"),
        (header(1, bits=32) + bytes(2000), "is mono, 32 bit", "-c:a pcm_s16le"),
        (header(3, bits=32) + bytes(2000), "holds floating-point samples", "-c:a pcm_s16le"),
        (header(7, bits=8) + bytes(2000), "holds mu-law samples", "ffmpeg"),
        (header(0xFFFE) + bytes(2000), "has the extended WAV header", "ffmpeg"),
        (header(77) + bytes(2000), "holds format 77 samples", "ffmpeg"),
        (
            header(1, rate=44_100) + bytes(2000),
            "has 44,100 samples per second, but the network reads 16,000",
            "-ar 16000",
        ),
        (header(1, rate=8_000) + bytes(2000), "has 8,000 samples per second", r"audio: \{sample_rate: 8000\}"),
        (header(1) + bytes(1500), "is cut short: its header states 1,000 samples, the file has 750", "copy it again"),
        (header(1, size=0xFFFFFFFE) + bytes(1500), "is cut short: its header states 2,147,483,647", "ffmpeg"),
        (header(1, size=0), "has no samples", "remove it"),
        (header(1, size=600) + bytes(600), r"has 300 samples \(18.75 ms\), but the network reads 480", "add silence"),
        (header(1, channels=0) + bytes(2000), "has an invalid WAV header", "ffmpeg"),
        (header(1)[:30], "ends inside its header", "copy the file again"),
        (b"", "is empty", "copy the file again"),
        (b"ID3\x03 a song with another name" * 9, "is not a WAV file", "ffmpeg -i 'the song.wav' "),
    ],
)
def test_other_files_are_refused_with_what_to_do(tmp_path: Path, content: bytes, message: str, hint: str) -> None:
    (tmp_path / "the song.wav").write_bytes(content)
    with pytest.raises(StageError, match=rf"^the song\.wav: {message}(.|\n)*{hint}") as caught:
        inputs(tmp_path)
    assert caught.value.at == ("stages", "simulate", "inputs", "files", 0)
    assert len(str(caught.value).splitlines()) <= 5


@pytest.mark.parametrize(
    ("ports", "message"),
    [
        ([{**PORT, "shape": [1, 49, 40]}], r"is \[1, 49, 40\] int16, not a row of audio samples\n.*chain"),
        ([{**PORT, "dtype": "float32"}], r"is \[1, 480\] float32, but audio is int16\n.*encoding: \{dtype: int16"),
        ([{**PORT, "shape": [1, 1960], "dtype": "int8"}], r"int8, but audio is int16\n(.|\n)*front end .* in a chain"),
        ([PORT, PORT], "the network has 2 inputs, but a WAV file provides one"),
    ],
)
def test_a_network_that_does_not_take_samples_is_named(tmp_path: Path, ports: Any, message: str) -> None:
    write_wav(tmp_path / "a.wav", RAMP)
    with pytest.raises(StageError, match=message):
        inputs(tmp_path, ports)


def test_steps_are_whole_samples_and_the_rate_is_the_front_end_s(tmp_path: Path) -> None:
    for wrong in ("20", "ms", "0ms", "-3ms", "20us", 0, True, 0.5):
        with pytest.raises(ValidationError, match="a step is a number of samples, or a time such as 20ms"):
            AudioOptions(step=wrong)
    with pytest.raises(StageError, match=r"a step of 0\.3ms is 4.8 samples at 16,000 samples per second"):
        audio_of(AudioOptions(step="0.3ms"), None, ()).step(480)
    assert audio_of(None, 8_000, ()) == Audio(AudioOptions(), 8_000, frontend=True)
    with pytest.raises(StageError, match="front end reads 8,000") as caught:
        audio_of(AudioOptions(sample_rate=16_000), 8_000, ("inputs", "audio"))
    assert caught.value.at == ("inputs", "audio", "sample_rate")


def test_an_hour_is_mapped_and_its_runs_are_counted(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "a.wav", np.zeros(0, np.int16))
    path.write_bytes(header(1, size=2 * 3600 * 16_000))
    with path.open("r+b") as file:
        file.truncate(44 + 2 * 3600 * 16_000)  # sparse
    audio = Audio(AudioOptions(step=320), 16_000)
    windows = read_windows("a.wav", path, audio, 480)
    assert len(windows) == 179_999
    assert all(window.obj is windows[0].obj for window in windows[::10_000])
    config = InputsConfig(random=0, extremes=False, files=("a.wav",), audio=audio.options)
    described = recordings(config, make_inputs(config, [PORT], {"a.wav": path}), [PORT], {"a.wav": path})
    assert described is not None
    (warning,) = described["warnings"]
    assert warning.startswith("3,600 s of audio are 179,999 inferences; `set=stages.simulate.inputs.audio.seconds=60`")


LABELS: list[tuple[str, str, dict[str, list[Label]]]] = [
    ("l.csv", "file,start,end,class\na.wav,0.5,0.9,yes\n\na.wav,0,0.2,no\n",
     {"a.wav": [Label("no", 0.0, 0.2), Label("yes", 0.5, 0.9)], "x/b.wav": []}),
    ("l.csv", "\ufeffClass;File\nyes;b.wav\n", {"a.wav": [], "x/b.wav": [Label("yes")]}),
    ("l.tsv", "class\tstart\tend\tfile\nyes\t\t\tx/b.wav\n", {"a.wav": [], "x/b.wav": [Label("yes")]}),
    ("a.txt", "0.250000\t0.5\tyes\n\\\t100\t200\n0.7\t0.7\tno\n",
     {"a.wav": [Label("yes", 0.25, 0.5), Label("no", 0.7, 0.7)], "x/b.wav": []}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "labels"), LABELS)
def test_labels_over_time(tmp_path: Path, name: str, text: str, labels: dict[str, list[Label]]) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    read, warnings = read_label_times({name: tmp_path / name}, {"a.wav": 1.0, "x/b.wav": 1.0})
    assert (read, warnings) == (labels, [])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("l.csv", b"a.wav,0,1,yes\n", "l.csv: the first line is not file,start,end,class"),
        ("l.csv", b"file,start,class\n", "the first line is not file,start,end,class"),
        ("l.csv", b"file,class\na.wav,\n", "l.csv, line 2: the row has no file or no class"),
        ("l.csv", b"file,start,end,class\na.wav,0.3,0.2,yes\n", "line 2: '0.3 0.2' must be the start and the end"),
        ("l.csv", b"file,start,end,class\na.wav,nan,inf,yes\n", "line 2: 'nan inf' must be the start and the end"),
        ("l.csv", b"file,start,end,class\na.wav,0:03,0:04,yes\n", "line 2: '0:03 0:04' must be the start and the end"),
        ("l.csv", b"file,start,end,class\na.wav,200,700,yes\n", "line 2: a label ends at 700 s, a.wav at 1 s"),
        ("l.csv", b"file,class\nc.wav,yes\n",
         r"labelled recordings: c.wav\n.*remove the labels: set=stages\.simulate\.inputs\.labels=null"),
        ("l.csv", b"\xff\xfe", "is not text in UTF-8"),
        ("a.txt", b"0.1 0.2 yes\n", r"a.txt, line 1: not `start<tab>end<tab>class`"),
        ("c.txt", b"0.1\t0.2\tyes\n", "`files` has none of the labelled recordings: c.wav"),
    ],
)  # fmt: skip
def test_labels_that_do_not_fit_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StageError, match=message):
        read_label_times({name: tmp_path / name}, {"a.wav": 1.0})


def test_a_file_name_that_several_have_is_that_beside_the_labels(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0.1\t0.2\tyes\n")
    lengths = {"x/a.wav": 1.0, "y/a.wav": 1.0}
    read, _ = read_label_times({"y/a.txt": tmp_path / "a.txt"}, lengths)
    assert [len(labels) for labels in read.values()] == [0, 1]
    with pytest.raises(StageError, match=r"labels/a.txt: several files are named a.wav"):
        read_label_times({"labels/a.txt": tmp_path / "a.txt"}, lengths)


def test_the_labels_of_a_run_are_part_of_its_files(tmp_path: Path) -> None:
    """So their content is in the key; the check before a run is that of the run."""
    config = InputsConfig(random=1, files=("*.wav",), labels="*.txt")
    for name in ("a", "b"):
        write_wav(tmp_path / f"{name}.wav", RAMP)
        (tmp_path / f"{name}.txt").write_text("0.01\t0.02\tyes\n")
    files = external_files(config, tmp_path)
    assert list(files) == ["a.wav", "b.wav", "labels: a.txt", "labels: b.txt"]
    samples = make_inputs(config, [PORT], files)
    described = recordings(config, samples, [PORT], files)
    assert described is not None
    assert [(file["name"], file["first"], file["steps"]) for file in described["files"]] == [
        ("a.wav", 3, 2),
        ("b.wav", 5, 2),
    ]
    assert described["files"][1]["labels"] == [{"name": "yes", "start": 0.01, "end": 0.02}]
    assert described["labelled"]
    for labels, labelled in (((), True), (None, False)):
        without = InputsConfig(random=1, files=("*.wav",), labels=labels)
        found = recordings(without, samples, [PORT], external_files(without, tmp_path))
        assert found is not None
        assert (found["labelled"], [file["labels"] for file in found["files"]]) == (labelled, [[], []])
    np.save(tmp_path / "x.npy", np.zeros((1, 480), np.int16))
    arrays = InputsConfig(files=("x.npy",), labels=())
    with pytest.raises(StageError, match=r"`labels: \[\]` is for WAV files"):
        check_files(arrays, external_files(arrays, tmp_path), None, None)
    (tmp_path / "b.txt").write_text("1\t2\tyes\n")
    with pytest.raises(StageError, match=r"ends at 2 s, b\.wav at 0\.0625 s") as caught:
        check_files(config, files, None, None)
    assert caught.value.at == ("stages", "simulate", "inputs", "labels")
