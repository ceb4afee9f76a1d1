/* Rows of outputs of a depthwise convolution, as depthwise_planes_s8.S computes them. */
#pragma once

#include "scaled_sums.h"

/* Beside the roundings of scaled_sums.h: one multiplication for both, and a zero point for each channel (one_rounding.py). */
enum { ONCE = EXACT + 1 };

/* Registers, in the order of the assembly. Steps are bytes: between rows of outputs and between their windows' first rows;
 * between outputs and, for pixels in the image, between their first taps. `offsets`: two for each quad, then from `pairs` on
 * two for each pair, then one for a single tap. `how` selects the requantization: SHORT, WIDE or ONCE.
 */
struct rvp_depthwise_rows {
    intptr_t rows, columns;
    intptr_t row_step, input_row_step;
    intptr_t step, input_step;
    intptr_t groups, record_bytes;
    const int32_t *offsets, *pairs, *pairs_end;
    intptr_t has_single;
    intptr_t how;
    rvp_word zero_point; /* in every 16-bit lane */
    intptr_t bounded;    /* whether the next bounds are needed: bytes, in every lane */
    rvp_word lowest, highest, flip;
    intptr_t few; /* the kind of a short window's taps, plus FEW_ONCE if `how` is ONCE; else 0 */
};

/* A quad, two pairs, or a pair and a single tap, of groups that are not WIDE, in rows of enough outputs without bounds. */
enum { FEW_QUAD = 1, FEW_PAIRS, FEW_SINGLE, FEW_ONCE };
enum { FEW_COLUMNS = 6 };

typedef void rvp_depthwise_rows(const int8_t *first, int8_t *out, const int8_t *record,
                                const struct rvp_depthwise_rows *rows);

rvp_depthwise_rows rvp_depthwise_plane_rows, rvp_depthwise_image_rows, rvp_depthwise_lane_rows;
