/* Declaration of the function in table.S; see there. */
#ifndef FIRMLINE_MVE_TABLE_H
#define FIRMLINE_MVE_TABLE_H

#include <stdint.h>

void mve_table(const void *x, const void *table, void *y, int32_t count);

#endif
