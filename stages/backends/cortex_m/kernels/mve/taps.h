/* Depthwise convolution on windows that are consecutive bytes. */
#pragma once

#include <stdint.h>

/* The first fields are for taps.S: bytes of a channel's strip, and from an output channel to the next; taps of a window; bytes from
 * a window to the next, and from an output pixel to the next; constants of the output; windows of a row as eights and rest, and
 * rest * out_pixel. For windows above 16 taps: vectors of 16, and out_pixel times the windows in the last four.
 *
 * Then an NHWC image; a group of its channels is used. `pixel` is the bytes from a pixel to the next, `line` from a row to the
 * next, out_line those of the output. If strips go along columns of the image, "rows" are columns. Outside of the image is `fill`, the
 * zero point as int8. `flip` is 0x80 to make uint8 activations int8, else 0. Each input channel has `multiplier`
 * output channels; `lanes` channels have constants. A pitch of 0: one input channel, whose strip all output channels read. */
struct mve_taps {
    int32_t pitch, y_channel, taps, step, out_pixel, zero_point, low, high, eights, rest, rest_bytes, chunks, last_bytes;
    int32_t height, width, pixel, line, out_height, out_width, out_line;
    int32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t fill, flip, multiplier, lanes, strips, rotated;
};

/* A row of outputs: taps.S. */
typedef void mve_taps_row(uint8_t *y, const int8_t *strips, const int32_t *params, const int8_t *weights, const uint8_t *rotation,
                          int32_t channels, const struct mve_taps *d, int8_t *rotated);

mve_taps_row mve_taps_exact_1, mve_taps_exact_2, mve_taps_exact_3, mve_taps_exact_4, mve_taps_exact_6;
mve_taps_row mve_taps_lowered_1, mve_taps_lowered_2, mve_taps_lowered_3, mve_taps_lowered_4, mve_taps_lowered_6;
mve_taps_row mve_taps_lowered_any, mve_taps_lowered_any_wide, mve_taps_shifted_any, mve_taps_shifted_any_wide;
mve_taps_row mve_taps_lowered_many, mve_taps_lowered_many_wide, mve_taps_shifted_many, mve_taps_shifted_many_wide;

/* All outputs of `channels` (1 to 16) input channels: taps.c. There is one for each row function.
 *
 *   params     [multiplier][lanes][3]
 *   weights    [multiplier][lanes][taps], _wide [multiplier][lanes][2][taps]
 *   rotations  [kernel_y][chunks * 16]: the taps (ky * kernel_x + kx) of a window's bytes if its first row is in line i; lines are
 *              reused in turn
 *   strips     scratch of d->strips bytes, followed by d->rotated bytes */
typedef void mve_depthwise_taps(const void *x, const int32_t *params, const int8_t *weights, const uint8_t *rotations, void *y,
                                int32_t channels, int8_t *strips, const int32_t *fields);

mve_depthwise_taps mve_depthwise_taps_exact_1, mve_depthwise_taps_exact_2, mve_depthwise_taps_exact_3;
mve_depthwise_taps mve_depthwise_taps_exact_4, mve_depthwise_taps_exact_6;
mve_depthwise_taps mve_depthwise_taps_lowered_1, mve_depthwise_taps_lowered_2, mve_depthwise_taps_lowered_3;
mve_depthwise_taps mve_depthwise_taps_lowered_4, mve_depthwise_taps_lowered_6;
mve_depthwise_taps mve_depthwise_taps_lowered_any, mve_depthwise_taps_lowered_any_wide;
mve_depthwise_taps mve_depthwise_taps_shifted_any, mve_depthwise_taps_shifted_any_wide;
mve_depthwise_taps mve_depthwise_taps_lowered_many, mve_depthwise_taps_lowered_many_wide;
mve_depthwise_taps mve_depthwise_taps_shifted_many, mve_depthwise_taps_shifted_many_wide;
