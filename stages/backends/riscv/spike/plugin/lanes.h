// A register as a vector of lanes, and the arithmetic that every packed-SIMD instruction is made of.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace rvp {

// Set by saturating arithmetic, collected into vxsat.OV after the instruction.
inline bool overflowed = false;

template <class Lane>
constexpr int bits_of = int(sizeof(Lane) * 8);

// Lane `index` of a register, counted from the least significant end.
template <class Lane>
Lane lane(uint64_t reg, int index) {
  return static_cast<Lane>(reg >> (index * bits_of<Lane>));
}

// `value`, cut to the width of a lane, at the place of lane `index`.
template <class Lane>
uint64_t place(int64_t value, int index) {
  return uint64_t(std::make_unsigned_t<Lane>(value)) << (index * bits_of<Lane>);
}

// A register whose lane i is `f(i)`, for all lanes of a register of XLEN bits.
template <int XLEN, class Lane, class Function>
uint64_t map_lanes(Function f) {
  uint64_t result = 0;
  for (int i = 0; i < XLEN / bits_of<Lane>; i++) result |= place<Lane>(f(i), i);
  return result;
}

// The sum of `f(i)` over the lanes, modulo 2^64.
template <int XLEN, class Lane, class Function>
uint64_t sum_lanes(Function f) {
  uint64_t sum = 0;
  for (int i = 0; i < XLEN / bits_of<Lane>; i++) sum += uint64_t(f(i));
  return sum;
}

template <class Wide>
Wide clip(Wide value, Wide low, Wide high) {
  if (value >= low && value <= high) return value;
  overflowed = true;
  return value < low ? low : high;
}

// The nearest value that Lane can hold; sets OV when that is another one.
template <class Lane, class Wide>
Wide saturate(Wide value) {
  return clip<Wide>(value, std::numeric_limits<Lane>::min(), std::numeric_limits<Lane>::max());
}

// Shift right, adding the most significant bit shifted out: rounds halves up.
template <class Wide>
Wide rounding_shift_right(Wide value, int amount) {
  return amount == 0 ? value : ((value >> (amount - 1)) + 1) >> 1;
}

// The low `bits` bits as a signed number.
inline int64_t sign_extend(uint64_t value, int bits) { return int64_t(value << (64 - bits)) >> (64 - bits); }

}  // namespace rvp
