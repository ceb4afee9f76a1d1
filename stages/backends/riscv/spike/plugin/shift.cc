
// Shifts of lanes of 8, 16 and 32 bits: by the low bits of rs2, by an immediate, or by a signed amount in rs2.
#include "arithmetic.h"
#include "instruction.h"

namespace rvp {
namespace {

// rd[i] = FUNCTION(rs1[i], amount), the same amount for all lanes
template <class Lane, auto AMOUNT, auto FUNCTION>
struct Shift {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    int amount = AMOUNT(o, bits_of<Lane>);
    return map_lanes<XLEN, Lane>([&](int i) { return FUNCTION(int64_t(lane<Lane>(o.rs1, i)), amount); });
  }
};

template <class Lane, auto FUNCTION>
Instruction by_register(const char* name, Encoding encoding, Xlen xlen = Xlen::both) {
  return instruction<Shift<Lane, register_amount, FUNCTION>>(name, encoding, xlen);
}

template <class Lane, auto FUNCTION>
Instruction by_immediate(const char* name, Encoding encoding, Xlen xlen = Xlen::both) {
  return instruction<Shift<Lane, immediate_amount, FUNCTION>>(name, encoding, xlen);
}

template <class Lane, auto FUNCTION>
Instruction by_signed_register(const char* name, Encoding encoding, Xlen xlen = Xlen::both) {
  return instruction<Shift<Lane, signed_register_amount, FUNCTION>>(name, encoding, xlen);
}

}  // namespace

std::vector<Instruction> shift_instructions() {
  return {
      by_register<uint8_t, left>("sll8", r_type(0x2e, 0)),
      by_immediate<uint8_t, left>("slli8", imm(3, 0xf8, 0)),
      by_register<uint8_t, right>("srl8", r_type(0x2d, 0)),
      by_immediate<uint8_t, right>("srli8", imm(3, 0xf4, 0)),
      by_register<uint8_t, rounding_right>("srl8.u", r_type(0x35, 0)),
      by_immediate<uint8_t, rounding_right>("srli8.u", imm(3, 0xf5, 0)),
      by_register<int8_t, right>("sra8", r_type(0x2c, 0)),
      by_immediate<int8_t, right>("srai8", imm(3, 0xf0, 0)),
      by_register<int8_t, rounding_right>("sra8.u", r_type(0x34, 0)),
      by_immediate<int8_t, rounding_right>("srai8.u", imm(3, 0xf1, 0)),
      by_register<int8_t, saturating_left<int8_t>>("ksll8", r_type(0x36, 0)),
      by_immediate<int8_t, saturating_left<int8_t>>("kslli8", imm(3, 0xf9, 0)),
      by_signed_register<int8_t, left_or_right<int8_t>>("kslra8", r_type(0x2f, 0)),
      by_signed_register<int8_t, left_or_rounding_right<int8_t>>("kslra8.u", r_type(0x37, 0)),
      by_register<uint16_t, left>("sll16", r_type(0x2a, 0)),
      by_immediate<uint16_t, left>("slli16", imm(4, 0x74, 0)),
      by_register<uint16_t, right>("srl16", r_type(0x29, 0)),
      by_immediate<uint16_t, right>("srli16", imm(4, 0x72, 0)),
      by_register<uint16_t, rounding_right>("srl16.u", r_type(0x31, 0)),
      by_immediate<uint16_t, rounding_right>("srli16.u", imm(4, 0x73, 0)),
      by_register<int16_t, right>("sra16", r_type(0x28, 0)),
      by_immediate<int16_t, right>("srai16", imm(4, 0x70, 0)),
      by_register<int16_t, rounding_right>("sra16.u", r_type(0x30, 0)),
      by_immediate<int16_t, rounding_right>("srai16.u", imm(4, 0x71, 0)),
      by_register<int16_t, saturating_left<int16_t>>("ksll16", r_type(0x32, 0)),
      by_immediate<int16_t, saturating_left<int16_t>>("kslli16", imm(4, 0x75, 0)),
      by_signed_register<int16_t, left_or_right<int16_t>>("kslra16", r_type(0x2b, 0)),
      by_signed_register<int16_t, left_or_rounding_right<int16_t>>("kslra16.u", r_type(0x33, 0)),
      by_register<uint32_t, left>("sll32", r_type(0x2a, 2), Xlen::rv64),
      by_immediate<uint32_t, left>("slli32", imm(5, 0x3a, 2), Xlen::rv64),
      by_register<uint32_t, right>("srl32", r_type(0x29, 2), Xlen::rv64),
      by_immediate<uint32_t, right>("srli32", imm(5, 0x39, 2), Xlen::rv64),
      by_register<uint32_t, rounding_right>("srl32.u", r_type(0x31, 2), Xlen::rv64),
      by_immediate<uint32_t, rounding_right>("srli32.u", imm(5, 0x41, 2), Xlen::rv64),
      by_register<int32_t, right>("sra32", r_type(0x28, 2), Xlen::rv64),
      by_immediate<int32_t, right>("srai32", imm(5, 0x38, 2), Xlen::rv64),
      by_register<int32_t, rounding_right>("sra32.u", r_type(0x30, 2), Xlen::rv64),
      by_immediate<int32_t, rounding_right>("srai32.u", imm(5, 0x40, 2), Xlen::rv64),
      by_register<int32_t, saturating_left<int32_t>>("ksll32", r_type(0x32, 2), Xlen::rv64),
      by_immediate<int32_t, saturating_left<int32_t>>("kslli32", imm(5, 0x42, 2), Xlen::rv64),
      by_signed_register<int32_t, left_or_right<int32_t>>("kslra32", r_type(0x2b, 2), Xlen::rv64),
      by_signed_register<int32_t, left_or_rounding_right<int32_t>>("kslra32.u", r_type(0x33, 2), Xlen::rv64),
  };
}

}  // namespace rvp
