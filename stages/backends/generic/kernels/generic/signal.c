/* TFLM's signal operators; the formulas are in stages/ir/operators/signal_spectrum.py and signal_filter_bank.py. */
#include "signal.h"

void fl_signal_window(const int16_t *x, const int16_t *weights, int16_t *y, int32_t frames, int32_t size, int32_t shift)
{
    for (; frames > 0; frames--, x += size, y += size) {
        for (int32_t i = 0; i < size; i++) {
            int32_t product = (x[i] * weights[i]) >> shift;
            product = product > INT16_MAX ? INT16_MAX : product;
            y[i] = (int16_t)(product < INT16_MIN ? INT16_MIN : product);
        }
    }
}

static int32_t bits_of(uint32_t x) { return x == 0 ? 0 : 32 - __builtin_clz(x); }

/* The magnitude of -2^15 does not fit the int16 that holds the largest: it counts as -2^15. */
static int32_t largest_magnitude(const int16_t *x, int32_t size)
{
    int32_t low = 0, high = 0;
    for (int32_t i = 0; i < size; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    if (low > INT16_MIN)
        return -low > high ? -low : high;
    int32_t largest = 0;
    for (int32_t i = 0; i < size; i++) {
        if (x[i] > largest)
            largest = x[i];
        else if (-x[i] > largest)
            largest = (int16_t)-x[i];
    }
    return largest;
}

void fl_signal_scale_bits(const int16_t *x, int32_t *bits, int32_t frames, int32_t size)
{
    for (; frames > 0; frames--, x += size) {
        const int32_t largest = largest_magnitude(x, size);
        *bits++ = largest > 0 ? 15 - bits_of((uint32_t)largest) : 0;
    }
}

void fl_signal_scale_up(const int16_t *x, const int32_t *bits, int16_t *y, int32_t frames, int32_t size)
{
    for (; frames > 0; frames--) {
        const int32_t shift = *bits++;
        for (int32_t i = 0; i < size; i++)
            *y++ = (int16_t)((uint32_t)*x++ << shift);
    }
}

void fl_signal_energy(const int16_t *x, uint32_t *y, int32_t frames, int32_t bins, int32_t start, int32_t end)
{
    for (; frames > 0; frames--, x += 2 * bins, y += bins) {
        for (int32_t i = 0; i < start; i++)
            y[i] = 0;
        for (int32_t i = start; i < end; i++)
            y[i] = (uint32_t)(x[2 * i] * x[2 * i]) + (uint32_t)(x[2 * i + 1] * x[2 * i + 1]);
        for (int32_t i = end; i < bins; i++)
            y[i] = 0;
    }
}

#define FILTER_BANK(name, product)                                                                       \
    void name(const uint32_t *x, const int16_t *weights, uint64_t *y, const int32_t *parameters)         \
    {                                                                                                    \
        const int32_t frames = parameters[0], bins = parameters[1], channels = parameters[2];            \
        for (int32_t frame = 0; frame < frames; frame++, x += bins) {                                    \
            const int32_t *section = parameters + 3;                                                     \
            const int16_t *w = weights;                                                                  \
            uint64_t before = 0;                                                                         \
            for (int32_t s = 0; s <= channels; s++, section += 2) {                                      \
                const uint32_t *energy = x + section[0];                                                 \
                uint64_t sum = before, next = 0;                                                         \
                for (int32_t i = section[1]; i > 0; i--, w += 2) {                                       \
                    const uint32_t e = *energy++;                                                        \
                    sum += product(e, w[0]);                                                             \
                    next += product(e, w[1]);                                                            \
                }                                                                                        \
                if (s > 0)                                                                               \
                    *y++ = sum;                                                                          \
                before = next;                                                                           \
            }                                                                                            \
        }                                                                                                \
    }
#define UNSIGNED_PRODUCT(e, w) ((uint64_t)(e) * (uint32_t)(w))
#define SIGNED_PRODUCT(e, w) ((uint64_t)(e) * (uint64_t)(int64_t)(w))

FILTER_BANK(fl_signal_filter_bank, UNSIGNED_PRODUCT)
FILTER_BANK(fl_signal_filter_bank_signed, SIGNED_PRODUCT)

/* floor(sqrt(x)) for x with one of its two highest bits: the root of the upper half, then a division for the lower
 * half (P. Zimmermann, Karatsuba Square Root, 1999). The first half has 8 bits, by Newton's step from its upper bits. */
static uint32_t root_of_word(uint32_t x)
{
    const uint32_t high = x >> 16;
    uint32_t root = (high >> 9) + 96; /* within 6 % */
    root = (root + high / root) >> 1;
    root = (root + high / root) >> 1;
    root -= root * root > high;
    const uint32_t rest = high - root * root, dividend = (rest << 8) | ((x >> 8) & 255);
    const uint32_t quotient = dividend / (2 * root), left = dividend - quotient * 2 * root;
    const uint32_t whole = (root << 8) + quotient;
    return whole - ((left << 8 | (x & 255)) < quotient * quotient);
}

static uint32_t rounded_root(uint64_t x)
{
    if (x == 0)
        return 0;
    uint32_t root;
    if (x >> 32 == 0) {
        const int32_t shift = __builtin_clz((uint32_t)x) & ~1;
        root = root_of_word((uint32_t)x << shift) >> (shift / 2);
        const uint32_t rest = (uint32_t)x - root * root;
        return root + (rest > root && root != 0xFFFF);
    }
    const int32_t shift = __builtin_clz((uint32_t)(x >> 32)) & ~1;
    const uint64_t wide = x << shift;
    const uint32_t high = (uint32_t)(wide >> 32), low = (uint32_t)wide;
    const uint32_t first = root_of_word(high), rest = high - first * first;
    /* (rest : upper half of low) has 33 bits: divide its half by `first`. */
    const uint32_t half = (rest << 15) | (low >> 17), quotient = half / first;
    const uint32_t left = ((half - quotient * first) << 1) | ((low >> 16) & 1);
    const uint64_t remainder = (uint64_t)left << 16 | (low & 0xFFFF), square = (uint64_t)quotient * quotient;
    const uint64_t whole = ((uint64_t)first << 16) + quotient - (remainder < square);
    root = (uint32_t)(whole >> (shift / 2));
    return root + (x - (uint64_t)root * root > root && root != UINT32_MAX);
}

void fl_signal_square_root(const uint64_t *x, const int32_t *bits, uint32_t *y, int32_t frames, int32_t channels)
{
    for (; frames > 0; frames--) {
        const int32_t shift = *bits++ & 31;
        for (int32_t i = 0; i < channels; i++)
            *y++ = rounded_root(*x++) >> shift;
    }
}

void fl_signal_noise_estimate(const uint32_t *x, uint32_t *noise, uint32_t *y, const int32_t *parameters)
{
    const int32_t frames = parameters[0], channels = parameters[1], smoothing_bits = parameters[6];
    const int32_t bits = parameters[7], clamping = parameters[8];
    for (int32_t frame = 0; frame < frames; frame++) {
        for (int32_t c = 0; c < channels; c++) {
            const int32_t *factors = parameters + 2 + 2 * (c & 1);
            const uint32_t signal = *x++ << smoothing_bits;
            const uint64_t sum = (uint64_t)signal * (uint32_t)factors[0] + (uint64_t)noise[c] * (uint32_t)factors[1];
            const uint32_t estimate = (uint32_t)(sum >> bits);
            noise[c] = clamping && estimate > signal ? signal : estimate;
            *y++ = noise[c];
        }
    }
}

void fl_signal_subtract_noise(const uint32_t *x, const uint32_t *noise, uint32_t *y, int32_t count,
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
    const int32_t octave = bits_of(noise);
    const int16_t *of = gains + 4 * octave - 6;
    const int32_t place = (int32_t)((octave < 11 ? noise << (11 - octave) : noise >> (octave - 11)) & 0x3FF);
    const uint32_t slope = (uint32_t)((of[2] * place) >> 5) + ((uint32_t)of[1] << 5);
    const int32_t risen = (int32_t)(slope * (uint32_t)place + (1 << 14)) >> 15;
    return (int16_t)(risen + of[0]);
}

void fl_signal_pcan(const uint32_t *x, const uint32_t *noise, const int16_t *gains, uint32_t *y, int32_t count,
                    int32_t snr_shift)
{
    for (; count > 0; count--) {
        const uint32_t gain = (uint32_t)gain_of(*noise++, gains);
        const uint32_t ratio = (uint32_t)((uint64_t)*x++ * gain >> snr_shift);
        *y++ = ratio < 2 << 12 ? (ratio * ratio) >> 20 : (ratio >> 6) - (1 << 6);
    }
}

void fl_signal_log(const uint32_t *x, const uint16_t *table, int16_t *y, int32_t count, int32_t scale,
                   int32_t correction_bits)
{
    for (; count > 0; count--) {
        const uint32_t value = *x++ << correction_bits;
        if (value < 2) {
            *y++ = 0;
            continue;
        }
        const int32_t octave = 31 - __builtin_clz(value);
        const uint32_t above = value - (UINT32_C(1) << octave);
        const int32_t place = (int32_t)(octave < 16 ? above << (16 - octave) : above >> (octave - 16));
        const int32_t segment = place >> 9, first = table[segment];
        const int32_t fraction = place + first + (((table[segment + 1] - first) * (place & 511)) >> 16);
        const uint32_t binary = ((uint32_t)octave << 16) + (uint32_t)fraction;
        const uint32_t natural = (uint32_t)(((uint64_t)binary * 45426 + (1 << 15)) >> 16);
        const uint32_t scaled = ((uint32_t)scale * natural + (1 << 15)) >> 16;
        *y++ = (int16_t)(scaled < INT16_MAX ? scaled : INT16_MAX);
    }
}
