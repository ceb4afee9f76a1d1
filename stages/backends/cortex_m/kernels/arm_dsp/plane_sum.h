/* The sum of consecutive bytes. */
#pragma once

#include "dsp.h"

/* Adds bytes as unsigned numbers, four at a time. If `flip` is 0x80, bytes are int8: the offset of 128 per byte is subtracted again. */
DSP_INLINE int32_t plane_sum(const uint8_t *from, int32_t count, int32_t flip)
{
    const uint32_t flips = (uint32_t)flip * 0x01010101u;
    uint32_t sum = 0;
    int32_t left = count;
    for (; left >= 16; left -= 16) {
        sum = dsp_add_bytes(dsp_load(from) ^ flips, sum);
        sum = dsp_add_bytes(dsp_load(from + 4) ^ flips, sum);
        sum = dsp_add_bytes(dsp_load(from + 8) ^ flips, sum);
        sum = dsp_add_bytes(dsp_load(from + 12) ^ flips, sum);
        from += 16;
    }
    for (; left > 0; left--) {
        sum += *from++ ^ (uint32_t)flip;
    }
    return (int32_t)sum - flip * count;
}
