"""The core of rv32-rvp with NE16 beside it, and programs on it."""

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from stages.backends.simulators.bench import BenchRun, compile_and_run_c
from stages.backends.targets.attached import DEVICES_LOG, Attached, engine
from stages.backends.targets.load import load_target
from stages.backends.targets.memory import Memory
from stages.backends.targets.spec import Target

L1, ENGINE, DMA = 0x1000_0000, 0x0020_1000, 0x0020_4000
MEMORY = {
    "rom": {"origin": "0x80000000", "length": "4M"},
    "l1": {"origin": hex(L1), "length": "128K", "holds": ["arena"]},
    "ram": {"origin": "0x90000000", "length": "1536K", "speed": 1},
    "stack": "4K",
}
DMA_MODEL = {"base": DMA, "bytes_per_cycle": 8, "fixed_cycles": 100, "run_cycles": 1, "queue": 2}


def ne16_target(extension: str = "none", **dma: Any) -> Target:
    """A target with the engine and a DMA; `dma` replaces values of DMA_MODEL."""
    memory = Memory.model_validate(MEMORY)
    beside = Attached.model_validate(
        {"kind": "ne16", "memory": "l1", "base": ENGINE, "parameters": {"extension": extension}, "dma": DMA_MODEL | dma}
    )
    core = load_target("rv32-rvp")
    return core.model_copy(update={"name": "ne16", "memory": memory, "accelerator": engine(beside, memory)})


PROLOGUE = f"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "bench.h"
#define REG(address) (*(volatile uint32_t *)(address))
#define CLUSTER REG(0x200018)
#define NE16(offset) REG({ENGINE:#x}u + (offset))
#define DMA(index) REG({DMA:#x}u + 4 * (index))
#define MONITOR(index) REG(0x4000000u + 4 * (index))
enum {{ TRIGGER = 0x00, ACQUIRE = 0x04, FINISHED = 0x08, STATUS = 0x0c, RUNNING = 0x10, CLEAR = 0x14, TASK = 0x20 }};
static inline uint32_t now(void) {{ uint32_t t; __asm__ volatile("csrr %0, minstret" : "=r"(t)); return t; }}
static inline int start(const uint32_t words[24]) {{
  int id;
  while ((id = (int)NE16(ACQUIRE)) < 0) now();
  for (int i = 0; i < 24; i++) NE16(TASK + 4 * i) = words[i];
  now();
  NE16(TRIGGER) = 0;
  return id;
}}
static inline void move(uint32_t from, uint32_t to, uint32_t bytes, uint32_t runs, uint32_t step, uint32_t to_step) {{
  while (DMA(6) == 0) now();
  DMA(0) = from; DMA(1) = to; DMA(2) = bytes; DMA(3) = runs; DMA(4) = step; DMA(5) = to_step;
  now();
  DMA(6) = 1;
}}
static inline void settle(void) {{ do now(); while (DMA(7)); }}
static inline void wait(void) {{ do now(); while (NE16(STATUS)); }}
"""


def run_c(target: Target, body: str, before: str = "", **more: Any) -> BenchRun:
    """Runs `body` as main, with the macros of PROLOGUE and the text `before`."""
    main = f"{PROLOGUE}\n{before}\nint main(void) {{\n  CLUSTER = 0x800;\n{body}\n  return 0;\n}}\n"
    return compile_and_run_c(target, [], main, **more)


_BATCH = """
  static uint32_t count, parts, words[24];
  const int tasks = board_open_read("tasks.bin"), before = board_open_read("l1.bin");
  const int after = board_open_write("after.bin");
  board_read(tasks, &count, 4);
  for (uint32_t i = 0; i < count; i++) {
    board_read(before, (void *)L1, L1_BYTES);
    board_read(tasks, &parts, 4);
    for (uint32_t part = 0; part < parts; part++) {
      board_read(tasks, words, sizeof words);
      start(words);
    }
    wait();
    board_write(after, (void *)L1, L1_BYTES);
  }
"""


def run_batch(target: Target, batch: Sequence[tuple[bytes, Sequence[Sequence[int]]]]) -> tuple[list[bytes], list[int]]:
    """L1 after each run of jobs over an L1, and the cycles of every job. Two jobs at a time are in the engine."""
    tasks = struct.pack("<I", len(batch))
    for _, jobs in batch:
        tasks += struct.pack("<I", len(jobs)) + b"".join(struct.pack("<24I", *words) for words in jobs)
    size = len(batch[0][0])
    constants = f"enum {{ L1 = {L1:#x}, L1_BYTES = {size} }};"
    files = {"tasks.bin": tasks, "l1.bin": b"".join(l1 for l1, _ in batch)}
    left = run_c(target, _BATCH, constants, files=files, outputs=("after.bin", DEVICES_LOG)).files
    cycles = [line.until - line.since for line in log_lines(left[DEVICES_LOG]) if line.unit == "ne16"]
    return [left["after.bin"][at : at + size] for at in range(0, size * len(batch), size)], cycles


class LogLine(NamedTuple):
    """A line of the devices' log."""

    unit: str
    layer: int
    since: int
    until: int
    amount: int
    name: str


def log_lines(log: bytes) -> list[LogLine]:
    """The lines of the devices' log."""
    parts = [line.split(" ", 5) for line in log.decode().splitlines()]
    return [LogLine(unit, *map(int, numbers), name) for unit, *numbers, name in parts]
