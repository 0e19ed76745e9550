// AWS's shared files from arbitrary bytes: every text gives sections, or one line that says where it is wrong.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "dynamo/settings.hpp"

namespace {

namespace dynamo = sluice::dynamo;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto file = dynamo::parse_ini(text, "fuzz");
  if (!file) {
    require(file.error().message.starts_with("fuzz:") && file.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const auto& [heading, section] : *file) {
    require(!heading.empty());
    for (const auto& [name, value] : section) {
      require(!name.empty() && value.size() <= text.size());
    }
  }
  const auto half = size / 2;
  const auto profiles = dynamo::Profiles::parse(text, std::string_view(text).substr(half));
  require(profiles.has_value() || !profiles.error().message.empty());
  return 0;
}
