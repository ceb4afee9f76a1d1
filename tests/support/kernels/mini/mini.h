/* y = clamp((x . w + b) >> 7) for a tile of `rows` rows. */
#ifndef MINI_H
#define MINI_H

#include <stdint.h>

#include "mini_clamp.h"

void mini_gemm(const int8_t *x, const int8_t *w, const int32_t *b, int8_t *y, int rows, int depth, int units);

#endif
