/* AVERAGE_POOL_2D on NHWC images of any number of channels. */
#pragma once

#include "pool.h"

/* One image. `parameters` is a struct rvp_pool whose windows have at most 100 elements and contain at least one of the image. `scratch` has
 * five times `line` bytes, then, for each row of a window, a row of x rounded up to whole registers, then one register.
 */
typedef void rvp_average_lines(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line);

/* Pixels that are whole registers. */
rvp_average_lines rvp_avg_whole_lines_s8, rvp_avg_whole_lines_u8;
/* Others: all of a line, or some of its pixels, as runs; or pixels by units of 1, 2 or 4 bytes, at which y lies. */
rvp_average_lines rvp_avg_lines_s8, rvp_avg_lines_1_s8, rvp_avg_lines_2_s8, rvp_avg_lines_4_s8;
rvp_average_lines rvp_avg_lines_u8, rvp_avg_lines_1_u8, rvp_avg_lines_2_u8, rvp_avg_lines_4_u8;
