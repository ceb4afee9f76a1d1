/* Panels: the activations of up to 4 output pixels as gemm.S reads them.
 *
 *   panel[step][row] is a word with two activations of the row as int16. A run is consecutive bytes of the image, such as a row
 *   of a window. Its elements become steps in this order (packing.py packs the weights in the same order):
 *
 *     four elements 0 1 2 3      steps (0, 2), (1, 3): the two results of sxtb16
 *     one to three that remain   steps (0, 1), (2, -): the missing element is arbitrary; its weight is zero
 *
 *   Planes give the steps (0, 1), (2, 3), ... of the channels. After the last step, panel[steps][row] is the row's offset:
 *   -weight_zero_point * (sum of the row). Only gemm_bytes reads it. It is left out if `offsets` is 0.
 *
 * uint8 activations become int8 by flipping the top bit (`flip` 0x80).
 */
#pragma once

#include <stdint.h>

/* Positions of the windows; all numbers are elements. Elements outside the image are `fill` (the input's zero point). */
struct arm_dsp_geometry {
    int32_t height, width, channels;
    int32_t kernel_y, kernel_x;
    int32_t stride_y, stride_x;
    int32_t dilation_y, dilation_x;
    int32_t top, left;
    int32_t out_width;
    int32_t fill;
};

/* Rows of a matrix: row r is at x + r * depth. */
void arm_dsp_panel_rows(int32_t *panel, const void *x, int32_t rows, int32_t depth, int32_t flip, int32_t offsets,
                        int32_t weight_zero_point);

/* Columns of a matrix: element k of row r is at x + k * stride + r. */
void arm_dsp_panel_planes(int32_t *panel, const void *x, int32_t rows, int32_t depth, int32_t stride, int32_t flip,
                          int32_t offsets, int32_t weight_zero_point);

/* Windows of an NHWC image: row r is the window of output pixel `first + r`, counted along the rows of the output. */
void arm_dsp_panel_windows(int32_t *panel, const void *x, int32_t first, int32_t rows, const int32_t *geometry, int32_t flip,
                           int32_t offsets, int32_t weight_zero_point);

/* Declarations of the functions in panel.S; see there. */
typedef uint32_t *arm_dsp_put_runs(uint32_t *to, const uint8_t *from, int32_t runs, int32_t count, int32_t step);

arm_dsp_put_runs arm_dsp_put_runs_r3, arm_dsp_put_runs_r4;

typedef uint32_t *arm_dsp_put_rows(uint32_t *to, const uint8_t *from, int32_t runs, int32_t count, int32_t step, int32_t pixel);

arm_dsp_put_rows arm_dsp_put_rows_r3, arm_dsp_put_rows_r4;

/* As arm_dsp_panel_rows of three or four rows, without flip and offsets. */
typedef void arm_dsp_put_matrix(int32_t *panel, const void *x, int32_t depth);

arm_dsp_put_matrix arm_dsp_put_matrix_r3, arm_dsp_put_matrix_r4;
