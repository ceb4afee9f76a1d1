/* MAX_POOL_2D on NHWC images of any number of channels. */
#pragma once

#include "pool.h"

/* One image. `parameters` is a struct rvp_pool. `scratch` has `line` bytes for a line; if rows are not whole registers, a row of x rounded
 * up to whole registers for each row of a window; and one register.
 */
typedef void rvp_pool_lines(const void *x, void *y, void *scratch, const int32_t *parameters, int32_t line);

/* Pixels that are whole registers, or on RV64 whole lanes. */
rvp_pool_lines rvp_max_whole_lines_s8, rvp_max_whole_lines_u8;
rvp_pool_lines rvp_max_lane_lines_s8, rvp_max_lane_lines_u8;
/* Others: all of a line, or some of its pixels, as runs; or pixels by units of 1, 2 or 4 bytes, at which y lies. */
rvp_pool_lines rvp_max_lines_s8, rvp_max_lines_1_s8, rvp_max_lines_2_s8, rvp_max_lines_4_s8;
rvp_pool_lines rvp_max_lines_u8, rvp_max_lines_1_u8, rvp_max_lines_2_u8, rvp_max_lines_4_u8;
