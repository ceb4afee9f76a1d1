/* Depthwise convolution of sixteen channels at a time, or of four, with any window. */
#pragma once

#include "depthwise_image.h"

/* Windows are `x_step` bytes apart, outputs `y_step`. After a row of `columns` windows, x_row bytes are added. zero_point, low and high
 * are for the output as int8 (quads: as the tensor has it). After the first one or two taps come `pairs` pairs of taps. The constants of
 * a group have `group_bytes` bytes.
 *
 * If windows are partly outside of the image, or its bytes have to be flipped, `band` rows of outputs at a time are computed from lines
 * in scratch: `span` lines for a window, `lines_y` from an output row to the next. `left_out` rows of the image between windows have no
 * line. With `by_group`, lines have 16 channels. Otherwise they have all channels of a pixel, x begins with channel `first`, and the
 * function for earlier channels may have `loaded` them. `in_rows`: lines are the image's rows, without gaps. If `band` is 0, the image
 * is read in place. */
struct mve_lanes {
    struct mve_image image;
    int32_t zero_point, low, high, x_step, x_row, columns, pairs, group_bytes;
    int32_t y_step, rows, band, lines_y, left_out, top, span, by_group, in_rows, loaded, first;
};

/* Rows of outputs: lanes.S, quads.S. */
typedef void mve_lanes_rows(uint8_t *y, const int8_t *x, const int32_t *constants, const int32_t *offsets, int32_t rows,
                            int32_t channels, const struct mve_lanes *d);

mve_lanes_rows mve_lanes_1_exact, mve_lanes_1_lowered, mve_lanes_1_exact_clipped, mve_lanes_1_lowered_clipped;
mve_lanes_rows mve_lanes_2_exact, mve_lanes_2_lowered, mve_lanes_2_exact_clipped, mve_lanes_2_lowered_clipped;
mve_lanes_rows mve_lanes_3_exact, mve_lanes_3_lowered, mve_lanes_3_exact_clipped, mve_lanes_3_lowered_clipped;
mve_lanes_rows mve_lanes_4_exact, mve_lanes_4_lowered, mve_lanes_4_exact_clipped, mve_lanes_4_lowered_clipped;
mve_lanes_rows mve_lanes_odd_exact, mve_lanes_odd_lowered, mve_lanes_odd_exact_clipped, mve_lanes_odd_lowered_clipped;
mve_lanes_rows mve_lanes_even_exact, mve_lanes_even_lowered, mve_lanes_even_exact_clipped, mve_lanes_even_lowered_clipped;
mve_lanes_rows mve_quads_1_exact, mve_quads_1_lowered, mve_quads_2_exact, mve_quads_2_lowered;
mve_lanes_rows mve_quads_3_exact, mve_quads_3_lowered, mve_quads_4_exact, mve_quads_4_lowered;
mve_lanes_rows mve_quads_odd_exact, mve_quads_odd_lowered, mve_quads_even_exact, mve_quads_even_lowered;

/* All outputs of `channels` channels, in groups of 16 or quads (lanes.c). The last one may overlap the one before it. There is one function
 * for each function of rows. `lines` is scratch for a band, and 16 more bytes that are read.
 */
typedef void mve_depthwise_lanes(const void *x, const int32_t *constants, void *y, const int32_t *offsets, int32_t channels,
                                 int8_t *lines, const int32_t *fields);

mve_depthwise_lanes mve_depthwise_lanes_1_exact, mve_depthwise_lanes_1_lowered;
mve_depthwise_lanes mve_depthwise_lanes_1_exact_clipped, mve_depthwise_lanes_1_lowered_clipped;
mve_depthwise_lanes mve_depthwise_lanes_2_exact, mve_depthwise_lanes_2_lowered;
mve_depthwise_lanes mve_depthwise_lanes_2_exact_clipped, mve_depthwise_lanes_2_lowered_clipped;
mve_depthwise_lanes mve_depthwise_lanes_3_exact, mve_depthwise_lanes_3_lowered;
mve_depthwise_lanes mve_depthwise_lanes_3_exact_clipped, mve_depthwise_lanes_3_lowered_clipped;
mve_depthwise_lanes mve_depthwise_lanes_4_exact, mve_depthwise_lanes_4_lowered;
mve_depthwise_lanes mve_depthwise_lanes_4_exact_clipped, mve_depthwise_lanes_4_lowered_clipped;
mve_depthwise_lanes mve_depthwise_lanes_odd_exact, mve_depthwise_lanes_odd_lowered;
mve_depthwise_lanes mve_depthwise_lanes_odd_exact_clipped, mve_depthwise_lanes_odd_lowered_clipped;
mve_depthwise_lanes mve_depthwise_lanes_even_exact, mve_depthwise_lanes_even_lowered;
mve_depthwise_lanes mve_depthwise_lanes_even_exact_clipped, mve_depthwise_lanes_even_lowered_clipped;
mve_depthwise_lanes mve_depthwise_quads_1_exact, mve_depthwise_quads_1_lowered;
mve_depthwise_lanes mve_depthwise_quads_2_exact, mve_depthwise_quads_2_lowered;
mve_depthwise_lanes mve_depthwise_quads_3_exact, mve_depthwise_quads_3_lowered;
mve_depthwise_lanes mve_depthwise_quads_4_exact, mve_depthwise_quads_4_lowered;
mve_depthwise_lanes mve_depthwise_quads_odd_exact, mve_depthwise_quads_odd_lowered;
mve_depthwise_lanes mve_depthwise_quads_even_exact, mve_depthwise_quads_even_lowered;
