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
