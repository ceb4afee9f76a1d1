/* Pointwise layers on one input channel. */
#pragma once

#include <stdint.h>

/* y has `channels` bytes for each of `pixels` > 0 bytes of x: a row of the table, whose rows are padded to whole words. */
void arm_dsp_one_input(const void *x, const uint8_t *table, void *y, int32_t pixels, int32_t channels);
