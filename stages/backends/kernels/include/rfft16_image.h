/* Shared by families with 16-bit lanes in general registers: RFFT of int16, with the roundings of kissfft.
 *
 * A word has FFT_LANES complex numbers, each with the real part in the lower half. The including file defines
 *
 *   fft_word                 the type of a register
 *   FFT_LANES                1 or 2
 *   fft_half, fft_quarter    (z): rounded products with 16383 / 32768 and 8191 / 32768
 *   fft_mul                  (z, w): complex product in Q15, each part rounded once and wrapped
 *   fft_add, fft_sub         parts wrap
 *   fft_turns                (z, w, &plus, &minus): z + j w and z - j w
 *   fft_conj                 (z)
 *   fft_mean, fft_mean_minus (a, b): (a + b) >> 1 and (a - b) >> 1, of 17-bit sums
 *   fft_odd                  (a, b): real parts of a, imaginary parts of b
 *   fft_load2, fft_store2    only with two lanes: (p, q) one number from each address; (p, q, z)
 *   fft_low, fft_high        only with two lanes: (a, b): first numbers of a and b; second numbers
 *
 * 2 N real samples form N complex numbers, N a power of two. Their FFT has stages of radix 4. The first has radix 2
 * if N is not a power of four. Stages work in place in y:
 *
 *   first      x[n + i N / p] for i below p -> y[places[n] + i]
 *   a stage    blocks of 4 m numbers: y[b + k], y[b + k + m], y[b + k + 2 m], y[b + k + 3 m] for k below m
 *
 * Twiddle factors are in order of use: for each stage, for each word of k, the factors of inputs 1, 2 and 3. With one lane,
 * k = 0 has no factors: they are 1, and the product of a quarter and 32767 / 32768 rounds to the quarter.
 */
#pragma once

#include <stdint.h>

#define FFT_INLINE static inline __attribute__((always_inline))
#define FFT_APART static __attribute__((noinline)) /* not inlined: uses all registers */

typedef fft_word __attribute__((may_alias)) fft_memory;
typedef uint32_t __attribute__((may_alias)) fft_number; /* one complex number */

FFT_INLINE fft_word fft_at(const fft_number *p)
{
    return *(const fft_memory *)p;
}

FFT_INLINE void fft_put(fft_number *p, fft_word z)
{
    *(fft_memory *)p = z;
}

/* Load a factor and advance *w. A family may define FFT_NEXT to keep the compiler from loading factors early. */
FFT_INLINE fft_word fft_next(const fft_number **w)
{
#ifdef FFT_NEXT
    return FFT_NEXT(w);
#else
    const fft_word factors = fft_at(*w);
    *w += FFT_LANES;
    return factors;
#endif
}

struct fft_four {
    fft_word z[4];
};

/* Butterfly of radix 4. Inputs are scaled and multiplied by their factors. */
FFT_INLINE struct fft_four fft_butterfly(fft_word z0, fft_word z1, fft_word z2, fft_word z3)
{
    const fft_word even = fft_add(z0, z2), odd = fft_add(z1, z3), minus = fft_sub(z0, z2), turned = fft_sub(z1, z3);
    struct fft_four b = {{fft_add(even, odd), 0, fft_sub(even, odd), 0}};
    fft_turns(minus, turned, &b.z[3], &b.z[1]);
    return b;
}

#if FFT_LANES == 1
FFT_INLINE void fft_first(fft_number *y, int32_t apart, struct fft_four b)
{
    (void)apart;
    y[0] = b.z[0];
    y[1] = b.z[1];
    y[2] = b.z[2];
    y[3] = b.z[3];
}

FFT_INLINE void fft_first_two(fft_number *y, int32_t apart, fft_word sum, fft_word difference)
{
    (void)apart;
    y[0] = sum;
    y[1] = difference;
}
#else
/* Two butterflies, n and n + 1, with results at a distance of `apart` numbers. */
FFT_INLINE void fft_first(fft_number *y, int32_t apart, struct fft_four b)
{
    fft_put(y, fft_low(b.z[0], b.z[1]));
    fft_put(y + 2, fft_low(b.z[2], b.z[3]));
    fft_put(y + apart, fft_high(b.z[0], b.z[1]));
    fft_put(y + apart + 2, fft_high(b.z[2], b.z[3]));
}

FFT_INLINE void fft_first_two(fft_number *y, int32_t apart, fft_word sum, fft_word difference)
{
    fft_put(y, fft_low(sum, difference));
    fft_put(y + apart, fft_high(sum, difference));
}
#endif

/* First stage with radix 4, for n < `last`. x[n + 3 N / 4] is 0 for n >= `full`. */
FFT_APART void fft_first_stage(const fft_number *x, fft_number *y, const uint16_t *places, int32_t quarter, int32_t full)
{
    const fft_number *const last = x + quarter, *const padded = x + full;
    for (; x != padded; x += FFT_LANES, places += FFT_LANES)
        fft_first(y + *places, quarter,
                  fft_butterfly(fft_quarter(fft_at(x)), fft_quarter(fft_at(x + quarter)), fft_quarter(fft_at(x + 2 * quarter)),
                                fft_quarter(fft_at(x + 3 * quarter))));
    for (; x != last; x += FFT_LANES, places += FFT_LANES)
        fft_first(y + *places, quarter,
                  fft_butterfly(fft_quarter(fft_at(x)), fft_quarter(fft_at(x + quarter)), fft_quarter(fft_at(x + 2 * quarter)), 0));
}

FFT_APART void fft_first_stage_of_two(const fft_number *x, fft_number *y, const uint16_t *places, int32_t half)
{
    const fft_number *const last = x + half;
    for (; x != last; x += FFT_LANES, places += FFT_LANES) {
        const fft_word a = fft_half(fft_at(x)), b = fft_half(fft_at(x + half));
        fft_first_two(y + *places, half / 2, fft_add(a, b), fft_sub(a, b));
    }
}

FFT_INLINE void fft_put_four(fft_number *y, int32_t m, struct fft_four b)
{
    fft_put(y, b.z[0]);
    fft_put(y + m, b.z[1]);
    fft_put(y + 2 * m, b.z[2]);
    fft_put(y + 3 * m, b.z[3]);
}

/* Compute a stage and return the factors of the next one. */
FFT_APART const fft_number *fft_stage(fft_number *y, const fft_number *end, const fft_number *factors, int32_t m)
{
    const fft_number *w;
    do {
        const fft_number *const last = y + m;
        w = factors;
#if FFT_LANES == 1
        fft_put_four(y, m, fft_butterfly(fft_quarter(fft_at(y)), fft_quarter(fft_at(y + m)), fft_quarter(fft_at(y + 2 * m)),
                                         fft_quarter(fft_at(y + 3 * m))));
        y++;
#endif
        do {
            const fft_word z1 = fft_mul(fft_quarter(fft_at(y + m)), fft_next(&w));
            const fft_word z2 = fft_mul(fft_quarter(fft_at(y + 2 * m)), fft_next(&w));
            const fft_word z3 = fft_mul(fft_quarter(fft_at(y + 3 * m)), fft_next(&w));
            fft_put_four(y, m, fft_butterfly(fft_quarter(fft_at(y)), z1, z2, z3));
            y += FFT_LANES;
        } while (y != last);
        y += 3 * m;
    } while (y != end);
    return w;
}

/* Compute the spectrum of the real signal at k and N - k from the complex FFT at k and N - k. */
struct fft_pair {
    fft_word low, high;
};

FFT_INLINE struct fft_pair fft_split(fft_word at_k, fft_word mirrored, fft_word factor)
{
    const fft_word a = fft_half(at_k), b = fft_half(fft_conj(mirrored));
    const fft_word sum = fft_add(a, b), turned = fft_mul(fft_sub(a, b), factor);
    return (struct fft_pair){fft_mean(sum, turned), fft_odd(fft_mean_minus(sum, turned), fft_mean_minus(turned, sum))};
}

/* In place. Factors begin with k = 1 for one lane, with k = 0 for two. */
FFT_APART void fft_real(fft_number *y, int32_t numbers, const fft_number *factors)
{
    const fft_word first = *y;
    fft_number *mirrored = y + numbers, *const start = y;
#if FFT_LANES == 1
    do {
        y++;
        mirrored--;
        const struct fft_pair both = fft_split(*y, *mirrored, *factors++);
        *y = both.low;
        *mirrored = both.high;
    } while (y != mirrored);
#else
    do { /* k = 0 writes y[0] and y[N], which are overwritten below */
        const struct fft_pair both = fft_split(fft_at(y), fft_load2(mirrored, mirrored - 1), fft_at(factors));
        fft_put(y, both.low);
        fft_store2(mirrored, mirrored - 1, both.high);
        y += 2;
        mirrored -= 2;
        factors += 2;
    } while (y != mirrored);
    *y = (uint32_t)fft_split(*y, *y, *factors).high; /* y[N / 2] */
#endif
    const fft_word z = fft_half(first);
    start[0] = (uint16_t)(z + (z >> 16));
    start[numbers] = (uint16_t)(z - (z >> 16));
}

/* Copy x and append zeros, 2 N samples in all. */
__attribute__((optimize("no-tree-loop-distribute-patterns"))) /* C libraries for small cores copy bytes */
FFT_APART void fft_pad(const int16_t *x, fft_number *padded, int32_t samples, int32_t numbers)
{
    const fft_number *from = (const fft_number *)x, *const last = from + samples / 2;
    fft_number *const end = padded + numbers;
    while (from != last)
        *padded++ = *from++;
    if (samples % 2)
        *padded++ = (uint16_t)x[samples - 1];
    while (padded != end)
        *padded++ = 0;
}

/* Compute the spectrum of each frame, N + 1 numbers. `padded` is scratch for N numbers. It is y if the kernel reads x in place:
 * with 2 N samples, or with at least 3 N / 2 and radix 4 in the first stage. */
FFT_INLINE void fft_frames(const int16_t *x, const uint16_t *places, const uint32_t *factors, int16_t *y, void *padded, int32_t frames,
                           int32_t samples, int32_t numbers)
{
    const int32_t quarter = numbers / 4;
    const int four = __builtin_ctz((uint32_t)numbers) % 2 == 0, in_place = padded == y;
    for (; frames > 0; frames--, x += samples, y += 2 * numbers + 2) {
        fft_number *const z = (fft_number *)y;
        const fft_number *input = (const fft_number *)x, *w = factors;
        if (!in_place) {
            fft_pad(x, padded, samples, numbers);
            input = padded;
        }
        if (four)
            fft_first_stage(input, z, places, quarter, in_place ? samples / 2 - 3 * quarter : quarter);
        else
            fft_first_stage_of_two(input, z, places, numbers / 2);
        for (int32_t m = four ? 4 : 2; m != numbers; m *= 4)
            w = fft_stage(z, z + numbers, w, m);
        fft_real(z, numbers, w);
    }
}
