/* For kernel benchmarks and tests: reports a count by name; stages/backends/simulators/bench.py reads it. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "board.h"

/* Print what was counted. Never inside a measured region: a line costs about 5,000 instructions. */
static inline void bench_report(const char *name, uint64_t instructions)
{
    printf("COUNT %s %llu\n", name, (unsigned long long)instructions);
}

/* Runs `statement` and reports the instructions it took; reading the counter adds one to four. */
#define BENCH(name, statement)                                      \
    do {                                                            \
        uint64_t bench_start_ = board_instructions();               \
        statement;                                                  \
        bench_report((name), board_instructions() - bench_start_);  \
    } while (0)
