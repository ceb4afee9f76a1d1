/* Tables of an 8-bit type: the result of a function of one input for each of its 256 values. */
#pragma once

#include <stdint.h>

/* y[i] = table[x[i * step]], by the bits of an element. */
void fl_table(const void *x, void *y, int32_t count, int32_t step, const void *table);
