/* Dot products of pixels' windows with one to four output channels, requantized to 8 bits. Thumb-2 with the DSP extension.
 *
 *   void arm_dsp_few<N>_<s8|u8>_<double|single|long>(const uint8_t *x, const int32_t *weights, uint8_t *y, const int32_t *fields,
 *                                                    int32_t count);
 *
 *   x        the first byte of the first of `count` windows; a window is fields.rows times fields.runs runs of bytes
 *   weights  N biases; for each four bytes of a run N pairs of words with int16: elements 0 and 2, 1 and 3; scales (rounding.py):
 *            N multipliers, N rounders; long: N lefts, N multipliers, N posts, N rounders
 *   y        fields.y_pixel bytes between windows, fields.y_channel between channels
 *   fields   units, odd: groups of four bytes in a run. N = 1: `units` pairs of groups, and one more if `odd`; else `units` groups;
 *            rest: remaining bytes of a run; runs, rows; jump: bytes from the end of a run to the next run; row_jump: the same to
 *            the next row; pixel: bytes between windows; y_pixel, y_channel, zero_point, floor, low (as in gemm.S)
 *   double   rounds twice, single once; long: rounding.py
 *
 * Four bytes: 3 + N / 2 + 2 * N instructions for 4 * N multiply-accumulates.
 *
 *   x (0,2), (1,3) | sums of N channels     <- one load, two widenings; the weights of a channel are two words, up to six at once
 */
#include "dsp_asm.h"

#define UNROLL 8

#define weights r12
#define x lr
#define turns r11

#define X 0                            /* the frame */
#define COUNT 4
#define Y 8
#define WEIGHTS 12
#define START 16                       /* where a run starts: at its odd four, or at ENTRY */
#define ENTRY 20                       /* where the unrolled loop is entered; the end of the run if it has no units */
#define TURNS 24
#define REST 28
#define RUNS 32
#define ROWS 36
#define JUMP 40
#define ROW_JUMP 44
#define PIXEL 48
#define Y_PIXEL 52
#define Y_CHANNEL 56
#define ZERO_POINT 60
#define FLOOR 64
#define LOW 68
#define RUNS_LEFT 72
#define ROWS_LEFT 76
#define FRAME 84                       /* with nine saved registers: a multiple of 8 */
#define ARGUMENT (FRAME + SAVED)       /* the fifth */

.macro widen even, odd
    .if is_unsigned
    uxtb16 \odd, \even, ror #8
    uxtb16 \even, \even
    .else
    sxtb16 \odd, \even, ror #8
    sxtb16 \even, \even
    .endif
.endm

.macro channel sum, even, odd, w02, w13
    smlad \sum, \even, \w02, \sum
    smlad \sum, \odd, \w13, \sum
.endm

/* What a widened four adds to all sums. */
.macro channels
    .if n == 1
    ldrd r5, r6, [weights], #8
    channel r0, r3, r4, r5, r6
    .elseif n == 2
    ldm weights!, {r5-r8}
    channel r0, r3, r4, r5, r6
    channel r1, r3, r4, r7, r8
    .elseif n == 3
    ldm weights!, {r5-r10}
    channel r0, r3, r4, r5, r6
    channel r1, r3, r4, r7, r8
    channel r2, r3, r4, r9, r10
    .else
    ldm weights!, {r6-r9}
    channel r0, r4, r5, r6, r7
    channel r1, r4, r5, r8, r9
    ldm weights!, {r6-r9}
    channel r2, r4, r5, r6, r7
    channel r3, r4, r5, r8, r9
    .endif
.endm

.macro widen_word
    .if n == 4
    widen r4, r5
    .else
    widen r3, r4
    .endif
.endm

/* All instructions have four bytes, because the entry is computed. */
.macro unit
    .if n == 1
    ldm weights!, {r5-r8}
    ldr.w r3, [x], #4
    widen r3, r4
    channel r0, r3, r4, r5, r6
    ldr.w r3, [x], #4
    widen r3, r4
    channel r0, r3, r4, r7, r8
    .else
    .if n == 4
    ldr.w r4, [x], #4
    .else
    ldr.w r3, [x], #4
    .endif
    widen_word
    channels
    .endif
.endm

.macro for_sums step
    \step r0
    .if n > 1
    \step r1
    .endif
    .if n > 2
    \step r2
    .endif
    .if n > 3
    \step r3
    .endif
.endm

/* The words of the scale are loaded into r4, one after the other. */
.macro multiply sum
    ldr r4, [weights], #4
    .if single
    smmla \sum, \sum, r4, \sum
    .else
    smmlar \sum, \sum, r4, \sum
    .endif
.endm

.macro left_shift sum
    ldr r4, [weights], #4
    lsl \sum, \sum, r4
.endm

.macro lower sum
    ldr r4, [weights], #4
    lsl \sum, \sum, r4
    add \sum, \sum, \sum, asr #31
.endm

.macro round sum
    ldr r4, [weights], #4
    .if long
    smmlsr \sum, \sum, r4, r5
    .else
    smmlar \sum, \sum, r4, r5
    .endif
    usat \sum, #8, \sum
.endm

.macro next_byte
    lsr r0, r0, #8
    add r6, r6, r5
    strb r0, [r6]
.endm

.macro few name, channels_at_once, unsigned, rounds_once, is_long
    .set n, \channels_at_once
    .set is_unsigned, \unsigned
    .set single, \rounds_once
    .set long, \is_long
    enter \name, FRAME
    ldr r4, [sp, #ARGUMENT]
    cmp r4, #0
    beq.w .Lend_\@
    strd r0, r4, [sp, #X]
    strd r2, r1, [sp, #Y]
    ldm r3!, {r4-r11}                  /* units to pixel */
    strd r6, r7, [sp, #REST]
    strd r8, r9, [sp, #ROWS]
    strd r10, r11, [sp, #ROW_JUMP]
    ldm r3, {r6-r10}
    strd r6, r7, [sp, #Y_PIXEL]
    strd r8, r9, [sp, #ZERO_POINT]
    str r10, [sp, #LOW]
    add r6, r4, #UNROLL - 1
    lsr r6, r6, #3
    str r6, [sp, #TURNS]
    rsbs r6, r4, #0                    /* units that the first iteration skips */
    and r6, r6, #UNROLL - 1
    entry_point r6, r6, UNROLL, .Lloop_\@, .Lloop_end_\@, r7, r8
    cmp r4, #0
    itt eq
    adreq r6, .Lrun_end_\@
    orreq r6, r6, #1
    str r6, [sp, #ENTRY]
    cmp r5, #0
    itt ne
    adrne r6, .Lodd_\@
    orrne r6, r6, #1
    str r6, [sp, #START]

.Lpixel_\@:
    ldrd r5, r6, [sp, #RUNS]
    strd r5, r6, [sp, #RUNS_LEFT]
    ldr weights, [sp, #WEIGHTS]
    ldr x, [sp, #X]
    .if n == 1
    ldr r0, [weights], #4
    .elseif n == 2
    ldrd r0, r1, [weights], #8
    .elseif n == 3
    ldm weights!, {r0-r2}
    .else
    ldm weights!, {r0-r3}
    .endif
.Lrun_\@:
    ldr turns, [sp, #TURNS]
    ldr pc, [sp, #START]
    .balign 4
.Lodd_\@:
    .if n == 1
    ldr.w r3, [x], #4
    widen_word
    channels
    ldr pc, [sp, #ENTRY]
    .endif
    .balign 4
.Lloop_\@:
    .rept UNROLL
    unit
    .endr
.Lloop_end_\@:
    subs turns, turns, #1
    bne.w .Lloop_\@
    .balign 4
.Lrun_end_\@:
    ldr r5, [sp, #REST]
    cmp r5, #0
    bne .Lrest_\@
.Lnext_\@:
    ldr r5, [sp, #RUNS_LEFT]
    subs r5, r5, #1
    beq .Lrow_\@
    str r5, [sp, #RUNS_LEFT]
    ldr r5, [sp, #JUMP]
    add x, x, r5
    b .Lrun_\@
.Lrow_\@:
    ldr r5, [sp, #ROWS_LEFT]
    subs r5, r5, #1
    beq .Lsums_\@
    ldr r6, [sp, #RUNS]
    strd r6, r5, [sp, #RUNS_LEFT]
    ldr r5, [sp, #ROW_JUMP]
    add x, x, r5
    b .Lrun_\@

.Lrest_\@:                                  /* one to three bytes as a group of four; the weights of missing bytes are zero */
    .if n == 4
    cmp r5, #2
    ite lo
    ldrblo r4, [x], #1
    ldrhhs r4, [x], #2
    bls 1f
    ldrb r5, [x], #1
    orr r4, r4, r5, lsl #16
    .else
    cmp r5, #2
    ite lo
    ldrblo r3, [x], #1
    ldrhhs r3, [x], #2
    bls 1f
    ldrb r4, [x], #1
    orr r3, r3, r4, lsl #16
    .endif
1:  widen_word
    channels
    b .Lnext_\@

.Lsums_\@:
    .if long
    for_sums left_shift
    .endif
    for_sums multiply
    .if long
    for_sums lower
    .endif
    ldr r5, [sp, #ZERO_POINT]
    for_sums round
    .if n > 1
    orr r0, r0, r1, lsl #8
    .endif
    .if n > 2
    orr r0, r0, r2, lsl #16
    .endif
    .if n > 3
    orr r0, r0, r3, lsl #24
    .endif
    ldrd r4, r5, [sp, #FLOOR]
    clamp_bytes r0, r4, r5
    ldrd r4, r5, [sp, #Y_PIXEL]        /* and Y_CHANNEL */
    ldr r6, [sp, #Y]
    add r4, r4, r6
    str r4, [sp, #Y]
    strb r0, [r6]
    .rept n - 1
    next_byte
    .endr
    ldrd r4, r5, [sp, #X]              /* and COUNT */
    ldr r6, [sp, #PIXEL]
    add r4, r4, r6
    subs r5, r5, #1
    strd r4, r5, [sp, #X]
    bne.w .Lpixel_\@
.Lend_\@:
    leave FRAME
    end_function \name
.endm

.macro roundings name, channels_at_once, unsigned
few \name\()_double, \channels_at_once, \unsigned, 0, 0
few \name\()_single, \channels_at_once, \unsigned, 1, 0
few \name\()_long, \channels_at_once, \unsigned, 0, 1
.endm

.irp c, 1, 2, 3, 4
roundings arm_dsp_few\c\()_s8, \c, 0
roundings arm_dsp_few\c\()_u8, \c, 1
.endr
