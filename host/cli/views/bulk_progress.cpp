#include "host/cli/views/bulk_progress.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include "host/cli/views/message_text.hpp"

namespace sluice::cli {

namespace {

// Before, a rate is that of a single batch.
constexpr Duration kFirstRate = std::chrono::milliseconds(500);

std::string rate_text(double rate) {
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), rate, std::chars_format::fixed, rate < 10 ? 1 : 0).ptr;
  return {text.data(), end};
}

}  // namespace

std::string BulkProgress::text(const operate::BulkCount& count, SteadyTime now) const {
  const std::uint64_t through = count.done + count.failed;
  if (now - began_ < kFirstRate || through == 0) {
    return {};
  }
  const double rate = static_cast<double>(through) / std::chrono::duration<double>(now - began_).count();
  std::string text = ", " + rate_text(rate) + "/s";
  if (expected_ && through < *expected_) {
    const auto left =
        std::chrono::seconds(static_cast<std::int64_t>(std::ceil(static_cast<double>(*expected_ - through) / rate)));
    text += ", " + short_duration(left) + " left";
  }
  return text;
}

}  // namespace sluice::cli
