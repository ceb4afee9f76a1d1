/* Convolution of images or groups with few channels: four neighbouring bytes of the output at a time. */
#pragma once

#include <stdint.h>

/* The layer as quads.c sees it; columns run along a line. The work of lane 1 (RV64) is `lane_rows` rows, `lane_columns` columns and
 * `lane_groups` groups after the work of lane 0. It has none if all of these are 0.
 */
struct rvp_quads {
    int32_t rows, columns;             /* of the input */
    int32_t channels, depth;           /* of the input: all, and those of a group */
    int32_t out_rows, out_columns;
    int32_t out_channels, units;       /* of the output: all, and those of a group */
    int32_t groups;
    int32_t kernel_rows, row_stride, column_stride, row_dilation;
    int32_t top, left;
    int32_t fill, flip, clip;          /* value of the padding, as int8; 0x80 for uint8; as in gemm_s8.S */
    int32_t quads;                     /* of a period */
    int32_t period;                    /* output columns after which quads begin at the same byte of a word again */
    int32_t period_words;              /* of a line, from one period to the next */
    int32_t periods;                   /* of a row of the output that a lane computes */
    int32_t line_words, weight_words;  /* of a line; of weights for a row of the window */
    int32_t band;                      /* rows of the output whose lines are in scratch at a time */
    int32_t lane_rows, lane_columns, lane_groups;
};

/* One image, int8 or uint8; weights, params and quads are as in quads.c, layer is a struct rvp_quads. scratch: the lines
 * of a band. p1 to pn are for layers with so many words to a period; k3 and k5 for one channel and one output, by columns.
 */
typedef void rvp_quads_kernel(const void *x, const int8_t *weights, const int32_t *params, const int32_t *quads, void *out,
                              int8_t *scratch, const int32_t *layer);

rvp_quads_kernel rvp_quads_p1, rvp_quads_p2, rvp_quads_p3, rvp_quads_pn, rvp_quads_k3, rvp_quads_k5;
