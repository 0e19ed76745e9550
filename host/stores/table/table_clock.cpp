#include "host/stores/table/table_clock.hpp"

#include <utility>

#include "base/guard.hpp"
#include "base/timestamp.hpp"

namespace sluice::queue::table {

namespace {

// Nobody has a message of this id: it is only asked for when the time is. A table whose key is another one refuses,
// which tells the time as well.
constexpr std::string_view kKey = "id";
constexpr std::string_view kNobody = "sluice-what-time-is-it";

std::string to_the_second(WallTime time) { return format_timestamp(time).substr(0, 19) + 'Z'; }

std::string in_seconds(Duration span) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(std::chrono::abs(span)).count()) + " s";
}

}  // namespace

bool pause(const Clock& clock, Duration span, Deadline deadline, const std::stop_token& stop) {
  Mutex mutex;
  Condition never_signalled;
  const MutexLock lock(mutex);
  const Deadline end = deadline.earlier(Deadline::after(clock, span));
  never_signalled.wait_until(mutex, stop, clock.machine_time(end.time()), [] { return false; });
  return !stop.stop_requested();
}

WallTime TableClock::wall_now() const {
  const WallTime machine = machine_.wall_now();
  const auto reading = client_.clock_reading();
  return reading && SLUICE_GUARD(clock_skew) ? machine + reading->skew : machine;
}

void TableClock::ask(const QueueTable& place, Deadline deadline) {
  const dynamo::Item key{{std::string(kKey), std::string(kNobody)}};
  // Whatever the answer is, even a refusal, it tells the time. Where none comes, the write will not fare better.
  static_cast<void>(client_.batch_get(place.table, std::span(&key, 1), deadline));
}

void TableClock::warn_once(const dynamo::ClockReading& reading) {
  if (!warn_ || std::chrono::abs(reading.skew) - reading.doubt <= kNoticeable) {
    return;
  }
  {
    const MutexLock lock(mutex_);
    if (std::exchange(warned_, true)) {
      return;
    }
  }
  const WallTime machine = machine_.wall_now();
  warn_("this machine's clock is " + in_seconds(reading.skew) +
        (reading.skew > Duration::zero() ? " behind" : " ahead of") + " DynamoDB's: it says " + to_the_second(machine) +
        " at " + to_the_second(machine + reading.skew) +
        "; messages are handled by DynamoDB's time; set the clock right, for example with NTP");
}

void TableClock::warn_if_wrong() {
  if (const auto reading = client_.clock_reading()) {
    warn_once(*reading);
  }
}

Result<void> TableClock::be_sure(const QueueTable& place, Duration tolerance, Deadline deadline) {
  auto reading = client_.clock_reading();
  if (!reading || reading->moved || reading->doubt > tolerance) {
    ask(place, deadline);
    reading = client_.clock_reading();
  }
  if (!reading) {
    return {};
  }
  warn_once(*reading);
  if (reading->doubt <= tolerance || !SLUICE_GUARD(clock_doubt)) {
    return {};
  }
  const WallTime machine = machine_.wall_now();
  return Error(ErrorCode::unavailable, "table '" + place.table + "': the time is not known to within " +
                                           in_seconds(tolerance) + ": this machine's clock says " +
                                           to_the_second(machine) + ", DynamoDB's " +
                                           to_the_second(machine + reading->skew) + " give or take " +
                                           in_seconds(reading->doubt) + "; set the clock right and keep it so");
}

}  // namespace sluice::queue::table
