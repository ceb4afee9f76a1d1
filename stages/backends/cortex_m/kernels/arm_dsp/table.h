/* Declaration of the function in table.S; see there. */
#ifndef FIRMLINE_ARM_DSP_TABLE_H
#define FIRMLINE_ARM_DSP_TABLE_H

#include <stdint.h>

void arm_dsp_table(const void *x, const void *table, void *y, int32_t count);

#endif
