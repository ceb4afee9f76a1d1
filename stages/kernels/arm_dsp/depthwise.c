#include "depthwise.h"

#include "dsp.h"

void arm_dsp_fill(int16_t *plane, int32_t count, int32_t value)
{
    const uint32_t both = dsp_low_halves((uint32_t)value, (uint32_t)value);
    for (; count >= 2; count -= 2) {
        dsp_store(plane, both);
        plane += 2;
    }
    if (count > 0) {
        *plane = (int16_t)value;
    }
}

/* Neighbouring bytes: four at a time, 7 instructions. */
DSP_INLINE void widen_row(int16_t *to, const uint8_t *from, int32_t count, uint32_t flips)
{
    for (; count >= 4; count -= 4) {
        const uint32_t bytes = dsp_load(from) ^ flips;
        const uint32_t even = dsp_even(bytes), odd = dsp_odd(bytes);
        dsp_store(to, dsp_low_halves(even, odd));
        dsp_store(to + 2, dsp_high_halves(even, odd));
        from += 4;
        to += 4;
    }
    for (; count > 0; count--) {
        *to++ = (int8_t)(*from++ ^ flips);
    }
}

/* Bytes that are `step` apart: two at a time. */
DSP_INLINE void widen_apart(int16_t *to, const uint8_t *from, int32_t count, int32_t step, uint32_t flips)
{
    for (; count >= 2; count -= 2) {
        const int8_t low = (int8_t)(from[0] ^ flips), high = (int8_t)(from[step] ^ flips);
        dsp_store(to, dsp_low_halves((uint32_t)low, (uint32_t)high));
        from += 2 * step;
        to += 2;
    }
    if (count > 0) {
        *to = (int8_t)(*from ^ flips);
    }
}

/* `flip` is a constant where this is inlined, so that int8 is loaded with its sign. */
DSP_INLINE void widen(int16_t *plane, const uint8_t *from, const struct arm_dsp_widen *v, uint32_t flip)
{
    int16_t *to = plane + v->first;
    const int32_t columns = v->columns, row_step = v->row_step, column_step = v->column_step, pitch = v->pitch;
    for (int32_t rows = v->rows; rows > 0; rows--) {
        if (column_step == 1) {
            widen_row(to, from, columns, flip * 0x01010101u);
        } else {
            widen_apart(to, from, columns, column_step, flip);
        }
        from += row_step;
        to += pitch;
    }
}

void arm_dsp_widen(int16_t *plane, const void *x, const int32_t *geometry)
{
    const struct arm_dsp_widen *const v = (const struct arm_dsp_widen *)geometry;
    if (v->flip) {
        widen(plane, x, v, 0x80);
    } else {
        widen(plane, x, v, 0);
    }
}
