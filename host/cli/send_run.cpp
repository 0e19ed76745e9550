#include "host/cli/send_run.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace sluice::cli {

namespace {

/// What a command line holds without harm.
constexpr std::size_t kMaxRanges = 1000;
/// Of an id, after its run's name. No input has more lines.
constexpr std::size_t kLineDigits = 12;
constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::string_view kPattern = "xxxxxxxx-xxxx-8xxx-8xxx";

bool is_name(std::string_view text) {
  return text.size() == kPattern.size() &&
         std::equal(text.begin(), text.end(), kPattern.begin(), [](char byte, char wanted) {
           return wanted == 'x' ? (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') : byte == wanted;
         });
}

}  // namespace

SendRun SendRun::begin(Random& random) {
  std::string name(kPattern);
  for (char& byte : name) {
    byte = byte == 'x' ? kDigits[random.below(kDigits.size())] : byte;
  }
  LineRanges all;
  all.add_from(1);
  return {std::move(name), std::move(all)};
}

std::optional<SendRun> SendRun::resume(std::string_view token) {
  const auto colon = token.find(':');
  if (colon == std::string_view::npos || !is_name(token.substr(0, colon))) {
    return std::nullopt;
  }
  auto lines = LineRanges::parse(token.substr(colon + 1));
  if (!lines) {
    return std::nullopt;
  }
  return SendRun(std::string(token.substr(0, colon)), std::move(*lines));
}

std::string SendRun::id(std::uint64_t line) const {
  std::array<char, 1 + kLineDigits> digits{'-'};
  for (std::size_t place = kLineDigits; place > 0; --place, line >>= 4U) {
    digits[place] = kDigits[line & 15U];
  }
  std::string id;
  id.reserve(name_.size() + digits.size());
  id.append(name_).append(digits.data(), digits.size());
  return id;
}

std::string SendRun::token(const LineRanges& missing) const { return name_ + ":" + missing.at_most(kMaxRanges).text(); }

}  // namespace sluice::cli
