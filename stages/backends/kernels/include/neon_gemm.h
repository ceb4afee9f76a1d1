/* Shared by the A64 matrix kernels: the structure with a product's parameters, also for assembly. */
#pragma once

/* Offsets of the fields of struct neon_gemm; the first four registers are read at once. */
#define NEON_GEMM_X_ROW 64
#define NEON_GEMM_Y_ROW 68
#define NEON_GEMM_DEPTH 72
#define NEON_GEMM_COLUMNS 76
#define NEON_GEMM_MODE 80

#ifndef __ASSEMBLER__
#include <stdint.h>

/* zero_point, low, high  of the output as int8, in every lane of a register
 * flip                   what is xored into each byte of output: 0x80 for uint8, else 0
 * x_row, y_row           bytes from a row of x (y) to the next
 * depth                  bytes of a row of x, padded
 * mode                   how sums are scaled: MODE_ of neon_requantize.h */
struct neon_gemm {
    int16_t zero_point[8];
    int8_t low[16], high[16], flip[16];
    int32_t x_row, y_row, depth, columns, mode;
};
#endif
