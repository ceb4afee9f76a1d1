/* RFFT of int16 with the roundings of KissFFT, four complex numbers in a vector.
 *
 * 2 N real samples form N complex numbers. Their FFT has stages of radix 4. The first has radix 2 if N is not a power of four.
 *
 *   first, stage   z[b + n], z[b + n + m], z[b + n + 2 m], z[b + n + 3 m] for n below m, in place, in blocks of 4 m numbers; each
 *                  stage divides m by 4. A block has the same factors for all n; those of the first block are 1
 *   last stage     m = 1: a vector has number n of four blocks. Writes y in the order of frequencies
 *
 * Inputs of a stage are divided by 4 before the twiddle factor, so 16 bits suffice. VQRDMULH by 8191 is the rounded quarter.
 */
#include <string.h>

#include "bytes.h"
#include "signal.h"

#define MVE_APART static __attribute__((noinline)) /* not inlined: uses all registers */
#define QUARTER(z) "vqrdmulh.s16 " z ", " z ", %[share]\n"
#define MULTIPLIED(to, z, factor) "vqrdmlsdh.s16 " to ", " z ", " factor "\nvqrdmladhx.s16 " to ", " z ", " factor "\n"

enum { A_QUARTER = INT16_MAX / 4, A_HALF = INT16_MAX / 2 };

/* Butterflies without factors. `load3` and `odd` handle input 3, or zeros in its place. */
#define PLAIN(vectors, load3, odd)                                                                                 \
    __asm__ volatile("wls lr, %[count], 2f\n"                                                                      \
                     "1: vldrw.u32 q0, [%[x0]], #16\n"                                                             \
                     "vldrw.u32 q2, [%[x2]], #16\n"                                                                \
                     "vldrw.u32 q1, [%[x1]], #16\n" QUARTER("q0") QUARTER("q2") QUARTER("q1") load3               \
                     "vadd.i16 q4, q0, q2\n"                                                                       \
                     "vsub.i16 q0, q0, q2\n" odd                                                                   \
                     "vadd.i16 q5, q4, q2\n"                                                                       \
                     "vstrw.u32 q5, [%[y0]], #16\n"                                                                \
                     "vcadd.i16 q5, q0, q3, #270\n"                                                                \
                     "vstrw.u32 q5, [%[y1]], #16\n"                                                                \
                     "vsub.i16 q5, q4, q2\n"                                                                       \
                     "vstrw.u32 q5, [%[y2]], #16\n"                                                                \
                     "vcadd.i16 q5, q0, q3, #90\n"                                                                 \
                     "vstrw.u32 q5, [%[y3]], #16\n"                                                                \
                     "le lr, 1b\n"                                                                                 \
                     "2:"                                                                                          \
                     : [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3), [y0] "+r"(y0), [y1] "+r"(y1),   \
                       [y2] "+r"(y2), [y3] "+r"(y3)                                                                \
                     : [count] "r"(vectors), [share] "r"(A_QUARTER)                                                \
                     : "q0", "q1", "q2", "q3", "q4", "q5", "lr", "memory")

/* Compute a block of 4 m numbers. x[n + 3 m] is 0 for n >= `full`. */
MVE_APART void plain_block(const uint32_t *x0, uint32_t *y0, int32_t m, int32_t full)
{
    const uint32_t *x1 = x0 + m, *x2 = x1 + m, *x3 = x2 + m;
    uint32_t *y1 = y0 + m, *y2 = y1 + m, *y3 = y2 + m;
    PLAIN(full / 4, "vldrw.u32 q3, [%[x3]], #16\n" QUARTER("q3"), "vadd.i16 q2, q1, q3\nvsub.i16 q3, q1, q3\n");
    PLAIN((m - full) / 4, "", "vmov q2, q1\nvmov q3, q1\n");
}

MVE_APART void first_stage_of_two(const uint32_t *x, uint32_t *y, int32_t m)
{
    for (const uint32_t *const end = x + m; x != end; x += 4, y += 4) {
        const int16x8_t a = vqrdmulhq_n_s16((int16x8_t)vldrwq_u32(x), A_HALF);
        const int16x8_t b = vqrdmulhq_n_s16((int16x8_t)vldrwq_u32(x + m), A_HALF);
        vstrwq_u32(y, (uint32x4_t)vaddq_s16(a, b));
        vstrwq_u32(y + m, (uint32x4_t)vsubq_s16(a, b));
    }
}

/* Returns the factors of the next stage. */
MVE_APART const uint32_t *stage(uint32_t *y, const uint32_t *end, const uint32_t *factors, int32_t m)
{
    plain_block(y, y, m, m);
    uint32_t *y0 = y + 4 * m, *y1 = y0 + m, *y2 = y1 + m, *y3 = y2 + m;
    const int32_t count = m / 4, others = 3 * m;
    while (y0 != end) {
        const uint32x4_t w1 = vdupq_n_u32(factors[0]), w2 = vdupq_n_u32(factors[1]), w3 = vdupq_n_u32(factors[2]);
        factors += 3;
        __asm__ volatile("dls lr, %[count]\n"
                         "1: vldrw.u32 q0, [%[y2]]\n" QUARTER("q0") MULTIPLIED("q2", "q0", "%q[w2]")
                         "vldrw.u32 q0, [%[y0]]\n" QUARTER("q0")
                         "vsub.i16 q3, q0, q2\n"
                         "vadd.i16 q0, q0, q2\n"
                         "vldrw.u32 q2, [%[y1]]\n" QUARTER("q2") MULTIPLIED("q4", "q2", "%q[w1]")
                         "vldrw.u32 q2, [%[y3]]\n" QUARTER("q2") MULTIPLIED("q1", "q2", "%q[w3]")
                         "vadd.i16 q2, q4, q1\n"
                         "vsub.i16 q4, q4, q1\n"
                         "vadd.i16 q1, q0, q2\n"
                         "vstrw.u32 q1, [%[y0]], #16\n"
                         "vcadd.i16 q1, q3, q4, #270\n"
                         "vstrw.u32 q1, [%[y1]], #16\n"
                         "vsub.i16 q1, q0, q2\n"
                         "vstrw.u32 q1, [%[y2]], #16\n"
                         "vcadd.i16 q1, q3, q4, #90\n"
                         "vstrw.u32 q1, [%[y3]], #16\n"
                         "le lr, 1b\n"
                         : [y0] "+r"(y0), [y1] "+r"(y1), [y2] "+r"(y2), [y3] "+r"(y3)
                         : [count] "r"(count), [share] "r"(A_QUARTER), [w1] "w"(w1), [w2] "w"(w2), [w3] "w"(w3)
                         : "q0", "q1", "q2", "q3", "q4", "lr", "memory");
        y0 += others;
        y1 += others;
        y2 += others;
        y3 += others;
    }
    return factors;
}

/* Compute the last stage from z to y. places: byte offsets in y of the first result of four blocks. Returns the next factors. */
MVE_APART const uint32_t *last_stage(const uint32_t *z, uint32_t *y, const uint32_t *factors, const uint16_t *places, int32_t quarter)
{
    const uint32x4_t apart = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)quarter); /* bytes between results of the four blocks */
    uint32_t *even, *odd;
    __asm__ volatile("dls lr, %[count]\n"
                     "1: vld40.32 {q0, q1, q2, q3}, [%[z]]\n"
                     "vld41.32 {q0, q1, q2, q3}, [%[z]]\n"
                     "vld42.32 {q0, q1, q2, q3}, [%[z]]\n"
                     "vld43.32 {q0, q1, q2, q3}, [%[z]]!\n" QUARTER("q0") QUARTER("q1") QUARTER("q2") QUARTER("q3")
                     "vldrw.u32 q4, [%[w]], #16\n" MULTIPLIED("q5", "q1", "q4")
                     "vldrw.u32 q4, [%[w]], #16\n" MULTIPLIED("q1", "q2", "q4")
                     "vldrw.u32 q4, [%[w]], #16\n" MULTIPLIED("q2", "q3", "q4")
                     "vadd.i16 q3, q0, q1\n"
                     "vsub.i16 q0, q0, q1\n"
                     "vadd.i16 q1, q5, q2\n"
                     "vsub.i16 q5, q5, q2\n"
                     "ldrh %[even], [%[places]], #2\n"
                     "add %[even], %[y]\n"
                     "add %[odd], %[even], %[step]\n"
                     "vadd.i16 q2, q3, q1\n"
                     "vstrw.32 q2, [%[even], %q[apart]]\n"
                     "vsub.i16 q2, q3, q1\n"
                     "add %[even], %[even], %[step], lsl #1\n"
                     "vstrw.32 q2, [%[even], %q[apart]]\n"
                     "vcadd.i16 q2, q0, q5, #270\n"
                     "vstrw.32 q2, [%[odd], %q[apart]]\n"
                     "vcadd.i16 q2, q0, q5, #90\n"
                     "add %[odd], %[odd], %[step], lsl #1\n"
                     "vstrw.32 q2, [%[odd], %q[apart]]\n"
                     "le lr, 1b\n"
                     : [z] "+r"(z), [w] "+r"(factors), [places] "+r"(places), [even] "=&r"(even), [odd] "=&r"(odd)
                     : [count] "r"(quarter / 4), [share] "r"(A_QUARTER), [apart] "w"(apart), [y] "r"(y), [step] "r"(4 * quarter)
                     : "q0", "q1", "q2", "q3", "q4", "q5", "lr", "memory");
    return factors;
}

static int32_t halved(int32_t part)
{
    return (part * A_HALF + (1 << 14)) >> 15;
}

/* Compute the spectrum of the real signal in place: y[k] and y[N - k] from y[k] and y[N - k]. Products wrap at 16 bits. */
MVE_APART void real_spectrum(uint32_t *y, int32_t numbers, const uint32_t *factors)
{
    const uint32_t first = *y;
    uint32_t *low = y + 1, *high = y + numbers - 4;
    const uint32x4_t backwards = vdwdupq_n_u32(12, 16, 4);
    __asm__ volatile("vmsr p0, %[imaginary]\n"
                     "dls lr, %[count]\n"
                     "1: vldrw.u32 q0, [%[low]]\n" QUARTER("q0")
                     "vldrw.u32 q1, [%[high], %q[backwards]]\n"
                     "vpst\n"
                     "vnegt.s16 q1, q1\n" QUARTER("q1")
                     "vadd.i16 q2, q0, q1\n"
                     "vsub.i16 q0, q0, q1\n"
                     "vldrw.u32 q1, [%[w]], #16\n"
                     "vrev32.16 q3, q1\n"
                     "vmullb.s16 q4, q0, q1\n"
                     "vmullt.s16 q5, q0, q1\n"
                     "vsub.i32 q4, q4, q5\n"
                     "vmullb.s16 q5, q0, q3\n"
                     "vmullt.s16 q6, q0, q3\n"
                     "vadd.i32 q5, q5, q6\n"
                     "vrshrnb.i32 q0, q4, #15\n"
                     "vrshrnt.i32 q0, q5, #15\n"
                     "vhadd.s16 q1, q2, q0\n"
                     "vstrw.u32 q1, [%[low]], #16\n"
                     "vhsub.s16 q3, q2, q0\n"
                     "vpst\n"
                     "vhsubt.s16 q3, q0, q2\n"
                     "vstrw.32 q3, [%[high], %q[backwards]]\n"
                     "sub %[high], #16\n"
                     "le lr, 1b\n"
                     : [low] "+r"(low), [high] "+r"(high), [w] "+r"(factors)
                     : [count] "r"(numbers / 8), [share] "r"(A_HALF), [imaginary] "r"(0xcccc), [backwards] "w"(backwards)
                     : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "lr", "memory");
    const int32_t even = halved((int16_t)first), odd = halved((int32_t)first >> 16);
    y[0] = (uint16_t)(even + odd);
    y[numbers] = (uint16_t)(even - odd);
}

void mve_rfft(const int16_t *x, const uint16_t *places, const uint32_t *factors, int16_t *y, void *scratch, int32_t frames,
              int32_t size, int32_t numbers, int32_t padded)
{
    const int32_t quarter = numbers / 4, four = __builtin_ctz((uint32_t)numbers) % 2 == 0;
    uint32_t *const z = scratch;
    for (; frames > 0; frames--, x += size, y += 2 * numbers + 2) {
        const uint32_t *input = (const uint32_t *)x, *w = factors;
        if (padded) {
            memcpy(y, x, (size_t)size * 2);
            memset(y + size, 0, (size_t)(2 * numbers - size) * 2);
            input = (const uint32_t *)y;
        }
        if (four)
            plain_block(input, z, quarter, padded ? quarter : size / 2 - 3 * quarter);
        else
            first_stage_of_two(input, z, numbers / 2);
        for (int32_t m = numbers / (four ? 16 : 8); m != 1; m /= 4)
            w = stage(z, z + numbers, w, m);
        w = last_stage(z, (uint32_t *)y, w, places, quarter);
        real_spectrum((uint32_t *)y, numbers, w);
    }
}
