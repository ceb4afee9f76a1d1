#include "registers.h"

#include <algorithm>

namespace firmline {

namespace {
constexpr uint64_t LOOP = 64;  // most cycles of a waiting loop between two reads

[[noreturn]] void refuse(const std::string &what) { Machine::get().fault(what); }

uint64_t parsed(const std::string &text, const std::string &what)
{
  try {
    size_t used = 0;
    uint64_t found = std::stoull(text, &used, 0);
    if (used == text.size()) return found;
  } catch (const std::exception &) {
  }
  refuse(what + " is a number, not '" + text + "'");
}
}  // namespace

Given::Given(const char *device, const std::vector<std::string> &texts) : device(device)
{
  if (texts.empty()) refuse(this->device + " needs the address of its registers");
  first = parsed(texts[0], this->device + ": base");
  for (size_t i = 1; i < texts.size(); i++) {
    size_t equals = texts[i].find('=');
    if (equals == std::string::npos) refuse(this->device + ": '" + texts[i] + "' is not key=value");
    values.emplace_back(texts[i].substr(0, equals), texts[i].substr(equals + 1));
  }
}

std::string Given::text(const std::string &key) const
{
  for (const auto &[name, value] : values)
    if (name == key) return value;
  return "";
}

uint64_t Given::number(const std::string &key) const
{
  if (text(key).empty()) refuse(device + " needs " + key);
  return parsed(text(key), device + ": " + key);
}

uint64_t Given::number(const std::string &key, uint64_t otherwise) const
{
  return text(key).empty() ? otherwise : number(key);
}

std::vector<Span> Given::regions(const std::string &key) const
{
  std::vector<Span> found;
  std::string all = text(key);
  for (size_t from = 0; from < all.size();) {
    size_t end = std::min(all.find('+', from), all.size());
    std::string one = all.substr(from, end - from);
    size_t colon = std::min(one.find(':'), one.size() - 1);
    uint64_t origin = parsed(one.substr(0, colon), device + ": " + key);
    found.push_back({origin, origin + parsed(one.substr(colon + 1), device + ": " + key)});
    from = end + 1;
  }
  if (found.empty()) refuse(device + " needs " + key + "=ORIGIN:LENGTH");
  return found;
}

void Given::only(const std::vector<std::string> &keys) const
{
  for (const auto &[name, value] : values)
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) refuse(device + " has no parameter " + name);
}

bool Registers::load(reg_t address, size_t length, uint8_t *bytes)
{
  if (length != 4 || address % 4) return false;
  machine.advance();
  uint32_t value = 0;
  if (!read(uint32_t(address), value)) return false;
  std::memcpy(bytes, &value, 4);
  return true;
}

bool Registers::store(reg_t address, size_t length, const uint8_t *bytes)
{
  if (length != 4 || address % 4) return false;
  machine.advance();
  uint32_t value;
  std::memcpy(&value, bytes, 4);
  return write(uint32_t(address), value);
}

void Registers::polled(uint64_t done, bool idle)
{
  const uint64_t now = machine.now();
  if (is_waiting && now - asked <= LOOP) {
    waited += now - asked;
  } else {
    end_wait();
    waits_since = now;
    done_before = done;
  }
  asked = now;
  is_waiting = true;
  // After the end, the program may process the result instead of waiting.
  if (idle || done != done_before) end_wait();
}

void Registers::end_wait()
{
  if (is_waiting && asked > waits_since) machine.log("wait-" + unit, machine.layer, waits_since, asked, 0, "wait");
  is_waiting = false;
}

bool Registers::counter(const std::vector<uint64_t> &counters, uint32_t offset, uint32_t first, uint32_t &value)
{
  const size_t index = (offset - first) / 8;
  if (offset < first || index >= counters.size()) return false;
  value = uint32_t(counters[index] >> (offset % 8 ? 32 : 0));
  return true;
}

}  // namespace firmline
