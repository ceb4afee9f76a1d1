/* Shared by the assembly of the vector kernels: functions, and requantization of 32-bit sums to 8 bits.
 *
 * The kernels are for V 1.0 and Zve32x with any VLEN from 128. Groups are named by their first register. `lmul` is that of the
 * 32-bit group (1, 2, 4 or 8); 16-bit and 8-bit groups of the same elements have a half and a quarter of its registers.
 *
 *     sums    | v8 | v9 | v10 | v11 |     e32, m4
 *     halves  | v8 | v9 |                 e16, m2
 *     bytes   | v8 |                      e8, m1
 *
 * Functions set the rounding mode once by `round_half_up`, and the vector length by vsetvli; the macros preserve both.
 */
#pragma once

.option arch, +zicsr, +zve32x         /* C is compiled without vectors */

#if __riscv_xlen == 64
#define LX ld
#define SX sd
#define REGISTER_BYTES 8
#else
#define LX lw
#define SX sw
#define REGISTER_BYTES 4
#endif

/* A function in a section of its own; `end_function` follows its last instruction. */
.macro function name
    .section .text.\name, "ax", @progbits
    .globl \name
    .type \name, @function
    .balign 4
\name:
.endm

.macro end_function name
    .size \name, . - \name
.endm

/* Stores registers on the stack; a multiple of 16 bytes. */
.macro save registers:vararg
    .set slots, 0
    .irp r, \registers
    .set slots, slots + 1
    .endr
    .set frame, (slots * REGISTER_BYTES + 15) & ~15
    addi sp, sp, -frame
    .set slot, 0
    .irp r, \registers
    SX \r, slot * REGISTER_BYTES(sp)
    .set slot, slot + 1
    .endr
.endm

/* Loads what the last `save` before it in the file stored, and returns. */
.macro leave registers:vararg
    .set slot, 0
    .irp r, \registers
    LX \r, slot * REGISTER_BYTES(sp)
    .set slot, slot + 1
    .endr
    addi sp, sp, (slot * REGISTER_BYTES + 15) & ~15
    ret
.endm

/* Loads int32 fields of a structure, from `first` on, into registers. */
.macro load_fields structure, first, registers:vararg
    .set field, \first
    .irp r, \registers
    lw \r, 4 * field(\structure)
    .set field, field + 1
    .endr
.endm

.macro round_half_up
    csrwi vxrm, 0
.endm

/* The same elements with another width. */
.macro use_e32 lmul
    vsetvli zero, zero, e32, m\lmul, ta, ma
.endm

.macro use_e16 lmul
  .if \lmul == 1
    vsetvli zero, zero, e16, mf2, ta, ma
  .elseif \lmul == 2
    vsetvli zero, zero, e16, m1, ta, ma
  .elseif \lmul == 4
    vsetvli zero, zero, e16, m2, ta, ma
  .else
    vsetvli zero, zero, e16, m4, ta, ma
  .endif
.endm

.macro use_e8 lmul
  .if \lmul == 1
    vsetvli zero, zero, e8, mf4, ta, ma
  .elseif \lmul == 2
    vsetvli zero, zero, e8, mf2, ta, ma
  .elseif \lmul == 4
    vsetvli zero, zero, e8, m1, ta, ma
  .else
    vsetvli zero, zero, e8, m2, ta, ma
  .endif
.endm

/* Scales of a layer are registers (`kind` x), scales of channels are vector groups (`kind` v). A real multiplier is
 * multiplier * 2^(left - right - 31); one of left and right is 0.
 *
 *   multiplier   32 bits
 *   right        16 bits (in scale_full 32)
 *   limit        32 bits: 0 where right > 0, else -2^31
 *
 * Two roundings (RoundingDivideByPOT of SaturatingRoundingDoublingHighMul): vsmul is the second exactly. vnclip and vssra round
 * halves up, so one is subtracted from negative values before. Without a shift nothing may be subtracted: no value is below
 * -2^31. With a ReLU (lowest result >= zero point) the subtraction is not needed: what is negative is clamped.
 */
.macro subtract_sign kind, sums, limit
  .ifc \kind, v
    vmslt.vv v0, \sums, \limit
  .else
    vmslt.vx v0, \sums, \limit
  .endif
    vsbc.vxm \sums, \sums, zero, v0
.endm

/* Sums (e32) to sums, for results that are added to others. Overwrites v0. */
.macro scale_full kind, sums, multiplier, limit, right
    vsmul.v\kind \sums, \sums, \multiplier
    subtract_sign \kind, \sums, \limit
    vssra.v\kind \sums, \sums, \right
.endm

/* Sums (e32) to 16-bit results without zero point. Leaves e16. Overwrites v0. */
.macro scale_twice kind, lmul, sums, multiplier, limit, right
    vsmul.v\kind \sums, \sums, \multiplier
    subtract_sign \kind, \sums, \limit
    use_e16 \lmul
    vnclip.w\kind \sums, \sums, \right
.endm

/* The same for a layer with a ReLU. */
.macro scale_rectified kind, lmul, sums, multiplier, right
    vsmul.v\kind \sums, \sums, \multiplier
    use_e16 \lmul
    vnclip.w\kind \sums, \sums, \right
.endm

/* One rounding of the product, (sums * multiplier + 2^(30 + right)) >> (31 + right), right >= 1. `multiplier2` is twice the
 * multiplier, unsigned. (For right = 0, scale_rectified has one rounding.) */
.macro scale_once kind, lmul, sums, multiplier2, right
    vmulhsu.v\kind \sums, \sums, \multiplier2
    use_e16 \lmul
    vnclip.w\kind \sums, \sums, \right
.endm

/* 16-bit results to int8 within [-128, 127]. Leaves e8. */
.macro finish_s8 lmul, halves, zero_point
    vsadd.vx \halves, \halves, \zero_point
    use_e8 \lmul
    vnclip.wi \halves, \halves, 0
.endm

/* 16-bit results to int8 or uint8 within [low, high]. Leaves e8. */
.macro finish_clamped lmul, halves, zero_point, low, high
    vsadd.vx \halves, \halves, \zero_point
    vmax.vx \halves, \halves, \low
    vmin.vx \halves, \halves, \high
    use_e8 \lmul
    vnsrl.wi \halves, \halves, 0
.endm
