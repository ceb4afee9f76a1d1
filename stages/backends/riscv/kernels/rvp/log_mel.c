/* Log-mel spectrum of frames; on RV64 two complex numbers in two registers. */
#include "log_mel.h"

#include "rvp_intrinsics.h"

#define log_mel_leading_zeros(x) ((int32_t)(uint32_t)rvp_clz32(x))
#if __riscv_xlen == 32
#include "log_mel_scalar.h"
#else
#include "log_mel_types.h"

typedef rvp_word lm_word;
struct lm_index {
    int32_t first, second;
};
typedef struct lm_index lm_index;
#define LM_LANES 2
#define lm_load rvp_load
#define lm_store rvp_store
#define lm_add rvp_add32
#define lm_sub rvp_sub32
#define lm_high rvp_smmul
#define lm_shift2 rvp_srai32_2
#define lm_shift1 rvp_srai32_1

RVP_INLINE lm_index lm_places(const uint16_t *places)
{
    return (lm_index){places[0], places[1]};
}

RVP_INLINE void lm_put(int32_t *to, lm_index places, rvp_word value)
{
    to[places.first] = (int32_t)value;
    to[places.second] = (int32_t)(value >> 32);
}

/* The sample i of a frame, with zeros after its end. */
RVP_INLINE int32_t sample_at(const struct frame *f, int32_t i, int32_t size)
{
    return i < size ? f->x[i] : 0;
}

/* Samples i and i + 2 in the upper halves of lanes, i + 1 and i + 3 as well. */
RVP_INLINE void four_samples(const struct frame *f, int32_t i, int32_t size, int inside, rvp_word *even, rvp_word *odd)
{
    const int16_t *x = f->x + i;
    if (!inside) {
        *even = rvp_pack((uint32_t)sample_at(f, i, size) << 16, (uint32_t)sample_at(f, i + 2, size) << 16);
        *odd = rvp_pack((uint32_t)sample_at(f, i + 1, size) << 16, (uint32_t)sample_at(f, i + 3, size) << 16);
        return;
    }
    const rvp_word four = rvp_load(x);
    *even = rvp_pkbb16(four, 0);
    *odd = four & 0xffff0000ffff0000;
}

/* Four samples with pre-emphasis: smdrs subtracts x[i + 1] * -2^15 from x[i] * -c, for i and i + 2 or for i + 1 and i + 3. */
RVP_INLINE void emphasized_samples(const struct frame *f, int32_t i, rvp_word *even, rvp_word *odd)
{
    const rvp_word four = rvp_load(f->x + i), factors = rvp_splat32((int32_t)(0x80000000u | (uint16_t)-f->pre_emphasis));
    *even = rvp_smdrs(four, factors);
    *odd = rvp_smdrs(four >> 16 | (rvp_word)(uint16_t)f->x[i + 4] << 48, factors);
}

RVP_INLINE int32_t emphasized_sample(const struct frame *f, int32_t i)
{
    return i < f->size ? f->x[i + 1] * 32768 - f->pre_emphasis * f->x[i] : 0;
}

RVP_INLINE void lm_pairs(const struct frame *f, int32_t i, const int32_t *window, rvp_word *re, rvp_word *im,
                         int emphasized, int inside)
{
    const rvp_word shift = (rvp_word)(f->shift - !emphasized);
    rvp_word even, odd;
    if (!emphasized) {
        four_samples(f, 2 * i, f->size, inside, &even, &odd);
    } else if (inside) {
        emphasized_samples(f, 2 * i, &even, &odd);
    } else {
        even = rvp_pack((uint32_t)emphasized_sample(f, 2 * i), (uint32_t)emphasized_sample(f, 2 * i + 2));
        odd = rvp_pack((uint32_t)emphasized_sample(f, 2 * i + 1), (uint32_t)emphasized_sample(f, 2 * i + 3));
    }
    *re = rvp_smmul(rvp_sll32(even, shift), rvp_load(window));
    *im = rvp_smmul(rvp_sll32(odd, shift), rvp_load(window + 2));
}

#include "log_mel_lanes.h"

RVP_INLINE int32_t headroom_plain(const struct frame *f)
{
    rvp_word used = 0;
    int32_t i = 0;
    for (; i < f->size - 15; i += 16) {
#pragma GCC unroll 4
        for (int32_t j = 0; j < 16; j += 4) {
            const rvp_word four = rvp_load(f->x + i + j);
            used |= four ^ rvp_add16(four, four);
        }
    }
    used |= used >> 32;
    used |= used >> 16;
    uint32_t all = (uint32_t)used & 0xffff; /* its highest bit is one above those that the samples use */
    for (; i < f->size; i++)
        all |= (uint32_t)(f->x[i] ^ f->x[i] * 2) & 0xffff;
    return fl_leading_zeros((all >> 1 << 15) | 32767) - 1;
}

RVP_INLINE int32_t headroom_emphasized(const struct frame *f)
{
    rvp_word used = 32767;
    int32_t i = 0;
    for (; i < f->size - 3; i += 4) {
        rvp_word even, odd;
        emphasized_samples(f, i, &even, &odd);
        used |= (even ^ rvp_sign32(even)) | (odd ^ rvp_sign32(odd));
    }
    uint32_t all = (uint32_t)(used | used >> 32);
    for (; i < f->size; i++) {
        const int32_t y = emphasized_sample(f, i);
        all |= (uint32_t)(y ^ (y >> 31));
    }
    return fl_leading_zeros(all) - 1;
}

RVP_INLINE struct log_mel_complex log_mel_bin(const struct log_mel_spectrum *z, int32_t k)
{
    return (struct log_mel_complex){z->re[k], z->im[k]};
}

/* Adds a part of two bins, or of one bin in the low lane. */
RVP_INLINE void add_energies(rvp_word *total, rvp_word *rising, rvp_word part, rvp_word weight)
{
    *total = rvp_smar64(*total, part, part);
    *rising = rvp_smar64(*rising, part, rvp_smmul(part, weight));
}

RVP_INLINE struct log_mel_side log_mel_energies(const struct log_mel_spectrum *z, int32_t first, int32_t end, const int32_t *ramps)
{
    rvp_word total = 0, rising = 0;
    const int32_t *re = z->re + first, *im = z->im + first, *ramp = ramps + first, *const last = z->re + end;
    if (first < end && first % 2) {
        const rvp_word w = rvp_load_lane(ramp++);
        add_energies(&total, &rising, rvp_load_lane(re++), w);
        add_energies(&total, &rising, rvp_load_lane(im++), w);
    }
    for (; re + 1 < last; re += 2, im += 2, ramp += 2) {
        const rvp_word w = rvp_load(ramp);
        add_energies(&total, &rising, rvp_load(re), w);
        add_energies(&total, &rising, rvp_load(im), w);
    }
    if (re < last) {
        const rvp_word w = rvp_load_lane(ramp);
        add_energies(&total, &rising, rvp_load_lane(re), w);
        add_energies(&total, &rising, rvp_load_lane(im), w);
    }
    return (struct log_mel_side){(int64_t)total, (int64_t)rising * 2};
}

#include "log_mel_image.h"

RVP_INLINE rvp_word load_backwards(const int32_t *last)
{
    return rvp_pack(rvp_load_lane(last), rvp_load_lane(last - 1));
}

RVP_INLINE void store_backwards(int32_t *last, rvp_word value)
{
    rvp_store_lane(last, value);
    rvp_store_lane(last - 1, value >> 32);
}

/* Bins k = 0 to points / 2 - 1 and points - k, two at a time. Bin 0 is not used, nor the number after it in memory. */
LOG_MEL_APART void real_spectrum(const struct log_mel_spectrum *z, const int32_t *factors, int32_t points)
{
    int32_t *re = z->re, *im = z->im, *upper_re = re + points, *upper_im = im + points;
    for (; re < upper_re; re += 2, im += 2, upper_re -= 2, upper_im -= 2, factors += 4) {
        const rvp_word a = rvp_load(re), b = rvp_load(im), c = load_backwards(upper_re), d = load_backwards(upper_im);
        const rvp_word cosine = rvp_load(factors), sine = rvp_load(factors + 2);
        const rvp_word odd_re = rvp_add32(b, d), odd_im = rvp_sub32(c, a);
        const rvp_word even_re = rvp_srai32_2(rvp_add32(a, c)), even_im = rvp_srai32_2(rvp_sub32(b, d));
        const rvp_word turn_re = rvp_add32(rvp_smmul(odd_re, cosine), rvp_smmul(odd_im, sine));
        const rvp_word turn_im = rvp_sub32(rvp_smmul(odd_im, cosine), rvp_smmul(odd_re, sine));
        store_backwards(upper_re, rvp_sub32(even_re, turn_re));
        store_backwards(upper_im, rvp_sub32(even_im, turn_im));
        rvp_store(re, rvp_add32(even_re, turn_re));
        rvp_store(im, rvp_add32(even_im, turn_im));
    }
    *re = *re * 2 >> 2; /* bin points / 2: the cosine is 0, the sine 1 */
    *im = -(*im * 2 >> 2);
}

#define SPECTRUM(kind)                                                                                                          \
    LOG_MEL_APART int32_t spectrum_##kind(const struct log_mel_spectrum *z, const int16_t *x, const int32_t *window,            \
                                          const uint16_t *places, const int32_t *factors, const struct fl_log_mel *p)           \
    {                                                                                                                           \
        struct frame f = {x, window, p->frame, p->pre_emphasis, 0};                                                             \
        const int32_t points = p->fft_length / 2;                                                                               \
        f.shift = headroom_##kind(&f);                                                                                          \
        const int32_t size = first_stage_##kind(z, &f, places, points);                                                         \
        real_spectrum(z, later_stages(z, factors, points, size), points);                                                       \
        return f.shift;                                                                                                         \
    }

SPECTRUM(plain)
SPECTRUM(emphasized)

RVP_INLINE struct log_mel_spectrum log_mel_spectrum_in(void *bins, int32_t points)
{
    return (struct log_mel_spectrum){bins, (int32_t *)bins + points};
}
#endif

LOG_MEL_FUNCTIONS(rvp)
