"""The simulated DMA engine: what it moves, when, and what it refuses. The monitor's log."""

import re

import pytest

from stages.base import StageError
from tests.support.ne16_target import log_lines, ne16_target, run_c

FILL = "for (int i = 0; i < 64; i++) REG(0x90100000 + 4 * i) = 0x01010101u * (unsigned)i;\n"


def test_runs_with_strides_land_when_the_transfer_is_done() -> None:
    body = """
      memset((void *)0x10000000, 0xee, 64);
      move(0x90100004, 0x10000003, 5, 3, 16, 7);
      uint32_t polls = 0, begin = now();
      while (DMA(7)) polls++, now();
      uint32_t took = now() - begin;
      printf("%d\\n", polls > 5 && took > 90 && took < 140);
      for (int i = 0; i < 24; i++) printf("%02x", *(volatile uint8_t *)(0x10000000 + i));
    """
    said, found = run_c(ne16_target(), FILL + body).stdout.split()
    assert said == "1"
    assert found == "eeeeee" + "0101010102" + "eeee" + "0505050506" + "eeee" + "0909090910"[:8] + "0a" + "ee" * 2


def test_transfers_follow_each_other_and_take_their_cycles() -> None:
    body = """
      MONITOR(0) = 4; move(0x90100000, 0x10000000, 64, 2, 64, 100);
      MONITOR(0) = 5; move(0x90100000, 0x10001000, 9, 1, 0, 0);
      move(0x90100000, 0x10002000, 8, 1, 0, 0);
      settle();
      for (int i = 0; i < 4; i++) printf("%u ", (unsigned)DMA(8 + 2 * i));
    """
    left = run_c(ne16_target(), FILL + body, outputs=["devices.log"])
    lines = log_lines(left.files["devices.log"])
    moved = [line for line in lines if line.unit == "dma"]
    assert [(line.layer, line.until - line.since, line.amount) for line in moved] == [
        (4, 100 + 2 + 16, 128),
        (5, 100 + 1 + 2, 9),
        (5, 100 + 1 + 1, 8),
    ]
    assert moved[1].since == moved[0].until and moved[2].since == moved[1].until
    busy, count, number, waited = map(int, left.stdout.split())
    assert (busy, count, number) == (118 + 103 + 102, 145, 3)
    waits = [line for line in lines if line.unit == "wait-dma"]
    assert waited == sum(line.until - line.since for line in waits) and 0 < waited < busy
    assert [line.layer for line in lines if line.unit == "core"] == [4, 5]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("0x90100000, 0x20000000, 8, 1, 0, 0", "dma DESTINATION: transfer 0 has 8 bytes at 0x20000000, where not all"),
        ("0xa0000000, 0x10000000, 8, 1, 0, 0", "dma SOURCE: transfer 0 has 8 bytes at 0xa0000000"),
        ("0x9017fffc, 0x10000000, 8, 1, 0, 0", "dma SOURCE: transfer 0 has 8 bytes at 0x9017fffc"),
        ("0x90100000, 0x80000000, 8, 1, 0, 0", "dma DESTINATION: transfer 0 writes 0x80000000, which is read-only"),
        ("0x90100000, 0x10000000, 0, 1, 0, 0", "dma BYTES, RUNS: transfer 0 moves nothing"),
        ("0x90100000, 0x10000000, 8, 2, 8, 4", "dma DESTINATION_STRIDE: the runs of transfer 0 overlap"),
        ("0x90100000, 0x90100004, 8, 1, 0, 0", "dma SOURCE, DESTINATION: transfer 0 reads and writes 0x90100004"),
    ],
)
def test_transfers_that_are_refused_name_register_layer_and_line(arguments: str, told: str) -> None:
    misused(f"move({arguments});", told)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("(void)REG(0x10000004);", "the core reads 0x10000004, which dma transfer 0 has not written yet"),
        ("REG(0x10000004) = 1;", "the core writes 0x10000004, which dma transfer 0 has not written yet"),
        ("REG(0x90100004) = 1;", "the core writes 0x90100004, which dma transfer 0 still reads"),
        ("for (;;) DMA(6) = 1;", "dma QUEUE: a transfer is queued and there is no free place"),
    ],
)
def test_bytes_and_places_in_use(body: str, told: str) -> None:
    misused(f"move(0x90100000, 0x10000000, 8, 1, 0, 0); {body}", told)


def misused(body: str, told: str) -> None:
    with pytest.raises(StageError, match=re.escape(told)) as caught:
        run_c(ne16_target(), f"MONITOR(0) = 9;\n{body}\nsettle();")
    assert re.search(r"\(layer 9\)\nin \w+, main.c:\d+", str(caught.value))
