/* A row of outputs of a depthwise 3x3 for 16 channels. Armv8.1-M with MVE (integer).
 *
 *   void mve_row3x3_<mode>_s<stride>[_clipped](uint8_t *y, const int8_t *top, const int8_t *middle, const int8_t *bottom,
 *                                              const int32_t *constants, int32_t channels, const struct mve_depthwise *d);
 *
 *   y          out_width pixels, `pixel` bytes apart; `channels` (1 to 16) bytes of each are written
 *   top ...    lines of [columns][16] activations
 *   constants  [9][16] weights; [3][4][4] bias, multiplier, rounder: vector j has channels j, j + 4, j + 8, j + 12
 *   d          see depthwise.h
 *   mode       exact, lowered: rounding.py
 *   clipped    clips to low ... high and flips the top bit; without it, narrowing saturates to int8
 *
 * Two taps at a time. Products are int16, and the sum of two fits (packing checks that the weights of a pair are never both -128):
 *
 *   x * w   even = vmullb, odd = vmullt      16 products in two vectors
 *   even += x' * w', odd += x' * w'          x' is loaded twice, because the first product is written to its register
 *   q4 += vmovlb even, q5 += vmovlb odd, q6 += vmovlt even, q7 += vmovlt odd
 *
 * Narrowing reverses this: q4 and q6 are interleaved to the even channels, q5 and q7 to the odd channels, and both to 16 bytes.
 * 116 instructions (clipped: 122) for 144 multiply-accumulates and 16 outputs.
 */
#include "depthwise_asm.h"

#define FIELD_PIXEL 8
#define FIELD_FLIP 24                  /* then zero_point, low, high */
#define FIELD_OUT_WIDTH 44
#define BIAS 144
#define MULTIPLIER (BIAS + 64)
#define ROUNDER (BIAS + 128)

    /* The sums of the first pair of taps, whose activations are at \x0 and \x1; their registers are free before. */
.macro first_taps x0, x1
    vldrb.8 q0, \x0
    vldrw.32 q1, [r4]
    vmullb.s8 q2, q0, q1
    vmullt.s8 q3, q0, q1
    vldrb.8 q0, \x1
    vldrw.32 q1, [r4, #16]
    vmullb.s8 q4, q0, q1
    vmullt.s8 q5, q0, q1
    vadd.i16 q2, q2, q4
    vadd.i16 q3, q3, q5
    vmovlb.s16 q4, q2
    vmovlb.s16 q5, q3
    vmovlt.s16 q6, q2
    vmovlt.s16 q7, q3
.endm

    /* Taps \tap and the next; their activations are at \x0 and at \x1, which is loaded twice, then at \again. */
.macro two_taps tap, x0, x1, again
    vldrb.8 q0, \x0
    vldrw.32 q1, [r4, #(16 * \tap)]
    vmullb.s8 q2, q0, q1
    vmullt.s8 q3, q0, q1
    vldrb.8 q0, \x1
    vldrw.32 q1, [r4, #(16 * \tap + 16)]
    vmullb.s8 q0, q0, q1
    vadd.i16 q2, q2, q0
    vldrb.8 q0, \again
    vmullt.s8 q0, q0, q1
    vadd.i16 q3, q3, q0
    add_products
.endm

.macro last_tap x
    vldrb.8 q0, \x
    vldrw.32 q1, [r4, #128]
    vmullb.s8 q2, q0, q1
    vmullt.s8 q3, q0, q1
    add_products
.endm

    /* Vector \j of the sums. */
.macro scale_vector sum, j, mode
    vldrw.32 q0, [r4, #(BIAS + 16 * \j)]
    vldrw.32 q1, [r4, #(MULTIPLIER + 16 * \j)]
    vldrw.32 q2, [r4, #(ROUNDER + 16 * \j)]
    vadd.i32 \sum, \sum, q0
    scale \mode, \sum, q1, q2, q0
.endm

    /* The sums of a window. The first tap of each row takes its register to the next window, \step bytes on. */
.macro window step
    first_taps "[r1], #\step", "[r1, #(16 - \step)]"
    two_taps 2, "[r1, #(32 - \step)]", "[r2]", "[r2], #\step"
    two_taps 4, "[r2, #(16 - \step)]", "[r2, #(32 - \step)]", "[r2, #(32 - \step)]"
    two_taps 6, "[r3], #\step", "[r3, #(16 - \step)]", "[r3, #(16 - \step)]"
    last_tap "[r3, #(32 - \step)]"
.endm

.macro row3x3 mode, stride, clipped
    function mve_row3x3_\mode\()_s\stride\clipped
    push {r4-r10, lr}
    vpush {d8-d15}
    ldrd r4, r6, [sp, #96]             /* constants, channels */
    ldr r7, [sp, #104]
    vctp.8 r6
    ldr r5, [r7, #FIELD_PIXEL]
    ldr lr, [r7, #FIELD_OUT_WIDTH]
    ldrd r10, r6, [r7, #FIELD_FLIP]    /* and zero_point */
    ldrd r8, r9, [r7, #(FIELD_FLIP + 8)]
1:  window (16 * \stride)
    sums_to_bytes \mode, r6
    .ifc \clipped,_clipped
    vdup.8 q0, r8
    vdup.8 q1, r9
    vdup.8 q2, r10
    vmax.s8 q4, q4, q0
    vmin.s8 q4, q4, q1
    veor q4, q4, q2
    .endif
    vpst
    vstrbt.8 q4, [r0]
    add r0, r0, r5
    subs lr, lr, #1
    bne.w 1b
    vpop {d8-d15}
    pop {r4-r10, pc}
    end_function mve_row3x3_\mode\()_s\stride\clipped
.endm

.macro row3x3_modes stride, clipped
    row3x3 exact, \stride, \clipped
    row3x3 lowered, \stride, \clipped
.endm

    row3x3_modes 1
    row3x3_modes 2
    row3x3_modes 1, _clipped
    row3x3_modes 2, _clipped
