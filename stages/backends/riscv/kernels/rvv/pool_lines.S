/* Maxima, sums and means of rows and columns, for pool_rows.c. */
#include "rvv_asm.h"

#define to a0
#define from a1
#define taps a2
#define step a3
#define count a4
#define vl t0
#define left t1                       /* taps */
#define tap t2

/* void rvv_maxima_<type>(void *to, const void *from, int32_t taps, int32_t step, int32_t count)
 *
 * to[i] = the maximum of from[i + k * step] for k < taps, i < count. `to` may be `from`. */
.macro maxima name, op
function \name
1:  vsetvli vl, count, e8, m8, ta, ma
    vle8.v v8, (from)
    addi left, taps, -1
    mv tap, from
    beqz left, 3f
2:  add tap, tap, step
    vle8.v v16, (tap)
    addi left, left, -1
    \op v8, v8, v16
    bnez left, 2b
3:  sub count, count, vl
    vse8.v v8, (to)
    add from, from, vl
    add to, to, vl
    bnez count, 1b
    ret
end_function \name
.endm

    maxima rvv_maxima_s8, vmax.vv
    maxima rvv_maxima_u8, vmaxu.vv

/* void rvv_sums_<type>(int16_t *to, const void *from, int32_t taps, int32_t step, int32_t count)
 *
 * The same for sums of 16 bits. */
.macro sums name, unsigned
function \name
1:  vsetvli vl, count, e8, m4, ta, ma
    vle8.v v4, (from)
    addi left, taps, -1
    vwadd\unsigned\().vx v8, v4, zero
    mv tap, from
    beqz left, 3f
2:  add tap, tap, step
    vle8.v v4, (tap)
    addi left, left, -1
    vwadd\unsigned\().wv v8, v8, v4
    bnez left, 2b
3:  vsetvli zero, zero, e16, m8, ta, ma
    sub count, count, vl
    vse16.v v8, (to)
    add from, from, vl
    slli vl, vl, 1
    add to, to, vl
    bnez count, 1b
    ret
end_function \name
.endm

    sums rvv_sums_s8
    sums rvv_sums_u8, u

#undef step
#undef count

/* void rvv_strided_maxima_<type>(void *to, const void *from, int32_t taps, int32_t channels, int32_t pixels, int32_t step)
 *
 * to[p * channels + c] = the maximum of from[p * step + k * channels + c] for k < taps, p < pixels, c < channels. A vector has one
 * channel of all pixels. */
#define channels a3
#define pixels a4
#define step a5
#define count a6
#define in a7
#define out t3
#define channel t4
#define bytes t5

.macro strided_maxima name, op
function \name
    mv channel, channels
1:  mv count, pixels
    mv in, from
    mv out, to
2:  vsetvli vl, count, e8, m8, ta, ma
    vlse8.v v8, (in), step
    addi left, taps, -1
    mv tap, in
    beqz left, 4f
3:  add tap, tap, channels
    vlse8.v v16, (tap), step
    addi left, left, -1
    \op v8, v8, v16
    bnez left, 3b
4:  vsse8.v v8, (out), channels
    sub count, count, vl
    mul bytes, step, vl
    add in, in, bytes
    mul bytes, channels, vl
    add out, out, bytes
    bnez count, 2b
    addi from, from, 1
    addi to, to, 1
    addi channel, channel, -1
    bnez channel, 1b
    ret
end_function \name
.endm

    strided_maxima rvv_strided_maxima_s8, vmax.vv
    strided_maxima rvv_strided_maxima_u8, vmaxu.vv

#undef step
#undef count
#undef channels

/* void rvv_means_<type>(void *to, const int16_t *from, int32_t taps, int32_t channels, int32_t count, int32_t elements)
 *
 * to[i] = the sum of from[i + k * channels] for k < taps, i < count, divided by `elements` <= 255: to the nearest, halves away from
 * zero. A sum and half of `elements` fit 16 bits. */
#define channels a3
#define count a4
#define elements a5
#define half a6
#define half2 a7

.macro sums_of_taps
    slli channels, channels, 1        /* bytes */
    srli half, elements, 1
    slli half2, half, 1
1:  vsetvli vl, count, e16, m8, ta, mu
    vle16.v v8, (from)
    addi left, taps, -1
    mv tap, from
    beqz left, 3f
2:  add tap, tap, channels
    vle16.v v16, (tap)
    addi left, left, -1
    vadd.vv v8, v8, v16
    bnez left, 2b
3:
.endm

.macro store_means name
    vsetvli zero, zero, e8, m4, ta, ma
    vnsrl.wi v8, v8, 0
    sub count, count, vl
    vse8.v v8, (to)
    add to, to, vl
    slli vl, vl, 1
    add from, from, vl
    bnez count, 1b
    ret
end_function \name
.endm

function rvv_means_s8
    sums_of_taps
    vmslt.vx v0, v8, zero
    vadd.vx v8, v8, half
    vsub.vx v8, v8, half2, v0.t
    vdiv.vx v8, v8, elements
    store_means rvv_means_s8

function rvv_means_u8
    sums_of_taps
    vadd.vx v8, v8, half
    vdivu.vx v8, v8, elements
    store_means rvv_means_u8

/* void rvv_clip_<type>(void *y, int32_t count, int32_t low, int32_t high) */
.macro clip name, unsigned
function \name
1:  vsetvli vl, a1, e8, m8, ta, ma
    vle8.v v8, (a0)
    vmax\unsigned\().vx v8, v8, a2
    sub a1, a1, vl
    vmin\unsigned\().vx v8, v8, a3
    vse8.v v8, (a0)
    add a0, a0, vl
    bnez a1, 1b
    ret
end_function \name
.endm

    clip rvv_clip_s8
    clip rvv_clip_u8, u
