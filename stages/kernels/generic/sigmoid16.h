/* Sigmoid and tanh of 16-bit fixed-point numbers as gemmlowp computes them; Qm.n has m integer and n fraction bits. */
#ifndef FIRMLINE_GENERIC_SIGMOID16_H
#define FIRMLINE_GENERIC_SIGMOID16_H

#include <stdint.h>

/* In Q0.15, of x in Q3.12. */
int32_t fl_sigmoid16(int32_t x);

/* In Q0.15, of x with 0 to 6 integer bits. */
int32_t fl_tanh16(int32_t x, int32_t integer_bits);

#endif
