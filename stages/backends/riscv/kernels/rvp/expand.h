/* Expands operands that broadcast, so that their elements have the same positions in registers as those of the output. */
#pragma once

#include <stdint.h>

/* `count` values, each `times` times. y is aligned; its last register is written whole. */
void rvp_spread(const void *x, void *y, int32_t count, int32_t times);

/* `blocks` runs of `bytes`, which follow each other anywhere; each is written `times` times. y is aligned; its last register
 * is written whole. `cycle` is the least multiple of `bytes` that is whole registers. */
void rvp_repeat(const void *x, void *y, int32_t blocks, int32_t bytes, int32_t times, int32_t cycle);
