// The extended engine's arithmetic: TFLite's requantization and ADD. stages/backends/accelerators/ne16/extension.py describes it.
#pragma once

#include <cstdint>

namespace ne16::extension {

constexpr int ROUNDING_CYCLES = 2, BLOCK_CYCLES = 12;
constexpr int BLOCK_WORDS = 3, RESIDUAL_BLOCK_WORDS = 13;

int residual_cycles(int channels);

// x * multiplier * 2^(shift - 31), rounded once or twice.
int32_t multiplied(int32_t x, int32_t multiplier, int shift, bool rounds_once);

// A layer's parameter block, in the order of its words.
struct Block {
  int32_t zero_point, minimum, maximum;
  int32_t other_zero_point, own_multiplier, own_shift, other_multiplier, other_shift, total_multiplier, total_shift;
  int32_t total_zero_point, total_minimum, total_maximum;

  int32_t requantized(int32_t sum, int32_t multiplier, int shift, bool rounds_once) const;
  // ADD of the result of `requantized` and a value of the residual tensor.
  int32_t added(int32_t own, int32_t other) const;
};

}  // namespace ne16::extension
