// The functions that meanings of declared instructions call (instructions/model.py has the same in Python).
// A file defines INT before it includes this: the integer that holds every exact result, int64_t or __int128.
#pragma once

#include <cstdint>

#include "instruction.h"

namespace rvp {
namespace {

using Int = INT;

// The low `count` bits, unsigned and signed.
constexpr Int bits(Int value, int count) { return value & ((Int(1) << count) - 1); }
constexpr Int wrap(Int value, int count) {
  constexpr int width = sizeof(Int) * 8;
  return Int(value << (width - count)) >> (width - count);
}

// Lane `index` of a register, counted from the least significant end.
constexpr Int s8(uint64_t reg, int index) { return int8_t(reg >> (8 * index)); }
constexpr Int u8(uint64_t reg, int index) { return uint8_t(reg >> (8 * index)); }
constexpr Int s16(uint64_t reg, int index) { return int16_t(reg >> (16 * index)); }
constexpr Int u16(uint64_t reg, int index) { return uint16_t(reg >> (16 * index)); }
constexpr Int s32(uint64_t reg, int index) { return int32_t(reg >> (32 * index)); }
constexpr Int u32(uint64_t reg, int index) { return uint32_t(reg >> (32 * index)); }
constexpr Int s64(uint64_t reg, int) { return int64_t(reg); }
constexpr Int u64(uint64_t reg, int) { return Int(reg); }

constexpr Int min(Int x, Int y) { return x < y ? x : y; }
constexpr Int max(Int x, Int y) { return x > y ? x : y; }
constexpr Int abs(Int x) { return x < 0 ? -x : x; }
constexpr Int select(bool condition, Int yes, Int no) { return condition ? yes : no; }

// The nearest value of a range; sets OV when that is another one.
inline Int clip(Int value, Int low, Int high) {
  if (value >= low && value <= high) return value;
  overflowed = true;
  return value < low ? low : high;
}
inline Int sat(Int value, int count) { return clip(value, -(Int(1) << (count - 1)), (Int(1) << (count - 1)) - 1); }
inline Int usat(Int value, int count) { return clip(value, 0, (Int(1) << count) - 1); }

// Shifts: right with halves rounded up; left, or right for a negative amount; the same with rounding.
constexpr Int rshr(Int value, int amount) { return amount == 0 ? value : ((value >> (amount - 1)) + 1) >> 1; }
constexpr int within(int amount) { return amount < int(sizeof(Int) * 8) ? amount : int(sizeof(Int) * 8) - 1; }
constexpr Int shift(Int value, int amount) { return amount >= 0 ? value << amount : value >> within(-amount); }
constexpr Int rshift(Int value, int amount) { return amount >= 0 ? value << amount : rshr(value, within(-amount)); }

// Leading zeros of the low `count` bits, and bits after the sign bit that equal it.
constexpr Int clz(Int value, int count) {
  int zeros = 0;
  while (zeros < count && !(value >> (count - 1 - zeros) & 1)) zeros++;
  return zeros;
}
constexpr Int cls(Int value, int count) { return clz(value < 0 ? ~value : value, count) - 1; }

// A register whose lane i is `f(i)`, cut to the lane, for all lanes of `WIDTH` bits.
template <int WIDTH, int LANE, class Function>
uint64_t lanes(Function f) {
  constexpr uint64_t mask = ~uint64_t(0) >> (64 - LANE);
  uint64_t result = 0;
  for (int i = 0; i < WIDTH / LANE; i++) result |= (uint64_t(f(i)) & mask) << (LANE * i);
  return result;
}

}  // namespace
}  // namespace rvp
