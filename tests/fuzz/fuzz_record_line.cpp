// Lines of an export: whatever is accepted must survive a round trip unchanged.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "host/operate/record_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace operate = sluice::operate;
  const auto record = operate::parse_record_line({reinterpret_cast<const char*>(data), size});
  if (!record) {
    if (record.error().message().empty()) {
      std::abort();
    }
    return 0;
  }
  std::string line;
  operate::append_record_line(line, *record);
  const auto again = operate::parse_record_line(line);
  std::string second;
  if (again) {
    operate::append_record_line(second, *again);
  }
  if (second != line || again->message.body != record->message.body || again->native != record->native) {
    std::abort();
  }
  return 0;
}
