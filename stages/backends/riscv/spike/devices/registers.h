// A device of 32-bit registers, and what Spike hands over when it makes one: `--device=NAME,BASE,key=value,...`.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "abstract_device.h"
#include "machine.h"

namespace firmline {

// Base and parameters of a device.
class Given {
 public:
  Given(const char *device, const std::vector<std::string> &texts);

  uint64_t base() const { return first; }
  // The number behind `key=`. A fault where it is no number, or is missing and has no default.
  uint64_t number(const std::string &key) const;
  uint64_t number(const std::string &key, uint64_t otherwise) const;
  // The text behind `key=`, or "".
  std::string text(const std::string &key) const;
  // The regions behind `key=ORIGIN:LENGTH+ORIGIN:LENGTH`.
  std::vector<Span> regions(const std::string &key) const;
  // A fault where there is a key that is none of these.
  void only(const std::vector<std::string> &keys) const;

 private:
  std::string device;
  uint64_t first;
  std::vector<std::pair<std::string, std::string>> values;
};

class Registers : public abstract_device_t {
 public:
  bool load(reg_t address, size_t length, uint8_t *bytes) override;
  bool store(reg_t address, size_t length, const uint8_t *bytes) override;

 protected:
  explicit Registers(std::string unit) : unit(std::move(unit)), machine(Machine::get()) {}

  // Registers that are not there trap.
  virtual bool read(uint32_t offset, uint32_t &value) = 0;
  virtual bool write(uint32_t offset, uint32_t value) = 0;

  // A program asked whether something is done. It waits from one such question to the next where they follow closely and
  // nothing was done between them: `done` is how many operations are. `idle`: nothing is left to be waited for.
  void polled(uint64_t done, bool idle);

  // The low or high half of counters that lie one after the other from `first` on. False beyond the last.
  static bool counter(const std::vector<uint64_t> &counters, uint32_t offset, uint32_t first, uint32_t &value);

  const std::string unit;
  Machine &machine;
  uint64_t waited = 0;

 private:
  void end_wait();

  uint64_t waits_since = 0, asked = 0, done_before = 0;
  bool is_waiting = false;
};

}  // namespace firmline
