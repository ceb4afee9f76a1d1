// A device of 32-bit registers, and its parameters from Spike's command line: `--device=NAME,BASE,key=value,...`.
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
  // The number after `key=`. A fault if it is not a number, or if it is missing without a default.
  uint64_t number(const std::string &key) const;
  uint64_t number(const std::string &key, uint64_t otherwise) const;
  // The text after `key=`, or "".
  std::string text(const std::string &key) const;
  // The regions after `key=`: ORIGIN:LENGTH+ORIGIN:LENGTH.
  std::vector<Span> regions(const std::string &key) const;
  // A fault if there is any other key.
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

  // Accesses to missing registers trap.
  virtual bool read(uint32_t offset, uint32_t &value) = 0;
  virtual bool write(uint32_t offset, uint32_t value) = 0;

  // The program has read whether an operation is done. It waits between two such reads if the second follows soon and no
  // operation ended between them. `done`: number of ended operations. `idle`: no operation is left.
  void polled(uint64_t done, bool idle);

  // The low or high half of one of the counters from `first` on. False after the last.
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
