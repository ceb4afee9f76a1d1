/* Sums of products of 16-bit activations with 8-bit weights. Thumb-2 with the DSP extension.
 *
 *   void arm_dsp_products16_r<R>(const int16_t *panel, const int8_t *w, int32_t steps, int32_t *sums);
 *   void arm_dsp_products16_short(const int16_t *panel, const int8_t *w, const void *channels, int16_t *y, const void *parameters);
 *
 * _short computes the results of four pixels for all pairs of channels (struct s16_channel and struct fl_products16 of
 * include/). All its values except the sums are on the stack.
 *
 * A step is two elements of the depth: one word of the panel for each of R pixels, and one word of weights of two channels A and
 * B: a, b of the first element, a, b of the second. `sums` has R sums of A, then R sums of B.
 *
 * Four pixels: 13 instructions for 16 multiply-accumulates.
 *
 *              r8  r9     <- weights, 1 load and 2 sxtb16
 *   pixel 0  x | r0  r4
 *   pixel 1  x | r1  r5   x: 2 ldrd for four pixels
 *   pixel 2  x | r2  r6
 *   pixel 3  x | r3  r7
 *
 * The loop is unrolled by UNROLL and entered in the middle. One pixel takes two steps at a time, 10 instructions for 8.
 */
#include "dsp_asm.h"

#define UNROLL 8

#define panel r12
#define weights lr

.macro multiply_accumulate x, a, b
    smlad \a, \x, r8, \a
    smlad \b, \x, r9, \b
.endm

/* All instructions have four bytes, because the entry is computed. */
.macro one_step
    ldr r9, [weights], #4
    ldrd r10, r11, [panel], #8
    sxtb16 r8, r9
    sxtb16 r9, r9, ror #8
    multiply_accumulate r10, r0, r4
    multiply_accumulate r11, r1, r5
    ldrd r10, r11, [panel], #8
    multiply_accumulate r10, r2, r6
    multiply_accumulate r11, r3, r7
.endm

#define SUMS 0                         /* the frame */
#define END 4
#define FRAME 8

    enter arm_dsp_products16_r4, FRAME
    str r3, [sp, #SUMS]
    add r3, r0, r2, lsl #4
    str r3, [sp, #END]
    mov panel, r0
    mov weights, r1
    rsb r2, r2, #0                     /* steps that the first turn skips */
    and r2, r2, #UNROLL - 1
    entry_point r8, r2, UNROLL, .Lfour, .Lfour_end, r9, r10
    .irp sum, r0, r1, r2, r3, r4, r5, r6, r7
    mov \sum, #0
    .endr
    bx r8
    .balign 4
.Lfour:
    .rept UNROLL
    one_step
    .endr
.Lfour_end:
    ldr r8, [sp, #END]
    cmp panel, r8
    bne .Lfour
    ldr r8, [sp, #SUMS]
    stm r8, {r0-r7}
    leave FRAME
    end_function arm_dsp_products16_r4

#undef END
#undef FRAME
#define PANEL 0                        /* the frame; pairs of words are loaded together */
#define ENTRY 4
#define CHANNELS 8
#define CHANNELS_END 12
#define OUT 16
#define PIXEL 20                       /* bytes from a pixel's results to the next's */
#define LOW 24                         /* in both halves */
#define HIGH 28
#define END 32
#define FRAME 36
#define PARAMETERS (FRAME + SAVED)     /* the fifth argument */

#define OUT_CHANNELS 52                /* fields of the parameters */
#define DEPTH 64
#define BOUNDS 80

/* Two results of 16 bits, which are neighbours. */
.macro write_pixel a, b
    ssat \a, #16, \a
    ssat \b, #16, \b
    pkhbt \a, \a, \b, lsl #16
    ssub16 \b, \a, r8
    sel \a, \a, r8
    ssub16 \b, r9, \a
    sel \a, \a, r9
    str \a, [r10]
.endm

    enter arm_dsp_products16_short, FRAME
    ldr r4, [sp, #PARAMETERS]
    ldr r5, [r4, #OUT_CHANNELS]
    ldr r6, [r4, #DEPTH]
    ldrd r8, r9, [r4, #BOUNDS]
    mov panel, r0
    mov weights, r1
    str r0, [sp, #PANEL]
    pkhbt r8, r8, r8, lsl #16
    pkhbt r9, r9, r9, lsl #16
    strd r8, r9, [sp, #LOW]
    lsl r7, r5, #1
    strd r3, r7, [sp, #OUT]
    bic r5, r5, #1
    add r3, r2, r5, lsl #4
    strd r2, r3, [sp, #CHANNELS]
    add r0, r0, r6, lsl #3
    str r0, [sp, #END]
    lsr r6, r6, #1
    rsb r6, r6, #0                     /* steps that the first turn skips */
    and r6, r6, #UNROLL - 1
    entry_point r8, r6, UNROLL, .Lshort, .Lshort_end, r9, r10
    str r8, [sp, #ENTRY]
.Lpair:
    ldrd panel, r8, [sp, #PANEL]
    ldr r9, [sp, #CHANNELS]
    ldr r0, [r9]
    ldr r4, [r9, #16]
    mov r1, r0
    mov r2, r0
    mov r3, r0
    mov r5, r4
    mov r6, r4
    mov r7, r4
    bx r8
    .balign 4
.Lshort:
    .rept UNROLL
    one_step
    .endr
.Lshort_end:
    ldr r8, [sp, #END]
    cmp panel, r8
    bne .Lshort
    ldr r10, [sp, #CHANNELS]
    ldr r8, [r10, #8]
    ldr r9, [r10, #24]
    add r10, r10, #32
    str r10, [sp, #CHANNELS]
    .irp sum, r0, r1, r2, r3
    smmulr \sum, \sum, r8
    .endr
    .irp sum, r4, r5, r6, r7
    smmulr \sum, \sum, r9
    .endr
    ldrd r8, r9, [sp, #LOW]
    ldrd r10, r11, [sp, #OUT]
    add r12, r10, #4
    str r12, [sp, #OUT]
    write_pixel r0, r4
    add r10, r10, r11
    write_pixel r1, r5
    add r10, r10, r11
    write_pixel r2, r6
    add r10, r10, r11
    write_pixel r3, r7
    ldrd r8, r9, [sp, #CHANNELS]
    cmp r8, r9
    bne .Lpair
    leave FRAME
    end_function arm_dsp_products16_short

.macro two_steps
    ldrd r8, r9, [weights], #8
    ldrd r10, r11, [panel], #8
    sxtb16 r4, r8
    sxtb16 r5, r8, ror #8
    sxtb16 r6, r9
    sxtb16 r7, r9, ror #8
    smlad r0, r10, r4, r0
    smlad r1, r10, r5, r1
    smlad r0, r11, r6, r0
    smlad r1, r11, r7, r1
.endm

    enter arm_dsp_products16_r1
    mov panel, r0
    mov weights, r1
    movs r0, #0
    movs r1, #0
    lsrs r2, r2, #1                    /* carry: one step more than the pairs */
    bcc .Leven
    ldr r8, [weights], #4
    ldr r10, [panel], #4
    sxtb16 r4, r8
    sxtb16 r5, r8, ror #8
    smlad r0, r10, r4, r0
    smlad r1, r10, r5, r1
.Leven:
    rsb r7, r2, #0
    and r7, r7, #UNROLL - 1
    entry_point r8, r7, UNROLL, .Lone, .Lone_end, r9, r10
    add r2, panel, r2, lsl #3
    cmp panel, r2
    beq .Lone_done
    bx r8
    .balign 4
.Lone:
    .rept UNROLL
    two_steps
    .endr
.Lone_end:
    cmp panel, r2
    bne .Lone
.Lone_done:
    strd r0, r1, [r3]
    leave
    end_function arm_dsp_products16_r1
