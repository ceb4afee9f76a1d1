#include "extremum.h"

#include "bytes.h"

/* Runs in tail-predicated loops. `before` prepares x1 of a run in q1, or `second` loads it in each step. */
#define EXTREMUM(name, load, store, size, operation, before, second)                                                   \
    void name(const void *x0, const void *x1, void *y, const int32_t *rows)                                            \
    {                                                                                                                  \
        const struct arm_dsp_rows r = *(const struct arm_dsp_rows *)rows; /* local copy: y may alias it */             \
        const uint8_t *row0 = x0, *row1 = x1;                                                                          \
        uint8_t *row = y;                                                                                              \
        for (int32_t n = r.rows; n > 0; n--) {                                                                         \
            const uint8_t *a = row0, *b = row1;                                                                        \
            uint8_t *to = row;                                                                                         \
            __asm__ volatile(before "wlstp." size " lr, %[count], 2f\n"                                                \
                             "1: " load "." size " q0, [%[a]], #16\n" second operation " q0, q0, q1\n" store "." size  \
                             " q0, [%[to]], #16\n"                                                                     \
                             "letp lr, 1b\n"                                                                           \
                             "2:"                                                                                      \
                             : [a] "+r"(a), [b] "+r"(b), [to] "+r"(to)                                                 \
                             : [count] "r"(r.count)                                                                    \
                             : "lr", "memory", "q0", "q1");                                                            \
            row0 += r.row0, row1 += r.row1, row += r.y_row;                                                            \
        }                                                                                                              \
    }

#define EXTREMA(suffix, load, store, scalar, size, type)                                                               \
    EXTREMUM(mve_maximum_each_##suffix, load, store, size, "vmax." type, "", load "." size " q1, [%[b]], #16\n")       \
    EXTREMUM(mve_minimum_each_##suffix, load, store, size, "vmin." type, "", load "." size " q1, [%[b]], #16\n")       \
    EXTREMUM(mve_maximum_one_##suffix, load, store, size, "vmax." type,                                                \
             scalar " lr, [%[b]]\nvdup." size " q1, lr\n", "")                                                         \
    EXTREMUM(mve_minimum_one_##suffix, load, store, size, "vmin." type,                                                \
             scalar " lr, [%[b]]\nvdup." size " q1, lr\n", "")

EXTREMA(s8, "vldrb", "vstrb", "ldrb", "8", "s8")
EXTREMA(u8, "vldrb", "vstrb", "ldrb", "8", "u8")
EXTREMA(s16, "vldrh", "vstrh", "ldrh", "16", "s16")
