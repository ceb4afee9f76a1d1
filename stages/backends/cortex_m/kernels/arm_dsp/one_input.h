/* Pointwise layers on one input channel. */
#ifndef FIRMLINE_ARM_DSP_ONE_INPUT_H
#define FIRMLINE_ARM_DSP_ONE_INPUT_H

#include <stdint.h>

/* y has `channels` bytes for each of `pixels` > 0 bytes of x: a row of the table, whose rows are padded to whole words. */
void arm_dsp_one_input(const void *x, const uint8_t *table, void *y, int32_t pixels, int32_t channels);

#endif
