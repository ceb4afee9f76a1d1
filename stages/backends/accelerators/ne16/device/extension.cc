#include "extension.h"

#include <algorithm>

namespace ne16::extension {

namespace {

constexpr int LEFT_SHIFT = 20;

int32_t wrapped(int64_t x) { return int32_t(uint32_t(uint64_t(x))); }

// a * b / 2^31 to the nearest integer, halves up; (-2^31)^2 saturates.
int32_t doubling_high_product(int32_t a, int32_t b)
{
  return int32_t(std::min<int64_t>((int64_t(a) * b + (int64_t(1) << 30)) >> 31, INT32_MAX));
}

// x / 2^exponent to the nearest integer, halves away from zero.
int32_t divided_by_power_of_two(int32_t x, int exponent)
{
  const int64_t half = exponent ? int64_t(1) << (exponent - 1) : 0;
  return int32_t((x + half - (x < 0 && exponent ? 1 : 0)) >> exponent);
}

}  // namespace

int residual_cycles(int channels) { return 3 + 9 * ((channels + 31) / 32) + 2 * ((channels + 3) / 4) + channels; }

int32_t multiplied(int32_t x, int32_t multiplier, int shift, bool rounds_once)
{
  if (rounds_once) return wrapped((int64_t(x) * multiplier + (int64_t(1) << (30 - shift))) >> (31 - shift));
  const int left = std::max(shift, 0), right = std::max(-shift, 0);
  return divided_by_power_of_two(doubling_high_product(wrapped(int64_t(x) << left), multiplier), right);
}

int32_t Block::requantized(int32_t sum, int32_t multiplier, int shift, bool rounds_once) const
{
  const int64_t scaled = int64_t(multiplied(sum, multiplier, shift, rounds_once)) + zero_point;
  return int32_t(std::clamp<int64_t>(scaled, minimum, maximum));
}

int32_t Block::added(int32_t own, int32_t other) const
{
  const auto shifted = [](int64_t x) { return wrapped(x << LEFT_SHIFT); };
  const int64_t first = multiplied(shifted(int64_t(own) - zero_point), own_multiplier, own_shift, false);
  const int64_t second = multiplied(shifted(int64_t(other) - other_zero_point), other_multiplier, other_shift, false);
  const int64_t total = multiplied(wrapped(first + second), total_multiplier, total_shift, false);
  return int32_t(std::clamp<int64_t>(total + total_zero_point, total_minimum, total_maximum));
}

}  // namespace ne16::extension
