/* TFLM's signal operators on frames of int16, a vector at a time. */
#include "signal.h"

#include "auto_scale.h"
#include "bytes.h"

void mve_window(const int16_t *x, const int16_t *weights, int16_t *y, int32_t frames, int32_t size, int32_t first, int32_t last)
{
    for (; frames > 0; frames--, x += size, y += size) {
        const int16_t *from = x, *w = weights;
        int16_t *to = y;
        __asm__ volatile("wlstp.16 lr, %[count], 2f\n"
                         "1: vldrh.16 q0, [%[from]], #16\n"
                         "vldrh.16 q1, [%[w]], #16\n"
                         "vqdmulh.s16 q0, q0, q1\n"
                         "vstrh.16 q0, [%[to]], #16\n"
                         "letp lr, 1b\n"
                         "2:"
                         : [from] "+r"(from), [w] "+r"(w), [to] "+r"(to)
                         : [count] "r"(size)
                         : "q0", "q1", "lr", "memory");
        for (int32_t i = first; i < last; i++)
            y[i] = x[i];
    }
}

void mve_scale_bits(const int16_t *x, int32_t *bits, int32_t frames, int32_t size, int32_t ignored)
{
    for (; frames > 0; frames--) {
        const int16_t *const start = x;
        uint32_t largest = 0; /* 2^15 for -2^15 */
        for (int32_t vectors = size >> 3; vectors > 0; vectors--, x += 8)
            largest = vmaxavq_s16((uint16_t)largest, vldrhq_s16(x));
        for (const int16_t *const last = start + size; x != last; x++) {
            const uint32_t magnitude = (uint32_t)(*x < 0 ? -*x : *x);
            largest = magnitude > largest ? magnitude : largest;
        }
        *bits++ = largest >> 15 ? fl_scale_bits_of_lowest(start, size, ignored) : fl_scale_bits(largest);
    }
}

void mve_scale_up(const int16_t *x, const int32_t *bits, int16_t *y, int32_t frames, int32_t size)
{
    for (; frames > 0; frames--, bits++) {
        const int32_t shift = (uint32_t)*bits < 16 ? *bits : 16; /* a shift by 16 gives 0 */
        __asm__ volatile("wlstp.16 lr, %[count], 2f\n"
                         "1: vldrh.16 q0, [%[x]], #16\n"
                         "vshl.s16 q0, %[shift]\n"
                         "vstrh.16 q0, [%[y]], #16\n"
                         "letp lr, 1b\n"
                         "2:"
                         : [x] "+r"(x), [y] "+r"(y)
                         : [count] "r"(size), [shift] "r"(shift)
                         : "q0", "lr", "memory");
        /* the loop moves the pointers by whole vectors */
        x -= -size & 7;
        y -= -size & 7;
    }
}

__attribute__((optimize("no-tree-loop-distribute-patterns"))) /* a call of memset costs more than a few stores */
void mve_energy(const int16_t *x, uint32_t *y, int32_t frames, int32_t bins, int32_t start, int32_t end)
{
    for (; frames > 0; frames--, x += 2 * bins, y += bins) {
        const int16_t *from = x + 2 * start;
        uint32_t *to = y + start;
        for (int32_t i = 0; i < start; i++)
            y[i] = 0;
        for (int32_t i = end; i < bins; i++)
            y[i] = 0;
        __asm__ volatile("wlstp.32 lr, %[count], 2f\n"
                         "1: vldrw.32 q0, [%[from]], #16\n"
                         "vmullb.s16 q1, q0, q0\n"
                         "vmullt.s16 q2, q0, q0\n"
                         "vadd.i32 q1, q1, q2\n"
                         "vstrw.32 q1, [%[to]], #16\n"
                         "letp lr, 1b\n"
                         "2:"
                         : [from] "+r"(from), [to] "+r"(to)
                         : [count] "r"(end - start)
                         : "q0", "q1", "q2", "lr", "memory");
    }
}

void mve_filter_bank(const uint32_t *x, const uint16_t *weights, const int32_t *parameters, uint64_t *y)
{
    const int32_t frames = parameters[0], bins = parameters[1], channels = parameters[2];
    for (int32_t frame = 0; frame < frames; frame++, x += bins) {
        const int32_t *section = parameters + 3, *const last = section + 2 * channels;
        const uint16_t *w = weights;
        uint64_t sum = 0;
        for (;; section += 2) {
            const uint32_t *energy = x + section[0];
            const uint16_t *own = w, *next = w + section[1];
            uint64_t behind = 0;
            w = next + section[1];
            __asm__ volatile("wlstp.32 lr, %[count], 2f\n"
                             "1: vldrw.u32 q0, [%[energy]], #16\n"
                             "vldrh.u32 q1, [%[own]], #8\n"
                             "vldrh.u32 q2, [%[next]], #8\n"
                             "vmlaldava.u32 %Q[sum], %R[sum], q0, q1\n"
                             "vmlaldava.u32 %Q[behind], %R[behind], q0, q2\n"
                             "letp lr, 1b\n"
                             "2:"
                             : [energy] "+r"(energy), [own] "+r"(own), [next] "+r"(next), [sum] "+r"(sum), [behind] "+r"(behind)
                             : [count] "r"(section[1])
                             : "q0", "q1", "q2", "lr", "memory");
            if (section != parameters + 3)
                *y++ = sum;
            if (section == last)
                break;
            sum = behind;
        }
    }
}
