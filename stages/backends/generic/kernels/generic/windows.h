/* Windows of an image as rows of a matrix (gather_windows_image.h). */
#pragma once

#include <stdint.h>

/* The windows of output pixels first, first + 1, ..., one in each row; `windows` is a struct gathered_windows. */
void fl_windows(const void *x, int8_t *rows, int32_t first, int32_t count, const void *windows);
