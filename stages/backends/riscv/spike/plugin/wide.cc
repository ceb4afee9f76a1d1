
// Instructions with 64-bit operands: one register on RV64, an even/odd pair of registers on RV32. Sums and differences
// of products run over all 32-bit lanes of the sources: two on RV64, one on RV32.
#include "arithmetic.h"
#include "halves.h"
#include "instruction.h"

namespace rvp {
namespace {

template <int A, int B>
struct AddHalfProduct {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return o.rd + sum_lanes<XLEN, int32_t>(
                      [&](int word) { return Halves(o.rs1, word).at(A) * Halves(o.rs2, word).at(B); });
  }
};

template <Sign SIGN, Order ORDER>
struct AccumulateSum {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return o.rd + SIGN * sum_lanes<XLEN, int32_t>([&](int word) {
             return sum_of_two(ORDER, Halves(o.rs1, word), Halves(o.rs2, word));
           });
  }
};

template <Direction DIRECTION, Order ORDER>
struct AccumulateDifference {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return o.rd + sum_lanes<XLEN, int32_t>([&](int word) {
             return difference_of_two(DIRECTION, ORDER, Halves(o.rs1, word), Halves(o.rs2, word));
           });
  }
};

// rd = rs1 + top * bottom of rs2: the accumulator is a source of its own.
struct AddOwnHalves {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return o.rs1 + sum_lanes<XLEN, int32_t>([&](int word) {
             Halves b(o.rs2, word);
             return b.top * b.bottom;
           });
  }
};

// The exact sum of the products of 32-bit lanes, signed or unsigned: two of them need 65 bits.
template <int XLEN, class Lane>
__int128 sum_of_word_products(const Operands& o) {
  __int128 sum = 0;
  for (int word = 0; word < XLEN / 32; word++) sum += __int128(lane<Lane>(o.rs1, word)) * lane<Lane>(o.rs2, word);
  return sum;
}

template <class Lane, Sign SIGN>
struct AccumulateWords {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return o.rd + uint64_t(SIGN * sum_of_word_products<XLEN, Lane>(o));
  }
};

template <class Lane, Sign SIGN>
struct SaturatingAccumulateWords {
  using Wide = std::conditional_t<std::is_signed_v<Lane>, int64_t, uint64_t>;
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return uint64_t(saturate<Wide>(__int128(Wide(o.rd)) + SIGN * sum_of_word_products<XLEN, Lane>(o)));
  }
};

// The product of one lane of rs1 and one of rs2.
template <class Lane, int A, int B>
struct WordProduct {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return uint64_t(__int128(lane<Lane>(o.rs1, A)) * lane<Lane>(o.rs2, B));
  }
};

// Products of the low 32 bits' lanes, each twice as wide as its factors.
template <class Lane, Order ORDER>
struct WideningProducts {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    constexpr int bits = bits_of<Lane>;
    uint64_t result = 0;
    for (int i = 0; i < 32 / bits; i++) {
      int64_t product = int64_t(lane<Lane>(o.rs1, i)) * lane<Lane>(o.rs2, ORDER == straight ? i : i ^ 1);
      result |= (uint64_t(product) & ((uint64_t(1) << 2 * bits) - 1)) << (2 * bits * i);
    }
    return result;
  }
};

// rd = FUNCTION(rs1, rs2) on 64-bit numbers
template <class Number, auto FUNCTION>
struct Whole {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return uint64_t(FUNCTION(__int128(Number(o.rs1)), __int128(Number(o.rs2))));
  }
};

}  // namespace

std::vector<Instruction> wide_instructions() {
  return {
      instruction<AddHalfProduct<0, 0>, Pairs::rd>("smalbb", r_type(0x44, 1)),
      instruction<AddHalfProduct<0, 1>, Pairs::rd>("smalbt", r_type(0x4c, 1)),
      instruction<AddHalfProduct<1, 1>, Pairs::rd>("smaltt", r_type(0x54, 1)),
      instruction<AccumulateSum<plus, straight>, Pairs::rd>("smalda", r_type(0x46, 1)),
      instruction<AccumulateSum<plus, crossed>, Pairs::rd>("smalxda", r_type(0x4e, 1)),
      instruction<AccumulateSum<minus, straight>, Pairs::rd>("smslda", r_type(0x56, 1)),
      instruction<AccumulateSum<minus, crossed>, Pairs::rd>("smslxda", r_type(0x5e, 1)),
      instruction<AccumulateDifference<top_minus_bottom, straight>, Pairs::rd>("smalds", r_type(0x45, 1)),
      instruction<AccumulateDifference<bottom_minus_top, straight>, Pairs::rd>("smaldrs", r_type(0x4d, 1)),
      instruction<AccumulateDifference<top_minus_bottom, crossed>, Pairs::rd>("smalxds", r_type(0x55, 1)),
      instruction<AddOwnHalves, Pairs::rd_rs1>("smal", r_type(0x2f, 1)),
      instruction<AccumulateWords<int32_t, plus>, Pairs::rd>("smar64", r_type(0x42, 1)),
      instruction<AccumulateWords<int32_t, minus>, Pairs::rd>("smsr64", r_type(0x43, 1)),
      instruction<AccumulateWords<uint32_t, plus>, Pairs::rd>("umar64", r_type(0x52, 1)),
      instruction<AccumulateWords<uint32_t, minus>, Pairs::rd>("umsr64", r_type(0x53, 1)),
      instruction<SaturatingAccumulateWords<int32_t, plus>, Pairs::rd>("kmar64", r_type(0x4a, 1)),
      instruction<SaturatingAccumulateWords<int32_t, minus>, Pairs::rd>("kmsr64", r_type(0x4b, 1)),
      instruction<SaturatingAccumulateWords<uint32_t, plus>, Pairs::rd>("ukmar64", r_type(0x5a, 1)),
      instruction<SaturatingAccumulateWords<uint32_t, minus>, Pairs::rd>("ukmsr64", r_type(0x5b, 1)),
      instruction<WordProduct<int32_t, 0, 0>, Pairs::rd>("mulsr64", r_type(0x70, 1)),
      instruction<WordProduct<uint32_t, 0, 0>, Pairs::rd>("mulr64", r_type(0x78, 1)),
      instruction<WideningProducts<int8_t, straight>, Pairs::rd>("smul8", r_type(0x54, 0)),
      instruction<WideningProducts<int8_t, crossed>, Pairs::rd>("smulx8", r_type(0x55, 0)),
      instruction<WideningProducts<uint8_t, straight>, Pairs::rd>("umul8", r_type(0x5c, 0)),
      instruction<WideningProducts<uint8_t, crossed>, Pairs::rd>("umulx8", r_type(0x5d, 0)),
      instruction<WideningProducts<int16_t, straight>, Pairs::rd>("smul16", r_type(0x50, 0)),
      instruction<WideningProducts<int16_t, crossed>, Pairs::rd>("smulx16", r_type(0x51, 0)),
      instruction<WideningProducts<uint16_t, straight>, Pairs::rd>("umul16", r_type(0x58, 0)),
      instruction<WideningProducts<uint16_t, crossed>, Pairs::rd>("umulx16", r_type(0x59, 0)),
      instruction<Whole<int64_t, add>, Pairs::all>("add64", r_type(0x60, 1), Xlen::rv32),
      instruction<Whole<int64_t, subtract>, Pairs::all>("sub64", r_type(0x61, 1), Xlen::rv32),
      instruction<Whole<int64_t, halving_add>, Pairs::all>("radd64", r_type(0x40, 1)),
      instruction<Whole<uint64_t, halving_add>, Pairs::all>("uradd64", r_type(0x50, 1)),
      instruction<Whole<int64_t, halving_subtract>, Pairs::all>("rsub64", r_type(0x41, 1)),
      instruction<Whole<uint64_t, halving_subtract>, Pairs::all>("ursub64", r_type(0x51, 1)),
      instruction<Whole<int64_t, saturating_add<int64_t>>, Pairs::all>("kadd64", r_type(0x48, 1)),
      instruction<Whole<uint64_t, saturating_add<uint64_t>>, Pairs::all>("ukadd64", r_type(0x58, 1)),
      instruction<Whole<int64_t, saturating_subtract<int64_t>>, Pairs::all>("ksub64", r_type(0x49, 1)),
      instruction<Whole<uint64_t, saturating_subtract<uint64_t>>, Pairs::all>("uksub64", r_type(0x59, 1)),
      instruction<WordProduct<int32_t, 0, 1>>("smbt32", r_type(0x0c, 2), Xlen::rv64),
      instruction<WordProduct<int32_t, 1, 1>>("smtt32", r_type(0x14, 2), Xlen::rv64),
  };
}

}  // namespace rvp
