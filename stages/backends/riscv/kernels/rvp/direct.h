/* Direct convolution on NHWC int8 images: a tile of several output rows at a time, with all columns and channels.
 *
 * A tile may also be several output columns; then "row" and "column" are exchanged everywhere. A strip holds the pixels that some
 * columns of a tile read: a chunk of all rows is in consecutive registers for direct_s8.S. Each pixel of the image is copied once
 * for all windows of the tile that contain it.
 *
 * If pixels have fewer than four channels and rows are whole chunks, rows may be copied as bytes. Then a "column" of the image is a
 * chunk of four bytes, and windows begin at any even byte of it. Each of these positions is a phase; it has weights that are shifted
 * to it. For three columns of three channels with stride 2:
 *
 *   chunks         0123 | 4567 | 89ab | cdef
 *   output 0       wwww   wwww   w                  phase 0
 *   output 1                ww   wwww   www         phase 1
 */
#pragma once

#include <stdint.h>

/* Steps are bytes. */
struct rvp_direct_geometry {
    int32_t rows, columns;             /* of the input */
    int32_t row_step, column_step;
    int32_t channels;
    int32_t out_columns;
    int32_t out_row_step, out_column_step;
    int32_t top, left;                 /* padding */
    int32_t window_columns;
    int32_t column_stride;             /* of windows; with chunks, this and left are bytes, else columns */
    int32_t chunk_shift;               /* from these to columns: 2 where there are chunks, else 0 */
    int32_t phases;                    /* 1 or 2 */
    int32_t strip_columns;             /* of the output, in one strip */
    int32_t blocks;                    /* of 4 * RVP_LANES output channels */
    int32_t fill;                      /* value of the padding: the input's zero point */
    int32_t clip;                      /* as in gemm_s8.S */
    int32_t pixel_tiles;               /* that a call of rvp_direct_pixels computes, along columns */
};

/* Computes R output rows from row `first` on; `out` is the address of that row. The kernel's name has T, the taps of the
 * window, and S, the stride along the rows. weights and params are as in direct_s8.S, strip: see strip_bytes of direct_conv2d.py.
 */
typedef void rvp_direct(const void *x, int first, const int8_t *weights, const int32_t *params, void *out,
                        int8_t *strip, const int32_t *geometry);

rvp_direct rvp_direct_t3s1_r1, rvp_direct_t3s1_r2, rvp_direct_t3s1_r3, rvp_direct_t3s1_r4, rvp_direct_t3s1_r5;
rvp_direct rvp_direct_t3s1_r6, rvp_direct_t3s1_r7, rvp_direct_t3s1_r8, rvp_direct_t3s1_r9;
rvp_direct rvp_direct_t3s2_r1, rvp_direct_t3s2_r2, rvp_direct_t3s2_r3, rvp_direct_t3s2_r4, rvp_direct_t3s2_r5;
rvp_direct rvp_direct_t3s2_r6, rvp_direct_t3s2_r7, rvp_direct_t3s2_r8, rvp_direct_t3s2_r9;
rvp_direct rvp_direct_t5s1_r1, rvp_direct_t5s1_r2, rvp_direct_t5s1_r3, rvp_direct_t5s1_r4, rvp_direct_t5s1_r5;
rvp_direct rvp_direct_t5s1_r6, rvp_direct_t5s1_r7;
rvp_direct rvp_direct_t7s1_r1, rvp_direct_t7s1_r2, rvp_direct_t7s1_r3, rvp_direct_t7s1_r4, rvp_direct_t7s1_r5;

/* Computes a few rows of outputs, R columns at a time. */
typedef void rvp_direct_pixels(const void *x, const int8_t *weights, const int32_t *params, void *out, int8_t *strip,
                               const int32_t *geometry);

rvp_direct_pixels rvp_direct_pixels_t3s1_r2, rvp_direct_pixels_t3s1_r3, rvp_direct_pixels_t3s1_r4, rvp_direct_pixels_t3s1_r5;
rvp_direct_pixels rvp_direct_pixels_t3s1_r6, rvp_direct_pixels_t3s1_r7, rvp_direct_pixels_t3s1_r8, rvp_direct_pixels_t3s1_r9;
rvp_direct_pixels rvp_direct_pixels_t3s2_r2, rvp_direct_pixels_t3s2_r3, rvp_direct_pixels_t3s2_r4, rvp_direct_pixels_t3s2_r5;
rvp_direct_pixels rvp_direct_pixels_t3s2_r6, rvp_direct_pixels_t3s2_r7, rvp_direct_pixels_t3s2_r8, rvp_direct_pixels_t3s2_r9;
rvp_direct_pixels rvp_direct_pixels_t5s1_r2, rvp_direct_pixels_t5s1_r3, rvp_direct_pixels_t5s1_r4, rvp_direct_pixels_t5s1_r5;
rvp_direct_pixels rvp_direct_pixels_t5s1_r6, rvp_direct_pixels_t5s1_r7;
rvp_direct_pixels rvp_direct_pixels_t7s1_r2, rvp_direct_pixels_t7s1_r3, rvp_direct_pixels_t7s1_r4, rvp_direct_pixels_t7s1_r5;
