#include "dynamo/server_time.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <clocale>
#include <ctime>
#include <string>

namespace sluice::dynamo {
namespace {

Duration between(WallTime wall, SteadyTime steady) { return wall.time_since_epoch() - steady.time_since_epoch(); }

bool is_about_time(const Error& error) {
  constexpr std::array<std::string_view, 6> kNames = {
      "InvalidSignatureException", "SignatureDoesNotMatch", "RequestExpired",
      "RequestTimeTooSkewed",      "RequestInTheFuture",    "AuthFailure"};
  return std::find(kNames.begin(), kNames.end(), error.exception_name) != kNames.end();
}

}  // namespace

ServerTime::Bounds ServerTime::Bounds::at(SteadyTime now) const {
  const auto drift = std::chrono::duration_cast<Duration>((now - learnt_at) * kDrift);
  Bounds wider = *this;
  wider.low -= drift;
  wider.high += drift;
  return wider;
}

void ServerTime::learn(std::optional<WallTime> date, WallTime wall, SteadyTime steady, Duration elapsed) {
  const MutexLock lock(mutex_);
  answered_ = true;
  if (!date) {
    return;
  }
  constexpr Duration kResolution = std::chrono::seconds(1);
  // The server's clock stood between `date` and a second later at some moment between sending and now.
  Bounds seen{*date - wall, *date + kResolution - wall + elapsed, between(wall, steady), steady};
  Duration contradiction{};
  if (bounds_ && !bounds_->jumped(seen.between_clocks)) {
    const Bounds known = bounds_->at(steady);
    contradiction = std::max<Duration>({seen.low - known.high, known.low - seen.high, Duration::zero()});
    if (contradiction == Duration::zero()) {
      seen.low = std::max(seen.low, known.low);
      seen.high = std::min(seen.high, known.high);
    }
  }
  bounds_ = seen;
  contradiction_ = contradiction;
}

std::optional<ClockReading> ServerTime::reading(WallTime wall, SteadyTime steady) const {
  const MutexLock lock(mutex_);
  if (!answered_) {
    return std::nullopt;
  }
  ClockReading reading;
  if (!bounds_) {
    return reading;
  }
  reading.dated = true;
  const Bounds known = bounds_->at(steady);
  reading.moved = known.jumped(between(wall, steady));
  if (known.low > Duration::zero() || known.high < Duration::zero()) {
    reading.skew = (known.low + known.high) / 2;
    reading.doubt = (known.high - known.low) / 2;
  }
  reading.doubt = std::max(reading.doubt, contradiction_);
  if (reading.moved) {
    reading.doubt += std::chrono::abs(between(wall, steady) - known.between_clocks);
  }
  return reading;
}

std::optional<WallTime> parse_http_date(std::string_view text) {
  static const locale_t kNoLanguage = ::newlocale(LC_ALL_MASK, "C", nullptr);
  constexpr std::chrono::year kFirstYear(1970);
  constexpr std::chrono::year kLastYear(2261);  // nanoseconds in 64 bits end soon after
  const std::string date(text);
  std::tm parts{};
  const char* const rest = ::strptime_l(date.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts, kNoLanguage);
  // Not by timegm(), which counts leap seconds where the time zone of the process does.
  const std::chrono::year_month_day day(std::chrono::year(parts.tm_year + 1900),
                                        std::chrono::month(static_cast<unsigned>(parts.tm_mon + 1)),
                                        std::chrono::day(static_cast<unsigned>(parts.tm_mday)));
  if (rest == nullptr || *rest != '\0' || !day.ok() || day.year() < kFirstYear || day.year() > kLastYear ||
      parts.tm_sec > 59) {
    return std::nullopt;
  }
  return WallTime(std::chrono::sys_days(day)) + std::chrono::hours(parts.tm_hour) + std::chrono::minutes(parts.tm_min) +
         std::chrono::seconds(parts.tm_sec);
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
