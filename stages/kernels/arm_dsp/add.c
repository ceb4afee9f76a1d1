#include "add.h"

#include "dsp.h"

enum { COMMON_SHIFT = 19 }; /* of the input with the larger scale: twice that is the common one, 2^20 the reference's scaling */

DSP_INLINE int32_t shifted(const uint8_t *x, int is_unsigned)
{
    return (is_unsigned ? (int32_t)*x : (int32_t)(int8_t)*x) * (1 << COMMON_SHIFT);
}

DSP_INLINE uint32_t sum(const uint8_t *x0, const uint8_t *x1, const int32_t *table, const struct arm_dsp_add *v, int is_unsigned)
{
    const int32_t common = shifted(x0, is_unsigned) + table[*x1];
    const int32_t t = dsp_smmlar(common, v->doubled, common);
    return (uint32_t)dsp_smmlar(t + (t >> 31), v->rounder, v->zero_point); /* halves away from zero */
}

/* Four elements at a time, narrowed together. */
DSP_INLINE void add(const uint8_t *x0, const uint8_t *x1, uint8_t *y, int32_t count, const int32_t *table,
                    const struct arm_dsp_add *fields, int is_unsigned)
{
    const struct arm_dsp_add v = *fields; /* a copy: y may point anywhere */
    for (; count >= 4; count -= 4) {
        const uint32_t y0 = sum(x0, x1, table, &v, is_unsigned), y2 = sum(x0 + 2, x1 + 2, table, &v, is_unsigned);
        const uint32_t even = dsp_usat16_8(dsp_low_halves(y0, y2));
        const uint32_t y1 = sum(x0 + 1, x1 + 1, table, &v, is_unsigned), y3 = sum(x0 + 3, x1 + 3, table, &v, is_unsigned);
        const uint32_t odd = dsp_usat16_8(dsp_low_halves(y1, y3));
        dsp_store(y, dsp_uadd8(dsp_uqsub8(even | odd << 8, (uint32_t)v.floor), (uint32_t)v.low));
        x0 += 4;
        x1 += 4;
        y += 4;
    }
    for (; count > 0; count--) {
        const uint32_t one = dsp_usat16_8(sum(x0++, x1++, table, &v, is_unsigned));
        *y++ = (uint8_t)dsp_uadd8(dsp_uqsub8(one, (uint32_t)v.floor), (uint32_t)v.low);
    }
}

void arm_dsp_add_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, const int32_t *table, const int32_t *fields)
{
    add((const uint8_t *)x0, (const uint8_t *)x1, y, count, table, (const struct arm_dsp_add *)fields, 0);
}

void arm_dsp_add_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, const int32_t *table, const int32_t *fields)
{
    add(x0, x1, y, count, table, (const struct arm_dsp_add *)fields, 1);
}
