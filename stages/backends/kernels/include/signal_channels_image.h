/* Shared by families: TFLM's signal operators on channels of a filter bank. The including file defines
 *
 *   CHANNELS(name)    the name of a function
 *   LEADING_ZEROS(x)  of a uint32_t above 0
 */
#pragma once

#include <stdint.h>

/* floor(sqrt(x)) for x >= 2^30. Two Newton steps from a value within 6 % give the root or the root + 1. */
static uint32_t root_of_word(uint32_t x)
{
    uint32_t root = (x >> 17) + (x >> 18) + 19800;
    root = (root + x / root) >> 1;
    root = (root + x / root) >> 1;
    root = root > 0xFFFF ? 0xFFFF : root;
    return root - (root * root > x);
}

/* The same for 64 bits. */
static uint32_t root_of_long(uint64_t x)
{
    const uint32_t high = (uint32_t)(x >> 32), low = (uint32_t)x, first = root_of_word(high);
#if UINTPTR_MAX > UINT32_MAX
    (void)low;
    uint64_t root = (uint64_t)first << 16 | 0x8000; /* error within 2^-16: one more Newton step */
    root = (root + x / root) >> 1;
    root = root > UINT32_MAX ? UINT32_MAX : root;
    return (uint32_t)(root - (root * root > x));
#else
    /* The lower half of the root by a division (P. Zimmermann, Karatsuba Square Root, 1999). The dividend has 33 bits, so it is halved. */
    const uint32_t rest = high - first * first;
    const uint32_t half = (rest << 15) | (low >> 17), quotient = half / first;
    const uint32_t left = ((half - quotient * first) << 1) | ((low >> 16) & 1);
    const uint64_t remainder = (uint64_t)left << 16 | (low & 0xFFFF), square = (uint64_t)quotient * quotient;
    return (first << 16) + quotient - (remainder < square);
#endif
}

static uint32_t rounded_root(uint64_t x)
{
    if (x >> 32 == 0) {
        if (x == 0)
            return 0;
        const int32_t shift = LEADING_ZEROS((uint32_t)x) & ~1;
        const uint32_t root = root_of_word((uint32_t)x << shift) >> (shift / 2);
        return root + ((uint32_t)x - root * root > root && root != 0xFFFF);
    }
    const int32_t shift = LEADING_ZEROS((uint32_t)(x >> 32)) & ~1;
    const uint32_t root = root_of_long(x << shift) >> (shift / 2);
    return root + (x - (uint64_t)root * root > root && root != UINT32_MAX);
}

void CHANNELS(square_root)(const uint64_t *x, const int32_t *bits, uint32_t *y, int32_t frames, int32_t channels)
{
    for (; frames > 0; frames--) {
        const int32_t shift = *bits++ & 31;
        for (int32_t i = 0; i < channels; i++)
            *y++ = rounded_root(*x++) >> shift;
    }
}

void CHANNELS(noise_estimate)(const uint32_t *x, uint32_t *noise, uint32_t *y, const int32_t *parameters)
{
    const int32_t frames = parameters[0], channels = parameters[1], smoothing_bits = parameters[6];
    const int32_t bits = parameters[7], clamping = parameters[8];
    for (int32_t frame = 0; frame < frames; frame++) {
        const int32_t *factors = parameters + 2; /* of even channels; the factors of odd channels follow */
        for (uint32_t *const last = noise + channels; noise != last; noise++) {
            const uint32_t signal = *x++ << smoothing_bits;
            const uint64_t sum = (uint64_t)signal * (uint32_t)factors[0] + (uint64_t)*noise * (uint32_t)factors[1];
            const uint32_t estimate = (uint32_t)(sum >> bits);
            *y++ = *noise = clamping && estimate > signal ? signal : estimate;
            factors = factors == parameters + 2 ? parameters + 4 : parameters + 2;
        }
        noise -= channels;
    }
}

void CHANNELS(subtract_noise)(const uint32_t *x, const uint32_t *noise, uint32_t *y, int32_t count,
                              int32_t smoothing_bits, int32_t bits, int32_t least)
{
    for (; count > 0; count--, x++, noise++) {
        const uint32_t signal = *x << smoothing_bits, share = (uint32_t)((uint64_t)*x * (uint32_t)least >> bits);
        const uint32_t rest = (signal > *noise ? signal - *noise : 0) >> smoothing_bits;
        *y++ = rest > share ? rest : share;
    }
}

static int32_t gain_of(uint32_t noise, const int16_t *gains)
{
    if (noise <= 2)
        return gains[noise];
    const int32_t zeros = LEADING_ZEROS(noise);
    const int16_t *of = gains + 4 * (32 - zeros) - 6;
    const int32_t place = (int32_t)(noise << (zeros + 1) >> 22); /* the 10 bits below the highest set bit */
    const uint32_t slope = (uint32_t)((of[2] * place) >> 5) + ((uint32_t)of[1] << 5);
    const int32_t risen = (int32_t)(slope * (uint32_t)place + (1 << 14)) >> 15;
    return (int16_t)(risen + of[0]);
}

void CHANNELS(pcan)(const uint32_t *x, const uint32_t *noise, const int16_t *gains, uint32_t *y, int32_t count,
                    int32_t snr_shift)
{
    for (; count > 0; count--) {
        const uint32_t gain = (uint32_t)gain_of(*noise++, gains);
        const uint32_t ratio = (uint32_t)((uint64_t)*x++ * gain >> snr_shift);
        *y++ = ratio < 2 << 12 ? (ratio * ratio) >> 20 : (ratio >> 6) - (1 << 6);
    }
}

void CHANNELS(log)(const uint32_t *x, const uint16_t *table, int16_t *y, int32_t count, int32_t scale,
                   int32_t correction_bits)
{
    for (; count > 0; count--) {
        const uint32_t value = *x++ << correction_bits;
        if (value < 2) {
            *y++ = 0;
            continue;
        }
        const int32_t zeros = LEADING_ZEROS(value);
        const int32_t place = (int32_t)(value << (zeros + 1) >> 16); /* the 16 bits below the highest set bit */
        const int32_t segment = place >> 9, first = table[segment];
        const int32_t fraction = place + first + (((table[segment + 1] - first) * (place & 511)) >> 16);
        const uint32_t binary = ((uint32_t)(31 - zeros) << 16) + (uint32_t)fraction;
        const uint32_t natural = (uint32_t)(((uint64_t)binary * 45426 + (1 << 15)) >> 16);
        const uint32_t scaled = ((uint32_t)scale * natural + (1 << 15)) >> 16;
        *y++ = (int16_t)(scaled < INT16_MAX ? scaled : INT16_MAX);
    }
}
