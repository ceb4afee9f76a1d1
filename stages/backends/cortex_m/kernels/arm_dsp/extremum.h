/* The larger or smaller of two elements, in rows of runs.
 *
 *   void arm_dsp_<maximum|minimum>_<each|one>_<s8|u8|s16>(const void *x0, const void *x1, void *y, const int32_t *rows);
 *
 * `rows` is struct arm_dsp_rows. `one`: x1 repeats one element in each run. y may be x0, or x1 of `each`.
 */
#pragma once

#include "rows.h"

typedef void arm_dsp_extremum(const void *x0, const void *x1, void *y, const int32_t *rows);

arm_dsp_extremum arm_dsp_maximum_each_s8, arm_dsp_maximum_each_u8, arm_dsp_maximum_each_s16;
arm_dsp_extremum arm_dsp_minimum_each_s8, arm_dsp_minimum_each_u8, arm_dsp_minimum_each_s16;
arm_dsp_extremum arm_dsp_maximum_one_s8, arm_dsp_maximum_one_u8, arm_dsp_maximum_one_s16;
arm_dsp_extremum arm_dsp_minimum_one_s8, arm_dsp_minimum_one_u8, arm_dsp_minimum_one_s16;
