
// Arithmetic on one number in a register: the low halfword or word, sign-extended, or the whole register.
#include "arithmetic.h"
#include "halves.h"
#include "instruction.h"

namespace rvp {
namespace {

// rd = FUNCTION(low lane of rs1, low lane of rs2), cut to the lane and sign-extended even when the lane is unsigned
template <class Lane, auto FUNCTION>
struct LowLane {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    int64_t result = FUNCTION(int64_t(lane<Lane>(o.rs1, 0)), int64_t(lane<Lane>(o.rs2, 0)));
    return sign_extend(result, bits_of<Lane>);
  }
};

template <class Lane, auto FUNCTION>
Instruction low_lane(const char* name, Encoding encoding) {
  return instruction<LowLane<Lane, FUNCTION>>(name, encoding);
}

template <auto AMOUNT, auto FUNCTION>
struct ShiftLowWord {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return sign_extend(FUNCTION(int64_t(lane<int32_t>(o.rs1, 0)), AMOUNT(o, 32)), 32);
  }
};

template <int XLEN>
__int128 whole(uint64_t reg) {
  return sign_extend(reg, XLEN);
}

template <auto AMOUNT>
struct RoundingShift {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return uint64_t(rounding_shift_right(whole<XLEN>(o.rs1), AMOUNT(o, XLEN)));
  }
};

struct Average {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return uint64_t((whole<XLEN>(o.rs1) + whole<XLEN>(o.rs2) + 1) >> 1);
  }
};

// rd = rd plus or minus the low word of rs1 * rs2
template <Sign SIGN>
struct AccumulateLowProduct {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    uint32_t product = lane<uint32_t>(o.rs1, 0) * lane<uint32_t>(o.rs2, 0);
    return sign_extend(o.rd + uint64_t(SIGN) * product, 32);
  }
};

// The larger or the smaller of two registers as signed numbers: of the bit-manipulation instructions that the draft
// takes in.
template <bool LARGER>
struct Choose {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return (whole<XLEN>(o.rs1) > whole<XLEN>(o.rs2)) == LARGER ? o.rs1 : o.rs2;
  }
};

}  // namespace

std::vector<Instruction> scalar_instructions() {
  return {
      low_lane<int32_t, saturating_add<int32_t>>("kaddw", r_type(0x00, 1)),
      low_lane<uint32_t, saturating_add<uint32_t>>("ukaddw", r_type(0x08, 1)),
      low_lane<int32_t, saturating_subtract<int32_t>>("ksubw", r_type(0x01, 1)),
      low_lane<uint32_t, saturating_subtract<uint32_t>>("uksubw", r_type(0x09, 1)),
      low_lane<int32_t, halving_add>("raddw", r_type(0x10, 1)),
      low_lane<uint32_t, halving_add>("uraddw", r_type(0x18, 1)),
      low_lane<int32_t, halving_subtract>("rsubw", r_type(0x11, 1)),
      low_lane<uint32_t, halving_subtract>("ursubw", r_type(0x19, 1)),
      low_lane<int16_t, saturating_add<int16_t>>("kaddh", r_type(0x02, 1)),
      low_lane<uint16_t, saturating_add<uint16_t>>("ukaddh", r_type(0x0a, 1)),
      low_lane<int16_t, saturating_subtract<int16_t>>("ksubh", r_type(0x03, 1)),
      low_lane<uint16_t, saturating_subtract<uint16_t>>("uksubh", r_type(0x0b, 1)),
      low_lane<int32_t, saturating_absolute<int32_t>>("kabsw", unary(0x56, 0x14)),
      instruction<ShiftLowWord<register_amount, saturating_left<int32_t>>>("ksllw", r_type(0x13, 1)),
      instruction<ShiftLowWord<immediate_amount, saturating_left<int32_t>>>("kslliw", imm(5, 0x1b, 1)),
      instruction<ShiftLowWord<signed_register_amount, left_or_right<int32_t>>>("kslraw", r_type(0x37, 1)),
      instruction<ShiftLowWord<signed_register_amount, left_or_rounding_right<int32_t>>>("kslraw.u", r_type(0x3f, 1)),
      instruction<ShiftLowWord<immediate_amount, rounding_right>>("sraiw.u", imm(5, 0x1a, 1), Xlen::rv64),
      instruction<RoundingShift<register_amount>>("sra.u", r_type(0x12, 1)),
      instruction<RoundingShift<immediate_amount>>("srai.u", imm(6, 0x35, 1), Xlen::rv64),
      instruction<RoundingShift<immediate_amount>>("srai.u", imm(5, 0x6a, 1), Xlen::rv32),
      instruction<Average>("ave", r_type(0x70, 0)),
      instruction<AccumulateLowProduct<plus>>("maddr32", r_type(0x62, 1)),
      instruction<AccumulateLowProduct<minus>>("msubr32", r_type(0x63, 1)),
      instruction<Choose<true>>("max", r_type(0x05, 6, OP)),
      instruction<Choose<false>>("min", r_type(0x05, 4, OP)),
  };
}

}  // namespace rvp
