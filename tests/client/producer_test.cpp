// The producer with its thread, on a store that breaks to order, and what it costs on the emulator.
#include "sluice/client/producer.hpp"

#include <atomic>
#include <set>
#include <thread>

#include "base/mutex.hpp"
#include "tests/client/client_rig.hpp"
#include "tests/stores/dynamomq/emulated_tables.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::client {
namespace {

using test::StoreCall;
using ::testing::Each;
using ::testing::SizeIs;

/// A linger that no test would sit out.
constexpr auto kForEver = std::chrono::hours(1'000);

/// A door that sends wait at until a test opens it. Thread-safe.
class Gate {
 public:
  void open() {
    const MutexLock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    const MutexLock lock(mutex_);
    arrived_ = true;
    changed_.notify_all();
    changed_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_REQUIRES(mutex_) { return open_; });
  }
  void await_arrival() {
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_REQUIRES(mutex_) { return arrived_; });
  }

 private:
  Mutex mutex_;
  Condition changed_;
  bool open_ SLUICE_GUARDED_BY(mutex_) = false;
  bool arrived_ SLUICE_GUARDED_BY(mutex_) = false;
};

class ProducerTest : public ::testing::Test {
 protected:
  std::vector<std::size_t> sends() const {
    std::vector<std::size_t> sizes;
    for (const auto& call : sim_.calls()) {
      if (call.call == StoreCall::send) {
        sizes.push_back(call.items);
      }
    }
    return sizes;
  }
  std::uint64_t stored() { return desk_.stats({"orders"}, Deadline::never())->total(); }
  /// Every send waits at the gate.
  void hold_sends() {
    sim_.set_fault_source([this](StoreCall call, const queue::QueueAddress&) -> std::optional<test::StoreFault> {
      if (call == StoreCall::send) {
        gate_.pass();
      }
      return std::nullopt;
    });
  }

  SystemClock clock_;
  SeededRandom random_{3};
  test::SimQueues sim_{clock_, random_};
  test::Desk desk_{sim_};
  QueueClient client_ = make_client(sim_, clock_, random_, "orders");
  Gate gate_;
};

TEST_F(ProducerTest, SendsInBatchesOfTwentyFive) {
  std::vector<std::future<ProduceResult>> results;
  {
    Producer producer(client_, {.linger = kForEver});
    for (int i = 0; i < 1'003; ++i) {
      results.push_back(producer.produce_async("x"));
    }
    EXPECT_TRUE(producer.close());
  }
  std::set<std::string> ids;
  for (auto& result : results) {
    const ProduceResult sent = result.get();
    ASSERT_TRUE(sent) << sent.error().message();
    ids.insert(*sent);
  }
  EXPECT_THAT(ids, SizeIs(1'003));
  EXPECT_EQ(stored(), 1'003U);
  std::size_t requests = 0;
  for (const std::size_t items : sends()) {
    requests += (items + 24) / 25;
  }
  EXPECT_EQ(requests, 41U);
}

TEST_F(ProducerTest, KeepsTheOrderOfOneThread) {
  Producer producer(client_, {.linger = kForEver});
  for (int i = 0; i < 300; ++i) {
    producer.produce_async("x", {.id = "m-" + std::to_string(i)}, [](const ProduceResult&) {});
  }
  producer.close();
  const auto page = desk_.list("orders", {.limit = 300}, Deadline::never());
  ASSERT_EQ(page->messages.size(), 300U);
  for (std::size_t i = 0; i < 300; ++i) {
    ASSERT_EQ(page->messages[i].message.id, "m-" + std::to_string(i));
  }
}

TEST_F(ProducerTest, LessThanABatchWaitsForFlush) {
  Producer producer(client_, {.linger = kForEver});
  auto first = producer.produce_async("x");
  auto second = producer.produce_async("x");
  EXPECT_EQ(first.wait_for(0s), std::future_status::timeout);
  producer.flush();
  EXPECT_EQ(first.wait_for(0s), std::future_status::ready);
  EXPECT_EQ(second.wait_for(0s), std::future_status::ready);
  EXPECT_THAT(sends(), ::testing::ElementsAre(2U));
  producer.flush();
  EXPECT_THAT(sends(), SizeIs(1)) << "with nothing to send it returns";
}

TEST_F(ProducerTest, SendsByItselfWhenItHasLingered) {
  Producer producer(client_, {.linger = 1ms});
  EXPECT_TRUE(producer.produce_async("x").get());
}

TEST_F(ProducerTest, ABlockingProduceWaitsForNobody) {
  Producer producer(client_, {.linger = kForEver});
  auto before = producer.produce_async("earlier");
  const ProduceResult sent = producer.produce("now", {.id = "A-1", .delay = 1h, .attributes = {{"tenant", "acme"}}});
  ASSERT_TRUE(sent) << sent.error().message();
  EXPECT_EQ(*sent, "A-1");
  EXPECT_TRUE(before.get()) << "what waits before it goes along";
  const auto stored = desk_.get("orders", "A-1", Deadline::never());
  EXPECT_EQ(stored->message.attributes.at("tenant"), "acme");
  EXPECT_EQ(stored->state(clock_.wall_now()), queue::MessageState::delayed);
}

TEST_F(ProducerTest, MakesDifferentUuidsForManyThreads) {
  Mutex mutex;
  std::set<std::string> ids;
  {
    Producer producer(client_);
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 500; ++i) {
          const auto keep = [&](const ProduceResult& sent) {
            const MutexLock lock(mutex);
            ids.insert(sent ? *sent : sent.error().message());
          };
          t == 0 && i % 10 == 0 ? keep(producer.produce("x")) : producer.produce_async("x", {}, keep);
        }
      });
    }
    threads.clear();
  }
  EXPECT_THAT(ids, SizeIs(2'000));
  EXPECT_THAT(ids, Each(::testing::MatchesRegex("[0-9a-f]+-[0-9a-f]+-7[0-9a-f]+-[89ab][0-9a-f]+-[0-9a-f]+")));
  EXPECT_EQ(stored(), 2'000U);
}

TEST_F(ProducerTest, EachMessageHasItsOwnError) {
  sim_.fail_message(StoreCall::send, "bad", 1, sluice::Error(ErrorCode::throttled, "slow down"));
  Producer producer(client_, {.linger = kForEver});
  auto good = producer.produce_async("x", {.id = "good"});
  auto bad = producer.produce_async("x", {.id = "bad"});
  auto again = producer.produce_async("not JSON", {.id = "json", .content_type = "application/json"});
  producer.flush();
  auto twice = producer.produce_async("x", {.id = "good"});
  producer.flush();
  EXPECT_TRUE(good.get());
  const ProduceResult failed = bad.get();
  EXPECT_EQ(error_name(failed), "DynamoDBAPIError");
  EXPECT_TRUE(failed.error().transient());
  EXPECT_EQ(error_name(again.get()), "MarshalingAttributeError");
  const ProduceResult duplicate = twice.get();
  EXPECT_EQ(error_name(duplicate), "IDDuplicatedError");
  EXPECT_FALSE(duplicate.error().transient());
}

// What the comment at Error::transient promises to whoever has ids of his own.
TEST_F(ProducerTest, AfterAnUnknownOutcomeSendingAgainIsSafe) {
  sim_.apply_then_fail_next(StoreCall::send, 1);
  Producer producer(client_);
  const ProduceResult unknown = producer.produce("x", {.id = "A-1"});
  EXPECT_EQ(error_name(unknown), "DynamoDBAPIError");
  EXPECT_TRUE(unknown.error().transient());
  EXPECT_EQ(error_name(producer.produce("x", {.id = "A-1"})), "IDDuplicatedError");
  EXPECT_EQ(stored(), 1U);
}

TEST_F(ProducerTest, AnIdGeneratorThatThrowsSpoilsNothing) {
  Producer producer(client_, {.id_generator = []() -> std::string { throw std::runtime_error("no ids left"); }});
  EXPECT_THROW((void)producer.produce("x"), std::runtime_error);
  EXPECT_THROW((void)producer.produce_async("x"), std::runtime_error);
  EXPECT_TRUE(producer.produce("x", {.id = "A-1"}));
  EXPECT_TRUE(producer.close());
  EXPECT_EQ(stored(), 1U);
}

TEST_F(ProducerTest, TheSameIdTwiceInABatchIsADuplicate) {
  Producer producer(client_, {.linger = kForEver});
  auto first = producer.produce_async("x", {.id = "A-1"});
  auto second = producer.produce_async("y", {.id = "A-1"});
  producer.flush();
  EXPECT_TRUE(first.get());
  EXPECT_EQ(error_name(second.get()), "IDDuplicatedError");
  EXPECT_EQ(desk_.get("orders", "A-1", Deadline::never())->message.body, "x");
}

TEST_F(ProducerTest, RefusesWhatDoesNotFitWhenTold) {
  hold_sends();
  Producer producer(client_, {.linger = 0ms, .max_messages = 2, .overflow = Overflow::fail});
  auto first = producer.produce_async("x");
  gate_.await_arrival();
  auto second = producer.produce_async("x");
  auto third = producer.produce_async("x");
  EXPECT_EQ(error_name(third.get()), "QueueFullError");
  gate_.open();
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(second.get());
  EXPECT_TRUE(producer.produce("there is room again"));
}

TEST_F(ProducerTest, LetsTheCallerWaitForRoomAndHurriesThen) {
  Producer producer(client_, {.linger = kForEver, .max_messages = 1});
  std::vector<std::future<ProduceResult>> results;
  results.reserve(20);
  for (int i = 0; i < 20; ++i) {
    results.push_back(producer.produce_async("x"));
  }
  producer.flush();
  for (auto& result : results) {
    EXPECT_TRUE(result.get());
  }
}

TEST_F(ProducerTest, AMessageLargerThanAllRoomIsSentAlone) {
  Producer producer(client_, {.linger = kForEver, .max_bytes = 10});
  auto small = producer.produce_async("x");
  auto large = producer.produce_async(std::string(1'000, 'x'));
  producer.flush();
  EXPECT_TRUE(small.get());
  EXPECT_TRUE(large.get());
  EXPECT_THAT(sends(), ::testing::ElementsAre(1U, 1U));
}

TEST_F(ProducerTest, CloseEndsWhoeverWaitsForRoom) {
  hold_sends();
  Producer producer(client_, {.linger = 0ms, .max_messages = 1});
  auto first = producer.produce_async("x");
  gate_.await_arrival();
  std::string name;
  {
    std::jthread waiting([&] { name = error_name(producer.produce("x")); });
    std::jthread closing([&] { producer.close(); });
    waiting.join();
    gate_.open();
  }
  EXPECT_EQ(name, "ProducerClosedError");
  EXPECT_TRUE(first.get()) << "what was taken is sent";
}

TEST_F(ProducerTest, TakesNothingOnceClosed) {
  Producer producer(client_);
  EXPECT_TRUE(producer.close());
  EXPECT_TRUE(producer.close());
  EXPECT_EQ(error_name(producer.produce("x")), "ProducerClosedError");
  EXPECT_EQ(error_name(producer.produce_async("x").get()), "ProducerClosedError");
  producer.flush();
  EXPECT_EQ(stored(), 0U);
}

TEST_F(ProducerTest, CloseGivesUpWhatIsNotSentInTime) {
  hold_sends();
  Producer producer(client_, {.linger = kForEver});
  std::vector<std::future<ProduceResult>> results;
  results.reserve(30);
  for (int i = 0; i < 30; ++i) {
    results.push_back(producer.produce_async("x"));
  }
  gate_.await_arrival();  // 25 are on their way, 5 wait
  bool clean = true;
  {
    std::jthread closing([&] { clean = producer.close(0ms); });
    // Its sign: nothing more is taken.
    while (producer.produce_async("y").wait_for(0s) != std::future_status::ready) {
      std::this_thread::yield();
    }
    gate_.open();
  }
  EXPECT_FALSE(clean);
  for (std::size_t i = 0; i < 25; ++i) {
    EXPECT_TRUE(results[i].get()) << i;
  }
  for (std::size_t i = 25; i < 30; ++i) {
    EXPECT_EQ(error_name(results[i].get()), "ProducerClosedError");
  }
}

TEST_F(ProducerTest, CloseSaysWhenItsLimitCutOffARequest) {
  test::FakeClock clock{kT0};
  clock.set_steady(clock_.steady_now());
  QueueClient client = make_client(sim_, clock, random_, "orders");
  std::atomic<int> sends = 0;
  sim_.set_fault_source([&](StoreCall, const queue::QueueAddress&) -> std::optional<test::StoreFault> {
    if (++sends > 1) {
      clock.advance(1h);
      return test::StoreFault{sluice::Error(ErrorCode::timeout, "the deadline passed")};
    }
    gate_.pass();
    return std::nullopt;
  });
  Producer producer(client, {.linger = kForEver});
  std::vector<std::future<ProduceResult>> results;
  results.reserve(30);
  for (int i = 0; i < 30; ++i) {
    results.push_back(producer.produce_async("x"));
  }
  gate_.await_arrival();
  bool clean = true;
  {
    std::jthread closing([&] { clean = producer.close(1min); });
    while (producer.produce_async("y").wait_for(0s) != std::future_status::ready) {
      std::this_thread::yield();
    }
    gate_.open();
  }
  EXPECT_FALSE(clean);
  EXPECT_TRUE(results[0].get());
  EXPECT_EQ(error_name(results[29].get()), "DynamoDBAPIError");
}

TEST_F(ProducerTest, CallbacksMayProduceFlushAndClose) {
  Producer producer(client_, {.linger = 0ms, .max_messages = 1});
  std::promise<std::vector<std::string>> heard;
  producer.produce_async("x", {.id = "A-1"}, [&](const ProduceResult& first) {
    producer.flush();
    std::vector<std::string> names{error_name(first), error_name(producer.produce("y", {.id = "A-2"}))};
    producer.produce_async("z", {.id = "A-3"}, [](const ProduceResult&) {});
    producer.produce_async("z", {.id = "A-4"}, [&](const ProduceResult& full) { names.push_back(error_name(full)); });
    producer.close();
    heard.set_value(names);
  });
  EXPECT_THAT(heard.get_future().get(), ::testing::ElementsAre("no error", "no error", "QueueFullError"));
  EXPECT_TRUE(producer.close());
  EXPECT_EQ(stored(), 3U);
}

TEST_F(ProducerTest, AMessageWhoseFateNobodyAsksForIsSentAllTheSame) {
  Producer producer(client_, {.linger = kForEver});
  producer.produce_async("x", {}, nullptr);
  producer.flush();
  EXPECT_EQ(stored(), 1U);
  producer.close();
  producer.produce_async("refused on this thread", {}, nullptr);
}

// Each of them finds the room taken again by another, whose message would linger for ever.
TEST_F(ProducerTest, HurriesForEveryoneWhoWaitsForRoom) {
  Producer producer(client_, {.linger = kForEver, .max_messages = 1});
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) {
          producer.produce_async("x", {}, [](const ProduceResult&) {});
        }
      });
    }
  }
  producer.close();
  EXPECT_EQ(stored(), 400U);
}

TEST_F(ProducerTest, TheLongestSpansAreForEver) {
  constexpr auto kLongest = std::chrono::milliseconds::max();
  QueueClient patient = make_client(sim_, clock_, random_, "orders", {.timeout = Duration::max()});
  Producer producer(patient, {.linger = kLongest});
  for (int i = 0; i < 24; ++i) {
    producer.produce_async("x", {}, [](const ProduceResult&) {});
  }
  EXPECT_TRUE(producer.flush(kLongest));
  EXPECT_THAT(sends(), ::testing::ElementsAre(24U)) << "nothing was sent before its time";
  auto last = producer.produce_async("x");
  EXPECT_TRUE(producer.close(kLongest));
  EXPECT_TRUE(last.get());
}

TEST_F(ProducerTest, FlushWaitsNoLongerThanItMay) {
  hold_sends();
  Producer producer(client_, {.linger = kForEver});
  auto sent = producer.produce_async("x");
  EXPECT_FALSE(producer.flush(0ms));
  EXPECT_FALSE(producer.flush(-1ms));
  gate_.await_arrival();
  EXPECT_FALSE(producer.flush(1ms));
  gate_.open();
  EXPECT_TRUE(producer.flush());
  EXPECT_TRUE(sent.get());
}

TEST_F(ProducerTest, RoomIsForAllThatAMessageTakes) {
  hold_sends();
  Producer producer(client_, {.linger = 0ms, .max_bytes = 1'000, .overflow = Overflow::fail});
  auto first = producer.produce_async("x");
  gate_.await_arrival();
  const std::string large(1'000, 'x');
  EXPECT_EQ(error_name(producer.produce_async("x", {.id = large}).get()), "QueueFullError");
  EXPECT_EQ(error_name(producer.produce_async("x", {.attributes = {{"k", large}}}).get()), "QueueFullError");
  EXPECT_EQ(error_name(producer.produce_async("x", {.attributes = {{large, "v"}}}).get()), "QueueFullError");
  EXPECT_EQ(error_name(producer.produce_async("x", {.group = large}).get()), "QueueFullError");
  EXPECT_EQ(error_name(producer.produce_async("x", {.content_type = large}).get()), "QueueFullError");
  auto fits = producer.produce_async("x", {.attributes = {{"k", "v"}}});
  gate_.open();
  EXPECT_TRUE(fits.get());
}

TEST_F(ProducerTest, ACallbackSendsNothingOnceClosed) {
  Producer producer(client_, {.linger = 0ms});
  std::promise<std::vector<std::string>> heard;
  producer.produce_async("x", {}, [&](const ProduceResult&) {
    producer.close();
    heard.set_value({error_name(producer.produce("y")), error_name(producer.produce_async("y").get())});
  });
  EXPECT_THAT(heard.get_future().get(), Each(std::string("ProducerClosedError")));
  EXPECT_TRUE(producer.close());
  EXPECT_EQ(stored(), 1U);
}

/// Says when it goes, and takes its time.
class LateLeaver {
 public:
  explicit LateLeaver(std::atomic<bool>& gone) : gone_(gone) {}
  LateLeaver(const LateLeaver&) = delete;
  LateLeaver& operator=(const LateLeaver&) = delete;
  ~LateLeaver() {
    for (int i = 0; i < 100; ++i) {
      std::this_thread::yield();
    }
    gone_ = true;
  }

 private:
  std::atomic<bool>& gone_;
};

TEST_F(ProducerTest, FlushReturnsWhenCallbacksAreGoneToo) {
  std::atomic<bool> gone = false;
  Producer producer(client_, {.linger = kForEver});
  auto leaver = std::make_shared<LateLeaver>(gone);
  producer.produce_async("x", {}, [leaver](const ProduceResult&) {});
  leaver.reset();
  producer.flush();
  EXPECT_TRUE(gone);
}

// As what leaves a std::jthread: a fault in the program that nobody could handle here.
TEST_F(ProducerTest, AnExceptionOfACallbackEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto throws = [this] {
    Producer producer(client_);
    producer.produce_async("x", {}, [](const ProduceResult&) { throw std::runtime_error("out of a callback"); });
    producer.close();
  };
  EXPECT_DEATH(throws(), "out of a callback");
}

TEST_F(ProducerTest, DestructionByItsOwnCallbackIsRefusedInWords) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ends_itself = [this] {
    auto producer = std::make_unique<Producer>(client_);
    producer->produce_async("x", {}, [&](const ProduceResult&) { producer.reset(); });
    producer->flush();
  };
  EXPECT_DEATH(ends_itself(), "a Producer is destroyed by its own callback");
}

// Threads and callbacks that produce, flush and close, all at once, with next to no room and a store that fails now and
// then: each message is heard of once, and what is reported as stored is stored.
TEST_F(ProducerTest, EveryMessageHasOneResultWhateverHappens) {
  for (const Overflow overflow : {Overflow::wait, Overflow::fail}) {
    std::atomic<std::uint64_t> asked = 0;
    std::atomic<std::uint64_t> heard = 0;
    std::atomic<std::uint64_t> sent = 0;
    const std::uint64_t before = stored();
    sim_.fail_next(StoreCall::send, 20, sluice::Error(ErrorCode::unavailable, "down"));
    Producer producer(client_, {.linger = 1ms, .max_messages = 60, .max_bytes = 3'000, .overflow = overflow});
    const auto hear = [&](const ProduceResult& result) {
      ++heard;
      sent += result ? 1 : 0;
    };
    const auto work = [&](int thread) {
      for (int i = 0; i < 400; ++i) {
        ++asked;
        if (i % 50 == 0) {
          hear(producer.produce("x"));
        } else if (i % 3 == 0) {
          producer.produce_async("x", {}, [&](const ProduceResult& result) {
            hear(result);
            ++asked;
            producer.produce_async("from a callback", {}, hear);
          });
        } else {
          producer.produce_async(std::string(static_cast<std::size_t>(i), 'x'), {}, hear);
        }
        if (i % 100 == 99) {
          producer.flush();
        }
        if (thread == 0 && i == 300) {
          producer.close();
        }
      }
    };
    {
      std::vector<std::jthread> threads;
      threads.reserve(6);
      for (int t = 0; t < 6; ++t) {
        threads.emplace_back(work, t);
      }
    }
    EXPECT_TRUE(producer.close());
    EXPECT_EQ(heard, asked);
    EXPECT_EQ(stored() - before, sent);
  }
}

TEST_F(ProducerTest, OutlivesItsClient) {
  auto client = std::make_unique<QueueClient>(make_client(sim_, clock_, random_, "orders"));
  Producer producer(*client, {.linger = kForEver});
  auto sent = producer.produce_async("x");
  client.reset();
  producer.flush();
  EXPECT_TRUE(sent.get());
}

// The figure: at most 0.05 requests a message, counted where they leave.
TEST(ProducerCost, IsOneRequestForTwentyFiveMessages) {
  if (test::shared_emulator() == nullptr) {
    GTEST_SKIP() << test::Emulator::absence();
  }
  constexpr std::size_t kMessages = 10'000;
  const SystemClock clock;
  test::EmulatedHost host(clock, "producer", 1);
  const std::string table = test::fresh_table_name("producer");
  test::make_table(host.client(), table, clock);
  QueueClient client = make_client(host.desk().queues(), clock, host.random(), table);
  host.usage().reset();
  std::atomic<std::size_t> sent = 0;
  Producer producer(client, {.linger = kForEver});
  for (std::size_t i = 0; i < kMessages; ++i) {
    producer.produce_async(std::string(600, 'x'), {}, [&](const ProduceResult& result) { sent += result ? 1 : 0; });
  }
  EXPECT_TRUE(producer.close(5min));
  EXPECT_EQ(sent, kMessages);
  EXPECT_EQ(host.usage().requests(), kMessages / 25) << "0.04 requests a message";
  EXPECT_EQ(host.usage().requests("BatchExecuteStatement"), kMessages / 25);
}

}  // namespace
}  // namespace sluice::client
