/* Declaration of the function in table.S; see there. */
#pragma once

#include <stdint.h>

void mve_table(const void *x, const void *table, void *y, int32_t count);
