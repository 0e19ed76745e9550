// Handlers that go around others, as an author tests them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/testing.hpp"

namespace {

using std::chrono_literals::operator""s;
using sluice::testing::HandlerTest;

struct Echo {
  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    if (message.body() == "throw") {
      throw std::runtime_error("thrown");
    }
    context.send("echo", message.body());
    return message.body() == "retry" ? sluice::retry("again") : sluice::done();
  }
};

/// Upper case, and back off where the handler fails.
struct Loud {
  static constexpr sluice::OptionSpec options[] = {sluice::option<std::string>("mark", "!", "What is added.")};
  explicit Loud(const sluice::Options& values) : mark(values.get<std::string>("mark")) {
    if (mark.empty()) {
      throw std::invalid_argument("no mark");
    }
  }
  sluice::Entry enter(const sluice::Message& message, sluice::Context&) const {
    if (message.body() == "quiet") {
      return sluice::reject("too quiet");
    }
    return sluice::go_on().body(std::string(message.body()) + mark).keep(static_cast<int>(message.body().size()));
  }
  void leave(sluice::Leaving& call) const {
    call.context().info("left " + std::to_string(call.kept<int>()));
    if (call.outcome().status() == SLUICE_FAULT) {
      call.replace(sluice::retry(5s, call.outcome().reason()));
    }
  }
  const std::string mark;
};

/// Asks for what it has not kept.
struct Forgets {
  sluice::Entry enter(const sluice::Message&, sluice::Context&) { return {}; }
  void leave(sluice::Leaving& call) { static_cast<void>(call.kept<int>()); }
};

/// Makes failures good.
struct Forgives {
  sluice::Entry enter(const sluice::Message&, sluice::Context&) { return sluice::go_on(); }
  void leave(sluice::Leaving& call) { call.replace(sluice::done()); }
};

TEST(Around, RunsInTheTestAsInTheHost) {
  HandlerTest run(sluice::testing::handler<Echo>());
  run.around<Loud>();
  run.around<Loud>({{"mark", "?"}});
  const auto result = run.handle({.body = "hello"});
  EXPECT_EQ(result.status, SLUICE_DONE);
  EXPECT_TRUE(result.committed);
  EXPECT_EQ(result.effects.message_to("echo").body, "hello!?");
  EXPECT_EQ(run.log()[0].text, "left 6");
  EXPECT_EQ(run.log()[1].text, "left 5");
}

TEST(Around, AnswersInPlaceOfTheHandler) {
  HandlerTest run(sluice::testing::handler<Echo>());
  run.around<Loud>();
  const auto result = run.handle({.body = "quiet"});
  EXPECT_EQ(result.status, SLUICE_REJECT);
  EXPECT_EQ(result.reason, "too quiet");
  EXPECT_TRUE(run.log().empty());
}

TEST(Around, ReplacesAnOutcome) {
  HandlerTest throws(sluice::testing::handler<Echo>());
  struct Throws {
    sluice::Entry enter(const sluice::Message&, sluice::Context&) const { throw std::runtime_error("thrown"); }
    void leave(sluice::Leaving&) const {}
  };
  throws.around<Loud>();
  throws.around<Throws>();
  const auto result = throws.handle({.body = "x"});
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_EQ(result.delay, 5s);
  EXPECT_EQ(result.reason, "thrown");
}

struct Each {
  std::vector<sluice::Outcome> handle(std::span<const sluice::Message> messages, sluice::BatchContext&) const {
    std::vector<sluice::Outcome> outcomes;
    for (const sluice::Message& message : messages) {
      outcomes.push_back(sluice::reject(std::string(message.body())));
    }
    return outcomes;
  }
};

struct Later {
  sluice::Task<sluice::Outcome> handle(const sluice::Message& message, sluice::AsyncContext& context) const {
    const bool stopped = co_await context.sleep(2s);
    co_return stopped ? sluice::release() : sluice::reject(std::string(message.body()));
  }
};

TEST(Around, GoesAroundBatchesAndWhatEndsLater) {
  HandlerTest batch(sluice::testing::handler<Each>());
  batch.around<Loud>();
  const auto results = batch.handle_batch({{.body = "a"}, {.body = "quiet"}, {.body = "b"}});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].reason, "a!");
  EXPECT_EQ(results[1].reason, "too quiet");
  EXPECT_EQ(results[2].reason, "b!");
  EXPECT_EQ(batch.log().size(), 2U);

  HandlerTest later(sluice::testing::handler<Later>());
  later.around<Loud>();
  EXPECT_EQ(later.handle({.body = "a"}).reason, "a!");
  EXPECT_EQ(later.handle({.body = "quiet"}).reason, "too quiet");
  EXPECT_EQ(later.log().size(), 1U);
}

TEST(Around, EffectsOfAFailureThatIsMadeGoodAreShownAndNotCommitted) {
  HandlerTest run(sluice::testing::handler<Echo>());
  run.around<Forgives>();
  const auto result = run.handle({.body = "retry"});
  EXPECT_EQ(result.status, SLUICE_DONE);
  EXPECT_TRUE(result.effects.empty());
}

TEST(Around, WhatIsReportedWhereTheCallGoesOnIsNoAnswer) {
  // Neither can be written in C++: a handler that reports nothing, and one around it that reports and goes on.
  const auto make = [](const sluice_host*, const sluice_option_value* const*, std::size_t, void**,
                       void (*)(void*, sluice_string), void*) -> std::int32_t { return 0; };
  const sluice_handler silent{sizeof(sluice_handler),
                              0,
                              "silent",
                              nullptr,
                              nullptr,
                              0,
                              make,
                              [](void*) {},
                              [](void*, const sluice_message*, const sluice_context*) {},
                              nullptr};
  sluice_handler hasty = silent;
  hasty.extension = [](const char*) -> const void* {
    static constexpr sluice_around kTable{
        sizeof(sluice_around), 0,
        [](void*, const sluice_message*, const sluice_context* context, sluice_around_call*) -> sluice_around_answer {
          const sluice_outcome done{sizeof(sluice_outcome), SLUICE_DONE, -1, {nullptr, 0}};
          context->report(context, &done);
          return SLUICE_AROUND_GO_ON;
        },
        [](void*, void*, const sluice_message*, const sluice_context*, const sluice_outcome*) {}};
    return &kTable;
  };
  HandlerTest run(silent);
  run.around(hasty);
  EXPECT_EQ(run.handle({}).status, SLUICE_FAULT);
}

TEST(Around, WhatWasNotKeptIsAFault) {
  HandlerTest run(sluice::testing::handler<Echo>());
  run.around<Forgets>();
  EXPECT_EQ(run.handle({.body = "x"}).status, SLUICE_FAULT);
}

TEST(Around, WhatTheHostWouldRefuseIsThrown) {
  HandlerTest run(sluice::testing::handler<Echo>());
  EXPECT_THROW(run.around<Echo>(), std::invalid_argument);
  EXPECT_THROW(run.around<Loud>({{"mark", ""}}), std::invalid_argument);
  EXPECT_THROW(run.around<Loud>({{"marc", "x"}}), std::invalid_argument);
}

TEST(Around, ConstMeansOneInstanceForAll) {
  EXPECT_EQ(sluice::testing::handler<Loud>().flags & SLUICE_HANDLER_CONCURRENT, SLUICE_HANDLER_CONCURRENT);
  EXPECT_EQ(sluice::testing::handler<Forgets>().flags & SLUICE_HANDLER_CONCURRENT, 0U);
}

}  // namespace
