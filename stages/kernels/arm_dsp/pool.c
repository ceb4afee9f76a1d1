#include "pool.h"

#include "dsp.h"

/* sum / count to the nearest, halves away from zero, clipped. */
DSP_INLINE uint8_t average(int32_t sum, const struct arm_dsp_average *v)
{
    const int32_t half = v->count / 2, mean = (sum > 0 ? sum + half : sum - half) / v->count;
    return (uint8_t)(mean < v->low ? v->low : mean > v->high ? v->high : mean);
}

/* Bytes as unsigned numbers, four at a time; what makes them unsigned is subtracted from the sum. */
void arm_dsp_average_planes(const void *x, void *y, const int32_t *fields)
{
    const struct arm_dsp_average v = *(const struct arm_dsp_average *)fields;
    const uint32_t flips = (uint32_t)v.flip * 0x01010101u;
    const uint8_t *from = x;
    uint8_t *to = y;
    for (int32_t channels = v.channels; channels > 0; channels--) {
        uint32_t sum = 0;
        int32_t left = v.count;
        for (; left >= 16; left -= 16) {
            sum = dsp_add_bytes(dsp_load(from) ^ flips, sum);
            sum = dsp_add_bytes(dsp_load(from + 4) ^ flips, sum);
            sum = dsp_add_bytes(dsp_load(from + 8) ^ flips, sum);
            sum = dsp_add_bytes(dsp_load(from + 12) ^ flips, sum);
            from += 16;
        }
        for (; left > 0; left--) {
            sum += *from++ ^ (uint32_t)v.flip;
        }
        *to++ = average((int32_t)sum - v.flip * v.count, &v);
    }
}

/* Four channels at a time, in halves of two words: 255 bytes of one sign or another fit. */
void arm_dsp_average_rows(const void *x, void *y, const int32_t *fields)
{
    const struct arm_dsp_average v = *(const struct arm_dsp_average *)fields;
    const uint32_t flips = (uint32_t)(v.flip ^ 0x80) * 0x01010101u;
    const int32_t unflip = v.flip ? 0 : 128 * v.count;
    uint8_t *to = y;
    for (int32_t c = 0; c < v.channels; c += 4) {
        const uint8_t *from = (const uint8_t *)x + c;
        uint32_t even = 0, odd = 0;
        for (int32_t left = v.count; left > 0; left--) {
            const uint32_t bytes = dsp_load(from) ^ flips;
            even = dsp_sadd16(even, dsp_even(bytes));
            odd = dsp_sadd16(odd, dsp_odd(bytes));
            from += v.channels;
        }
        to[0] = average((int16_t)even + unflip, &v);
        to[1] = average((int16_t)odd + unflip, &v);
        to[2] = average(((int32_t)even >> 16) + unflip, &v);
        to[3] = average(((int32_t)odd >> 16) + unflip, &v);
        to += 4;
    }
}
