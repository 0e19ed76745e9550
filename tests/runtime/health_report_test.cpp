// What /readyz says of a host whose store answers nothing.

#include "host/runtime/health_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/job_set_rig.hpp"

namespace sluice::runtime {
namespace {

using std::chrono_literals::operator""s;
using ::testing::StartsWith;

class Readiness : public JobSetTest {
 protected:
  observe::ProbeResult probe() { return readiness_of(true, {jobs_, config_, nullptr, {}, {}}); }

  config::HostConfig config_;
};

TEST_F(Readiness, EndsOnceAJobsStoreHasAnsweredNothingForLong) {
  ASSERT_TRUE(start({plan("a"), plan("b")}));
  EXPECT_TRUE(probe().ok);
  queues_.fail_next(test::StoreCall::claim, 1'000'000, Error(ErrorCode::queue_missing, "table 'orders' is not there"));
  until([&] { return !probe().components.at(0).ok; });
  EXPECT_TRUE(probe().ok) << "it may be back in a moment";
  clock_.leap(10s);
  until([&] { return !probe().ok; });
  EXPECT_THAT(probe().text, StartsWith("not ready: job "));
  EXPECT_THAT(probe().text, ::testing::EndsWith(" cannot work: table 'orders' is not there"));
  EXPECT_TRUE(health_of({jobs_, config_, nullptr, {}, {}}).ok) << "a restart mends nothing";
  queues_.heal();
  EXPECT_TRUE(jobs_.drain(soon()).clean);
}

}  // namespace
}  // namespace sluice::runtime
