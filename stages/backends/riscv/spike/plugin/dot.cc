// 8-bit dot products and sums of absolute differences.
#include "instruction.h"

namespace rvp {
namespace {

// Each 32-bit lane of rd gains the four products of the bytes of rs1 and rs2 there, modulo 2^32:
//
//   rs1 | a3 a2 a1 a0 |     rd.W += a3*b3 + a2*b2 + a1*b1 + a0*b0
//   rs2 | b3 b2 b1 b0 |
template <class A, class B>
struct DotBytes {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return map_lanes<XLEN, int32_t>([&](int word) {
      int64_t sum = lane<int32_t>(o.rd, word);
      for (int i = 4 * word; i < 4 * word + 4; i++) sum += int64_t(lane<A>(o.rs1, i)) * lane<B>(o.rs2, i);
      return sum;
    });
  }
};

template <bool ACCUMULATE>
struct SumOfAbsoluteDifferences {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return (ACCUMULATE ? o.rd : 0) + sum_lanes<XLEN, uint8_t>([&](int i) {
             int difference = lane<uint8_t>(o.rs1, i) - lane<uint8_t>(o.rs2, i);
             return difference < 0 ? -difference : difference;
           });
  }
};

}  // namespace

std::vector<Instruction> dot_instructions() {
  return {
      instruction<DotBytes<int8_t, int8_t>>("smaqa", r_type(0x64, 0)),
      instruction<DotBytes<int8_t, uint8_t>>("smaqa.su", r_type(0x65, 0)),
      instruction<DotBytes<uint8_t, uint8_t>>("umaqa", r_type(0x66, 0)),
      instruction<SumOfAbsoluteDifferences<false>>("pbsad", r_type(0x7e, 0)),
      instruction<SumOfAbsoluteDifferences<true>>("pbsada", r_type(0x7f, 0)),
  };
}

}  // namespace rvp
