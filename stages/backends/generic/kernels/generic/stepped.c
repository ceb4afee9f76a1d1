/* Fully connected layers whose results are looked up, because no 32-bit multiplier gives them exactly. */
#include "stepped.h"

#include "elements.h"

/* How many of s[1] to s[255], which ascend, are below x: the bits of the number from the highest. */
static int32_t steps_below(int32_t x, const int32_t *s)
{
    int32_t count = 0;
    for (int32_t half = FL_STEPS / 2; half > 0; half /= 2) {
        if (s[count + half] < x) {
            count += half;
        }
    }
    return count;
}

INLINE void stepped(const uint8_t *x, const int8_t *w, const int32_t *units, const int32_t *steps, uint8_t *y,
                    const struct fl_stepped *p, int is_unsigned)
{
    for (int32_t j = 0; j < p->units; j++) {
        uint32_t sum = (uint32_t)units[FL_STEPPED_BIAS];
        for (int32_t k = 0; k < p->depth; k++) {
            sum += (uint32_t)(load(x + k, is_unsigned) * (*w++ - p->weight_zero_point));
        }
        const int32_t *s = steps + units[FL_STEPPED_ROW] * FL_STEPS;
        y[j] = (uint8_t)(p->zero_point + s[0] + steps_below((int32_t)sum, s));
        units += FL_STEPPED_UNIT;
    }
}

void fl_stepped_s8(const int8_t *x, const int8_t *w, const int32_t *units, const int32_t *steps, void *y,
                   const void *parameters)
{
    stepped((const uint8_t *)x, w, units, steps, y, parameters, 0);
}

void fl_stepped_u8(const uint8_t *x, const int8_t *w, const int32_t *units, const int32_t *steps, void *y,
                   const void *parameters)
{
    stepped(x, w, units, steps, y, parameters, 1);
}
