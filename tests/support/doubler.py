"""A device for Spike, as a target may bring one."""

DOUBLER = """\
// Twice what was written at 0, plus the parameter `plus`, is read at 4; at 8 how often something was written.
#include "abstract_device.h"
#include "sim.h"
#include <cstring>

class doubler_t : public abstract_device_t {
 public:
  explicit doubler_t(uint32_t plus) : plus(plus) {}

  bool load(reg_t address, size_t length, uint8_t *bytes) override {
    uint32_t value = address == 4 ? 2 * written + plus : address == 8 ? times : 0;
    std::memcpy(bytes, &value, length);
    return true;
  }

  bool store(reg_t address, size_t length, const uint8_t *bytes) override {
    if (address == 0) std::memcpy(&written, bytes, length), times++;
    return true;
  }

  reg_t size() override { return 0x1000; }

 private:
  uint32_t plus, written = 0, times = 0;
};

// Spike hands over what stands behind the name: base and parameters of the target's device.
static doubler_t *parse(const void *, const sim_t *, reg_t *base, const std::vector<std::string> &given) {
  *base = std::stoull(given.at(0), nullptr, 0);
  return new doubler_t(std::stoul(given.at(1).substr(std::strlen("plus="))));
}

static std::string generate(const sim_t *, const std::vector<std::string> &) { return ""; }

REGISTER_DEVICE(doubler, parse, generate)
"""
