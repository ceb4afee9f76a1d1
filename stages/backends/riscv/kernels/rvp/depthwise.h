/* Depthwise 3x3 on NHWC images, one group of 4 * RVP_LANES channels at a time.
 *
 * depthwise3x3_s8.S computes the image in strips of four output columns and all rows. Columns are transposed before and after it,
 * so that the four columns of one channel are in one 32-bit lane.
 */
#pragma once

#include <stdint.h>

/* Rows and columns may be exchanged (with the weights transposed) where that wastes fewer columns of the last strip.
 * Steps are bytes.
 */
struct rvp_depthwise_geometry {
    int32_t rows, columns;             /* of the input */
    int32_t row_step, column_step;
    int32_t out_rows, out_columns;
    int32_t out_row_step, out_column_step;
    int32_t top, left;                 /* padding */
    int32_t fill;                      /* value of the padding: the input's zero point */
    int32_t clip;                      /* as in gemm_s8.S */
    int32_t channels;                  /* of a group */
    int32_t half;                      /* first column of the output in the upper lanes (RV64); 0 if the upper lanes have channels */
};

/* One group of channels; x and out point to its first channel, params are as in depthwise3x3_s8.S. In the names, the number is
 * the stride, u is for uint8, s for weights in two addends, parts for pixels that are not whole registers, few for fewer channels
 * than bytes of a register, rows for images that depthwise3x3_rows_s8.S computes, once for params of one rounding. scratch: see scratch_bytes of depthwise_conv2d.py.
 */
typedef void rvp_depthwise(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *geometry);

rvp_depthwise rvp_depthwise_s1, rvp_depthwise_s1u, rvp_depthwise_s1us;
rvp_depthwise rvp_depthwise_s2, rvp_depthwise_s2u, rvp_depthwise_s2us;
rvp_depthwise rvp_depthwise_parts_s1, rvp_depthwise_parts_s1u, rvp_depthwise_parts_s1us;
rvp_depthwise rvp_depthwise_few_s1, rvp_depthwise_few_s1u, rvp_depthwise_few_s1us;
rvp_depthwise rvp_depthwise_parts_s2, rvp_depthwise_parts_s2u, rvp_depthwise_parts_s2us;
rvp_depthwise rvp_depthwise_few_s2, rvp_depthwise_few_s2u, rvp_depthwise_few_s2us;
rvp_depthwise rvp_depthwise_rows_s1, rvp_depthwise_rows_s1u, rvp_depthwise_rows_s1us;
rvp_depthwise rvp_depthwise_rows_s2, rvp_depthwise_rows_s2u, rvp_depthwise_rows_s2us;
rvp_depthwise rvp_depthwise_once_rows_s1, rvp_depthwise_once_rows_s1u, rvp_depthwise_once_rows_s1us;
rvp_depthwise rvp_depthwise_once_rows_s2, rvp_depthwise_once_rows_s2u, rvp_depthwise_once_rows_s2us;
rvp_depthwise rvp_depthwise_once_s1, rvp_depthwise_once_s1u, rvp_depthwise_once_s1us;
rvp_depthwise rvp_depthwise_once_s2, rvp_depthwise_once_s2u, rvp_depthwise_once_s2us;
rvp_depthwise rvp_depthwise_once_parts_s1, rvp_depthwise_once_parts_s1u, rvp_depthwise_once_parts_s1us;
rvp_depthwise rvp_depthwise_once_few_s1, rvp_depthwise_once_few_s1u, rvp_depthwise_once_few_s1us;
rvp_depthwise rvp_depthwise_once_parts_s2, rvp_depthwise_once_parts_s2u, rvp_depthwise_once_parts_s2us;
rvp_depthwise rvp_depthwise_once_few_s2, rvp_depthwise_once_few_s2u, rvp_depthwise_once_few_s2us;
