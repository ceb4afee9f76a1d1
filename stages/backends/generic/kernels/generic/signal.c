/* TFLM's signal operators; the formulas are in stages/ir/operators/signal_spectrum.py and signal_filter_bank.py. */
#include "signal.h"

#include "auto_scale.h"

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

void fl_signal_scale_bits(const int16_t *x, int32_t *bits, int32_t frames, int32_t size, int32_t ignored)
{
    for (; frames > 0; frames--, x += size) {
        int32_t low = 0, high = 0;
        for (int32_t i = 0; i < size; i++) {
            low = x[i] < low ? x[i] : low;
            high = x[i] > high ? x[i] : high;
        }
        *bits++ = low == INT16_MIN ? fl_scale_bits_of_lowest(x, size, ignored)
                                   : fl_scale_bits((uint32_t)(-low > high ? -low : high));
    }
}

void fl_signal_scale_up(const int16_t *x, const int32_t *bits, int16_t *y, int32_t frames, int32_t size)
{
    for (; frames > 0; frames--) {
        const uint32_t factor = (uint32_t)*bits < 16 ? UINT32_C(1) << *bits : 0;
        bits++;
        for (int32_t i = 0; i < size; i++)
            *y++ = (int16_t)((uint32_t)*x++ * factor);
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

#define CHANNELS(name) fl_signal_##name
#define LEADING_ZEROS(x) __builtin_clz(x)
#include "signal_channels_image.h"
