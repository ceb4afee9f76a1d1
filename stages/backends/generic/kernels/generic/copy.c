/* Copies of rows by whole words, four at a time. */
#include "copy.h"

/* Tensors of any type are copied through these. */
typedef uint32_t __attribute__((may_alias)) word32;
typedef uint64_t __attribute__((may_alias)) word64;

#define COPY_ROWS(name, word)                                                                                           \
    void name(void *to, const void *from, int32_t rows, int32_t words, int32_t to_step, int32_t from_step)             \
    {                                                                                                                  \
        char *target = to;                                                                                             \
        const char *source = from;                                                                                     \
        for (; rows > 0; rows--, target += to_step, source += from_step) {                                             \
            word *t = (word *)(void *)target;                                                                          \
            const word *s = (const word *)(const void *)source;                                                        \
            int32_t left = words;                                                                                      \
            for (; left >= 4; left -= 4, t += 4, s += 4) {                                                             \
                const word a = s[0], b = s[1], c = s[2], d = s[3];                                                     \
                t[0] = a, t[1] = b, t[2] = c, t[3] = d;                                                                \
            }                                                                                                          \
            for (; left > 0; left--)                                                                                   \
                *t++ = *s++;                                                                                           \
        }                                                                                                              \
    }

COPY_ROWS(fl_copy_rows_32, word32)
COPY_ROWS(fl_copy_rows_64, word64)
