// A declared instruction set as an extension of Spike: `spike --isa=rv64imac_xrvp --extlib=librvp.so`.
// Its instructions and name.h are generated from the declaration (instructions/spike_plugin.py).
#include <memory>

#include "disasm.h"
#include "instruction.h"
#include "name.h"

namespace {

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
  const char* name() const override { return EXTENSION_NAME; }

  std::vector<insn_desc_t> get_instructions(const processor_t& processor) override {
    const bool is_64 = processor.get_isa().get_max_xlen() == 64;
    std::vector<insn_desc_t> list;
    for (const auto& i : rvp::all_instructions()) {
      if ((is_64 ? i.rv64 : i.rv32) == nullptr) continue;
      // Spike never calls the functions of the other word size.
      const auto rv32 = i.rv32 ? i.rv32 : i.rv64, rv64 = i.rv64 ? i.rv64 : i.rv32;
      const auto rv32_logged = i.rv32 ? i.rv32_logged : i.rv64_logged, rv64_logged = i.rv64 ? i.rv64_logged : i.rv32_logged;
      list.push_back({i.encoding.match, i.encoding.mask, rv32, rv64, rv32, rv64, rv32_logged, rv64_logged, rv32_logged,
                      rv64_logged});
    }
    return list;
  }

  std::vector<disasm_insn_t*> get_disasms(const processor_t*) override {
    std::vector<disasm_insn_t*> list;
    for (const auto& i : rvp::all_instructions())
      list.push_back(new disasm_insn_t(i.name, i.encoding.match, i.encoding.mask, {&rd, &rs1, &rs2}));
    return list;
  }

  // vxsat exists already where there is a vector unit.
  std::vector<csr_t_p> get_csrs(processor_t& processor) const override {
    if (processor.VU.vxsat) return {};
    return {std::make_shared<masked_csr_t>(&processor, CSR_VXSAT, 1, 0)};
  }
};

#define REGISTER(name, constructor) REGISTER_EXTENSION(name, constructor)  // with EXTENSION replaced
REGISTER(EXTENSION, []() -> extension_t* { return new Extension; })

}  // namespace
