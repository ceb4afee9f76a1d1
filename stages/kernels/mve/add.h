/* The functions of add.S, which describes them. */
#ifndef FIRMLINE_MVE_ADD_H
#define FIRMLINE_MVE_ADD_H

#include <stdint.h>

typedef void mve_elementwise(const void *x0, const void *x1, void *y, int32_t count, const int32_t *fields);

mve_elementwise mve_add_s8, mve_add_u8, mve_sub_s8, mve_sub_u8;

#endif
