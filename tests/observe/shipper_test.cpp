#include "host/observe/shipper.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "tests/support/fake_transport.hpp"

namespace sluice::observe {
namespace {

using std::chrono::seconds;

constexpr Duration kPatience = seconds(20);

class PlainCollector final : public Collector {
 public:
  explicit PlainCollector(std::size_t room)
      : Collector({.name = "plain",
                   .url = "http://collector/",
                   .headers = {},
                   .credential = "token",
                   .again = {503},
                   .limits = {.items = room}}) {}

 private:
  std::string body_of(std::span<const std::string> items, WallTime) const override {
    std::string body;
    for (const std::string& item : items) {
      body += item + ";";
    }
    return body;
  }
};

class ShipperTest : public testing::Test {
 protected:
  Shipper::Destination& lane(std::size_t room = 100) {
    return shipper.add(std::make_unique<PlainCollector>(room), transport);
  }
  ShipQueue::Figures figures() const { return shipper.statuses().at(0).figures; }
  SteadyTime soon() const { return clock.steady_now() + kPatience; }

  SystemClock clock;
  SeededRandom random{1};
  Mutex mutex;
  std::vector<std::string> told;
  Shipper shipper{clock, random, [this](const std::string& text) {
                    const MutexLock lock(mutex);
                    told.push_back(text);
                  }};
  // As in the product it goes first.
  test::FakeTransport transport;
};

TEST_F(ShipperTest, AFlushBringsEverythingInBatches) {
  Shipper::Destination& to = lane();
  ASSERT_TRUE(shipper.start());
  transport.answer(200, "");
  transport.answer(200, "");
  shipper.put(to, "a");
  shipper.put(to, "b");
  EXPECT_TRUE(shipper.flush(soon()));
  std::string all;
  for (const auto& request : transport.requests()) {
    all += request.body;
  }
  EXPECT_EQ(all, "a;b;");
  EXPECT_EQ(figures().sent, 2U);
  EXPECT_EQ(figures().waiting, 0U);
}

TEST_F(ShipperTest, ACollectorThatNeverAnswersHoldsUpNobodyAndIsTold) {
  Shipper::Destination& to = lane(3);
  transport.hold();
  ASSERT_TRUE(shipper.start());
  for (int i = 0; i < 1000; ++i) {
    shipper.put(to, "x");
  }
  EXPECT_EQ(figures().dropped, 997U);
  EXPECT_EQ(figures().waiting, 3U);
  transport.wait_for_requests(1);
  EXPECT_FALSE(shipper.flush(clock.steady_now()));
  shipper.stop();
  EXPECT_EQ(figures().dropped, 1000U) << "what was under way counts as dropped";
  EXPECT_TRUE(transport.release(test::FakeTransport::response(200, ""))) << "an answer after the end is nobody's";
  EXPECT_EQ(figures().sent, 0U);
  const MutexLock lock(mutex);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], testing::ContainsRegex("^[0-9]+ items for plain were dropped: it does not keep up$"));
}

TEST_F(ShipperTest, StatusesNameWhatIsWrong) {
  Shipper::Destination& to = lane();
  ASSERT_TRUE(shipper.start());
  transport.answer(401, "the token abc is unknown");
  shipper.put(to, "x");
  EXPECT_TRUE(shipper.flush(soon())) << "what is refused waits no more";
  const auto statuses = shipper.statuses();
  ASSERT_EQ(statuses.size(), 1U);
  EXPECT_EQ(statuses[0].name, "plain");
  EXPECT_EQ(statuses[0].trouble, "it answered 401; is the token right?");
  EXPECT_EQ(statuses[0].figures.dropped, 1U);
  EXPECT_EQ(figures().failed, 1U);
}

TEST_F(ShipperTest, StopsAnyNumberOfTimesAndTakesNothingAfterwards) {
  Shipper::Destination& to = lane();
  ASSERT_TRUE(shipper.start());
  shipper.stop();
  shipper.put(to, "x");
  shipper.stop();
  EXPECT_TRUE(transport.requests().empty());
}

}  // namespace
}  // namespace sluice::observe
