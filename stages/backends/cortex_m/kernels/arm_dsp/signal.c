/* TFLM's signal operators on frames of int16, two numbers at a time. */
#include "signal.h"

#include "auto_scale.h"
#include "dsp.h"

/* Load or store two words and advance the pointer. Addresses must be multiples of four. */
#define TWO_LOADED(a, b, from) "ldrd %[" a "], %[" b "], [%[" from "]], #8\n\t"
#define TWO_STORED(a, b) "strd %[" a "], %[" b "], [%[y]], #8\n\t"

/* Multiply the halves of x by the halves of w and shift each product right by 14. Overwrites x. */
#define WINDOWED(y, x, w)                            \
    "smulbb %[" y "], %[" x "], %[" w "]\n\t"         \
    "smultt %[" x "], %[" x "], %[" w "]\n\t"         \
    "asr %[" y "], %[" y "], #14\n\t"                 \
    "pkhbt %[" y "], %[" y "], %[" x "], lsl #2\n\t"

#define FOUR_WINDOWED                                                                                                   \
    __asm__ volatile(TWO_LOADED("a", "b", "x") TWO_LOADED("c", "d", "w") WINDOWED("e", "a", "c") WINDOWED("f", "b", "d") \
                         TWO_STORED("e", "f")                                                                           \
                     : [x] "+r"(x), [w] "+r"(w), [y] "+r"(y), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d),    \
                       [e] "=&r"(e), [f] "=&r"(f)                                                                       \
                     :                                                                                                  \
                     : "memory")

void arm_dsp_window(const int16_t *x, const int16_t *weights, int16_t *y, int32_t frames, int32_t size)
{
    uint32_t a, b, c, d, e, f;
    for (; frames > 0; frames--) {
        const int16_t *w = weights;
        for (const int16_t *const last = x + (size & ~7); x != last;) {
            FOUR_WINDOWED;
            FOUR_WINDOWED;
        }
        for (const int16_t *const last = x + (size & 7); x != last;)
            *y++ = (int16_t)(*x++ * *w++ >> 14);
    }
}

/* Return the magnitudes of both halves; the magnitude of -2^15 is 2^15. */
DSP_INLINE uint32_t magnitudes(uint32_t x)
{
    uint32_t result;
    __asm__("ssub16 %0, %2, %1\n\tsel %0, %0, %1" : "=&r"(result) : "r"(x), "r"(0));
    return result;
}

#define FOUR_MAGNITUDES                                                                          \
    do {                                                                                         \
        uint32_t a, b;                                                                           \
        __asm__ volatile(TWO_LOADED("a", "b", "x") : [x] "+r"(x), [a] "=&r"(a), [b] "=&r"(b)::"memory"); \
        any |= magnitudes(a);                                                                    \
        any |= magnitudes(b);                                                                    \
    } while (0)

void arm_dsp_scale_bits(const int16_t *x, int32_t *bits, int32_t frames, int32_t size, int32_t ignored)
{
    for (; frames > 0; frames--) {
        const int16_t *const start = x;
        uint32_t any = 0;
        for (const int16_t *const last = x + (size & ~7); x != last;) {
            FOUR_MAGNITUDES;
            FOUR_MAGNITUDES;
        }
        for (const int16_t *const last = x + (size & 7); x != last; x++)
            any |= magnitudes((uint16_t)*x);
        any = (any | any >> 16) & 0xffff;
        *bits++ = any >> 15 ? fl_scale_bits_of_lowest(start, size, ignored) : fl_scale_bits(any);
    }
}

/* Multiply both halves of x by a power of two, modulo 2^16. Overwrites x. */
#define SCALED(y, x)                                 \
    "smulbb %[" y "], %[" x "], %[factor]\n\t"        \
    "smultb %[" x "], %[" x "], %[factor]\n\t"        \
    "pkhbt %[" y "], %[" y "], %[" x "], lsl #16\n\t"

#define FOUR_SCALED                                                                                                   \
    __asm__ volatile(TWO_LOADED("a", "b", "x") SCALED("c", "a") SCALED("d", "b") TWO_STORED("c", "d")                   \
                     : [x] "+r"(x), [y] "+r"(y), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d)                \
                     : [factor] "r"(factor)                                                                           \
                     : "memory")

void arm_dsp_scale_up(const int16_t *x, const int32_t *bits, int16_t *y, int32_t frames, int32_t size)
{
    uint32_t a, b, c, d;
    for (; frames > 0; frames--, bits++) {
        const uint32_t factor = (uint32_t)*bits < 16 ? UINT32_C(1) << *bits : 0;
        for (const int16_t *const last = x + (size & ~7); x != last;) {
            FOUR_SCALED;
            FOUR_SCALED;
        }
        for (const int16_t *const last = x + (size & 7); x != last;)
            *y++ = (int16_t)((uint32_t)*x++ * factor);
    }
}

DSP_INLINE uint32_t energy(uint32_t z)
{
    uint32_t sum;
    __asm__("smuad %0, %1, %1" : "=r"(sum) : "r"(z)); /* 2^31 wraps, which is correct as uint32 */
    return sum;
}

#define FOUR_ENERGIES                                                                                                    \
    __asm__ volatile(TWO_LOADED("a", "b", "z") TWO_LOADED("c", "d", "z") "smuad %[a], %[a], %[a]\n\tsmuad %[b], %[b], %[b]\n\t" \
                     "smuad %[c], %[c], %[c]\n\tsmuad %[d], %[d], %[d]\n\t" TWO_STORED("a", "b") TWO_STORED("c", "d")      \
                     : [z] "+r"(z), [y] "+r"(to), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d)                 \
                     :                                                                                                  \
                     : "memory")

__attribute__((optimize("no-tree-loop-distribute-patterns"))) /* a call of memset costs more than a few stores */
void arm_dsp_energy(const int16_t *x, uint32_t *y, int32_t frames, int32_t bins, int32_t start, int32_t end)
{
    uint32_t a, b, c, d;
    for (; frames > 0; frames--, x += 2 * bins, y += bins) {
        const int16_t *z = x + 2 * start;
        uint32_t *to = y;
        while (to != y + start)
            *to++ = 0;
        for (const int16_t *const last = z + 2 * ((end - start) & ~3); z != last;)
            FOUR_ENERGIES;
        for (; to < y + end; z += 2)
            *to++ = energy(dsp_load(z));
        while (to < y + bins)
            *to++ = 0;
    }
}
