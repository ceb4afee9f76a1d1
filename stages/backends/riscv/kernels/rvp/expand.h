/* Operands that are broadcast, written out: what is in registers of the output is in registers of them. */
#ifndef FIRMLINE_RVP_EXPAND_H
#define FIRMLINE_RVP_EXPAND_H

#include <stdint.h>

/* `count` values, each `times` times. y is aligned; its last register is written whole. */
void rvp_spread(const void *x, void *y, int32_t count, int32_t times);

/* `blocks` runs of `bytes`, which follow each other anywhere; each is written `times` times. y is aligned; its last register
 * is written whole. `cycle` is the least multiple of `bytes` that is whole registers. */
void rvp_repeat(const void *x, void *y, int32_t blocks, int32_t bytes, int32_t times, int32_t cycle);

#endif
