
// Elementwise arithmetic on lanes of 8, 16 and 32 bits. The lane type decides how lanes are read (signed or unsigned)
// and how much of the result is kept.
#include "arithmetic.h"
#include "instruction.h"

namespace rvp {
namespace {

// rd[i] = FUNCTION(rs1[i], rs2[i])
template <class Lane, auto FUNCTION>
struct Elementwise {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return map_lanes<XLEN, Lane>(
        [&](int i) { return FUNCTION(int64_t(lane<Lane>(o.rs1, i)), int64_t(lane<Lane>(o.rs2, i))); });
  }
};

// rd[i] = FUNCTION(rs1[i], immediate)
template <class Lane, auto FUNCTION>
struct WithImmediate {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    int immediate = o.immediate & (bits_of<Lane> - 1);
    return map_lanes<XLEN, Lane>([&](int i) { return FUNCTION(int64_t(lane<Lane>(o.rs1, i)), immediate); });
  }
};

template <class Lane, auto FUNCTION>
Instruction elementwise(const char* name, Encoding encoding, Xlen xlen = Xlen::both) {
  return instruction<Elementwise<Lane, FUNCTION>>(name, encoding, xlen);
}

template <class Lane, auto FUNCTION>
Instruction immediate(const char* name, Encoding encoding, Xlen xlen = Xlen::both) {
  return instruction<WithImmediate<Lane, FUNCTION>>(name, encoding, xlen);
}

}  // namespace

std::vector<Instruction> simd_instructions() {
  return {
      elementwise<uint8_t, add>("add8", r_type(0x24, 0)),
      elementwise<uint8_t, subtract>("sub8", r_type(0x25, 0)),
      elementwise<int8_t, halving_add>("radd8", r_type(0x04, 0)),
      elementwise<uint8_t, halving_add>("uradd8", r_type(0x14, 0)),
      elementwise<int8_t, halving_subtract>("rsub8", r_type(0x05, 0)),
      elementwise<uint8_t, halving_subtract>("ursub8", r_type(0x15, 0)),
      elementwise<int8_t, saturating_add<int8_t>>("kadd8", r_type(0x0c, 0)),
      elementwise<uint8_t, saturating_add<uint8_t>>("ukadd8", r_type(0x1c, 0)),
      elementwise<int8_t, saturating_subtract<int8_t>>("ksub8", r_type(0x0d, 0)),
      elementwise<uint8_t, saturating_subtract<uint8_t>>("uksub8", r_type(0x1d, 0)),
      elementwise<int8_t, minimum>("smin8", r_type(0x44, 0)),
      elementwise<uint8_t, minimum>("umin8", r_type(0x4c, 0)),
      elementwise<int8_t, maximum>("smax8", r_type(0x45, 0)),
      elementwise<uint8_t, maximum>("umax8", r_type(0x4d, 0)),
      elementwise<int8_t, equal>("cmpeq8", r_type(0x27, 0)),
      elementwise<int8_t, less>("scmplt8", r_type(0x07, 0)),
      elementwise<uint8_t, less>("ucmplt8", r_type(0x17, 0)),
      elementwise<int8_t, less_or_equal>("scmple8", r_type(0x0f, 0)),
      elementwise<uint8_t, less_or_equal>("ucmple8", r_type(0x1f, 0)),
      elementwise<int8_t, saturating_absolute<int8_t>>("kabs8", unary(0x56, 0x10)),
      elementwise<uint8_t, leading_zeros<uint8_t>>("clz8", unary(0x57, 0x01)),
      elementwise<int8_t, redundant_sign_bits<int8_t>>("clrs8", unary(0x57, 0x00)),
      immediate<int8_t, signed_clip>("sclip8", imm(3, 0x118, 0)),
      immediate<int8_t, unsigned_clip>("uclip8", imm(3, 0x11a, 0)),
      elementwise<uint16_t, add>("add16", r_type(0x20, 0)),
      elementwise<uint16_t, subtract>("sub16", r_type(0x21, 0)),
      elementwise<int16_t, halving_add>("radd16", r_type(0x00, 0)),
      elementwise<uint16_t, halving_add>("uradd16", r_type(0x10, 0)),
      elementwise<int16_t, halving_subtract>("rsub16", r_type(0x01, 0)),
      elementwise<uint16_t, halving_subtract>("ursub16", r_type(0x11, 0)),
      elementwise<int16_t, saturating_add<int16_t>>("kadd16", r_type(0x08, 0)),
      elementwise<uint16_t, saturating_add<uint16_t>>("ukadd16", r_type(0x18, 0)),
      elementwise<int16_t, saturating_subtract<int16_t>>("ksub16", r_type(0x09, 0)),
      elementwise<uint16_t, saturating_subtract<uint16_t>>("uksub16", r_type(0x19, 0)),
      elementwise<int16_t, minimum>("smin16", r_type(0x40, 0)),
      elementwise<uint16_t, minimum>("umin16", r_type(0x48, 0)),
      elementwise<int16_t, maximum>("smax16", r_type(0x41, 0)),
      elementwise<uint16_t, maximum>("umax16", r_type(0x49, 0)),
      elementwise<int16_t, equal>("cmpeq16", r_type(0x26, 0)),
      elementwise<int16_t, less>("scmplt16", r_type(0x06, 0)),
      elementwise<uint16_t, less>("ucmplt16", r_type(0x16, 0)),
      elementwise<int16_t, less_or_equal>("scmple16", r_type(0x0e, 0)),
      elementwise<uint16_t, less_or_equal>("ucmple16", r_type(0x1e, 0)),
      elementwise<int16_t, saturating_absolute<int16_t>>("kabs16", unary(0x56, 0x11)),
      elementwise<uint16_t, leading_zeros<uint16_t>>("clz16", unary(0x57, 0x09)),
      elementwise<int16_t, redundant_sign_bits<int16_t>>("clrs16", unary(0x57, 0x08)),
      immediate<int16_t, signed_clip>("sclip16", imm(4, 0x84, 0)),
      immediate<int16_t, unsigned_clip>("uclip16", imm(4, 0x85, 0)),
      elementwise<uint32_t, add>("add32", r_type(0x20, 2), Xlen::rv64),
      elementwise<uint32_t, subtract>("sub32", r_type(0x21, 2), Xlen::rv64),
      elementwise<int32_t, halving_add>("radd32", r_type(0x00, 2), Xlen::rv64),
      elementwise<uint32_t, halving_add>("uradd32", r_type(0x10, 2), Xlen::rv64),
      elementwise<int32_t, halving_subtract>("rsub32", r_type(0x01, 2), Xlen::rv64),
      elementwise<uint32_t, halving_subtract>("ursub32", r_type(0x11, 2), Xlen::rv64),
      elementwise<int32_t, saturating_add<int32_t>>("kadd32", r_type(0x08, 2), Xlen::rv64),
      elementwise<uint32_t, saturating_add<uint32_t>>("ukadd32", r_type(0x18, 2), Xlen::rv64),
      elementwise<int32_t, saturating_subtract<int32_t>>("ksub32", r_type(0x09, 2), Xlen::rv64),
      elementwise<uint32_t, saturating_subtract<uint32_t>>("uksub32", r_type(0x19, 2), Xlen::rv64),
      elementwise<int32_t, minimum>("smin32", r_type(0x48, 2), Xlen::rv64),
      elementwise<uint32_t, minimum>("umin32", r_type(0x50, 2), Xlen::rv64),
      elementwise<int32_t, maximum>("smax32", r_type(0x49, 2), Xlen::rv64),
      elementwise<uint32_t, maximum>("umax32", r_type(0x51, 2), Xlen::rv64),
      elementwise<int32_t, saturating_absolute<int32_t>>("kabs32", unary(0x56, 0x12), Xlen::rv64),
      elementwise<uint32_t, leading_zeros<uint32_t>>("clz32", unary(0x57, 0x19)),
      elementwise<int32_t, redundant_sign_bits<int32_t>>("clrs32", unary(0x57, 0x18)),
      immediate<int32_t, signed_clip>("sclip32", imm(5, 0x72, 0)),
      immediate<int32_t, unsigned_clip>("uclip32", imm(5, 0x7a, 0)),
  };
}

}  // namespace rvp
