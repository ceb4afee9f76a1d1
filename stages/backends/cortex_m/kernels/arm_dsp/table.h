/* Declaration of the function in table.S; see there. */
#pragma once

#include <stdint.h>

void arm_dsp_table(const void *x, const void *table, void *y, int32_t count);
