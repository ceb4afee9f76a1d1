/* Depthwise convolution on NHWC images with any window, stride, dilation, depth multiplier and number of channels. It computes one
 * group of channels at a time. Each pixel of a group is a register in scratch.
 */
#pragma once

#include <stdint.h>

/* Rows and columns may be exchanged. Steps are bytes. */
struct rvp_depthwise_planes {
    int32_t rows, columns; /* of the input */
    int32_t row_step, column_step;
    int32_t out_rows, out_columns;
    int32_t out_row_step, out_column_step;
    int32_t top, left; /* padding */
    int32_t fill;      /* value of the padding: the input's zero point */
    int32_t flip;      /* xored into each byte of the input: 0x80 makes uint8 int8 */
    int32_t clip;      /* as in gemm_s8.S */
    int32_t channels;  /* of the output */
    int32_t multiplier;
    int32_t row_stride, column_stride;
    int32_t reach;         /* rows of the plane that a row of outputs reads */
    int32_t phases;        /* of columns: see depthwise_planes.c */
    int32_t phase_columns; /* of the plane, in each phase */
    int32_t band;          /* rows of outputs whose plane is in scratch at a time */
    int32_t padded;        /* whether any window reaches over the image's border */
    int32_t halved;        /* whether the lanes of the last group have the halves of a row of outputs */
    int32_t quads, pairs;  /* of taps: see depthwise_planes.c; twice the window's where weights are sums of two int8 */
    int32_t has_single;    /* whether one tap is left */
    int32_t record;        /* registers of params for a group */
};

/* One image; params are as in depthwise_planes.c, planes is a struct rvp_depthwise_planes. offsets: of two taps of each
 * quad, of both of each pair and of a single one, in the plane from an output's first one, bytes. scratch: see Plane.scratch_bytes of plane_layout.py.
 */
void rvp_depthwise_planes(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *offsets,
                          const int32_t *planes);

/* The same without a plane, for layers without padding or depth multiplier whose int8 pixels are whole aligned registers. Offsets are in
 * the image.
 */
void rvp_depthwise_pixels(const void *x, const int32_t *params, void *out, const int32_t *offsets, const int32_t *planes);

/* The same for pixels of at least a register that are whole aligned lanes (RV64). The last group begins earlier if it would not fill a
 * register.
 */
void rvp_depthwise_pixels_of_lanes(const void *x, const int32_t *params, void *out, const int32_t *offsets,
                                   const int32_t *planes);
