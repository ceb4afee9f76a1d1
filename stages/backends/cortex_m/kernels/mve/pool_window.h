/* Windows of a pooling layer, and loops over the pixels of their rows. */
#pragma once

#include "bytes.h"
#include "pool.h"

/* The part of a window that lies inside the image: `rows` times `columns` pixels from `from` on. */
struct window {
    const uint8_t *from;
    int32_t rows, columns;
    int32_t row_step, step; /* bytes to the next row, and to the next pixel */
};

MVE_INLINE struct window window_at(const uint8_t *image, int32_t oy, int32_t ox, const struct mve_pool *p,
                                   int32_t element_bytes)
{
    const int32_t y = oy * p->stride_y - p->top, x = ox * p->stride_x - p->left;
    const int32_t y0 = y < 0 ? 0 : y, x0 = x < 0 ? 0 : x;
    const int32_t y1 = y + p->kernel_y < p->height ? y + p->kernel_y : p->height;
    const int32_t x1 = x + p->kernel_x < p->width ? x + p->kernel_x : p->width;
    const int32_t step = p->channels * element_bytes, row_step = p->width * step;
    return (struct window){image + y0 * row_step + x0 * step, y1 - y0, x1 - x0, row_step, step};
}

/* Executes `body` for each pixel of a row, from `at` on. The operands are the values that it changes. */
#define ROW(body, ...)                                                                                                 \
    __asm__ volatile("dls lr, %[columns]\n"                                                                            \
                     "1: " body "add %[at], %[at], %[step]\n"                                                          \
                     "le lr, 1b\n"                                                                                     \
                     : [at] "+l"(at), __VA_ARGS__                                                                      \
                     : [columns] "r"(w->columns), [step] "r"(w->step)                                                  \
                     : "lr", "memory")

/* The same with only the lanes of `channels` loaded. */
#define ROW_OF(channels, body, ...)                                                                                    \
    __asm__ volatile("vmsr p0, %[lanes]\n"                                                                             \
                     "dls lr, %[columns]\n"                                                                            \
                     "1: vpst\n" body "add %[at], %[at], %[step]\n"                                                   \
                     "le lr, 1b\n"                                                                                     \
                     : [at] "+l"(at), __VA_ARGS__                                                                      \
                     : [columns] "r"(w->columns), [step] "r"(w->step), [lanes] "r"(channels)                           \
                     : "lr", "p0", "memory")
