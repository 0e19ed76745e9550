#include "host/cli/views/bulk_progress.hpp"

#include <chrono>
#include <cmath>

#include "base/text/decimal.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::cli {

namespace {

// Before, a rate is that of a single batch.
constexpr Duration kFirstRate = std::chrono::milliseconds(500);

}  // namespace

std::string BulkProgress::text(const operate::BulkCount& count, SteadyTime now) const {
  const std::uint64_t through = count.done + count.failed;
  if (now - began_ < kFirstRate || through == 0) {
    return {};
  }
  const double rate = static_cast<double>(through) / std::chrono::duration<double>(now - began_).count();
  std::string text = ", " + fixed_decimal(rate, rate < 10 ? 1 : 0) + "/s";
  if (expected_ && through < *expected_) {
    const auto left =
        std::chrono::seconds(static_cast<std::int64_t>(std::ceil(static_cast<double>(*expected_ - through) / rate)));
    text += ", " + short_duration(left) + " left";
  }
  return text;
}

}  // namespace sluice::cli
