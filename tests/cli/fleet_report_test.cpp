#include "host/operate/fleet_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/cli/views/output.hpp"

namespace sluice::cli {
namespace {

using std::chrono_literals::operator""s;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr WallTime kNow{std::chrono::hours(24 * 365 * 50)};

std::string row_of(const fleet::RunningRecord& handler) {
  const std::string text =
      rows_of(std::vector<operate::HandlerAtWork>{{"web-1", handler}}, kNow, {.columns = {"MESSAGE", "LEFT", "HOST"}});
  return text.substr(text.find('\n') + 1);
}

fleet::RunningRecord handler_since(Duration begun, std::optional<Duration> time_out) {
  fleet::RunningRecord handler;
  handler.message = "A-1";
  handler.since = kNow - begun;
  if (time_out) {
    handler.times_out_at = handler.since + *time_out;
  }
  return handler;
}

TEST(RunningText, ATimeOutIsCalledOneAlthoughItSetsTheStopToken) {
  fleet::RunningRecord handler = handler_since(3s, 1s);
  handler.cancelled = true;
  EXPECT_THAT(row_of(handler), AllOf(HasSubstr("timed out"), Not(HasSubstr("cancelled"))));
  handler.stuck = true;
  EXPECT_THAT(row_of(handler), AllOf(HasSubstr("stuck"), Not(HasSubstr("timed out"))));
}

TEST(RunningText, SaysWhatIsLeftOrThatItWasCancelled) {
  fleet::RunningRecord handler = handler_since(3s, 10s);
  EXPECT_THAT(row_of(handler), HasSubstr(" 7s "));
  handler.cancelled = true;
  EXPECT_THAT(row_of(handler), HasSubstr("cancelled"));
  EXPECT_THAT(row_of(handler_since(3s, std::nullopt)), HasSubstr("no limit"));
}

}  // namespace
}  // namespace sluice::cli
