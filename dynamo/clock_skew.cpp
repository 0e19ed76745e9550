#include "dynamo/clock_skew.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/timestamp.hpp"

namespace sluice::dynamo {
namespace {

bool is_about_time(const Error& error) {
  constexpr std::array<std::string_view, 6> kNames = {
      "InvalidSignatureException", "SignatureDoesNotMatch", "RequestExpired",
      "RequestTimeTooSkewed",      "RequestInTheFuture",    "AuthFailure"};
  return std::find(kNames.begin(), kNames.end(), error.exception_name) != kNames.end();
}

}  // namespace

std::optional<WallTime> parse_http_date(std::string_view text) {
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  constexpr std::size_t kLength = 29;
  if (text.size() != kLength || !text.ends_with(" GMT")) {
    return std::nullopt;
  }
  const auto* const month = std::find(kMonths.begin(), kMonths.end(), text.substr(8, 3));
  if (month == kMonths.end()) {
    return std::nullopt;
  }
  const std::string number = std::to_string(100 + (month - kMonths.begin()) + 1).substr(1);
  std::string stamp(text.substr(12, 4));
  stamp += "-" + number + "-";
  stamp += text.substr(5, 2);
  stamp += "T";
  stamp += text.substr(17, 8);
  return parse_timestamp(stamp + "Z");
}

bool ClockSkew::learn(const Error& refusal, std::string_view date_header, WallTime local_now, WallTime signed_at) {
  if (!is_about_time(refusal)) {
    return false;
  }
  const auto server = parse_http_date(date_header);
  if (!server || std::chrono::abs(*server - signed_at) < kTolerance) {
    return false;
  }
  offset_.store((*server - local_now).count(), std::memory_order_relaxed);
  return true;
}

}  // namespace sluice::dynamo
