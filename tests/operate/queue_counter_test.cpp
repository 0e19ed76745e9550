#include <gtest/gtest.h>

#include <algorithm>

#include "host/operate/top_model.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_random.hpp"
#include "tests/support/forwarding_operator.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::operate {
namespace {

using Method = QueueCounter::Method;

/// A queue in memory, and an operator that counts what it is asked.
struct Rig {
  class Counted final : public test::ForwardingOperator {
   public:
    Counted(queue::Operator& beneath, Rig& rig) : ForwardingOperator(beneath), rig_(rig) {}
    Result<queue::ListPage> list(const queue::ListRequest& request, Deadline deadline) override {
      ++rig_.lists;
      rig_.widest = std::max(rig_.widest, request.limit);
      EXPECT_FALSE(request.content);
      return rig_.broken ? Error(ErrorCode::unavailable, "away") : ForwardingOperator::list(request, deadline);
    }
    Result<queue::QueueStats> stats(const queue::StatsRequest& request, Deadline deadline) override {
      ++rig_.stats;
      if (request.cheap) {
        return rig_.told ? *rig_.told : Result<queue::QueueStats>(Error(ErrorCode::unavailable, "nobody tells"));
      }
      return ForwardingOperator::stats(request, deadline);
    }

   private:
    Rig& rig_;
  };

  Rig() : queues(clock, random), real(*queues.open_operator("q")), sender(*queues.open_sender("q")) {}

  void send(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<queue::NewMessage> one{
          {.id = "m" + std::to_string(sent++), .body = "x", .attributes = {}, .group = {}}};
      const auto result = sender->send(one, Deadline::never());
      ASSERT_EQ(result.front().status, queue::SendStatus::sent) << result.front().error.message();
    }
  }
  QueueCounter counter(Method method) { return {std::make_unique<Counted>(*real, *this), method, clock}; }

  test::FakeClock clock;
  test::FakeRandom random;
  test::SimQueues queues;
  std::unique_ptr<queue::Operator> real;
  std::unique_ptr<queue::Sender> sender;
  std::size_t sent = 0;
  std::size_t lists = 0;
  std::size_t stats = 0;
  std::size_t widest = 0;
  bool broken = false;
  std::optional<queue::QueueStats> told;  ///< by owners of the queue
};

TEST(QueueCounter, TellsWhatOwnersTellAndCountsWhereNobodyDoes) {
  Rig rig;
  rig.send(3);
  QueueCounter counter = rig.counter(Method::as_told);
  auto count = counter.step(Deadline::never());
  EXPECT_EQ(count->standard.ready, 3U);
  EXPECT_EQ(rig.lists, 2U) << "nobody tells";
  rig.clock.advance(std::chrono::seconds(9));
  EXPECT_EQ(counter.step(Deadline::never())->standard.ready, 3U);
  EXPECT_EQ(rig.lists, 2U) << "a screen that looks each second would read such queues without end";
  rig.clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(counter.step(Deadline::never())->standard.ready, 3U);
  EXPECT_EQ(std::exchange(rig.lists, 2U), 4U);
  rig.clock.advance(std::chrono::seconds(10));
  rig.told = queue::QueueStats{.in_flight = 3, .age = std::chrono::seconds(2), .at_least = true};
  count = counter.step(Deadline::never());
  EXPECT_EQ(count->standard.in_flight, 3U) << "no record tells of it";
  EXPECT_EQ(count->standard.ready, 0U);
  EXPECT_TRUE(count->standard.at_least);
  rig.told->at_least = false;
  count = counter.step(Deadline::never());
  EXPECT_FALSE(count->standard.at_least);
  EXPECT_EQ(count->counted_at, rig.clock.wall_now() - std::chrono::seconds(2));
  EXPECT_EQ(rig.lists, 2U);
}

TEST(QueueCounter, CountsALongQueueAPageALook) {
  Rig rig;
  rig.send(2 * QueueCounter::kPage + 500);
  QueueCounter counter = rig.counter(Method::by_pages);
  auto count = counter.step(Deadline::never());
  ASSERT_TRUE(count);
  EXPECT_EQ(count->standard.ready, QueueCounter::kPage);
  EXPECT_TRUE(count->standard.at_least) << "at least so many";
  EXPECT_FALSE(count->dead.at_least);
  EXPECT_TRUE(count->standard.oldest_ready);
  EXPECT_EQ(rig.lists, 2U) << "a look is two requests";
  count = counter.step(Deadline::never());
  EXPECT_EQ(count->standard.ready, 2 * QueueCounter::kPage);
  EXPECT_TRUE(count->standard.at_least);
  count = counter.step(Deadline::never());
  EXPECT_EQ(count->standard.ready, 2 * QueueCounter::kPage + 500);
  EXPECT_FALSE(count->standard.at_least);
  rig.send(1);
  count = counter.step(Deadline::never());
  EXPECT_EQ(count->standard.ready, 2 * QueueCounter::kPage + 500)
      << "the last whole count stands while the next is under way";
  EXPECT_FALSE(count->standard.at_least);
  counter.step(Deadline::never());
  count = counter.step(Deadline::never());
  EXPECT_EQ(count->standard.ready, 2 * QueueCounter::kPage + 501);
  EXPECT_EQ(rig.lists, 12U);
  EXPECT_EQ(rig.widest, QueueCounter::kPage);
}

TEST(QueueCounter, CountsAShortQueueAnewWithEachLook) {
  Rig rig;
  QueueCounter counter = rig.counter(Method::by_pages);
  EXPECT_EQ(counter.step(Deadline::never())->standard.total(), 0U);
  rig.send(2);
  EXPECT_EQ(counter.step(Deadline::never())->standard.ready, 2U);
}

TEST(QueueCounter, GoesOnWhereItWasAfterAFailure) {
  Rig rig;
  rig.send(QueueCounter::kPage + 1);
  QueueCounter counter = rig.counter(Method::by_pages);
  ASSERT_TRUE(counter.step(Deadline::never()));
  rig.broken = true;
  EXPECT_EQ(counter.step(Deadline::never()).error().code(), ErrorCode::unavailable);
  rig.broken = false;
  const auto count = counter.step(Deadline::never());
  EXPECT_EQ(count->standard.ready, QueueCounter::kPage + 1);
  EXPECT_FALSE(count->standard.at_least);
}

}  // namespace
}  // namespace sluice::operate
