/* Shared macros for Arm's DSP extension. Thumb-2.
 *
 * Macros change only the registers that are their arguments. They scale two sums at a time, a and b, of two outputs. Each sum has
 * its own multiplier, rounder and shift (rounding.py), because the outputs may belong to two channels or to one.
 *
 *   short   high_multiply, round_sums
 *   long    shift_left, high_multiply, shift_and_lower, round_long
 */
#pragma once

    .syntax unified
    .thumb

#define SAVED 36                       /* bytes of the registers that `enter` saves; arguments follow them */

/* Begins a function in a separate section, with `frame` bytes on the stack. It may use `leave` more than once. */
.macro enter name, frame=0
    .section .text.\name, "ax", %progbits
    .globl \name
    .type \name, %function
    .thumb_func
    .balign 4
\name:
    push {r4-r11, lr}
    .if \frame
    sub sp, sp, #\frame
    .endif
.endm

.macro leave frame=0
    .if \frame
    add sp, sp, #\frame
    .endif
    pop {r4-r11, pc}
.endm

.macro end_function name
    .size \name, . - \name
.endm

/* Computes the address at which a loop of `turns` unrolled parts is entered to skip the first `skipped` parts. `to` may be
 * `skipped` or `base`. `loop` is at a multiple of 4, and all instructions between `loop` and `end` have four bytes.
 */
.macro entry_point to, skipped, turns, loop, end, scratch, base
    mov \scratch, #(\end - \loop) / \turns
    adr \base, \loop
    mla \to, \skipped, \scratch, \base
    orr \to, \to, #1
.endm

/* Converts the sums of 256 * B + A to sums of B; a and the sums of A do not change. */
.macro split_sums a, b, others:vararg
    sub \b, \b, \a
    asr \b, \b, #8
.endm

/* Doubles and multiplies: (2 * a * m + 2^31) >> 32. The multiplier is 2 * m modulo 2^32; adding the sum corrects the modulo. */
.macro high_multiply a, b, multiplier_a, multiplier_b
    smmlar \a, \a, \multiplier_a, \a
    smmlar \b, \b, \multiplier_b, \b
.endm

/* The second rounding, and the zero point. */
.macro round_sums a, b, rounder_a, rounder_b, zero_point
    smmlar \a, \a, \rounder_a, \zero_point
    smmlar \b, \b, \rounder_b, \zero_point
.endm

.macro shift_left a, b, left_a, left_b
    lsl \a, \a, \left_a
    lsl \b, \b, \left_b
.endm

.macro shift_and_lower a, b, post_a, post_b
    shift_left \a, \b, \post_a, \post_b
    add \a, \a, \a, asr #31
    add \b, \b, \b, asr #31
.endm

.macro round_long a, b, rounder_a, rounder_b, zero_point
    smmlsr \a, \a, \rounder_a, \zero_point
    smmlsr \b, \b, \rounder_b, \zero_point
.endm

/* Clips bytes of uint8: max(y, floor) - floor + low. */
.macro clamp_bytes bytes, floor, low
    uqsub8 \bytes, \bytes, \floor
    uadd8 \bytes, \bytes, \low
.endm

/* One to four results of 16 bits into the bytes of c0, saturated and clipped. */
.macro narrow count, floor, low, c0, c1, c2, c3
    .if \count > 2
    pkhbt \c0, \c0, \c2, lsl #16
    .endif
    .if \count > 3
    pkhbt \c1, \c1, \c3, lsl #16
    .endif
    usat16 \c0, #8, \c0
    .if \count > 1
    usat16 \c1, #8, \c1
    orr \c0, \c0, \c1, lsl #8
    .endif
    clamp_bytes \c0, \floor, \low
.endm

/* Two results into the lower bytes of c0, with instructions that clip one register. */
.macro narrow_two floor, low, c0, c1
    pkhbt \c0, \c0, \c1, lsl #16
    usat16 \c0, #8, \c0
    orr \c0, \c0, \c0, lsr #8
    clamp_bytes \c0, \floor, \low
.endm
