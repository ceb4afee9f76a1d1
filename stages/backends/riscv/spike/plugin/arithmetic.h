// Arithmetic on one lane, by name. Operands are wide enough to hold every exact result.
#pragma once

#include "instruction.h"
#include "lanes.h"

namespace rvp {

constexpr auto add = [](auto x, auto y) { return x + y; };
constexpr auto subtract = [](auto x, auto y) { return x - y; };
constexpr auto halving_add = [](auto x, auto y) { return (x + y) >> 1; };
constexpr auto halving_subtract = [](auto x, auto y) { return (x - y) >> 1; };
constexpr auto minimum = [](auto x, auto y) { return x < y ? x : y; };
constexpr auto maximum = [](auto x, auto y) { return x > y ? x : y; };

// Comparisons give all ones or zero.
constexpr auto equal = [](auto x, auto y) { return x == y ? -1 : 0; };
constexpr auto less = [](auto x, auto y) { return x < y ? -1 : 0; };
constexpr auto less_or_equal = [](auto x, auto y) { return x <= y ? -1 : 0; };

template <class Lane>
constexpr auto saturating_add = [](auto x, auto y) { return saturate<Lane>(x + y); };
template <class Lane>
constexpr auto saturating_subtract = [](auto x, auto y) { return saturate<Lane>(x - y); };

// The second operand is not used: these have one source.
template <class Lane>
constexpr auto saturating_absolute = [](auto x, auto) { return saturate<Lane>(x < 0 ? -x : x); };
template <class Lane>
constexpr auto leading_zeros = [](int64_t x, auto) {
  int count = 0;
  while (count < bits_of<Lane> && !(x >> (bits_of<Lane> - 1 - count) & 1)) count++;
  return count;
};
// Bits after the sign bit that equal it.
template <class Lane>
constexpr auto redundant_sign_bits = [](int64_t x, auto) {
  int count = 0;
  while (count < bits_of<Lane> - 1 && (x >> (bits_of<Lane> - 2 - count) & 1) == (x < 0)) count++;
  return count;
};

constexpr auto signed_clip = [](int64_t x, int bits) {
  return clip<int64_t>(x, -(int64_t(1) << bits), (int64_t(1) << bits) - 1);
};
constexpr auto unsigned_clip = [](int64_t x, int bits) { return clip<int64_t>(x, 0, (int64_t(1) << bits) - 1); };

constexpr auto left = [](int64_t x, int amount) { return x << amount; };
constexpr auto right = [](int64_t x, int amount) { return x >> amount; };
constexpr auto rounding_right = [](int64_t x, int amount) { return rounding_shift_right(x, amount); };
template <class Lane>
constexpr auto saturating_left = [](int64_t x, int amount) { return saturate<Lane>(x << amount); };
// A negative amount shifts right; the most negative one by one bit less than the lane has.
template <class Lane>
constexpr int right_amount(int amount) {
  return -amount == bits_of<Lane> ? bits_of<Lane> - 1 : -amount;
}
template <class Lane>
constexpr auto left_or_right = [](int64_t x, int amount) {
  return amount < 0 ? x >> right_amount<Lane>(amount) : saturate<Lane>(x << amount);
};
template <class Lane>
constexpr auto left_or_rounding_right = [](int64_t x, int amount) {
  return amount < 0 ? rounding_shift_right(x, right_amount<Lane>(amount)) : saturate<Lane>(x << amount);
};

// Where a shift's amount comes from; `bits` is the width of what is shifted, a power of two.
constexpr auto register_amount = [](const Operands& o, int bits) { return int(o.rs2 & (bits - 1)); };
constexpr auto immediate_amount = [](const Operands& o, int bits) { return int(o.immediate & (bits - 1)); };
constexpr auto signed_register_amount = [](const Operands& o, int bits) {
  int field = o.rs2 & (2 * bits - 1);
  return field < bits ? field : field - 2 * bits;
};

}  // namespace rvp
