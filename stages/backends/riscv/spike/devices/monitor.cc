// Registers by which a program informs devices with a separate time.
//
//   0x00 LAYER   the layer that follows, for messages and the log; -1: none
//   0x04 HOLD    1: stops the devices' time during work that is not counted; 0: continues it
//
// `log=FILE` is written with a line for each operation: unit, layer, first cycle, first cycle after it, amount, name.
#include "registers.h"

using namespace firmline;

class monitor_t : public Registers {
 public:
  explicit monitor_t(const Given &given) : Registers("monitor")
  {
    given.only({"log"});
    if (!given.text("log").empty()) machine.log_to(given.text("log"));
  }

  reg_t size() override { return 0x1000; }

 protected:
  bool read(uint32_t offset, uint32_t &value) override
  {
    value = uint32_t(machine.layer);
    return offset == LAYER;
  }

  bool write(uint32_t offset, uint32_t value) override
  {
    if (offset == LAYER)
      machine.enter(int32_t(value));
    else if (offset == HOLD)
      machine.hold(value);
    return offset <= HOLD;
  }

 private:
  enum : uint32_t { LAYER = 0x00, HOLD = 0x04 };
};

static monitor_t *parse(const void *, const sim_t *sim, reg_t *base, const std::vector<std::string> &texts)
{
  Machine::get().attach(sim);
  Given given("monitor", texts);
  *base = given.base();
  return new monitor_t(given);
}
static std::string generate(const sim_t *, const std::vector<std::string> &) { return ""; }
REGISTER_DEVICE(monitor, parse, generate)
