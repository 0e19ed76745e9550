// Batch and asynchronous handlers in the test kit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "sluice/handler.hpp"
#include "sluice/testing.hpp"

namespace {

using std::chrono_literals::operator""s;
using sluice::testing::handler;
using sluice::testing::HandlerTest;
using ::testing::HasSubstr;

struct Rows {
  std::vector<sluice::Outcome> handle(std::span<const sluice::Message> messages, sluice::BatchContext& batch) {
    std::vector<sluice::Outcome> outcomes;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].body() == "throw") {
        throw std::runtime_error("no batch today");
      }
      batch.context(i).send("rows", messages[i].body());
      outcomes.push_back(messages[i].body() == "bad" ? sluice::reject("bad") : sluice::done());
    }
    if (batch.stop_requested()) {
      outcomes.assign(messages.size(), sluice::release());
    }
    return outcomes;
  }
};

struct AllAlike {
  sluice::Outcome handle(std::span<const sluice::Message> messages, sluice::BatchContext& batch) const {
    return messages.size() == batch.size() && batch.time_left() > 1s ? sluice::discard("all") : sluice::done();
  }
};

TEST(BatchKit, GivesAResultForEach) {
  HandlerTest test(handler<Rows>());
  const auto results = test.handle_batch({{.body = "a"}, {.body = "bad"}, {.body = "c"}});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].status, SLUICE_DONE);
  EXPECT_TRUE(results[0].committed);
  EXPECT_EQ(results[0].effects.message_to("rows").body, "a");
  EXPECT_EQ(results[1].status, SLUICE_REJECT);
  EXPECT_FALSE(results[1].committed);
  EXPECT_EQ(results[2].effects.message_to("rows").body, "c");
}

TEST(BatchKit, OneOutcomeIsForAllAndAnExceptionToo) {
  HandlerTest alike(handler<AllAlike>());
  EXPECT_EQ(alike.handle_batch({{}, {}})[1].reason, "all");
  HandlerTest rows(handler<Rows>());
  EXPECT_EQ(rows.handle_batch({{}, {.body = "throw"}})[0].reason, "no batch today");
}

TEST(BatchKit, WorksOnOneMessageToo) {
  HandlerTest test(handler<Rows>());
  EXPECT_EQ(test.handle({.body = "bad"}).status, SLUICE_REJECT);
  test.stop_after(0s);
  EXPECT_EQ(test.handle({}).status, SLUICE_RELEASE);
}

struct Naps {
  sluice::Task<std::chrono::nanoseconds> nap(const sluice::AsyncContext& context, std::chrono::nanoseconds span) {
    const auto before = context.time_left();
    co_await context.sleep(span);
    co_return before - context.time_left();
  }
  sluice::Task<sluice::Outcome> handle(const sluice::Message& message, sluice::AsyncContext& context) {
    if (message.body() == "throw") {
      throw std::runtime_error("not today");
    }
    const auto slept = co_await nap(context, 5s);
    context.send("slept", std::to_string(slept / 1s));
    co_return context.stop_requested() ? sluice::release() : sluice::done();
  }
};

TEST(AsyncKit, TimePassesForCoroutinesAsTheTestSays) {
  HandlerTest test(handler<Naps>());
  const auto result = test.handle({});
  EXPECT_EQ(result.status, SLUICE_DONE);
  EXPECT_EQ(result.elapsed, 5s);
  EXPECT_EQ(result.effects.message_to("slept").body, "5");
  const sluice_token token = test.begin({});
  test.advance(4s);
  EXPECT_FALSE(test.result(token));
  test.advance(2s);
  ASSERT_TRUE(test.result(token));
  EXPECT_EQ(test.result(token)->elapsed, 5s);
}

/// What it has called later throws, with the context in it or elsewhere.
struct ThrowsLater {
  void handle(const sluice::Message& message, sluice::AsyncContext context) {
    const auto kept = std::make_shared<sluice::AsyncContext>(std::move(context));
    if (message.body() == "elsewhere") {
      elsewhere = kept;
      kept->call_after(1s, [] { throw std::runtime_error("not later either"); });
    } else {
      kept->call_after(1s, [kept] { throw std::runtime_error("not later either"); });
    }
  }
  std::shared_ptr<sluice::AsyncContext> elsewhere;
};

TEST(AsyncKit, WhatThrowsLaterEndsItsMessageAsAFault) {
  for (const char* const body : {"in it", "elsewhere"}) {
    HandlerTest test(handler<ThrowsLater>());
    const auto result = test.handle({.body = body});
    EXPECT_EQ(result.status, SLUICE_FAULT) << body;
    EXPECT_EQ(result.reason, "not later either") << body;
    EXPECT_EQ(result.elapsed, 1s);
  }
}

/// What it has called later throws while it sleeps, or takes the context along.
struct SleepsOn {
  sluice::Task<sluice::Outcome> handle(const sluice::Message& message, sluice::AsyncContext& context) const {
    if (message.body() == "given away") {
      const auto kept = std::make_shared<sluice::AsyncContext>(std::move(context));
      kept->call_after(1s, [kept] { throw std::runtime_error("not in time"); });
      co_return sluice::done();
    }
    context.call_after(1s, [] { throw std::runtime_error("not in time"); });
    context.call_after(2s, [] { throw std::runtime_error("the second one"); });
    co_await context.sleep(10s);
    context.send("slept", "well");
    co_return sluice::done();
  }
};

TEST(AsyncKit, WhatThrowsWhileACoroutineSleepsIsItsFaultOnceItReturns) {
  HandlerTest test(handler<SleepsOn>());
  for (const auto& [body, ends_at] : {std::pair("sleeps", 10s), {"given away", 1s}}) {
    const auto result = test.handle({.body = body});
    EXPECT_EQ(result.status, SLUICE_FAULT) << body;
    EXPECT_EQ(result.reason, "not in time") << body;
    EXPECT_EQ(result.elapsed, ends_at) << body;
    EXPECT_FALSE(result.committed) << body;
  }
}

/// Another thread completes it, and a stop would end it.
struct Elsewhere {
  void handle(const sluice::Message&, sluice::AsyncContext context) {
    const auto kept = std::make_shared<sluice::AsyncContext>(std::move(context));
    kept->on_stop([] {});
    thread = std::jthread([kept] { kept->complete(sluice::done()); });
  }
  std::jthread thread;
};

TEST(AsyncKit, AStopThatNobodyHasAskedForWaitsForOtherThreads) {
  HandlerTest test(handler<Elsewhere>());
  EXPECT_EQ(test.handle({}).elapsed, 0s);
}

/// Asks for a stop until it comes.
struct Asks {
  static inline std::atomic<bool> asked{false};
  void handle(const sluice::Message&, sluice::AsyncContext context) {
    thread = std::jthread([context = std::move(context)]() mutable {
      while (!context.stop_requested()) {
        asked.store(true, std::memory_order_relaxed);
      }
      context.complete(sluice::release());
    });
  }
  std::jthread thread;
};

// ThreadSanitizer looks at this.
TEST(AsyncKit, AStopMayComeWhileAnotherThreadAsksForIt) {
  HandlerTest test(handler<Asks>());
  test.set_timeout(std::chrono::nanoseconds::max());
  const sluice_token token = test.begin({});
  while (!Asks::asked.load(std::memory_order_relaxed)) {
    std::this_thread::yield();
  }
  test.stop_after(0s);
  while (!test.result(token)) {
    std::this_thread::yield();
  }
  EXPECT_EQ(test.result(token)->status, SLUICE_RELEASE);
}

TEST(AsyncKit, AStopAndATimeOutEndASleep) {
  HandlerTest test(handler<Naps>());
  test.stop_after(2s);
  EXPECT_EQ(test.handle({}).status, SLUICE_RELEASE);
  HandlerTest late(handler<Naps>());
  late.set_timeout(3s);
  EXPECT_EQ(late.handle({}).elapsed, 3s);
}

TEST(AsyncKit, WhatIsAtWorkAtTheEndIsAskedToStop) {
  struct Patient {
    sluice::Task<sluice::Outcome> handle(const sluice::Message&, sluice::AsyncContext& context) const {
      bool stops = false;
      while (!stops) {
        stops = co_await context.sleep(1s);
      }
      co_return sluice::release();
    }
  };
  HandlerTest test(handler<Patient>());
  test.set_timeout(std::chrono::nanoseconds::max());
  test.begin({});
}  // Does not go on for 292 years.

TEST(AsyncKit, WhatACoroutineThrowsIsAFault) {
  HandlerTest test(handler<Naps>());
  EXPECT_EQ(test.handle({.body = "throw"}).reason, "not today");
}

struct Threads {
  void handle(const sluice::Message& message, sluice::AsyncContext context) {
    if (message.body() == "throw") {
      throw std::runtime_error("before it began");
    }
    if (message.body() == "drop") {
      return;
    }
    thread_ = std::jthread([context = std::move(context)]() mutable {
      context.info("from another thread");
      context.complete(sluice::done().result("made elsewhere"));
    });
  }

 private:
  std::jthread thread_;
};

TEST(AsyncKit, WaitsForOtherThreads) {
  HandlerTest test(handler<Threads>());
  const auto result = test.handle({});
  EXPECT_EQ(result.status, SLUICE_DONE);
  EXPECT_EQ(result.effects.result, "made elsewhere");
  EXPECT_TRUE(test.logged("from another thread"));
  EXPECT_THAT(test.handle({.body = "drop"}).reason, HasSubstr("dropped its AsyncContext"));
  EXPECT_EQ(test.handle({.body = "throw"}).reason, "before it began");
}

/// Uses tokens by the host's table, as in C.
struct ByToken {
  ByToken(const sluice::Options&, sluice::Host host) : async(host.extension<sluice_async_host>(SLUICE_ASYNC_1)) {}
  void handle(const sluice::Message&, sluice::AsyncContext context) {
    table = async;
    kept.emplace(std::move(context));
  }
  const sluice_async_host* async;
  static inline const sluice_async_host* table = nullptr;
  static inline std::optional<sluice::AsyncContext> kept;
};

// AddressSanitizer looks at this.
TEST(AsyncKit, ATokenMayBeAskedForWhileItsMessageEnds) {
  HandlerTest test(handler<ByToken>());
  std::atomic<sluice_token> token{test.begin({})};
  {
    const std::jthread asks([&token](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        ByToken::table->stop_requested(ByToken::table, token);
      }
    });
    for (int i = 0; i < 20'000; ++i) {
      ByToken::kept->complete(sluice::done());
      token = test.begin({});
    }
  }
  ByToken::kept.reset();
}

TEST(AsyncKit, ALineOfAMessageThatHasEndedIsToldOf) {
  HandlerTest test(handler<ByToken>());
  const sluice_token token = test.begin({});
  ByToken::kept.reset();
  ByToken::table->log(ByToken::table, token, SLUICE_LOG_INFO, {"too late", 8});
  EXPECT_TRUE(test.logged("wrote a line to the log of a message that has ended"));
  EXPECT_FALSE(test.logged("too late"));
}

struct Moves {
  static inline std::optional<sluice::AsyncContext> kept;
  void handle(const sluice::Message&, sluice::AsyncContext context) { kept.emplace(std::move(context)); }
};

TEST(AsyncKit, AContextCanBeKeptMovedAndCompletedOnce) {
  HandlerTest test(handler<Moves>());
  const sluice_token first = test.begin({.id = "first"});
  sluice::AsyncContext mine = std::move(*Moves::kept);
  const sluice_token second = test.begin({.id = "second"});
  mine = std::move(*Moves::kept);
  EXPECT_EQ(test.result(first)->status, SLUICE_FAULT) << "what is overwritten is dropped";
  EXPECT_EQ(mine.attempt(), 1U);
  EXPECT_TRUE(mine.complete(sluice::done()));
  EXPECT_FALSE(mine.complete(sluice::done()));
  EXPECT_EQ(test.result(second)->status, SLUICE_DONE);
  EXPECT_TRUE(mine.stop_requested()) << "it is of no use any more";
  EXPECT_EQ(mine.time_left(), 0s);
  Moves::kept.reset();
}

struct Swallows {
  void handle(const sluice::Message&, sluice::AsyncContext context) const {
    try {
      const sluice::AsyncContext mine = std::move(context);
      throw std::runtime_error("caught below");
    } catch (const std::runtime_error&) {
    }
  }
};

TEST(AsyncKit, AContextThatIsDroppedByWhatTheHandlerCatchesIsAFault) {
  HandlerTest test(handler<Swallows>());
  EXPECT_THAT(test.handle({}).reason, HasSubstr("dropped its AsyncContext"));
}

TEST(AsyncKit, AHandlerSaysToAnOlderHostThatItNeedsIt) {
  HandlerTest test(handler<Naps>());
  EXPECT_TRUE(test.created());
  const sluice_host old{sizeof(sluice_host),
                        0,
                        nullptr,
                        {},
                        [](const sluice_host*, sluice_log_level, sluice_string) {},
                        [](const sluice_host*, const char*) -> const void* { return nullptr; }};
  std::string why;
  void* instance = nullptr;
  const auto fail = [](void* sink, sluice_string text) {
    *static_cast<std::string*>(sink) = std::string(text.data, text.size);
  };
  EXPECT_NE(handler<Naps>().create(&old, nullptr, 0, &instance, fail, &why), 0);
  EXPECT_THAT(why, HasSubstr("update the host"));
}

TEST(Kits, SayWhatAHandlerCannotDo) {
  HandlerTest naps(handler<Naps>());
  EXPECT_THROW(naps.handle_batch({{}}), std::logic_error);
  HandlerTest rows(handler<Rows>());
  EXPECT_THROW(rows.begin({}), std::logic_error);
}

struct Waits {
  sluice::Task<int> answer() {
    const int seven = co_await sluice::callback<int>([](const sluice::Completion<int>& done) {
      EXPECT_TRUE(done(7));
      EXPECT_FALSE(done(8)) << "the first one counts";
    });
    co_await sluice::callback<void>([](auto done) { std::jthread([done] { done(); }).join(); });
    co_return seven;
  }
  sluice::Task<sluice::Outcome> handle(const sluice::Message& message, sluice::AsyncContext&) {
    if (message.body() == "fail") {
      co_await sluice::callback<std::string>([](auto done) { done.fail("the line is down"); });
    }
    if (message.body() == "drop") {
      co_await sluice::callback<std::string>([](auto) {});
    }
    if (message.body() == "throw") {
      co_await sluice::callback<std::string>([](auto) { throw std::runtime_error("at the start"); });
    }
    co_return sluice::discard(std::to_string(co_await answer()));
  }
};

TEST(Callback, BringsItsValueItsErrorOrThatItNeverCame) {
  HandlerTest test(handler<Waits>());
  EXPECT_EQ(test.handle({}).reason, "7");
  EXPECT_EQ(test.handle({.body = "fail"}).reason, "the line is down");
  EXPECT_EQ(test.handle({.body = "throw"}).reason, "at the start");
  EXPECT_THAT(test.handle({.body = "drop"}).reason, HasSubstr("without calling back"));
}

}  // namespace
