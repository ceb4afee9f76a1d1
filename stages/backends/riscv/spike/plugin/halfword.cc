
// Multiplication of 16-bit halves of each 32-bit lane, with 32-bit results:
//
//   rs1 | top a1 | bottom a0 |      straight: a1*b1 and a0*b0      crossed: a1*b0 and a0*b1
//   rs2 | top b1 | bottom b0 |
#include "halves.h"
#include "instruction.h"

namespace rvp {
namespace {

// rd.W = FUNCTION(halves of rs1, halves of rs2, rd.W)
template <auto FUNCTION>
struct OnHalves {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return map_lanes<XLEN, int32_t>(
        [&](int word) { return FUNCTION(Halves(o.rs1, word), Halves(o.rs2, word), lane<int32_t>(o.rd, word)); });
  }
};

template <auto FUNCTION>
Instruction halves(const char* name, Encoding encoding, Xlen xlen = Xlen::both) {
  return instruction<OnHalves<FUNCTION>>(name, encoding, xlen);
}

template <int A, int B>
constexpr auto product = [](const Halves& a, const Halves& b, int64_t) { return a.at(A) * b.at(B); };

template <int A, int B>
constexpr auto add_product = [](const Halves& a, const Halves& b, int64_t accumulator) {
  return saturate<int32_t>(accumulator + a.at(A) * b.at(B));
};

// Overflows only when all four halves are -32768.
template <Order ORDER>
constexpr auto sum = [](const Halves& a, const Halves& b, int64_t) {
  return saturate<int32_t>(sum_of_two(ORDER, a, b));
};

template <Direction DIRECTION, Order ORDER>
constexpr auto difference = [](const Halves& a, const Halves& b, int64_t) {
  return difference_of_two(DIRECTION, ORDER, a, b);
};

template <Sign SIGN, Order ORDER>
constexpr auto accumulate_sum = [](const Halves& a, const Halves& b, int64_t accumulator) {
  return saturate<int32_t>(accumulator + SIGN * sum_of_two(ORDER, a, b));
};

template <Direction DIRECTION, Order ORDER>
constexpr auto accumulate_difference = [](const Halves& a, const Halves& b, int64_t accumulator) {
  return saturate<int32_t>(accumulator + difference_of_two(DIRECTION, ORDER, a, b));
};

// Q7 or Q15 products: the full product without its lowest fraction bits; -1 * -1 saturates.
template <class Lane, Order ORDER>
struct FractionalProducts {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return map_lanes<XLEN, Lane>([&](int i) {
      int64_t product = int64_t(lane<Lane>(o.rs1, i)) * lane<Lane>(o.rs2, ORDER == straight ? i : i ^ 1);
      return saturate<Lane>(product >> (bits_of<Lane> - 1));
    });
  }
};

template <class Lane, Order ORDER>
Instruction fractional(const char* name, Encoding encoding) {
  return instruction<FractionalProducts<Lane, ORDER>>(name, encoding);
}

}  // namespace

std::vector<Instruction> halfword_instructions() {
  return {
      halves<product<0, 0>>("smbb16", r_type(0x04, 1)),
      halves<product<0, 1>>("smbt16", r_type(0x0c, 1)),
      halves<product<1, 1>>("smtt16", r_type(0x14, 1)),
      halves<add_product<0, 0>>("kmabb", r_type(0x2d, 1)),
      halves<add_product<0, 1>>("kmabt", r_type(0x35, 1)),
      halves<add_product<1, 1>>("kmatt", r_type(0x3d, 1)),
      halves<sum<straight>>("kmda", r_type(0x1c, 1)),
      halves<sum<crossed>>("kmxda", r_type(0x1d, 1)),
      halves<difference<top_minus_bottom, straight>>("smds", r_type(0x2c, 1)),
      halves<difference<bottom_minus_top, straight>>("smdrs", r_type(0x34, 1)),
      halves<difference<top_minus_bottom, crossed>>("smxds", r_type(0x3c, 1)),
      halves<accumulate_sum<plus, straight>>("kmada", r_type(0x24, 1)),
      halves<accumulate_sum<plus, crossed>>("kmaxda", r_type(0x25, 1)),
      halves<accumulate_sum<minus, straight>>("kmsda", r_type(0x26, 1)),
      halves<accumulate_sum<minus, crossed>>("kmsxda", r_type(0x27, 1)),
      halves<accumulate_difference<top_minus_bottom, straight>>("kmads", r_type(0x2e, 1)),
      halves<accumulate_difference<bottom_minus_top, straight>>("kmadrs", r_type(0x36, 1)),
      halves<accumulate_difference<top_minus_bottom, crossed>>("kmaxds", r_type(0x3e, 1)),
      fractional<int8_t, straight>("khm8", r_type(0x47, 0)),
      fractional<int8_t, crossed>("khmx8", r_type(0x4f, 0)),
      fractional<int16_t, straight>("khm16", r_type(0x43, 0)),
      fractional<int16_t, crossed>("khmx16", r_type(0x4b, 0)),
  };
}

}  // namespace rvp
