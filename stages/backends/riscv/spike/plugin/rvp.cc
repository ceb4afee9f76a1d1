// The packed-SIMD extension of RISC-V, draft 0.9.11, as an extension of Spike:
//   spike --isa=rv64imac_xrvp --extlib=librvp.so
//
// Semantics: "RISC-V P Extension Proposal", version 0.9.11-draft-20211209. Encodings: riscv-opcodes, files
// unratified/{rv_zpn,rv64_zpn,rv32_zpn,rv_zpsf,rv32_zpsf,rv_zbpbo} at commit be98b702. Left out, so that they trap: the
// cross and straight additions (*CRAS*, *CRSA*, *STAS*, *STSA*), the Q15 products with a scalar result (KDM*, KHMBB...),
// the sums of 32x32-bit products that saturate (KMDA32...) and, of Zbpbo, CLZ, FSR and REV.
#include <memory>

#include "disasm.h"
#include "instruction.h"

namespace {

std::vector<rvp::Instruction> all_instructions() {
  std::vector<rvp::Instruction> all;
  for (auto group : {rvp::simd_instructions(), rvp::shift_instructions(), rvp::dot_instructions(),
                     rvp::halfword_instructions(), rvp::word_instructions(), rvp::wide_instructions(),
                     rvp::pack_instructions(), rvp::scalar_instructions()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

struct RegisterName : arg_t {
  enum Field { rd, rs1, rs2 } field;
  explicit RegisterName(Field field) : field(field) {}
  std::string to_string(insn_t insn) const override {
    return xpr_name[field == rd ? insn.rd() : field == rs1 ? insn.rs1() : insn.rs2()];
  }
};
const RegisterName rd(RegisterName::rd), rs1(RegisterName::rs1), rs2(RegisterName::rs2);

class Extension : public extension_t {
 public:
  const char* name() const override { return "rvp"; }

  std::vector<insn_desc_t> get_instructions(const processor_t& processor) override {
    auto absent = processor.get_isa().get_max_xlen() == 64 ? rvp::Xlen::rv32 : rvp::Xlen::rv64;
    std::vector<insn_desc_t> list;
    for (const auto& i : all_instructions())
      if (i.xlen != absent)
        list.push_back({i.encoding.match, i.encoding.mask, i.rv32, i.rv64, i.rv32, i.rv64, i.rv32_logged, i.rv64_logged,
                        i.rv32_logged, i.rv64_logged});
    return list;
  }

  std::vector<disasm_insn_t*> get_disasms(const processor_t*) override {
    std::vector<disasm_insn_t*> list;
    for (const auto& i : all_instructions())
      list.push_back(new disasm_insn_t(i.name, i.encoding.match, i.encoding.mask, {&rd, &rs1, &rs2}));
    return list;
  }

  // vxsat exists already where there is a vector unit.
  std::vector<csr_t_p> get_csrs(processor_t& processor) const override {
    if (processor.VU.vxsat) return {};
    return {std::make_shared<masked_csr_t>(&processor, CSR_VXSAT, 1, 0)};
  }
};

REGISTER_EXTENSION(rvp, []() -> extension_t* { return new Extension; })

}  // namespace
