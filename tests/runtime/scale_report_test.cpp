#include "host/runtime/health_report.hpp"

#include <gmock/gmock.h>

#include "tests/runtime/job_set_rig.hpp"

namespace sluice::runtime {
namespace {

using testing::HasSubstr;
using std::chrono_literals::operator""s;

class ScaleReportTest : public JobSetTest {
 protected:
  ScaleReportTest() { EXPECT_TRUE(start({plan("orders")}).has_value()); }

  observe::HttpReply scale(const std::optional<QueueDepth>& depth, const std::string& queue = "orders") {
    return scale_of(queue, jobs_, depth, 5s, clock_.steady_now());
  }
  QueueDepth depth() {
    QueueDepth depth;
    depth.at = clock_.steady_now();
    return depth;
  }
};

TEST_F(ScaleReportTest, HasNumbersOnceThereAreSome) {
  EXPECT_EQ(scale(std::nullopt).status, 503U);
  QueueDepth some = depth();
  some.standard.ready = 7;
  EXPECT_EQ(scale(some).status, 200U);
  EXPECT_THAT(scale(some).json, HasSubstr("\"backlog\": 7, "));
  some.at -= 100s;
  EXPECT_EQ(scale(some).status, 503U) << "they are too old";
  EXPECT_EQ(scale(some, "others").status, 404U);
}

// A leased queue whose shards have not been read yet: an autoscaler would end every host.
TEST_F(ScaleReportTest, DoesNotSayThatNothingWaitsWhereThereMayBeMore) {
  QueueDepth none = depth();
  EXPECT_EQ(scale(none).status, 200U) << "an empty queue";
  none.standard.at_least = true;
  EXPECT_EQ(scale(none).status, 503U);
  none.standard.ready = 1;
  EXPECT_EQ(scale(none).status, 200U) << "enough to scale up by";
}

}  // namespace
}  // namespace sluice::runtime
