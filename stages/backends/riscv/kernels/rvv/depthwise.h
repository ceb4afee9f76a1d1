/* Depthwise convolution of 8-bit NHWC images with RISC-V vectors, and convolution of few channels.
 *
 * Rows of the padded image are widened to int16 in scratch, a ring of `span` lines. A vector has the channels of one output
 * pixel, up to `lanes` at a time; or, where there are few channels, all channels of some neighbouring pixels.
 */
#pragma once

#include <stdint.h>

/* lanes        elements of a packed vector of constants; a group has one for each tap
 * vector       lanes of a vector of the first group
 * elements     channels of all groups, or `vector`
 * vectors      whole vectors of a row of outputs in each group; behind them are `tail` elements
 * y_step       bytes between the outputs of two vectors
 * x_step       bytes of a line between the first taps of two vectors; column1, column2: from one tap to the next
 * group_x      bytes of a line from the end of a row of windows to the next group; group_y: bytes of the output
 * row, out_row bytes of a row of the image and of the output
 * line         bytes of a line; line_step: to the next row of a window; ring: of all lines
 * span         lines that are loaded for the first row of windows; `loaded` for each other, behind `skipped` rows
 * fill         the input's zero point
 * phases       parts of a line: columns that are apart in the image lie beside each other
 * chunk        0: columns of a line lie so in the image. Else elements that are loaded by index, chunk_step input elements
 *              apart; element f has input f / channels * pixel_step + f % channels
 */
struct rvv_depthwise {
    int32_t lanes, vector, elements, vectors, tail;
    int32_t y_step, x_step, column1, column2, group_x, group_y;
    int32_t zero_point, low, high, taps, kernel_height, kernel_width;
    int32_t height, row, top, out_height, out_row;
    int32_t line, line_step, ring, span, loaded, skipped, fill, is_unsigned;
    int32_t phases, chunk, chunk_step, channels, pixel_step;
};

/* One image. `weights` is int16 [groups, taps + 1, lanes], last the right shifts; `channels` is int32 [groups, 3, lanes]: bias,
 * multiplier and limit (rvv_asm.h). `columns` has kernel_width byte offsets of taps in a line, then for each phase three
 * numbers of elements: where its part of a row begins in the line, where in the image's row, and how many there are.
 *
 * 3x3 windows that share columns with their neighbours (s1, s2) or not (3x3); other windows that share columns (slide) or not
 * (any); inputs that are loaded by index (few), since output channels share them: then column1 bytes are between the taps of a
 * row, and `weights` has one more row, the offsets of the lanes in bytes. Two roundings: `relu` if no result is below the zero point, else `signed`; `once`: one rounding, and the multipliers
 * are doubled. `clipped`: the bounds are not those of int8.
 */
typedef void rvv_depthwise(const void *x, const int16_t *weights, const int32_t *channels, void *y, int32_t *lines,
                           const int32_t *columns, const int32_t *fields);

#define RVV_DEPTHWISE_MODES(shape)                                                            \
    rvv_depthwise rvv_depthwise_##shape##_relu, rvv_depthwise_##shape##_relu_clipped;         \
    rvv_depthwise rvv_depthwise_##shape##_signed, rvv_depthwise_##shape##_signed_clipped;     \
    rvv_depthwise rvv_depthwise_##shape##_once, rvv_depthwise_##shape##_once_clipped

RVV_DEPTHWISE_MODES(s1);
RVV_DEPTHWISE_MODES(s2);
RVV_DEPTHWISE_MODES(3x3);
RVV_DEPTHWISE_MODES(slide);
RVV_DEPTHWISE_MODES(any);
RVV_DEPTHWISE_MODES(few);
