/* SignalFilterBank of TFLM, two bins at a time; a word has the weights of a bin for two channels. */
#include "signal.h"

/* sum += energy * low half of weights; behind += energy * upper half of weights */
#define ADDED(energy, weights)                             \
    "uxth %[w], %[" weights "]\n\t"                        \
    "umlal %Q[sum], %R[sum], %[" energy "], %[w]\n\t"      \
    "lsr %[w], %[" weights "], #16\n\t"                    \
    "umlal %Q[behind], %R[behind], %[" energy "], %[w]\n\t"

void arm_dsp_signal_filter_bank(const uint32_t *x, const int16_t *weights, uint64_t *y, const int32_t *parameters)
{
    const int32_t frames = parameters[0], bins = parameters[1], channels = parameters[2];
    for (int32_t frame = 0; frame < frames; frame++, x += bins) {
        const int32_t *section = parameters + 3, *const last = section + 2 * channels;
        const int16_t *pairs = weights;
        uint64_t sum = 0;
        for (;; section += 2) {
            const uint32_t *from = x + section[0], *const end = from + section[1];
            uint64_t behind = 0;
            uint32_t a, b, c, d, w;
            if (section[1] & 1) {
                sum += (uint64_t)*from * (uint16_t)pairs[0];
                behind = (uint64_t)*from++ * (uint16_t)pairs[1];
                pairs += 2;
            }
            while (from != end)
                __asm__ volatile("ldrd %[a], %[b], [%[from]], #8\n\t"
                                 "ldrd %[c], %[d], [%[pairs]], #8\n\t" ADDED("a", "c") ADDED("b", "d")
                                 : [from] "+r"(from), [pairs] "+r"(pairs), [sum] "+r"(sum), [behind] "+r"(behind), [a] "=&r"(a),
                                   [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [w] "=&r"(w)
                                 :
                                 : "memory");
            if (section != parameters + 3)
                *y++ = sum;
            if (section == last)
                break;
            sum = behind;
        }
    }
}
