/* Depthwise convolution of one window, four channels at a time, requantized to 8 bits. Thumb-2 with the DSP extension.
 *
 *   void arm_dsp_channels_<s8|u8>_<near|apart>[_long|_once](const uint8_t *const *taps, const int32_t *blocks, void *out,
 *                                                     const int32_t *fields);
 *
 *   taps    for each of fields.pairs * 2 taps a pointer to the first channel of its pixel
 *   blocks  for each block of four channels: biases, weights, scales (rounding.py): four multipliers, four rounders; long: lefts,
 *           multipliers, posts, rounders. The weights of two taps are four words of int16: channels 0 and 2, 1 and 3 of the first
 *           tap, the same of the second
 *   out     near: the channels are neighbours. apart: they are fields.step bytes apart
 *   fields  pairs, last (the first channel of the last block, which may overlap the one before it), zero_point, floor, low (as in
 *           gemm.S), step
 *
 * Two taps: 16 instructions for 8 multiply-accumulates.
 *
 *               even   odd             <- two pointers, two words of x, four widenings, four words of weights
 *   tap 0  x | c0 c2 | c1 c3           four smla, by halves
 *   tap 1  x | c0 c2 | c1 c3           the same       4 sums + 4 weights + 2 pointers or x + 1 + taps, blocks, channel = r0-r12, lr
 */
#include "dsp_asm.h"

#define UNROLL 8

#define taps r11
#define blocks r12
#define channel lr

#define TAPS 0                         /* the frame */
#define ENTRY 4
#define TAPS_END 8
#define LAST 12
#define ZERO_POINT 16
#define STEP 20
#define FLOOR 24
#define LOW 28
#define OUT 32
#define FRAME 44                       /* with nine saved registers: a multiple of 8 */

.macro tap x, even, odd
    .if is_unsigned
    uxtb16 r10, \x
    uxtb16 \x, \x, ror #8
    .else
    sxtb16 r10, \x
    sxtb16 \x, \x, ror #8
    .endif
    smlabb r0, r10, \even, r0
    smlatt r2, r10, \even, r2
    smlabb r1, \x, \odd, r1
    smlatt r3, \x, \odd, r3
.endm

/* All instructions have four bytes, because the entry is computed. */
.macro two_taps
    ldrd r8, r9, [taps], #8
    ldm blocks!, {r4-r7}
    ldr r8, [r8, channel]
    ldr r9, [r9, channel]
    tap r8, r4, r5
    tap r9, r6, r7
.endm

.macro short_rounding
    ldm blocks!, {r4-r7}
    high_multiply r0, r1, r4, r5
    high_multiply r2, r3, r6, r7
    ldm blocks!, {r4-r7}
    ldr r8, [sp, #ZERO_POINT]
    round_sums r0, r1, r4, r5, r8
    round_sums r2, r3, r6, r7, r8
.endm

/* For layers that round once: the first multiplication rounds down. */
.macro once_rounding
    ldm blocks!, {r4-r7}
    smmla r0, r0, r4, r0
    smmla r1, r1, r5, r1
    smmla r2, r2, r6, r2
    smmla r3, r3, r7, r3
    ldm blocks!, {r4-r7}
    ldr r8, [sp, #ZERO_POINT]
    round_sums r0, r1, r4, r5, r8
    round_sums r2, r3, r6, r7, r8
.endm

.macro long_rounding
    ldm blocks!, {r4-r7}
    shift_left r0, r1, r4, r5
    shift_left r2, r3, r6, r7
    ldm blocks!, {r4-r7}
    high_multiply r0, r1, r4, r5
    high_multiply r2, r3, r6, r7
    ldm blocks!, {r4-r7}
    shift_and_lower r0, r1, r4, r5
    shift_and_lower r2, r3, r6, r7
    ldm blocks!, {r4-r7}
    ldr r8, [sp, #ZERO_POINT]
    round_long r0, r1, r4, r5, r8
    round_long r2, r3, r6, r7, r8
    .irp sum, r0, r1, r2, r3           /* the narrowing reads 16 bits */
    ssat \sum, #16, \sum
    .endr
.endm

.macro window name, unsigned, is_near, rounding
    .set is_unsigned, \unsigned
    enter \name, FRAME
    mov blocks, r1
    ldm r3, {r4-r9}                    /* the fields */
    strd r5, r6, [sp, #LAST]           /* and ZERO_POINT */
    strd r7, r8, [sp, #FLOOR]
    str r9, [sp, #STEP]
    str r2, [sp, #OUT]
    str r0, [sp, #TAPS]
    add r5, r0, r4, lsl #3
    str r5, [sp, #TAPS_END]
    rsb r4, r4, #0                     /* pairs that the first iteration skips */
    and r4, r4, #UNROLL - 1
    entry_point r4, r4, UNROLL, .Lloop_\@, .Lloop_end_\@, r6, r7
    str r4, [sp, #ENTRY]
    mov channel, #0

.Lblock_\@:
    ldm blocks!, {r0-r3}
    ldr taps, [sp, #TAPS]
    ldr pc, [sp, #ENTRY]
    .balign 4
.Lloop_\@:
    .rept UNROLL
    two_taps
    .endr
.Lloop_end_\@:
    ldr r4, [sp, #TAPS_END]
    cmp taps, r4
    bne.w .Lloop_\@

    \rounding\()_rounding
    ldrd r8, r9, [sp, #FLOOR]
    narrow 4, r8, r9, r0, r1, r2, r3
    ldr r5, [sp, #OUT]
    .if \is_near
    str r0, [r5, channel]
    .else
    ldr r4, [sp, #STEP]
    mla r5, r4, channel, r5
    strb r0, [r5]
    lsr r0, r0, #8
    strb r0, [r5, r4]
    lsr r0, r0, #8
    add r5, r5, r4, lsl #1
    strb r0, [r5]
    lsr r0, r0, #8
    strb r0, [r5, r4]
    .endif
    ldr r4, [sp, #LAST]
    cmp channel, r4
    beq 1f
    add channel, channel, #4
    cmp channel, r4
    it hi
    movhi channel, r4
    b .Lblock_\@
1:  leave FRAME
    end_function \name
.endm

.macro all_roundings name, unsigned, is_near
window \name, \unsigned, \is_near, short
window \name\()_long, \unsigned, \is_near, long
window \name\()_once, \unsigned, \is_near, once
.endm

all_roundings arm_dsp_channels_s8_near, 0, 1
all_roundings arm_dsp_channels_s8_apart, 0, 0
all_roundings arm_dsp_channels_u8_near, 1, 1
all_roundings arm_dsp_channels_u8_apart, 1, 0
