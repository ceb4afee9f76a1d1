/* Estimated cycles beside the count of instructions: counter.c reports the instructions that run, timing.c adds up their cycles. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qemu_plugin_tb;
struct block_timing; /* of a translation block */

/* Reads the table and opens the log (stages/backends/simulators/cycles/cycles.h). */
void timing_begin(void);

const struct block_timing *timing_of(const struct qemu_plugin_tb *tb);

/* A block runs while counting. */
void timing_runs(const struct block_timing *block);

/* Counting stops before instruction `index` of the current block, after `instructions` in total. Writes a record to the log. */
void timing_stops(const struct block_timing *block, size_t index, uint64_t instructions);

/* Counting continues after instruction `index` of the current block. */
void timing_goes_on(const struct block_timing *block, size_t index);
