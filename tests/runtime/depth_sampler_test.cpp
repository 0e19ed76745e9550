#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "base/random.hpp"
#include "host/runtime/health_report.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/forwarding_operator.hpp"
#include "tests/support/forwarding_queues.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::runtime {
namespace {

/// The figures of a queue's depth as /metrics shows them, by state.
std::map<std::string, double> shown(const DepthSampler& sampler, const std::string& queue) {
  std::map<std::string, double> depth;
  for (const observe::FigureFamily& family : depth_figures(sampler, SteadyTime())) {
    for (const observe::Figure& figure : family.figures) {
      if (family.name == "sluice_queue_depth" && figure.labels.front().second == queue) {
        depth[figure.labels.back().second] = figure.value;
      }
    }
  }
  return depth;
}

class DepthSamplerTest : public testing::Test {
 protected:
  SystemClock clock_;
  SeededRandom random_{1};
  test::SimQueues queues_{clock_, random_};
  std::latch asked_{1};
  std::latch answers_{1};
  DepthSampler sampler_{[] {
                          return std::vector<queue::QueueAddress>{{"orders", queue::Half::standard}};
                        },
                        queues_, clock_, std::chrono::hours(1)};
};

// A drain waited for the store's time-out, once a queue, when somebody had read the metrics.
TEST_F(DepthSamplerTest, IsLeftWhileAStoreDoesNotAnswer) {
  queues_.set_fault_source([this](test::StoreCall, const queue::QueueAddress&) -> std::optional<test::StoreFault> {
    asked_.count_down();
    answers_.wait();
    return test::StoreFault{Error(ErrorCode::timeout, "no answer")};
  });
  ASSERT_TRUE(sampler_.start());
  sampler_.asked();
  asked_.wait();
  EXPECT_FALSE(sampler_.leave(SystemClock().steady_now()));
  answers_.count_down();
}

// Two readers, and the numbers are asked for once.
TEST_F(DepthSamplerTest, KeepsTheNumbersForWhoeverAsksNext) {
  std::atomic<int> counts = 0;
  queues_.set_fault_source([&](test::StoreCall, const queue::QueueAddress&) -> std::optional<test::StoreFault> {
    ++counts;
    return std::nullopt;
  });
  const auto sender = *queues_.open_sender("orders");
  const std::vector<queue::NewMessage> messages(3);
  sender->send(messages, Deadline::after(clock_, std::chrono::seconds(10)));
  counts = 0;
  ASSERT_TRUE(sampler_.start());
  EXPECT_FALSE(sampler_.depth("orders"));
  sampler_.asked();
  while (!sampler_.depth("orders")) {
    std::this_thread::yield();
  }
  const int once = counts;
  sampler_.asked();
  sampler_.asked();
  const auto depth = sampler_.depth("orders");
  EXPECT_EQ(depth->backlog(), 3U);
  EXPECT_GE(depth->age(clock_.steady_now()), Duration::zero());
  sampler_.stop();  // which waits where it has told the numbers and not yet gone to sleep
  EXPECT_EQ(counts, once) << "an interval of an hour";
  QueueDepth told = *depth;
  told.standard.age = std::chrono::seconds(7);
  EXPECT_GE(told.age(told.at), std::chrono::seconds(7)) << "numbers that the store had were older";
}

// An outbox whose database had gone was as young as it had been before.
TEST_F(DepthSamplerTest, KnowsNoLagOfAQueueThatCannotBeCountedNow) {
  DepthSampler limited{[] {
                         return std::vector<queue::QueueAddress>{{"orders", queue::Half::standard}};
                       },
                       queues_,
                       clock_,
                       std::chrono::milliseconds(10),
                       {{"orders", std::chrono::hours(1)}}};
  const auto lag = [&limited] {
    const auto lags = limited.lags();
    const auto found = lags.find("orders");
    return found == lags.end() ? DepthSampler::Lag{} : found->second;
  };
  ASSERT_TRUE(limited.start());
  while (!limited.depth("orders")) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(lag().beyond());
  queues_.set_fault_source([](test::StoreCall, const queue::QueueAddress&) -> std::optional<test::StoreFault> {
    return test::StoreFault{Error(ErrorCode::unavailable, "connection refused")};
  });
  while (!lag().beyond()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(lag().unknown, "connection refused");
  queues_.set_fault_source({});
  while (lag().beyond()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(lag().limit, std::chrono::hours(1));
}

// A lag was judged by a count of ten seconds ago, however short its limit.
TEST_F(DepthSamplerTest, CountsTwiceWithinALimitWhateverTheInterval) {
  std::atomic<int> counts = 0;
  queues_.set_fault_source([&](test::StoreCall, const queue::QueueAddress&) -> std::optional<test::StoreFault> {
    ++counts;
    counts.notify_all();
    return std::nullopt;
  });
  DepthSampler limited{[] {
                         return std::vector<queue::QueueAddress>{{"orders", queue::Half::standard}};
                       },
                       queues_,
                       clock_,
                       std::chrono::hours(1),
                       {{"orders", std::chrono::seconds(1)}}};
  ASSERT_TRUE(limited.start());
  for (int seen = 0; seen < 4; seen = counts) {  // two halves each time
    counts.wait(seen);
  }
  EXPECT_LT(limited.lags().at("orders").counted_ago, std::chrono::minutes(1));
}

// A host whose job of an outbox was taken away by a reload lagged for ever by the last count, and showed that depth.
TEST_F(DepthSamplerTest, ForgetsAQueueOnWhichNoJobWorksAnyMore) {
  std::atomic<bool> works = true;
  DepthSampler limited{[&works] {
                         return works ? std::vector<queue::QueueAddress>{{"orders", queue::Half::standard}}
                                      : std::vector<queue::QueueAddress>();
                       },
                       queues_,
                       clock_,
                       std::chrono::milliseconds(10),
                       {{"orders", std::chrono::hours(1)}}};
  ASSERT_TRUE(limited.start());
  while (!limited.depth("orders")) {
    std::this_thread::yield();
  }
  EXPECT_EQ(shown(limited, "orders").size(), 4U);
  works = false;
  while (limited.depth("orders")) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(limited.lags().empty());
  EXPECT_TRUE(shown(limited, "orders").empty());
}

/// A store in which only who works on a queue tells what lies in it.
class Untold final : public test::ForwardingOperator {
 public:
  Untold(std::unique_ptr<queue::Operator> beneath, std::atomic<int>& counts)
      : ForwardingOperator(*beneath), kept_(std::move(beneath)), counts_(counts) {}

  Result<queue::QueueStats> stats(const queue::StatsRequest& request, Deadline deadline) override {
    if (request.cheap) {
      return Error(ErrorCode::unavailable, "nobody tells");
    }
    ++counts_;
    return ForwardingOperator::stats(request, deadline);
  }

 private:
  std::unique_ptr<queue::Operator> kept_;
  std::atomic<int>& counts_;
};

class UntoldQueues final : public test::ForwardingQueues {
 public:
  using ForwardingQueues::ForwardingQueues;

  Result<std::unique_ptr<queue::Operator>> open_operator(const std::string& queue) override {
    return std::unique_ptr<queue::Operator>(std::make_unique<Untold>(*ForwardingQueues::open_operator(queue), counts));
  }
  Result<std::vector<std::string>> made_by_messages(Deadline /*deadline*/) override {
    ++looks;
    return std::vector<std::string>{"extra", "orders"};
  }

  std::atomic<int> counts = 0;
  std::atomic<int> looks = 0;
};

// The metrics showed nothing of a queue of a leased table that no job works on.
TEST_F(DepthSamplerTest, CountsWhatNobodyTellsOfAQueueWithoutAJobEveryFiveMinutes) {
  test::FakeClock clock;
  test::SimQueues beneath(clock, random_);
  UntoldQueues queues(beneath);
  DepthSampler sampler{[] {
                         return std::vector<queue::QueueAddress>{{"orders", queue::Half::standard}};
                       },
                       queues, clock, Duration::zero()};
  const auto look = [&] {
    // A look begins when the one before is through.
    for (const int seen = queues.looks; queues.looks < seen + 2;) {
      sampler.asked();
      std::this_thread::yield();
    }
  };
  ASSERT_TRUE(sampler.start());
  look();
  EXPECT_EQ(queues.counts, 2) << "both halves of one queue: the other has a job, whose host tells of it";
  EXPECT_EQ(shown(sampler, "extra").at("ready"), 0);
  clock.advance(std::chrono::minutes(4));
  look();
  EXPECT_EQ(queues.counts, 2);
  EXPECT_TRUE(sampler.depth("extra"));
  clock.advance(std::chrono::minutes(1));
  look();
  EXPECT_EQ(queues.counts, 4);
  EXPECT_FALSE(sampler.depth("orders"));
}

TEST_F(DepthSamplerTest, EndsAtOnceWhereNothingIsAsked) {
  ASSERT_TRUE(sampler_.start());
  EXPECT_TRUE(sampler_.leave(SteadyTime::max()));
  sampler_.asked();
  EXPECT_TRUE(shown(sampler_, "orders").empty());
}

}  // namespace
}  // namespace sluice::runtime
