#include "extremum.h"

#include "dsp.h"

/* One function for words of `lanes` elements: `subtract` sets the greater-or-equal flag of each lane, by which `sel` selects. Elements
 * that fill no word go through words as well, one at a time. */
#define EXTREMUM(name, type, subtract, lanes, first, second, repeats)                                                  \
    void name(const void *x0, const void *x1, void *y, const int32_t *rows)                                            \
    {                                                                                                                  \
        const struct arm_dsp_rows r = *(const struct arm_dsp_rows *)rows; /* local copy: y may alias it */             \
        const uint8_t *row0 = x0, *row1 = x1;                                                                          \
        uint8_t *row = y;                                                                                              \
        for (int32_t n = r.rows; n > 0; n--) {                                                                         \
            const type *a = (const type *)row0, *b = (const type *)row1;                                               \
            type *to = (type *)row;                                                                                    \
            uint32_t w = (lanes) == 4 ? *(const uint8_t *)row1 * 0x01010101U : *(const uint16_t *)row1 * 0x10001U;     \
            int32_t left = r.count;                                                                                    \
            for (; left >= (lanes); left -= (lanes)) {                                                                 \
                const uint32_t v = dsp_load(a);                                                                        \
                uint32_t z;                                                                                            \
                if (!(repeats))                                                                                        \
                    w = dsp_load(b);                                                                                   \
                __asm__(subtract " %0, %1, %2\n\tsel %0, %" first ", %" second : "=&r"(z) : "r"(v), "r"(w));           \
                dsp_store(to, z);                                                                                      \
                a += (lanes), b += (lanes), to += (lanes);                                                             \
            }                                                                                                          \
            for (; left > 0; left--) {                                                                                 \
                const uint32_t v = (uint32_t)*a++;                                                                     \
                uint32_t z;                                                                                            \
                if (!(repeats))                                                                                        \
                    w = (uint32_t)*b++;                                                                                \
                __asm__(subtract " %0, %1, %2\n\tsel %0, %" first ", %" second : "=&r"(z) : "r"(v), "r"(w));           \
                *to++ = (type)z;                                                                                       \
            }                                                                                                          \
            row0 += r.row0, row1 += r.row1, row += r.y_row;                                                            \
        }                                                                                                              \
    }

#define EXTREMA(type, suffix, subtract, lanes)                                                                         \
    EXTREMUM(arm_dsp_maximum_each_##suffix, type, subtract, lanes, "1", "2", 0)                                        \
    EXTREMUM(arm_dsp_maximum_one_##suffix, type, subtract, lanes, "1", "2", 1)                                         \
    EXTREMUM(arm_dsp_minimum_each_##suffix, type, subtract, lanes, "2", "1", 0)                                        \
    EXTREMUM(arm_dsp_minimum_one_##suffix, type, subtract, lanes, "2", "1", 1)

EXTREMA(uint8_t, u8, "usub8", 4)
EXTREMA(int8_t, s8, "ssub8", 4)
EXTREMA(int16_t, s16, "ssub16", 2)
