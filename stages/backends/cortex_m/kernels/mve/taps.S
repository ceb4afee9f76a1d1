/* A row of outputs of a depthwise convolution, channel by channel. A window is up to 16 consecutive bytes, or several times 16.
 * Armv8.1-M with MVE (integer).
 *
 *   void mve_taps_<mode>_<step>(uint8_t *y, const int8_t *strips, const int32_t *params, const int8_t *weights,
 *                                const uint8_t *rotation, int32_t channels, const struct mve_taps *d, int8_t *rotated);
 *   void mve_taps_<mode>_any[_wide](...);      any step between windows
 *   void mve_taps_<mode>_many[_wide](...);     windows of more than 16 taps
 *
 *   y          out_width pixels, out_pixel bytes apart; `channels` bytes of each are written, y_channel bytes apart
 *   strips     [channels][pitch]: window i of the row is the d->taps bytes from i * step on
 *   params     [channels][3] bias, multiplier, rounder
 *   weights    [channels][taps]; _wide: [channels][2][taps], each weight is the sum of two
 *   rotation   for each byte of a window the index of its weight (taps.h); 255: none
 *   rotated    _many only: chunks * 16 bytes (_wide 32) for the weights in the order of the windows, padded with zeros
 *   mode       of rounding.py: exact, lowered, shifted
 *
 * Without _many, eight windows are multiplied at a time, with two instructions each. Then 18 instructions convert the sums to bytes:
 *
 *   windows 0 ... 3 -> r0 r2 r4 r6 -> q1    even lanes of the result
 *   windows 4 ... 7 -> r0 r2 r4 r6 -> q2    odd lanes; q6 has the offsets of the outputs
 *
 * _many takes four windows, 9 instructions and 1 of the loop for each 16 taps.
 */
#include "mve_asm.h"

#define STRIP 0                        /* the frame: of the next channel; with Y one ldrd */
#define Y 4
#define WEIGHTS 8                      /* with PARAMS one ldrd */
#define PARAMS 12
#define LEFT 16                        /* mode shifted */
#define QUADS 20                       /* _many */
#define X 24
#define Y_NOW 28
#define FRAME 32
#define SAVED (64 + 36)                /* d8-d15, nine core registers */
#define ROTATION (FRAME + SAVED)
#define CHANNELS (ROTATION + 4)
#define FIELDS (ROTATION + 8)
#define ROTATED (ROTATION + 12)

#define FIELD_PITCH 0                  /* of taps.h; with y_channel one ldrd */
#define FIELD_TAPS 8
#define FIELD_STEP 12
#define FIELD_OUT_PIXEL 16
#define FIELD_ZERO_POINT 20            /* and low, high */
#define FIELD_EIGHTS 32
#define FIELD_REST 36
#define FIELD_REST_BYTES 40
#define FIELD_CHUNKS 44
#define FIELD_LAST_BYTES 48

/* The sums of four windows to \sum. */
.macro four_windows sum, step, wide
    window r0, \step, \wide
    window r2, \step, \wide
    window r4, \step, \wide
    window r6, \step, \wide
    vmov \sum[2], \sum[0], r0, r4
    vmov \sum[3], \sum[1], r2, r6
.endm

.macro window sum, step, wide
    .ifc \step,any
    vldrb.8 q0, [r1]
    add r1, r1, r3
    .else
    vldrb.8 q0, [r1], #\step
    .endif
    vmladav.s8 \sum, q0, q7
    .ifc \wide,_wide
    vmladava.s8 \sum, q0, q3
    .endif
.endm

/* Scales a vector of sums of one channel, without the zero point. r9 bias, r10 multiplier, r11 rounder. Overwrites q0 and, in mode
 * shifted, r4.
 */
.macro scale_channel mode, sum
    vadd.i32 \sum, \sum, r9
    .ifc \mode,shifted
    ldr r4, [sp, #LEFT]
    vshl.s32 \sum, r4
    vqrdmulh.s32 \sum, \sum, r10
    vdup.32 q0, r11
    lower_shifted \sum, q0, q0
    vrshl.s32 \sum, r11
    .else
    scale \mode, \sum, r10, r11, q0
    .endif
.endm

/* In mode shifted the rounder is a shift: to the left before the multiplication, or to the right after it. */
.macro load_params mode, from
    ldmia \from!, {r9-r11}
    .ifc \mode,shifted
    bic r2, r11, r11, asr #31
    str r2, [sp, #LEFT]
    and r11, r11, r11, asr #31
    .endif
.endm

.macro taps mode, step, wide
    function mve_taps_\mode\()_\step\wide
    push {r4-r11, lr}
    vpush {d8-d15}
    sub sp, sp, #FRAME
    strd r1, r0, [sp, #STRIP]
    strd r3, r2, [sp, #WEIGHTS]
    ldr r7, [sp, #FIELDS]
    ldrd r3, r4, [r7, #FIELD_STEP]     /* and out_pixel */
    movs r0, #0
    vidup.u16 q0, r0, #1
    vshr.u16 q1, q0, #1
    vmov.i16 q2, #1
    vand q0, q0, q2
    vshl.i16 q0, q0, #2
    vadd.i16 q0, q0, q1
    vmul.i16 q6, q0, r4
    lsl r5, r4, #3
    ldrd r12, r0, [r7, #FIELD_ZERO_POINT]
    ldr r1, [r7, #(FIELD_ZERO_POINT + 8)]
    vdup.16 q4, r0
    vdup.16 q5, r1

    /* A channel. */
1:  ldr r4, [sp, #ROTATION]
    ldr r2, [r7, #FIELD_TAPS]
    vldrb.8 q0, [r4]
    vctp.8 r2
    ldrd r0, r4, [sp, #WEIGHTS]        /* and params */
    vpst
    vldrbt.u8 q7, [r0, q0]
    add r0, r0, r2
    .ifc \wide,_wide
    vpst
    vldrbt.u8 q3, [r0, q0]
    add r0, r0, r2
    .endif
    load_params \mode, r4
    strd r0, r4, [sp, #WEIGHTS]
    ldrd r1, r8, [sp, #STRIP]          /* and y */
    ldrd r0, r2, [r7, #FIELD_PITCH]    /* and y_channel */
    add r0, r0, r1
    add r2, r2, r8
    strd r0, r2, [sp, #STRIP]
    ldr lr, [r7, #FIELD_EIGHTS]
    wls lr, lr, 3f
2:  four_windows q1, \step, \wide
    four_windows q2, \step, \wide
    scale_channel \mode, q1
    scale_channel \mode, q2
    vqmovnb.s32 q1, q1
    vqmovnt.s32 q1, q2
    vqadd.s16 q1, q1, r12
    vmax.s16 q1, q1, q4
    vmin.s16 q1, q1, q5
    vstrb.16 q1, [r8, q6]
    add r8, r8, r5
    le lr, 2b
3:  ldr lr, [r7, #FIELD_REST]
    cmp lr, #0
    beq 5f
    four_windows q1, \step, \wide
    scale_channel \mode, q1
    vqmovnb.s32 q1, q1
    cmp lr, #4
    ble 4f
    four_windows q2, \step, \wide
    scale_channel \mode, q2
    vqmovnt.s32 q1, q2
4:  vqadd.s16 q1, q1, r12
    vmax.s16 q1, q1, q4
    vmin.s16 q1, q1, q5
    ldr r4, [r7, #FIELD_REST_BYTES]
    vpt.s16 lt, q6, r4
    vstrbt.16 q1, [r8, q6]
5:  ldr r0, [sp, #CHANNELS]
    subs r0, r0, #1
    str r0, [sp, #CHANNELS]
    bne.w 1b
    add sp, sp, #FRAME
    vpop {d8-d15}
    pop {r4-r11, pc}
    end_function mve_taps_\mode\()_\step\wide
.endm

.macro taps_many mode, wide
    function mve_taps_\mode\()_many\wide
    push {r4-r11, lr}
    vpush {d8-d15}
    sub sp, sp, #FRAME
    strd r1, r0, [sp, #STRIP]
    strd r3, r2, [sp, #WEIGHTS]
    ldr r12, [sp, #FIELDS]
    ldr r4, [r12, #FIELD_OUT_PIXEL]
    movs r0, #0
    vidup.u32 q6, r0, #1
    vmul.i32 q6, q6, r4
    ldrd r0, r1, [r12, #FIELD_ZERO_POINT]
    ldr r2, [r12, #(FIELD_ZERO_POINT + 8)]
    vdup.32 q7, r0
    vdup.32 q4, r1
    vdup.32 q5, r2

    /* Copies the weights of a channel in the order of the windows. */
1:  ldr r1, [sp, #ROTATION]
    ldr r3, [sp, #ROTATED]
    ldr r2, [r12, #FIELD_TAPS]
    ldrd r0, r4, [sp, #WEIGHTS]        /* and params */
    add r5, r0, r2
    wlstp.8 lr, r2, 3f
2:  vldrb.8 q0, [r1], #16
    vldrb.u8 q1, [r0, q0]
    vstrb.8 q1, [r3], #16
    .ifc \wide,_wide
    vldrb.u8 q1, [r5, q0]
    vstrb.8 q1, [r3], #16
    .endif
    letp lr, 2b
3:
    .ifc \wide,_wide
    add r5, r5, r2
    .endif
    load_params \mode, r4
    strd r5, r4, [sp, #WEIGHTS]
    ldrd r1, r8, [sp, #STRIP]          /* and y */
    ldrd r0, r2, [r12, #FIELD_PITCH]   /* and y_channel */
    add r0, r0, r1
    add r2, r2, r8
    strd r0, r2, [sp, #STRIP]
    str r1, [sp, #X]
    ldrd r0, r2, [r12, #FIELD_EIGHTS]  /* and rest */
    add r2, r2, #3
    lsl r0, r0, #1
    add r0, r0, r2, lsr #2
    str r0, [sp, #QUADS]

    /* Four windows. */
4:  ldr r1, [sp, #X]
    ldr r0, [r12, #FIELD_STEP]
    ldr lr, [r12, #FIELD_CHUNKS]
    add r3, r1, r0
    add r5, r3, r0
    add r7, r5, r0
    add r0, r7, r0
    str r0, [sp, #X]
    ldr r2, [sp, #ROTATED]
    str r8, [sp, #Y_NOW]
    mov r8, r2
    movs r0, #0
    movs r2, #0
    movs r4, #0
    movs r6, #0
    dls lr, lr
5:  vldrb.8 q2, [r8], #16
    .ifc \wide,_wide
    vldrb.8 q3, [r8], #16
    .endif
    many_window r0, r1, \wide
    many_window r2, r3, \wide
    many_window r4, r5, \wide
    many_window r6, r7, \wide
    le lr, 5b
    vmov q1[2], q1[0], r0, r4
    vmov q1[3], q1[1], r2, r6
    scale_channel \mode, q1
    ldr r8, [sp, #Y_NOW]
    vadd.i32 q1, q1, q7
    ldr r0, [sp, #QUADS]
    vmax.s32 q1, q1, q4
    vmin.s32 q1, q1, q5
    subs r0, r0, #1
    beq 6f
    str r0, [sp, #QUADS]
    vstrb.32 q1, [r8, q6]
    ldr r0, [r12, #FIELD_OUT_PIXEL]
    add r8, r8, r0, lsl #2
    b 4b

    /* The last four outputs; some may be after the end of the row. */
6:  ldr r0, [r12, #FIELD_LAST_BYTES]
    vpt.s32 lt, q6, r0
    vstrbt.32 q1, [r8, q6]
    ldr r0, [sp, #CHANNELS]
    subs r0, r0, #1
    str r0, [sp, #CHANNELS]
    bne.w 1b
    add sp, sp, #FRAME
    vpop {d8-d15}
    pop {r4-r11, pc}
    end_function mve_taps_\mode\()_many\wide
.endm

.macro many_window sum, x, wide
    vldrb.8 q0, [\x], #16
    vmladava.s8 \sum, q0, q2
    .ifc \wide,_wide
    vmladava.s8 \sum, q0, q3
    .endif
.endm

.macro taps_modes step
    taps exact, \step
    taps lowered, \step
.endm

    taps_modes 1
    taps_modes 2
    taps_modes 3
    taps_modes 4
    taps_modes 6
    taps lowered, any
    taps lowered, any, _wide
    taps shifted, any
    taps shifted, any, _wide
    taps_many lowered
    taps_many lowered, _wide
    taps_many shifted
    taps_many shifted, _wide
