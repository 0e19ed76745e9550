// Handlers that take batches, and asynchronous ones, through the C table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <thread>

#include "base/mutex.hpp"
#include "host/plugin/async_desk.hpp"
#include "host/plugin/handler_instance.hpp"
#include "sluice/handler.hpp"
#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename H>
const sluice_handler& table_of() {
  static constexpr sluice_handler entry = detail::make_handler<H>("handler");
  return entry;
}

template <typename H>
struct Made {
  Made() {
    auto made = HandlerInstance::create({.log = log.log(), .effects = {SLUICE_STORE_SQLITE, false, &random, &clock}},
                                        table_of<H>(), "orders", {});
    if (made) {
      instance = std::move(*made);
    }
  }

  queue::Message message(const std::string& id, const std::string& body = "") {
    queue::Message made;
    made.id = id;
    made.body = body;
    made.attempt = 1;
    return made;
  }

  SeededRandom random{1};
  test::FakeClock clock;
  LogRecord log;
  Attempt attempt{clock};
  std::unique_ptr<HandlerInstance> instance;
};

struct Sums {
  std::vector<sluice::Outcome> handle(std::span<const sluice::Message> messages, sluice::BatchContext& batch) const {
    std::vector<sluice::Outcome> outcomes;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      batch.context(i).info("one of " + std::to_string(batch.size()));
      if (messages[i].body() == "throw") {
        throw std::runtime_error("all of them");
      }
      if (messages[i].body() == "bad") {
        outcomes.push_back(sluice::reject("bad"));
        continue;
      }
      batch.context(i).send("sums", messages[i].id());
      outcomes.push_back(sluice::done());
    }
    if (messages.back().body() == "short") {
      outcomes.pop_back();
    }
    return outcomes;
  }
};

template <typename H>
std::vector<Outcome> handle_batch(Made<H>& made, const std::vector<std::string>& bodies) {
  std::deque<queue::Message> messages;
  std::deque<Attempt> attempts;
  std::vector<Work> batch;
  for (const std::string& body : bodies) {
    messages.push_back(made.message("m-" + std::to_string(messages.size()), body));
    batch.push_back({messages.back(), "orders", 5, attempts.emplace_back(made.clock)});
  }
  std::vector<Outcome> outcomes(batch.size());
  made.instance->handle_batch(batch, outcomes);
  return outcomes;
}

TEST(BatchHandler, EachMessageHasItsOutcomeItsEffectsAndItsLines) {
  EXPECT_EQ(kind_of(table_of<Sums>()), HandlerKind::batch);
  Made<Sums> made;
  const auto outcomes = handle_batch(made, {"", "bad", ""});
  ASSERT_EQ(outcomes.size(), 3U);
  EXPECT_EQ(outcomes[0].status, OutcomeStatus::done);
  ASSERT_NE(outcomes[0].effects, nullptr);
  EXPECT_EQ(outcomes[0].effects->messages.front().message.body, "m-0");
  EXPECT_EQ(outcomes[1].status, OutcomeStatus::reject);
  EXPECT_EQ(outcomes[1].effects, nullptr);
  EXPECT_EQ(outcomes[2].effects->messages.front().message.body, "m-2");
  EXPECT_EQ(made.log.lines().at(2).id, "m-2");
}

TEST(BatchHandler, AnExceptionFailsTheWholeBatchAndSoDoesAWrongNumberOfOutcomes) {
  Made<Sums> made;
  for (const Outcome& outcome : handle_batch(made, {"", "throw"})) {
    EXPECT_EQ(outcome.status, OutcomeStatus::fault);
    EXPECT_EQ(outcome.reason, "all of them");
    EXPECT_EQ(outcome.effects, nullptr);
  }
  EXPECT_THAT(handle_batch(made, {"", "short"})[0].reason, HasSubstr("returned 1 outcomes for 2 messages"));
}

TEST(BatchHandler, WorksOnOneMessageAsAnyOther) {
  Made<Sums> made;
  EXPECT_EQ(made.instance->handle({made.message("m-1"), "orders", 5, made.attempt}).status, OutcomeStatus::done);
}

struct Plain {
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) const { return sluice::done(); }
};

TEST(BatchHandler, AHandlerOfAnotherKindTakesABatchOneByOne) {
  Made<Plain> made;
  EXPECT_EQ(kind_of(table_of<Plain>()), HandlerKind::plain);
  EXPECT_EQ(handle_batch(made, {"", ""}).back().status, OutcomeStatus::done);
}

/// What is begun is kept here, by the test that runs.
std::vector<sluice::AsyncContext>* kept = nullptr;

struct Keeps {
  void handle(const sluice::Message& message, sluice::AsyncContext context) {
    if (message.body() == "throw") {
      throw std::runtime_error("at once");
    }
    if (message.body() != "drop") {
      kept->push_back(std::move(context));
    }
  }
};

/// Thread-safe.
class Ended final : public Completer {
 public:
  void completed(Outcome&& outcome) noexcept override {
    const MutexLock lock(mutex_);
    outcome_ = std::move(outcome);
    ++times_;
    came_.notify_all();
  }
  Outcome wait() {
    const MutexLock lock(mutex_);
    came_.wait_until(mutex_, SystemClock().steady_now() + 20s, [this]() SLUICE_REQUIRES(mutex_) { return times_ > 0; });
    return outcome_.value_or(Outcome{});
  }
  int times() {
    const MutexLock lock(mutex_);
    return times_;
  }

 private:
  Mutex mutex_;
  Condition came_;
  std::optional<Outcome> outcome_ SLUICE_GUARDED_BY(mutex_);
  int times_ SLUICE_GUARDED_BY(mutex_) = 0;
};

class AsyncHandler : public ::testing::Test {
 public:
  AsyncHandler() { kept = &kept_; }
  ~AsyncHandler() override { kept = nullptr; }

  void begin(const std::string& body = "") {
    messages_.push_back(made_.message("m-" + std::to_string(messages_.size()), body));
    made_.instance->begin({messages_.back(), "orders", 5, attempts_.emplace_back(made_.clock)}, ended_.emplace_back());
  }

  std::vector<sluice::AsyncContext> kept_;
  Made<Keeps> made_;
  std::deque<queue::Message> messages_;
  std::deque<Attempt> attempts_;
  std::deque<Ended> ended_;
};

TEST_F(AsyncHandler, EndsInAnyOrderFromAnyThreadWithItsEffects) {
  EXPECT_EQ(kind_of(table_of<Keeps>()), HandlerKind::async);
  begin();
  begin();
  EXPECT_EQ(ended_[0].times() + ended_[1].times(), 0);
  std::jthread([&] {
    kept_[1].send("sums", "two");
    kept_[1].complete(sluice::done());
  }).join();
  EXPECT_EQ(ended_[0].times(), 0);
  const Outcome second = ended_[1].wait();
  EXPECT_EQ(second.status, OutcomeStatus::done);
  ASSERT_NE(second.effects, nullptr);
  EXPECT_EQ(second.effects->messages.front().message.body, "two");
  kept_[0].complete(sluice::retry(3s, "later"));
  EXPECT_EQ(ended_[0].wait().delay, 3s);
}

TEST_F(AsyncHandler, ThrowingAndDroppingAreFaults) {
  begin("throw");
  EXPECT_EQ(ended_[0].wait().reason, "at once");
  begin("drop");
  EXPECT_THAT(ended_[1].wait().reason, HasSubstr("dropped its AsyncContext"));
  begin();
  kept_.clear();
  EXPECT_EQ(ended_[2].wait().status, OutcomeStatus::fault);
}

TEST_F(AsyncHandler, ItsContextIsOfNoUseOnceItIsCompleted) {
  begin();
  EXPECT_TRUE(kept_[0].complete(sluice::done()));
  EXPECT_TRUE(kept_[0].completed());
  EXPECT_TRUE(kept_[0].stop_requested());
  EXPECT_FALSE(kept_[0].extend(1s));
  kept_[0].info("nobody reads this");
  EXPECT_THROW(kept_[0].send("sums", "x"), sluice::EffectError);
  EXPECT_TRUE(made_.log.lines().empty());
}

TEST_F(AsyncHandler, CompletingTwiceIsRefusedAndNamed) {
  begin();
  EXPECT_TRUE(kept_[0].complete(sluice::done()));
  EXPECT_FALSE(kept_[0].complete(sluice::reject("the second time")));
  sluice::AsyncContext moved = std::move(kept_[0]);
  EXPECT_FALSE(moved.complete(sluice::done().result("a result")));
  EXPECT_EQ(ended_[0].times(), 1);
  ASSERT_EQ(made_.log.lines().size(), 2U);
  EXPECT_EQ(made_.log.lines()[0].id, "m-0");
  EXPECT_THAT(made_.log.lines()[0].text, HasSubstr("completed before"));
}

// Of a handler in another language, which keeps tokens.
sluice_token raw_token = 0;
const sluice_async_host* raw_host = nullptr;
const sluice_async kRawAsync{sizeof(sluice_async), 0,
                             [](void*, const sluice_message*, const sluice_async_context* context) {
                               raw_token = context->token;
                               raw_host = context->async;
                             }};
const sluice_handler kRaw{
    sizeof(sluice_handler),
    0,
    "raw",
    nullptr,
    nullptr,
    0,
    [](const sluice_host*, const sluice_option_value* const*, size_t, void**, void (*)(void*, sluice_string),
       void*) -> int32_t { return 0; },
    [](void*) {},
    [](void*, const sluice_message*, const sluice_context*) {},
    [](const char* id) -> const void* { return std::strcmp(id, SLUICE_ASYNC_1) == 0 ? &kRawAsync : nullptr; }};

struct RawAsync : ::testing::Test {
  RawAsync() {
    instance = *HandlerInstance::create({.log = log.log()}, kRaw, "orders", {});
    message.id = "m-1";
  }
  sluice_answer complete(sluice_token token) {
    const sluice_outcome outcome{sizeof(sluice_outcome), SLUICE_DONE, -1, {}};
    return raw_host->complete(raw_host, token, &outcome);
  }

  test::FakeClock clock;
  LogRecord log;
  Attempt attempt{clock};
  queue::Message message;
  Ended ended;
  std::unique_ptr<HandlerInstance> instance;
};

TEST_F(RawAsync, CompletingTwiceIsRefusedAndNamed) {
  instance->begin({message, "orders", 5, attempt}, ended);
  EXPECT_EQ(complete(raw_token), SLUICE_ACCEPTED);
  EXPECT_EQ(complete(raw_token), SLUICE_TWICE);
  EXPECT_EQ(ended.times(), 1);
  ASSERT_EQ(log.lines().size(), 1U);
  EXPECT_EQ(log.lines()[0].job, "orders");
  EXPECT_EQ(log.lines()[0].id, "m-1");
  EXPECT_THAT(log.lines()[0].text, HasSubstr("completed before"));
}

TEST_F(RawAsync, AStaleTokenDoesNotTouchTheMessageInItsPlace) {
  instance->begin({message, "orders", 5, attempt}, ended);
  const sluice_token first = raw_token;
  complete(first);
  Ended second;
  instance->begin({message, "orders", 5, attempt}, second);
  EXPECT_EQ(complete(first), SLUICE_STALE);
  EXPECT_EQ(second.times(), 0);
  EXPECT_THAT(log.lines().back().text, HasSubstr("long gone"));
  EXPECT_EQ(complete(raw_token), SLUICE_ACCEPTED);
}

TEST_F(RawAsync, TokensThatNeverWereAreRefused) {
  instance->begin({message, "orders", 5, attempt}, ended);
  for (const sluice_token token :
       {sluice_token{0}, raw_token + 1, ~sluice_token{0}, raw_token + (sluice_token{1} << 40U)}) {
    EXPECT_EQ(complete(token), SLUICE_STALE) << token;
    EXPECT_EQ(raw_host->stop_requested(raw_host, token), 1) << token;
    EXPECT_EQ(raw_host->time_left(raw_host, token), 0) << token;
    EXPECT_NE(raw_host->extend(raw_host, token, 1), 0) << token;
    EXPECT_EQ(raw_host->extension(raw_host, token, SLUICE_EFFECTS_1), nullptr) << token;
    EXPECT_EQ(raw_host->call_after(
                  raw_host, token, 0, [](void*) { FAIL(); }, nullptr),
              SLUICE_STALE)
        << token;
  }
  EXPECT_THAT(log.lines().back().text, HasSubstr("never given"));
  EXPECT_EQ(complete(raw_token), SLUICE_ACCEPTED);
}

TEST_F(RawAsync, CompletingAfterItsInstanceIsGoneIsRefusedAndNamed) {
  instance->begin({message, "orders", 5, attempt}, ended);
  complete(raw_token);
  instance.reset();
  testing::internal::CaptureStderr();
  EXPECT_EQ(complete(raw_token), SLUICE_TWICE);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("job 'orders', message 'm-1'"));
}

TEST_F(RawAsync, AnOutcomeThatIsNoneIsAFault) {
  instance->begin({message, "orders", 5, attempt}, ended);
  EXPECT_EQ(raw_host->complete(raw_host, raw_token, nullptr), SLUICE_ACCEPTED);
  EXPECT_EQ(ended.wait().status, OutcomeStatus::fault);
}

TEST_F(RawAsync, WhatItThrowsBreaksTheAbi) {
  const sluice_async throws{sizeof(sluice_async), 0, [](void*, const sluice_message*, const sluice_async_context*) {
                              throw std::runtime_error("out of begin");
                            }};
  static const sluice_async* table = nullptr;
  table = &throws;
  sluice_handler handler = kRaw;
  handler.extension = [](const char* id) -> const void* {
    return std::strcmp(id, SLUICE_ASYNC_1) == 0 ? table : nullptr;
  };
  instance = *HandlerInstance::create({.log = log.log()}, handler, "orders", {});
  instance->begin({message, "orders", 5, attempt}, ended);
  const Outcome outcome = ended.wait();
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_EQ(outcome.reason, "out of begin");
  EXPECT_EQ(outcome.breach, Breach::exception);
  instance.reset();
}

TEST_F(RawAsync, WhatATimerThrowsEndsNothingAndIsNamed) {
  instance->begin({message, "orders", 5, attempt}, ended);
  EXPECT_EQ(raw_host->call_after(
                raw_host, raw_token, 0, [](void*) { throw std::runtime_error("too late"); }, nullptr),
            SLUICE_ACCEPTED);
  EXPECT_EQ(complete(raw_token), SLUICE_ACCEPTED);
  instance.reset();  // by then it has been called
  ASSERT_EQ(log.lines().size(), 1U);
  EXPECT_EQ(log.lines()[0].job, "orders");
  EXPECT_THAT(log.lines()[0].text, HasSubstr("threw: too late"));
}

struct Sleeps {
  sluice::Task<int> nap(const sluice::AsyncContext& context, std::chrono::nanoseconds span) const {
    const bool stopped = co_await context.sleep(span);
    co_return stopped ? 1 : 0;
  }
  sluice::Task<sluice::Outcome> handle(const sluice::Message& message, sluice::AsyncContext& context) const {
    if (message.body() == "throw") {
      throw std::runtime_error("in the coroutine");
    }
    if (message.body() == "callback") {
      const int answer = co_await sluice::callback<int>(
          [](sluice::Completion<int> done) { std::jthread([done = std::move(done)] { done(7); }).join(); });
      co_return sluice::reject(std::to_string(answer));
    }
    if (message.body() == "dropped") {
      co_await sluice::callback<void>([](const sluice::Completion<void>&) {});
    }
    const int stopped = co_await nap(context, message.body() == "long" ? 1h : 1ms);
    co_return stopped > 0 ? sluice::release() : sluice::done();
  }
};

TEST(CoroutineHandler, SleepsOnTheHostsTimers) {
  Made<Sleeps> made;
  EXPECT_EQ(made.instance->handle({made.message("m-1"), "orders", 5, made.attempt}).status, OutcomeStatus::done);
}

TEST(CoroutineHandler, AStopEndsTheSleep) {
  Made<Sleeps> made;
  const queue::Message message = made.message("m-1", "long");
  Ended ended;
  made.instance->begin({message, "orders", 5, made.attempt}, ended);
  EXPECT_EQ(ended.times(), 0);
  made.attempt.request_stop();
  EXPECT_EQ(ended.wait().status, OutcomeStatus::release);
}

TEST(CoroutineHandler, ItsTimeOutEndsTheSleepUnlessItWasExtended) {
  Made<Sleeps> made;
  const SystemClock clock;
  Attempt attempt(clock);
  const queue::Message message = made.message("m-1", "long");
  attempt.arm(clock.steady_now() + 1h);
  Ended ended;
  made.instance->begin({message, "orders", 5, attempt}, ended);
  attempt.extend(5ms);
  EXPECT_EQ(ended.wait().status, OutcomeStatus::release);
}

TEST(CoroutineHandler, WhatItThrowsIsAFault) {
  Made<Sleeps> made;
  const auto outcome_of = [&](const std::string& body) {
    return made.instance->handle({made.message("m-1", body), "orders", 5, made.attempt});
  };
  EXPECT_EQ(outcome_of("throw").reason, "in the coroutine");
  EXPECT_THAT(outcome_of("dropped").reason, HasSubstr("ended without calling back"));
  EXPECT_EQ(outcome_of("callback").reason, "7");
}

TEST(CoroutineHandler, ManyTimersOfManyMessagesEndInTime) {
  Made<Sleeps> made;
  std::deque<queue::Message> messages;
  std::deque<Attempt> attempts;
  std::deque<Ended> ended;
  for (int i = 0; i < 1000; ++i) {
    messages.push_back(made.message(std::to_string(i), i % 2 == 0 ? "" : "long"));
    made.instance->begin({messages.back(), "orders", 5, attempts.emplace_back(made.clock)}, ended.emplace_back());
  }
  for (Attempt& attempt : attempts) {
    attempt.request_stop();
  }
  for (Ended& one : ended) {
    EXPECT_EQ(one.wait().status == OutcomeStatus::fault, false);
    EXPECT_EQ(one.times(), 1);
  }
}

TEST(AsyncTimers, AreCalledOnceEvenWhenTheirMessageHasEnded) {
  std::vector<sluice::AsyncContext> contexts;
  kept = &contexts;
  std::atomic<int> calls{0};
  {
    Made<Keeps> made;
    const queue::Message message = made.message("m-1");
    Ended ended;
    made.instance->begin({message, "orders", 5, made.attempt}, ended);
    contexts[0].call_after(1h, [&] { ++calls; });
    contexts[0].on_stop([&] { ++calls; });
    EXPECT_EQ(calls, 0);
    contexts[0].complete(sluice::done());
    contexts[0].on_stop([&] { ++calls; });
  }
  EXPECT_EQ(calls, 3) << "the instance is not destroyed before";
  kept = nullptr;
}

}  // namespace
}  // namespace sluice::plugin
