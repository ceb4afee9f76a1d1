"""The simulated NE16 against the definition of a convolution, its closed form of cycles, and what it says of misuse."""

import re
from typing import Any

import pytest

from stages.backends.accelerators.ne16.cycles import cycles_of
from stages.backends.accelerators.ne16.job import Mode, split
from stages.backends.accelerators.ne16.words import NAMES, words
from stages.base import StageError
from tests.support.ne16_jobs import LaidOut, laid_out
from tests.support.ne16_target import log_lines, ne16_target, run_batch, run_c

MODES: tuple[Mode, ...] = ("conv3x3", "depthwise3x3", "conv1x1")


def check(drawn: list[LaidOut]) -> None:
    """All of L1 after the jobs is as defined, and each job takes what the closed form says."""
    batch = [(one.l1, [words(part) for part in split(one.job)]) for one in drawn]
    left, took = run_batch(ne16_target("tflite"), batch)
    assert took == [cycles_of(raw) for _, jobs in batch for raw in jobs]
    for one, after in zip(drawn, left, strict=True):
        assert after == one.after(), one.job


@pytest.mark.parametrize("mode", MODES)
def test_drawn_jobs(mode: Mode, request: pytest.FixtureRequest) -> None:
    count = request.config.getoption("--ne16-jobs")
    extended = [{}, {"tflite": True}, {"signed_input": True, "tflite": True}, {"stride": 2}]
    check([laid_out(1000 + seed, mode, **extended[seed % 4]) for seed in range(count)])


@pytest.mark.parametrize("stride", [1, 2])
def test_every_width_of_weights_and_every_edge(stride: int) -> None:
    common: dict[str, Any] = {"stride": stride, "pad_value": 129, "tflite": False}
    edges = [(2, 0, 1, 2), (0, 2, 2, 0), (1, 1, 1, 1), (2, 2, 2, 2)]
    check(
        [laid_out(bits, mode, bits=bits, **common) for bits in range(2, 9) for mode in MODES]
        + [
            laid_out(size, "conv3x3", h_out=size, w_out=8 - size, padding=edge, ki=3, ko=4, **common)
            for size in range(1, 8)
            for edge in edges
        ]
    )


SMALL = laid_out(
    3, "conv3x3", h_out=3, w_out=3, ki=16, ko=8, bits=8, stride=1, padding=(1, 1, 1, 1), pad_value=0, gap=0,
    scale_bits=8, output_bits=8, bias=True, per_channel=False, stream_in=False,
)  # fmt: skip
RAW = words(SMALL.job)
CYCLES = cycles_of(RAW)


def table(raw: tuple[int, ...] = RAW, **changed: int) -> str:
    values = [changed.get(name, value) for name, value in zip(NAMES, raw, strict=True)]
    return "static const uint32_t words[24] = {" + ", ".join(f"{value:#x}u" for value in values) + "};"


def program(body: str, words_in_c: str = table(), extension: str = "none") -> str:
    """What a program prints that has SMALL's L1 and `words`."""
    load = '  board_read(board_open_read("l1.bin"), (void *)0x10000000, 131072);\n'
    return run_c(ne16_target(extension), load + body, words_in_c, files={"l1.bin": SMALL.l1}).stdout


def test_results_are_there_when_the_job_is_done_and_not_before() -> None:
    first = SMALL.job.output
    body = f"""
      int id = start(words);
      uint32_t begin = now(), polls = 0;
      while (NE16(STATUS)) polls++, now();
      uint32_t took = now() - begin;
      printf("%d %u %d\\n", id, (unsigned)NE16(RUNNING), polls > 10 && took >= {CYCLES} - 20 && took < {CYCLES} + 20);
      printf("%u\\n", *(volatile uint8_t *){first:#x});
    """
    assert program(body).split() == ["0", "1", "1", str(SMALL.after()[first - 0x1000_0000])]


def test_two_contexts_are_acquired_queued_and_counted() -> None:
    body = """
      uint32_t seen[12], *next = seen;
      *next++ = NE16(ACQUIRE); *next++ = NE16(ACQUIRE);
      NE16(CLEAR) = 0;
      start(words); *next++ = NE16(STATUS);
      start(words); *next++ = NE16(STATUS); *next++ = NE16(ACQUIRE);
      wait();
      *next++ = NE16(FINISHED); *next++ = NE16(FINISHED); *next++ = NE16(RUNNING);
      NE16(ACQUIRE);
      for (int i = 0; i < 24; i++) NE16(TASK + 4 * i) = words[i];
      NE16(TRIGGER) = 1; *next++ = NE16(STATUS);
      for (int i = 0; i < 3000; i++) now();
      *next++ = NE16(RUNNING);
      NE16(CLEAR) = 1; *next++ = NE16(ACQUIRE);
      for (uint32_t *one = seen; one < next; one++) printf("%x ", (unsigned)*one);
    """
    # Acquired, and locked; one job, then two, and no context left; two finished, told once; committed and not started.
    expected = "0 fffffffe 1 101 ffffffff 2 0 2 0 2 0"
    assert program(body).strip() == expected


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"outfeat_ptr": 0x1001FFF0}, "ne16 outfeat_ptr: 8 bytes at 0x10020000 lie outside of L1"),
        ({"infeat_ptr": 0x0FFF0000}, "ne16 infeat_ptr: 16 bytes at 0xfff"),
        ({"weights_ptr": 0x90000000}, "ne16 weights_ptr: 18 bytes at 0x90000000 lie outside of L1"),
        ({"scale_ptr": 0}, "ne16 scale_ptr: 8 bytes at 0 lie outside of L1"),
        ({"scale_bias_ptr": 0}, "ne16 scale_bias_ptr: 32 bytes at 0 lie outside of L1"),
        ({"number_ho_wo": 0}, "ne16 number_ho_wo: no subtiles"),
        ({"rem_ko_ki": 0x00080011}, "ne16 rem_ko_ki: more input channels than a subtile has"),
        ({"outfeat_d1_stride": 4}, "ne16 outfeat_d1_stride, outfeat_d2_stride: output pixels of 8 channels overlap"),
        ({"conf0": RAW[23] | 8}, "ne16 conf0: bit 3, 16-bit activations, is not modelled"),
        ({"conf0": RAW[23] | 1 << 27}, "ne16 conf0: bits 0x8000000 belong to the extension tflite, which is not there"),
        ({"conf0": RAW[23] | 1 << 8, "number_ho_wo": 0x20001}, "ne16 number_ho_wo: stride 2 takes one subtile a job"),
    ],
)
def test_jobs_that_are_refused_name_the_register_and_the_layer(changed: dict[str, int], told: str) -> None:
    with pytest.raises(StageError, match=re.escape(told)) as caught:
        program("MONITOR(0) = 7; start(words); wait();", table(**changed))
    assert "(layer 7)\nin main, main.c:" in str(caught.value) or "(layer 7)\nin start, main.c:" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("(void)*(volatile uint8_t *)OUT;", "the core reads OUT, which ne16 job 0 has not written yet (layer 3)"),
        ("*(volatile uint8_t *)OUT = 1;", "the core writes OUT, which ne16 job 0 has not written yet (layer 3)"),
        ("*(volatile uint8_t *)IN = 1;", "the core writes IN, which ne16 job 0 still reads (layer 3)"),
        ("move(0x90000000, IN, 16, 1, 0, 0); settle();", "dma transfer 0 writes IN, which ne16 job 0 reads"),
        ("move(OUT, 0x90100000, 4, 1, 0, 0); settle();", "dma transfer 0 reads OUT, which ne16 job 0 has not"),
        ("start(words); start(words);", None),
        ("(void)*(volatile uint8_t *)IN; (void)*(volatile uint8_t *)(OUT + 72);", None),
    ],
)
def test_bytes_in_use_are_the_engines(body: str, told: str | None) -> None:
    """The core may read inputs; what it writes, or reads of the output, before it has waited is an error."""
    places = {"OUT": f"{SMALL.job.output:#x}", "IN": f"{SMALL.job.input:#x}"}
    for name, place in places.items():
        body = body.replace(name, place)
        told = told and told.replace(name, place)
    body = f"MONITOR(0) = 3; start(words); {body} wait();"
    if told is None:
        program(body)
        return
    with pytest.raises(StageError, match=re.escape(told)):
        program(body)


def test_the_rest_of_misuse() -> None:
    with pytest.raises(StageError, match="ne16 TRIGGER: the clock is off"):
        program("CLUSTER = 0; start(words);")
    with pytest.raises(StageError, match="ne16 TRIGGER: both contexts have a job"):
        program("start(words); start(words); NE16(TRIGGER) = 0;")
    with pytest.raises(StageError, match="there is no extension fast, only tflite"):
        program("start(words);", extension="fast")
    with pytest.raises(StageError, match="load from an address without memory"):
        program("start(words); (void)*(volatile uint8_t *)0x201004;")


def test_a_queued_job_begins_one_cycle_after_the_one_before_it() -> None:
    load = '  board_read(board_open_read("l1.bin"), (void *)0x10000000, 131072);\n'
    body = load + "start(words); start(words); wait();"
    left = run_c(ne16_target(), body, table(), files={"l1.bin": SMALL.l1}, outputs=["devices.log"])
    first, second = [line for line in log_lines(left.files["devices.log"]) if line.unit == "ne16"]
    assert (second.since, second.until) == (first.until + 1, first.until + 1 + CYCLES)
