/* Integer LSTM: a register of a row times a register of weights of each of four gates: 5 loads and 4 smaqa. RV64 scales two gates of
 * a cell at a time, and computes the functions of two cells at a time.
 */
#include "lstm.h"

#include "four_rows.h"
#include "sigmoid16_lanes.h"

#define LSTM_CHUNK RVP_WORD_BYTES
#define LSTM_WIDE 1
#define lstm_row rvp_row
#define lstm_sums rvp_four_rows
#define LSTM_INT16 to_int16
#define S16_MOST to_int16
#if __riscv_xlen == 32
#define S16_TOP(a, b, sum) ((sum) + (int32_t)rvp_smmul_u((rvp_word)(a), (rvp_word)(b)))
#endif

RVP_INLINE int32_t to_int16(int32_t x)
{
    return (int32_t)rvp_sclip32_15((rvp_word)x);
}

#if __riscv_xlen == 64
#define LSTM_GATES lstm_gates
#define LSTM_CELLS lstm_cells
struct fl_lstm;
RVP_INLINE void lstm_gates(const int32_t *sums, const int32_t *scales, int16_t *gates, int32_t count, int32_t units);
RVP_INLINE void lstm_cells(int16_t *gates, int16_t *cell, int8_t *y, const struct fl_lstm *p);
#endif

#include "lstm_image.h"

#if __riscv_xlen == 64

RVP_INLINE rvp_word both(int32_t first, int32_t second)
{
    return rvp_pack((rvp_word)first, (rvp_word)second);
}

/* Two gates' multipliers and shifts, and the factor and mask of the second rounding: shifted to the right by 1 to 31 bits, halves go
 * away from zero; for a shift of 0, the factor changes no value of up to 30 bits; larger values are saturated.
 */
struct scales {
    rvp_word multiplier, shift, rounder, lowered;
};

RVP_INLINE uint32_t top_bit_by(int32_t shift)
{
    return 1u << 31 >> (-shift & 31);
}

RVP_INLINE struct scales scales_of(const int32_t *multipliers, const int32_t *shifts, int goes_up)
{
    const int32_t a = goes_up ? shifts[0] & shifts[0] >> 31 : shifts[0], b = goes_up ? shifts[1] & shifts[1] >> 31 : shifts[1];
    const rvp_word top = rvp_pack(top_bit_by(a), top_bit_by(b)), shift = rvp_load(shifts);
    return (struct scales){rvp_load(multipliers), shift, rvp_add32(top, rvp_sign32(top)), rvp_sign32(shift)};
}

/* The sums, shifted to the left first where shifts are positive. */
RVP_INLINE rvp_word shifted(const int32_t *sums, rvp_word shifts)
{
    const rvp_word ups = rvp_smax32(shifts, 0);
    return rvp_pack((uint32_t)sums[0] << (ups & 31), (uint32_t)sums[1] << (ups >> 32));
}

RVP_INLINE rvp_word scaled(const int32_t *sums, const struct scales *s, int goes_up)
{
    const rvp_word high = rvp_kwmmul_u(goes_up ? shifted(sums, s->shift) : rvp_load(sums), s->multiplier);
    return rvp_kwmmul_u(rvp_add32(high, rvp_sign32(high) & s->lowered), s->rounder);
}

/* Two gates of `count` cells. */
RVP_INLINE void two_gates(const int32_t *sums, const int32_t *scales, int16_t *first, int16_t *second, int32_t count, int goes_up)
{
    const struct scales ahead = scales_of(scales, scales + 4, goes_up), back = scales_of(scales + 8, scales + 12, goes_up);
    for (const int32_t *const end = sums + 8 * count; sums != end; sums += 8) {
        const rvp_word x = rvp_sclip32_15(scaled(sums, &ahead, goes_up));
        const rvp_word gate = rvp_sclip32_15(rvp_add32(x, scaled(sums + 4, &back, goes_up)));
        *first++ = (int16_t)gate;
        *second++ = (int16_t)(gate >> 32);
    }
}

/* In the order input, forget, output, cell: the first three have one function. */
RVP_INLINE void lstm_gates(const int32_t *sums, const int32_t *scales, int16_t *gates, int32_t count, int32_t units)
{
#pragma GCC unroll 1
    for (int32_t k = 0; k < 4; k += 2) {
        int16_t *const first = gates + (k == 0 ? 0 : 3 * units), *const second = gates + (k == 0 ? 1 : 2) * units;
        const rvp_word most = rvp_smax32(rvp_load(scales + 4), rvp_load(scales + 12)); /* shifts of both products */
        if (rvp_smax32(most, 0) != 0) {
            two_gates(sums, scales, first, second, count, 1);
        } else {
            two_gates(sums, scales, first, second, count, 0);
        }
        sums += 2;
        scales += 2;
    }
}

/* Two neighbours, of an odd number the last one twice. */
RVP_INLINE rvp_word load_two(const int16_t *x, int32_t left)
{
    return both(x[0], x[left > 1]);
}

RVP_INLINE void store_two(int16_t *x, rvp_word values, int32_t left)
{
    x[left > 1] = (int16_t)(values >> 32);
    x[0] = (int16_t)values;
}

/* x / 2^bits to the nearest, halves away from zero; factor is 2^(31 - bits). */
RVP_INLINE rvp_word divided(rvp_word x, rvp_word factor)
{
    return rvp_kwmmul_u(rvp_add32(x, rvp_sign32(x)), factor);
}

RVP_INLINE void lstm_cells(int16_t *gates, int16_t *cell, int8_t *y, const struct fl_lstm *p)
{
    const struct s16_constants *const c = s16_constants();
    const int32_t units = p->units, cell_bits = p->cell_bits;
    int16_t *const forget = gates + units, *const out = forget + units, *const given = out + units;
    const rvp_word factor = rvp_splat32(1 << (16 - cell_bits)), highest = rvp_splat32(p->clip), lowest = rvp_splat32(-p->clip);
#pragma GCC unroll 1
    for (int32_t i = 0; i < 3 * units; i += 2) {
        const int32_t left = 3 * units - i;
        store_two(gates + i, s16_sigmoids(load_two(gates + i, left), c), left);
    }
#pragma GCC unroll 1
    for (int32_t u = 0; u < units; u += 2) {
        const int32_t left = units - u;
        store_two(given + u, s16_tanhs(load_two(given + u, left), 3, 6, c), left);
    }
#pragma GCC unroll 1
    for (int32_t u = 0; u < units; u += 2) {
        const int32_t left = units - u;
        const rvp_word old = rvp_smbb16(load_two(cell + u, left), load_two(forget + u, left));
        const rvp_word added = rvp_smbb16(load_two(gates + u, left), load_two(given + u, left));
        const rvp_word sum = rvp_sclip32_15(rvp_add32(divided(old, S16_BOTH(1 << 16)), divided(added, factor)));
        const rvp_word kept = rvp_smax32(rvp_smin32(sum, highest), lowest);
        store_two(cell + u, kept, left);
        store_two(given + u, s16_tanhs(kept, cell_bits, 7, c), left);
    }
#pragma GCC unroll 1
    for (int32_t u = 0; u < units; u++) {
        const int32_t result = fl_requantize_double(out[u] * given[u], p->multiplier, p->shift);
        y[u] = (int8_t)fl_clamp(fl_add_wrapping(result, p->zero_point), INT8_MIN, INT8_MAX);
    }
}
#endif

void rvp_lstm_s8(const int8_t *x, const int8_t *input, const int8_t *recurrent, const int32_t *bias, const int32_t *scales,
                 int8_t *hidden, int16_t *cell, int8_t *y, int32_t *scratch, const void *parameters)
{
    lstm_step(x, input, recurrent, bias, scales, hidden, cell, y, scratch, parameters);
}
