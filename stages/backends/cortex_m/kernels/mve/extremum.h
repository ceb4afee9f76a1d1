/* The larger or smaller of two elements, in rows of runs. x1 of `one` repeats one element in each run. y may be x0, or x1 of `each`. */
#pragma once

#include "../arm_dsp/rows.h"

typedef void mve_extremum(const void *x0, const void *x1, void *y, const int32_t *rows);

mve_extremum mve_maximum_each_s8, mve_maximum_each_u8, mve_maximum_each_s16;
mve_extremum mve_minimum_each_s8, mve_minimum_each_u8, mve_minimum_each_s16;
mve_extremum mve_maximum_one_s8, mve_maximum_one_u8, mve_maximum_one_s16;
mve_extremum mve_minimum_one_s8, mve_minimum_one_u8, mve_minimum_one_s16;
