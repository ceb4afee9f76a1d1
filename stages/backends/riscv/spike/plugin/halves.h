// The two signed 16-bit halves of a 32-bit lane, and sums and differences of their products.
#pragma once

#include "lanes.h"

namespace rvp {

struct Halves {
  int64_t bottom, top;
  Halves(uint64_t reg, int word) : bottom(lane<int16_t>(reg, 2 * word)), top(lane<int16_t>(reg, 2 * word + 1)) {}
  int64_t at(int index) const { return index ? top : bottom; }
};

enum Order { straight, crossed };          // the half of rs2 that is multiplied by the top half of rs1
enum Sign { plus = 1, minus = -1 };        // what is done to the accumulator
enum Direction { top_minus_bottom = 1, bottom_minus_top = -1 };

// The product of rs1's top half, and of its bottom half.
inline int64_t top_product(Order order, const Halves& a, const Halves& b) {
  return a.top * (order == straight ? b.top : b.bottom);
}
inline int64_t bottom_product(Order order, const Halves& a, const Halves& b) {
  return a.bottom * (order == straight ? b.bottom : b.top);
}
inline int64_t sum_of_two(Order order, const Halves& a, const Halves& b) {
  return top_product(order, a, b) + bottom_product(order, a, b);
}
inline int64_t difference_of_two(Direction direction, Order order, const Halves& a, const Halves& b) {
  return direction * (top_product(order, a, b) - bottom_product(order, a, b));
}

}  // namespace rvp
