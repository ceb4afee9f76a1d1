/* SOFTMAX of a row and RESIZE_BILINEAR of an image; the functions of rows.S that compute vectors of them. */
#pragma once

#include <stdint.h>

typedef void rvv_softmax(const void *x, const int32_t *exp, void *y, int32_t count, int32_t x_step, int32_t y_step);
rvv_softmax rvv_softmax_s8, rvv_softmax_u8;

/* `rows` and `columns` are int32[size][3]: two rows or columns of x, and the share of the second in 1024ths; scratch is
 * int32[width * channels], parameters a struct fl_resize (include/resize_image.h). */
void rvv_resize_bilinear_s8(const int8_t *x, const int32_t *rows, const int32_t *columns, int8_t *y, int32_t *scratch,
                            const void *parameters);
