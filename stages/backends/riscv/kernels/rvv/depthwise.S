/* Depthwise convolution, and convolution of few channels (depthwise.h).
 *
 * Registers while two vectors of outputs are computed; sums have 32 bits, inputs and weights 16:
 *
 *     v0-v3    v4-v7      v8-v15       v16-v23       v24-v27    v28-v31
 *     input    weights    first sums   second sums   weights    weights
 *
 * 3x3 windows in a row of inputs, from left to right:
 *
 *     stride 1:  a b c .   the first          stride 2:  a b c . .   the first
 *                . a b c   the second                    . . a b c   the second
 */
#include "rvv_asm.h"

    .set offset, 0
    .macro fields names:vararg
    .irp name, \names
    .set \name, offset
    .set offset, offset + 4
    .endr
    .endm

    /* struct rvv_depthwise */
    fields LANES, VECTOR, ELEMENTS, VECTORS, TAIL, Y_STEP, X_STEP, COLUMN1, COLUMN2, GROUP_X, GROUP_Y, ZERO_POINT, LOW, HIGH
    fields TAPS, TAP_ROWS, TAP_COLUMNS, HEIGHT, ROW, TOP, OUT_HEIGHT, OUT_ROW, LINE, LINE_STEP, RING, SPAN, LOADED, SKIPPED
    fields FILL, IS_UNSIGNED, PHASES, CHUNK, CHUNK_STEP, CHANNELS, PIXEL_STEP

    /* `operation` on the sums of `count` vectors */
    .macro sums count, operation, operands:vararg
    \operation v8, v8, \operands
    .if \count == 2
    \operation v16, v16, \operands
    .endif
    .endm

    /* Sums become bytes. a4 to a7 and t6: bias, multiplier, right shift, step of the output at a0, limit; s9: zero point;
     * s10 and s11: bounds. */
    .macro finish count, mode, clipped
    vle32.v v24, (a5)
    vle16.v v4, (a6)
    use_e32 8
    .ifc \mode, once
    sums \count, vmulhsu.vv, v24
    .else
    sums \count, vsmul.vv, v24
    .endif
    .ifc \mode, signed
    vle32.v v24, (t6)
    subtract_sign v, v8, v24
    .if \count == 2
    subtract_sign v, v16, v24
    .endif
    .endif
    use_e16 8
    sums \count, vnclip.wv, v4
    sums \count, vsadd.vx, s9
    .if \clipped
    sums \count, vmax.vx, s10
    sums \count, vmin.vx, s11
    use_e8 8
    sums \count, vnsrl.wi, 0
    .else
    use_e8 8
    sums \count, vnclip.wi, 0
    .endif
    vse8.v v8, (a0)
    add a0, a0, a7
    .if \count == 2
    vse8.v v16, (a0)
    add a0, a0, a7
    .endif
    .endm

    .macro biases count
    vle32.v v8, (a4)
    .if \count == 2
    vle32.v v16, (a4)
    .endif
    .endm

    /* The next input. */
    .macro load x, step
    vle16.v v0, (\x)
    .ifnb \step
    add \x, \x, \step
    .endif
    .endm

    /* A row of 3x3 windows with weights v4, v24, v28; then x points to the next vectors. */

    .macro row_s1 count, x      /* t0: x_step; t1: -x_step */
    load \x, t0
    vwmacc.vv v8, v0, v4
    load \x, t0
    vwmacc.vv v8, v0, v24
    .if \count == 2
    vwmacc.vv v16, v0, v4
    load \x, t0
    vwmacc.vv v8, v0, v28
    vwmacc.vv v16, v0, v24
    load \x, t1
    vwmacc.vv v16, v0, v28
    .else
    load \x, t1
    vwmacc.vv v8, v0, v28
    .endif
    .endm

    .macro row_s2 count, x      /* t1: column1 and column2, halves of x_step */
    load \x, t1
    vwmacc.vv v8, v0, v4
    load \x, t1
    vwmacc.vv v8, v0, v24
    .if \count == 2
    load \x, t1
    vwmacc.vv v8, v0, v28
    vwmacc.vv v16, v0, v4
    load \x, t1
    vwmacc.vv v16, v0, v24
    load \x
    vwmacc.vv v16, v0, v28
    .else
    load \x
    vwmacc.vv v8, v0, v28
    .endif
    .endm

    .macro row_3x3 count, x     /* t0: x_step; t1, t2: column1 and column2 less x_step; t3: x_step less column1, column2 */
    load \x, t0
    vwmacc.vv v8, v0, v4
    .if \count == 2
    load \x
    vwmacc.vv v16, v0, v4
    .endif
    add \x, \x, t1
    load \x, t0
    vwmacc.vv v8, v0, v24
    .if \count == 2
    load \x
    vwmacc.vv v16, v0, v24
    .endif
    add \x, \x, t2
    .if \count == 2
    load \x, t0
    vwmacc.vv v8, v0, v28
    load \x
    vwmacc.vv v16, v0, v28
    .else
    load \x
    vwmacc.vv v8, v0, v28
    .endif
    add \x, \x, t3
    .endm

    .macro weights a, b, c
    vle16.v v4, (\a)
    vle16.v v24, (\b)
    vle16.v v28, (\c)
    .endm

    /* Windows of `count` vectors. s0 to s8: weights; a1, a2, a3: lines */
    .macro windows_3x3 shape, count
    biases \count
    weights s0, s1, s2
    row_\shape \count, a1
    weights s3, s4, s5
    row_\shape \count, a2
    weights s6, s7, s8
    row_\shape \count, a3
    .endm

    /* a1 to the end in s2: addresses of lines for each row of the window; s0: weights, s1 bytes of a vector of them;
     * s3: place in the lines */

    .macro windows_slide shape, count   /* t0: x_step, also between columns; s4: columns but one */
    biases \count
    mv t1, a1
    mv t2, s0
61: LX t3, 0(t1)
    addi t1, t1, REGISTER_BYTES
    add t3, t3, s3
    mv t5, s4
    load t3, t0
    vle16.v v4, (t2)
    add t2, t2, s1
    vwmacc.vv v8, v0, v4
62: load t3, t0
    .if \count == 2
    vwmacc.vv v16, v0, v4
    .endif
    vle16.v v4, (t2)
    add t2, t2, s1
    addi t5, t5, -1
    vwmacc.vv v8, v0, v4
    bnez t5, 62b
    .if \count == 2
    load t3
    vwmacc.vv v16, v0, v4
    .endif
    bne t1, s2, 61b
    add s3, s3, t0
    .if \count == 2
    add s3, s3, t0
    .endif
    .endm

    .macro windows_any shape, count     /* t0: x_step; addresses of all taps */
    biases \count
    mv t1, a1
    mv t2, s0
61: LX t3, 0(t1)
    addi t1, t1, REGISTER_BYTES
    add t3, t3, s3
    load t3, t0
    vle16.v v4, (t2)
    add t2, t2, s1
    vwmacc.vv v8, v0, v4
    .if \count == 2
    load t3
    vwmacc.vv v16, v0, v4
    .endif
    bne t1, s2, 61b
    add s3, s3, t0
    .if \count == 2
    add s3, s3, t0
    .endif
    .endm

    /* Inputs by index: a row of weights has the offsets in bytes of the lanes from the first one's input. s4: bytes between the
     * first and the last tap of a row and a step; s6: the step */
    .macro windows_few shape, count
    add t5, a6, s1
    vle16.v v24, (t5)
    biases \count
    .if \count == 2
    vadd.vx v28, v24, t0
    .endif
    mv t1, a1
    mv t2, s0
61: LX t3, 0(t1)
    addi t1, t1, REGISTER_BYTES
    add t3, t3, s3
    add t5, t3, s4
62: vluxei16.v v0, (t3), v24
    vle16.v v4, (t2)
    add t2, t2, s1
    vwmacc.vv v8, v0, v4
    .if \count == 2
    vluxei16.v v0, (t3), v28
    add t3, t3, s6
    vwmacc.vv v16, v0, v4
    .else
    add t3, t3, s6
    .endif
    bne t3, t5, 62b
    bne t1, s2, 61b
    add s3, s3, t0
    .if \count == 2
    add s3, s3, t0
    .endif
    .endm

    /* All vectors of a group. a0: output; ra: fields; t5: lanes; then vl is that of the last vector */
    .macro vectors windows, shape, mode, clipped
    lw t4, VECTORS(ra)
    vsetvli zero, t5, e16, m4, ta, ma
    addi t4, t4, -2
    bltz t4, 30f
20: /* two at a time */
    \windows \shape, 2
    finish 2, \mode, \clipped
    use_e16 8
    addi t4, t4, -2
    bgez t4, 20b
30:
    addi t4, t4, 1
    bltz t4, 40f
    \windows \shape, 1
    finish 1, \mode, \clipped
40: /* fewer elements than a vector */
    lw t4, TAIL(ra)
    beqz t4, 50f
    vsetvli zero, t4, e16, m4, ta, ma
    \windows \shape, 1
    finish 1, \mode, \clipped
50:
    .endm

    /* The fields that are constant in a row */
    .macro row_fields clipped
    lw t0, X_STEP(ra)
    lw a7, Y_STEP(ra)
    lw s9, ZERO_POINT(ra)
    .if \clipped
    lw s10, LOW(ra)
    lw s11, HIGH(ra)
    .endif
    round_half_up
    .endm

    /* Lanes of the next group to t5, of `rest` that are left */
    .macro next_lanes rest
    lw t6, VECTOR(ra)
    mv t5, \rest
    bgeu t6, \rest, 1f
    mv t5, t6
1:  sub \rest, \rest, t5
    .endm

    /* The frame: saved registers, then what is kept from row to row and from group to group. */
    .set AT_Y, 13*REGISTER_BYTES
    .set AT_X, 14*REGISTER_BYTES            /* the row of the image that is loaded next */
    .set AT_X_ROW, 15*REGISTER_BYTES        /* its number, below 0 in the padding */
    .set AT_SLOT, 16*REGISTER_BYTES         /* the line that it is loaded to, the oldest */
    .set AT_ROWS_LEFT, 17*REGISTER_BYTES
    .set AT_WEIGHTS, 18*REGISTER_BYTES
    .set AT_CHANNELS, 19*REGISTER_BYTES
    .set AT_COLUMNS, 20*REGISTER_BYTES
    .set AT_LINES, 21*REGISTER_BYTES
    .set AT_LINES_END, 22*REGISTER_BYTES
    .set AT_TABLE, 23*REGISTER_BYTES
    .set AT_CHANNELS_LEFT, 24*REGISTER_BYTES
    .set FRAME, 25*REGISTER_BYTES + 15 & -16

    .macro saved operation
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    \operation s\number, \number*REGISTER_BYTES(sp)
    .endr
    \operation ra, 12*REGISTER_BYTES(sp)
    .endm

    /* Saves registers, fills the lines with the zero point, and loads the lines of each row of windows. The arguments are those
     * of rvv_depthwise. Here ra points to the fields, s0 to the first line of the windows, s7 and s8 to the end and the begin
     * of the lines. */
    .macro begin_rows name, addresses
    function \name
    addi sp, sp, -FRAME
    saved SX
    mv ra, a6
    SX a1, AT_WEIGHTS(sp)
    SX a2, AT_CHANNELS(sp)
    SX a3, AT_Y(sp)
    SX a5, AT_COLUMNS(sp)
    .ifnb \addresses
    SX a4, AT_TABLE(sp)
    lw t1, \addresses(ra)
    slli t1, t1, REGISTER_BYTES / 4 + 1
    add a4, a4, t1
    .endif
    lw t1, TOP(ra)
    lw t2, ROW(ra)
    neg s2, t1
    mul t2, s2, t2
    add s1, a0, t2
    lw t1, RING(ra)
    mv s8, a4
    mv s0, a4
    add s7, a4, t1
    SX s8, AT_LINES(sp)
    SX s7, AT_LINES_END(sp)
    lw t2, OUT_HEIGHT(ra)
    SX t2, AT_ROWS_LEFT(sp)
    mv a2, t1
    jal t0, rvv_depthwise_fill
    lw s6, SPAN(ra)
    j 6f
5: /* the next row */
    LX s0, AT_SLOT(sp)
    LX s1, AT_X(sp)
    LX s2, AT_X_ROW(sp)
    LX s8, AT_LINES(sp)
    LX s7, AT_LINES_END(sp)
    lw t1, SKIPPED(ra)
    beqz t1, 4f
    lw t2, ROW(ra)
    add s2, s2, t1
    mul t1, t1, t2
    add s1, s1, t1
4:  lw s6, LOADED(ra)
6:  LX s3, AT_COLUMNS(sp)
7:  jal t0, rvv_depthwise_line
    lw t1, LINE(ra)
    lw t2, ROW(ra)
    add s0, s0, t1
    add s1, s1, t2
    addi s2, s2, 1
    bne s0, s7, 8f
    mv s0, s8
8:  addi s6, s6, -1
    bnez s6, 7b
    SX s0, AT_SLOT(sp)
    SX s1, AT_X(sp)
    SX s2, AT_X_ROW(sp)
    .endm

    /* The line `step` bytes behind another one in the ring; s5: bytes of the ring */
    .macro next_line to, from, step
    add \to, \from, \step
    bltu \to, s7, 9f
    sub \to, \to, s5
9:
    .endm

    .macro end_rows name
    LX a3, AT_Y(sp)
    LX t1, AT_ROWS_LEFT(sp)
    lw t2, OUT_ROW(ra)
    addi t1, t1, -1
    add a3, a3, t2
    SX t1, AT_ROWS_LEFT(sp)
    SX a3, AT_Y(sp)
    bnez t1, 5b
    saved LX
    addi sp, sp, FRAME
    ret
    end_function \name
    .endm

    .macro image_3x3 shape, mode, clipped, name
    begin_rows \name
    lw t1, LINE_STEP(ra)
    sub s5, s7, s8
    mv a1, s0
    next_line a2, a1, t1
    next_line a3, a2, t1
    LX a0, AT_Y(sp)
    LX s0, AT_WEIGHTS(sp)
    LX a4, AT_CHANNELS(sp)
    lw t3, ELEMENTS(ra)
    row_fields \clipped
10: /* a group: a0 to a4 and s0 point to it; t3 channels are left */
    next_lanes t3
    SX t3, AT_CHANNELS_LEFT(sp)
    lw t6, LANES(ra)
    slli t4, t6, 1
    slli t6, t6, 2
    add s1, s0, t4
    add s2, s1, t4
    add s3, s2, t4
    add s4, s3, t4
    add s5, s4, t4
    add s6, s5, t4
    add s7, s6, t4
    add s8, s7, t4
    add a6, s8, t4
    add a5, a4, t6
    add t6, a5, t6
    .ifc \shape, s1
    neg t1, t0
    .else
    lw t1, COLUMN1(ra)
    .endif
    .ifc \shape, 3x3
    lw t2, COLUMN2(ra)
    add t3, t1, t2
    sub t1, t1, t0
    sub t2, t2, t0
    sub t3, t0, t3
    .endif
    vectors windows_3x3, \shape, \mode, \clipped
    LX t3, AT_CHANNELS_LEFT(sp)
    beqz t3, 60f
    lw t4, GROUP_X(ra)
    lw t5, GROUP_Y(ra)
    add a1, a1, t4
    add a2, a2, t4
    add a3, a3, t4
    add a0, a0, t5
    lw t4, LANES(ra)
    slli t4, t4, 1
    add s0, a6, t4
    slli t4, t4, 1
    add a4, t6, t4
    j 10b
60:
    end_rows \name
    .endm

    /* Addresses of the windows' rows, or of the taps of the first window, to the table. */
    .macro addresses shape
    LX t1, AT_TABLE(sp)
    lw t2, TAP_ROWS(ra)
    lw t3, LINE_STEP(ra)
    sub s5, s7, s8
12:
    .ifnc \shape, any
    SX s0, 0(t1)
    addi t1, t1, REGISTER_BYTES
    .else
    mv t4, s3
    lw t5, TAP_COLUMNS(ra)
13: lw t6, 0(t4)
    addi t4, t4, 4
    add t6, t6, s0
    SX t6, 0(t1)
    addi t1, t1, REGISTER_BYTES
    addi t5, t5, -1
    bnez t5, 13b
    .endif
    next_line s0, s0, t3
    addi t2, t2, -1
    bnez t2, 12b
    .endm

    .macro image_of_any shape, mode, clipped, name
    .ifc \shape, any
    begin_rows \name, TAPS
    .else
    begin_rows \name, TAP_ROWS
    .endif
    addresses \shape
    mv s2, t1
    LX a0, AT_Y(sp)
    LX a1, AT_TABLE(sp)
    LX s0, AT_WEIGHTS(sp)
    LX a4, AT_CHANNELS(sp)
    .ifc \shape, slide
    lw s4, TAP_COLUMNS(ra)
    addi s4, s4, -1
    .endif
    .ifc \shape, few
    lw s4, TAP_COLUMNS(ra)
    lw s6, COLUMN1(ra)
    mul s4, s4, s6
    .endif
    lw s1, LANES(ra)
    lw s5, TAPS(ra)
    slli s1, s1, 1
    mul s5, s5, s1
    li s3, 0
    lw s7, ELEMENTS(ra)
    row_fields \clipped
10: /* a group: a0, a4 and s0 point to it; s3 is its place in the lines; s7 channels are left */
    next_lanes s7
    add a6, s0, s5
    slli t6, s1, 1
    add a5, a4, t6
    add t6, a5, t6
    vectors windows_\shape, \shape, \mode, \clipped
    beqz s7, 60f
    lw t4, GROUP_X(ra)
    lw t5, GROUP_Y(ra)
    add s3, s3, t4
    add a0, a0, t5
    add s0, a6, s1
    .ifc \shape, few
    add s0, s0, s1
    .endif
    slli t4, s1, 1
    add a4, t6, t4
    j 10b
60:
    end_rows \name
    .endm

    .macro modes image, shape
    \image \shape, relu, 0, rvv_depthwise_\shape\()_relu
    \image \shape, relu, 1, rvv_depthwise_\shape\()_relu_clipped
    \image \shape, signed, 0, rvv_depthwise_\shape\()_signed
    \image \shape, signed, 1, rvv_depthwise_\shape\()_signed_clipped
    \image \shape, once, 0, rvv_depthwise_\shape\()_once
    \image \shape, once, 1, rvv_depthwise_\shape\()_once_clipped
    .endm

    modes image_3x3, s1
    modes image_3x3, s2
    modes image_3x3, 3x3
    modes image_of_any, slide
    modes image_of_any, any
    modes image_of_any, few

    /* Fills a2 bytes from s0 on with the zero point. Returns to t0; ra points to the fields. */
    function rvv_depthwise_fill
    lw t2, FILL(ra)
    vsetvli t1, zero, e16, m8, ta, ma
    vmv.v.x v0, t2
    slli t1, t1, 1
    mv a0, s0
    add a2, a2, a0      /* the end */
    sub t3, a2, t1      /* the last whole vector */
    bltu t3, a0, 2f
1:  vse16.v v0, (a0)
    add a0, a0, t1
    bgeu t3, a0, 1b
2:  sub t1, a2, a0
    srli t1, t1, 1
    vsetvli zero, t1, e16, m8, ta, ma
    vse16.v v0, (a0)
    jr t0
    end_function rvv_depthwise_fill

    /* A part of a row. a0: place in the line; a1: in the image; a2: its elements */
    .macro next_part end
    lw a0, 0(s5)
    lw a1, 4(s5)
    lw a2, 8(s5)
    slli a0, a0, 1
    add a0, a0, s0
    add a1, a1, s1
    addi s5, s5, 12
    blez a2, \end
    .endm

    .macro end_part first
    addi s4, s4, -1
    bnez s4, \first
    jr t0
    .endm

    /* Bytes become 16 bits, as they lie. */
    .macro copied widened
    vsetvli t1, zero, e8, m4, ta, ma
    slli t2, t1, 1
1:  next_part 4f
    add a2, a2, a1      /* the end */
    sub t3, a2, t1      /* the last whole vector */
    bltu t3, a1, 3f
2:  vle8.v v0, (a1)
    add a1, a1, t1
    \widened v8, v0
    vse16.v v8, (a0)
    add a0, a0, t2
    bgeu t3, a1, 2b
3:  sub t4, a2, a1
    beqz t4, 4f
    vsetvli zero, t4, e8, m4, ta, ma
    vle8.v v0, (a1)
    \widened v8, v0
    vse16.v v8, (a0)
    vsetvli zero, t1, e8, m4, ta, ma
4:  end_part 1b
    .endm

    /* Bytes become 16 bits, by index, t5 at a time (struct rvv_depthwise). */
    .macro gathered widened
    lw t1, CHANNELS(ra)
    lw t3, PIXEL_STEP(ra)
    vsetvli zero, t5, e16, m8, ta, ma
    vid.v v0
    vdivu.vx v8, v0, t1
    vremu.vx v0, v0, t1
    vmacc.vx v0, t3, v8
    lw t3, CHUNK_STEP(ra)
    slli t1, t5, 1
    vsetvli zero, t5, e8, m4, ta, ma
1:  next_part 4f
    blt a2, t5, 3f
2:  vluxei16.v v8, (a1), v0
    sub a2, a2, t5
    \widened v16, v8
    vse16.v v16, (a0)
    add a1, a1, t3
    add a0, a0, t1
    bge a2, t5, 2b
3:  beqz a2, 4f
    vsetvli zero, a2, e8, m4, ta, ma
    vluxei16.v v8, (a1), v0
    \widened v16, v8
    vse16.v v16, (a0)
    vsetvli zero, t5, e8, m4, ta, ma
4:  end_part 1b
    .endm

    /* Loads a row of the image (s1), whose number is s2, to a line (s0): its columns in the image, or the zero point where it is
     * padding. s3: `columns`. Returns to t0; ra points to the fields. */
    function rvv_depthwise_line
    lw t1, HEIGHT(ra)
    bltu s2, t1, 5f
    lw a2, LINE(ra)
    j rvv_depthwise_fill
5:  lw t1, TAP_COLUMNS(ra)
    lw t5, CHUNK(ra)
    lw t4, IS_UNSIGNED(ra)
    lw s4, PHASES(ra)
    slli t1, t1, 2
    add s5, s3, t1
    bnez t4, 7f
    bnez t5, 6f
    copied vwcvt.x.x.v
6:  gathered vwcvt.x.x.v
7:  bnez t5, 8f
    copied vwcvtu.x.x.v
8:  gathered vwcvtu.x.x.v
    end_function rvv_depthwise_line
