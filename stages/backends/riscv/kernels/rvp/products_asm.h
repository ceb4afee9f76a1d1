/* Products of activations and weights, and the loops over them. RISC-V P, draft 0.9.11, for assembly.
 *
 * The including file defines these registers:
 *   x       the activations of a row; free between the macros
 *   w0-w3   four registers of weights
 *
 * It may define W_IN_PAIRS: w0 and w2 are even registers, w1 and w3 the ones after them. LOAD_4 is the number of instructions of
 * load_4.
 */
#pragma once

#include "rvp_asm.h"

/* Adds products of signed weights and activations, which are signed or not as `unsigned` is set. */
.macro multiply_either acc, activations, w
    .if unsigned
    smaqa.su \acc, \w, \activations
    .else
    smaqa \acc, \activations, \w
    .endif
.endm

/* Four registers from register `first` of `base` on into w0-w3. (Constants are aligned to 8 bytes or more.) */
#if defined(RVP_LOADS_PAIRS) && defined(W_IN_PAIRS)
#define LOAD_4 2
.macro load_4 base, first
    load_two_words w0, ((\first) + 0) * REGISTER_BYTES(\base)
    load_two_words w2, ((\first) + 2) * REGISTER_BYTES(\base)
.endm
#else
#define LOAD_4 4
.macro load_4 base, first
    LX w0, ((\first) + 0) * REGISTER_BYTES(\base)
    LX w1, ((\first) + 1) * REGISTER_BYTES(\base)
    LX w2, ((\first) + 2) * REGISTER_BYTES(\base)
    LX w3, ((\first) + 3) * REGISTER_BYTES(\base)
.endm
#endif

/* Adds the products of x and w0-w3 to four sums. */
.macro multiply_4 c0, c1, c2, c3
    smaqa \c0, x, w0
    smaqa \c1, x, w1
    smaqa \c2, x, w2
    smaqa \c3, x, w3
.endm

/* The number of steps that the first iteration skips, for `count` steps of a loop unrolled by UNROLL (a power of two). */
.macro left_out rd, count
    neg \rd, \count
    andi \rd, \rd, UNROLL - 1
.endm
