/* RESIZE_BILINEAR of int8. */
#pragma once

#include <stdint.h>

/* One image. `rows` and `columns` are int32[size][3]: two rows or columns of x, and the share of the second in 1024ths;
 * scratch is int32[width * channels], parameters a struct fl_resize (include/resize_image.h). */
void mve_resize_bilinear_s8(const int8_t *x, const int32_t *rows, const int32_t *columns, int8_t *y, int32_t *scratch,
                            const void *parameters);
