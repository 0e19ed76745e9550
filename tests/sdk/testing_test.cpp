// The test kit that authors get, tested as they would use it.
#include "sluice/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace {

using std::chrono_literals::operator""s;
using sluice::testing::HandlerTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Waits in steps, extends once, and tells what it saw.
struct Waits {
  static constexpr sluice::OptionSpec options[] = {
      sluice::option<std::chrono::seconds>("wait", "5s", "How long."),
      sluice::option<std::chrono::seconds>("extend", "Moves the time-out first."),
  };
  explicit Waits(const sluice::Options& values)
      : wait(values.duration("wait")), extension(values.find<std::chrono::nanoseconds>("extend")) {}
  sluice::Outcome handle(const sluice::Message&, sluice::Context& context) {
    if (context.stop_requested()) {
      return sluice::release();
    }
    if (extension && !context.extend(*extension)) {
      return sluice::reject("lost");
    }
    if (context.wait_for_stop(wait)) {
      return sluice::retry("stopped with " + std::to_string(context.time_left().count()) + " left");
    }
    return sluice::done();
  }
  std::chrono::nanoseconds wait;
  std::optional<std::chrono::nanoseconds> extension;
};

struct Needs {
  static constexpr sluice::OptionSpec options[] = {sluice::required<std::string>("path", "A file.")};
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) { return sluice::done(); }
};

HandlerTest waits(const sluice::testing::OptionMap& options = {}) {
  return HandlerTest(sluice::testing::handler<Waits>(), options);
}

TEST(HandlerTest, TimeStandsStillButForWaits) {
  HandlerTest test = waits({{"wait", "45s"}});
  const auto result = test.handle({});
  EXPECT_EQ(result.status, SLUICE_DONE);
  EXPECT_EQ(result.elapsed, 45s);
  EXPECT_EQ(test.handle({}).elapsed, 45s) << "every attempt begins afresh";
}

TEST(HandlerTest, AttemptsTimeOut) {
  HandlerTest test = waits();
  test.set_timeout(2s);
  const auto result = test.handle({});
  EXPECT_EQ(result.reason, "stopped with 0 left");
  EXPECT_EQ(result.elapsed, 2s);
}

TEST(HandlerTest, StopsWhenToldTo) {
  HandlerTest test = waits();
  test.stop_after(3s);
  EXPECT_EQ(test.handle({}).elapsed, 3s);
  test.stop_after(0s);
  EXPECT_EQ(test.handle({}).status, SLUICE_RELEASE);
}

TEST(HandlerTest, ExtendMovesTheTimeOut) {
  HandlerTest test = waits({{"wait", "90s"}, {"extend", "120s"}});
  EXPECT_EQ(test.handle({}).status, SLUICE_DONE);
}

TEST(HandlerTest, ALostLeaseStopsTheHandler) {
  HandlerTest test = waits({{"extend", "120s"}});
  test.lose_lease();
  EXPECT_EQ(test.handle({}).status, SLUICE_RELEASE);
}

TEST(HandlerTest, OnceTheLeaseIsLostThereIsNoTimeLeftAndNothingIsCommitted) {
  struct GoesOn {
    sluice::Outcome handle(const sluice::Message&, sluice::Context& context) {
      context.send("receipts", std::to_string(context.time_left().count()));
      return sluice::done();
    }
  };
  HandlerTest test(sluice::testing::handler<GoesOn>());
  EXPECT_TRUE(test.handle({}).committed);
  test.lose_lease();
  const auto result = test.handle({});
  EXPECT_EQ(result.status, SLUICE_DONE);
  EXPECT_EQ(result.effects.message_to("receipts").body, "0");
  EXPECT_FALSE(result.committed);
}

TEST(HandlerTest, AWaitThatWouldNeverEndIsAFault) {
  struct Endless {
    sluice::Outcome handle(const sluice::Message&, sluice::Context& context) {
      context.wait_for_stop(std::chrono::nanoseconds::max());
      return sluice::done();
    }
  };
  HandlerTest test(sluice::testing::handler<Endless>());
  test.set_timeout(std::chrono::nanoseconds::max());
  EXPECT_THAT(test.handle({}).reason, HasSubstr("call stop_after or set_timeout"));
}

TEST(HandlerTest, ValidatesOptionsAsTheHostDoes) {
  EXPECT_THAT(
      waits({{"wiat", "5s"}, {"extend", 5}}).errors(),
      ElementsAre("the handler has no option \"wiat\"", "the option \"extend\" must be a duration such as \"30s\""));
  EXPECT_THAT(waits({{"wait", "5 seconds"}}).errors(), ElementsAre(HasSubstr("must be a duration")));
  EXPECT_THAT(HandlerTest(sluice::testing::handler<Needs>()).errors(), ElementsAre("the option \"path\" is missing"));
}

TEST(HandlerTest, AHandlerThatWasNotCreatedCannotBeCalled) {
  HandlerTest test = waits({{"wait", "soon"}});
  EXPECT_THROW(test.handle({}), std::logic_error);
}

TEST(HandlerTest, AnswersForTheFeaturesThatWereSet) {
  struct Asks {
    Asks(const sluice::Options&, sluice::Host given) : host(given) {}
    sluice::Outcome handle(const sluice::Message&, sluice::Context& context) {
      const int* one = host.extension<int>("test/1");
      const int* other = context.extension<int>("test/2");
      return sluice::reject(std::to_string(one == nullptr ? 0 : *one) + (other == nullptr ? " null" : " not null"));
    }
    sluice::Host host;
  };
  const int feature = 7;
  HandlerTest test(sluice::testing::handler<Asks>());
  EXPECT_EQ(test.handle({}).reason, "0 null");
  test.set_feature("test/1", &feature);
  EXPECT_EQ(test.handle({}).reason, "7 null");
}

TEST(HandlerTest, CutsReasonsAsTheHostDoes) {
  struct Wordy {
    sluice::Outcome handle(const sluice::Message&, sluice::Context&) { return sluice::reject(std::string(5000, 'x')); }
  };
  EXPECT_EQ(HandlerTest(sluice::testing::handler<Wordy>()).handle({}).reason.size(), 4096U);
}

TEST(HandlerTest, TakesLogLinesFromThreads) {
  struct Threads {
    sluice::Outcome handle(const sluice::Message&, sluice::Context& context) {
      {
        const std::jthread one([&context] { context.trace("one"); });
        const std::jthread two([&context] { context.debug("two"); });
      }
      context.error("three");
      return sluice::done();
    }
  };
  HandlerTest test(sluice::testing::handler<Threads>());
  test.handle({});
  EXPECT_EQ(test.log().size(), 3U);
  EXPECT_TRUE(test.logged("two"));
  EXPECT_FALSE(test.logged("four"));
}

TEST(HandlerTest, APluginNamesItsHandlers) {
  EXPECT_STREQ(sluice::testing::handler(sluice_plugin_v1, "greeter").name, "greeter");
  EXPECT_THROW(sluice::testing::handler(sluice_plugin_v1, "absent"), std::invalid_argument);
}

TEST(HandlerTest, TheDeadlineIsTheTimeLeft) {
  struct Looks {
    sluice::Outcome handle(const sluice::Message&, sluice::Context& context) {
      const std::chrono::steady_clock::time_point deadline = context.deadline();
      if (deadline == std::chrono::steady_clock::time_point::max()) {
        return sluice::reject("never");
      }
      return sluice::reject(deadline > std::chrono::steady_clock::now() ? "later" : "now");
    }
  };
  HandlerTest test(sluice::testing::handler<Looks>());
  EXPECT_EQ(test.handle({}).reason, "later");
  test.set_timeout(std::chrono::nanoseconds::max());
  EXPECT_EQ(test.handle({}).reason, "never");
  test.set_timeout(0s);
  EXPECT_EQ(test.handle({}).reason, "now");
}

}  // namespace
