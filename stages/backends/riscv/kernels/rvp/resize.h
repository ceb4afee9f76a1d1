/* RESIZE_BILINEAR of int8. */
#pragma once

#include <stdint.h>

/* One image. `rows` and `columns` are int32[size][3]: the nearer and the farther of two rows or columns of x, and the
 * share of the farther in eighths; scratch as in include/resize_halves.h, parameters a struct fl_resize
 * (include/resize_image.h). */
void rvp_resize_bilinear_s8(const int8_t *x, const int32_t *rows, const int32_t *columns, int8_t *y, int32_t *scratch,
                                const void *parameters);
