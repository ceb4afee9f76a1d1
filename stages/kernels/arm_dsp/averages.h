/* Averages and means over whole images. */
#ifndef FIRMLINE_ARM_DSP_AVERAGES_H
#define FIRMLINE_ARM_DSP_AVERAGES_H

#include <stdint.h>

/* `count` pixels of each channel; flip is 0x80 for int8, whose bytes become unsigned by it. low and high clip. */
struct arm_dsp_average {
    int32_t channels, count, flip, low, high;
};

/* NCHW: a channel's pixels are neighbours. */
void arm_dsp_average_planes(const void *x, void *y, const int32_t *fields);

#endif
