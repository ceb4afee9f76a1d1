#include "add.h"

#include "dsp.h"

enum { COMMON_SHIFT = 19 }; /* shift of the input with the larger scale. The common scale is twice that scale; 2^20 is the reference's factor */

DSP_INLINE int32_t shifted(const uint8_t *x, int is_unsigned)
{
    return (is_unsigned ? (int32_t)*x : (int32_t)(int8_t)*x) * (1 << COMMON_SHIFT);
}

/* The sum of both inputs on the common scale, requantized. */
DSP_INLINE uint32_t scaled(int32_t common, const struct arm_dsp_add *v)
{
    const int32_t t = dsp_smmlar(common, v->doubled, common);
    return (uint32_t)dsp_smmlar(t + (t >> 31), v->rounder, v->zero_point); /* halves away from zero */
}

/* Operands of a run. `repeats` is 0 or 1 if that operand is a single value, whose term is `same`; otherwise -1. */
struct operands {
    const uint8_t *x0, *x1;
    const int32_t *table;
    int32_t same;
};

/* For element i, a constant. */
DSP_INLINE uint32_t sum(const struct operands *x, int32_t i, const struct arm_dsp_add *v, int repeats, int is_unsigned)
{
    const int32_t first = repeats == 0 ? x->same : shifted(x->x0 + i, is_unsigned);
    return scaled(first + (repeats == 1 ? x->same : x->table[x->x1[i]]), v);
}

/* Four elements at a time, narrowed together. */
DSP_INLINE void add(const uint8_t *x0, const uint8_t *x1, uint8_t *y, int32_t count, const int32_t *table,
                    const struct arm_dsp_add *v, int repeats, int is_unsigned)
{
    struct operands x = {x0, x1, table, repeats == 0 ? shifted(x0, is_unsigned) : repeats == 1 ? table[*x1] : 0};
    for (; count >= 4; count -= 4) {
        const uint32_t y0 = sum(&x, 0, v, repeats, is_unsigned), y2 = sum(&x, 2, v, repeats, is_unsigned);
        const uint32_t even = dsp_usat16_8(dsp_low_halves(y0, y2));
        const uint32_t y1 = sum(&x, 1, v, repeats, is_unsigned), y3 = sum(&x, 3, v, repeats, is_unsigned);
        const uint32_t odd = dsp_usat16_8(dsp_low_halves(y1, y3));
        dsp_store(y, dsp_uadd8(dsp_uqsub8(even | odd << 8, (uint32_t)v->floor), (uint32_t)v->low));
        x.x0 += 4;
        x.x1 += 4;
        y += 4;
    }
    for (; count > 0; count--) {
        const uint32_t one = dsp_usat16_8(sum(&x, 0, v, repeats, is_unsigned));
        *y++ = (uint8_t)dsp_uadd8(dsp_uqsub8(one, (uint32_t)v->floor), (uint32_t)v->low);
        x.x0++;
        x.x1++;
    }
}

void arm_dsp_add_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, const int32_t *table, const int32_t *fields)
{
    const struct arm_dsp_add v = *(const struct arm_dsp_add *)fields; /* local copy: y may alias it */
    add((const uint8_t *)x0, (const uint8_t *)x1, y, count, table, &v, -1, 0);
}

void arm_dsp_add_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, const int32_t *table, const int32_t *fields)
{
    const struct arm_dsp_add v = *(const struct arm_dsp_add *)fields;
    add(x0, x1, y, count, table, &v, -1, 1);
}

DSP_INLINE void add_rows(const uint8_t *x0, const uint8_t *x1, uint8_t *y, const int32_t *table, const int32_t *fields,
                         const int32_t *rows, int repeats, int is_unsigned)
{
    const struct arm_dsp_add v = *(const struct arm_dsp_add *)fields;
    const struct arm_dsp_rows r = *(const struct arm_dsp_rows *)rows;
    for (int32_t left = r.rows; left > 0; left--) {
        add(x0, x1, y, r.count, table, &v, repeats, is_unsigned);
        x0 += r.row0;
        x1 += r.row1;
        y += r.y_row;
    }
}

void arm_dsp_add_each_s8(const void *x0, const void *x1, void *y, const int32_t *table, const int32_t *fields, const int32_t *rows)
{
    add_rows(x0, x1, y, table, fields, rows, -1, 0);
}

void arm_dsp_add_each_u8(const void *x0, const void *x1, void *y, const int32_t *table, const int32_t *fields, const int32_t *rows)
{
    add_rows(x0, x1, y, table, fields, rows, -1, 1);
}

void arm_dsp_add_one0_s8(const void *x0, const void *x1, void *y, const int32_t *table, const int32_t *fields, const int32_t *rows)
{
    add_rows(x0, x1, y, table, fields, rows, 0, 0);
}

void arm_dsp_add_one0_u8(const void *x0, const void *x1, void *y, const int32_t *table, const int32_t *fields, const int32_t *rows)
{
    add_rows(x0, x1, y, table, fields, rows, 0, 1);
}

void arm_dsp_add_one1_s8(const void *x0, const void *x1, void *y, const int32_t *table, const int32_t *fields, const int32_t *rows)
{
    add_rows(x0, x1, y, table, fields, rows, 1, 0);
}

void arm_dsp_add_one1_u8(const void *x0, const void *x1, void *y, const int32_t *table, const int32_t *fields, const int32_t *rows)
{
    add_rows(x0, x1, y, table, fields, rows, 1, 1);
}
