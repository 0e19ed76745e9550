#include "sluice/handler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "sluice/testing.hpp"

namespace {

using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ns;
using ::testing::ElementsAre;

using sluice::testing::HandlerTest;
using sluice::testing::Result;

/// A handler whose `handle` is whatever the test says.
struct ScriptedHandler {
  static inline std::function<sluice::Outcome(const sluice::Message&, sluice::Context&)> script;
  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) { return script(message, context); }
};

Result result_of(std::function<sluice::Outcome(const sluice::Message&, sluice::Context&)> script,
                 const sluice::testing::TestMessage& message = {}) {
  ScriptedHandler::script = std::move(script);
  return HandlerTest(sluice::testing::handler<ScriptedHandler>()).handle(message);
}

Result result_of(const sluice::Outcome& outcome) {
  return result_of([outcome](const sluice::Message&, sluice::Context&) { return outcome; });
}

struct Concurrent {
  static constexpr const char* name = "named";
  static constexpr const char* help = "Helps.";
  static constexpr sluice::OptionSpec options[] = {
      sluice::required<std::string>("token", "The password.").secret(),
      sluice::option<int>("count", "5", "How many."),
  };
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) const { return sluice::done(); }
  static const void* extension(std::string_view id) {
    static const int feature = 1;
    if (id == "throws/1") {
      throw std::runtime_error("no");
    }
    return id == "test/1" ? &feature : nullptr;
  }
};

struct WithHost {
  WithHost(const sluice::Options&, sluice::Host given) : host(given) {
    host.warn("made for " + std::string(host.job()));
  }
  ~WithHost() { host.info("gone"); }
  WithHost(const WithHost&) = delete;
  WithHost& operator=(const WithHost&) = delete;
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) { return sluice::done(); }
  sluice::Host host;
};

struct ThrowsInConstructor {
  ThrowsInConstructor() { throw 42; }
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) { return sluice::done(); }
};

struct Identity {
  static constexpr const char* name = "both";
  static constexpr const char* version = "2.0.0";
};

TEST(Outcome, EveryKindCrosses) {
  EXPECT_EQ(result_of(sluice::done()).status, SLUICE_DONE);
  EXPECT_EQ(result_of(sluice::release()).status, SLUICE_RELEASE);
  EXPECT_EQ(result_of(sluice::reject("no")).status, SLUICE_REJECT);
  EXPECT_EQ(result_of(sluice::reject("no")).reason, "no");
  EXPECT_EQ(result_of(sluice::discard("old")).status, SLUICE_DISCARD);
  EXPECT_EQ(result_of(sluice::discard("old")).reason, "old");
  EXPECT_EQ(result_of(sluice::snooze(5s)).status, SLUICE_SNOOZE);
  EXPECT_EQ(result_of(sluice::snooze(5s)).delay, 5s);
  EXPECT_EQ(result_of(sluice::retry()).status, SLUICE_RETRY);
  EXPECT_EQ(result_of(sluice::retry()).delay, sluice::Outcome::kByPolicy);
  EXPECT_EQ(result_of(sluice::retry("later")).reason, "later");
  EXPECT_EQ(result_of(sluice::retry(2min, "later")).delay, 2min);
  EXPECT_EQ(result_of(sluice::retry(2min, "later")).reason, "later");
}

TEST(Outcome, ATimeThatHasPassedMeansAtOnceAndNotByPolicy) {
  EXPECT_EQ(result_of(sluice::retry(-5s)).delay, 0s);
  EXPECT_EQ(result_of(sluice::snooze(-5s)).delay, 0s);
}

TEST(Handler, ExceptionsBecomeFaultsWithTheirText) {
  const Result exception = result_of([](const sluice::Message&, sluice::Context&) -> sluice::Outcome {
    throw std::runtime_error("the disk is full");
  });
  EXPECT_EQ(exception.status, SLUICE_FAULT);
  EXPECT_EQ(exception.reason, "the disk is full");
  const Result number = result_of([](const sluice::Message&, sluice::Context&) -> sluice::Outcome { throw 42; });
  EXPECT_EQ(number.status, SLUICE_FAULT);
  EXPECT_EQ(number.reason, "threw something that is not a std::exception");
}

TEST(Handler, AnExceptionWhoseTextIsNullIsStillAFault) {
  struct Silent : std::exception {
    const char* what() const noexcept override { return nullptr; }
  };
  EXPECT_EQ(result_of([](const sluice::Message&, sluice::Context&) -> sluice::Outcome { throw Silent(); }).status,
            SLUICE_FAULT);
}

TEST(Handler, SeesTheWholeMessage) {
  const auto look = [](const sluice::Message& message, sluice::Context& context) {
    EXPECT_EQ(message.id(), "A-1");
    EXPECT_EQ(message.queue(), "orders");
    EXPECT_EQ(message.body(), std::string_view("b\0y", 3));
    EXPECT_EQ(message.content_type(), "application/json");
    EXPECT_EQ(message.group(), "g");
    EXPECT_EQ(message.attempt(), 5U);
    EXPECT_EQ(context.attempt(), 5U);
    EXPECT_EQ(context.max_attempts(), 5U);
    EXPECT_TRUE(message.last_attempt());
    EXPECT_EQ(message.sent_at().time_since_epoch(), 42ns);
    EXPECT_EQ(message.attributes().size(), 2U);
    EXPECT_EQ(message.attribute("colour"), "red");
    EXPECT_EQ(message.attribute("empty"), "");
    EXPECT_EQ(message.attribute("absent"), std::nullopt);
    EXPECT_EQ(message.attribute("absent", "none"), "none");
    std::string all;
    for (const auto [name, value] : message.attributes()) {
      all += std::string(name) + "=" + std::string(value) + ";";
    }
    EXPECT_EQ(all, "colour=red;empty=;");
    return sluice::done();
  };
  sluice::testing::TestMessage message;
  message.id = "A-1";
  message.queue = "orders";
  message.body = std::string("b\0y", 3);
  message.content_type = "application/json";
  message.group = "g";
  message.attempt = 5;
  message.sent_at = std::chrono::sys_time<std::chrono::nanoseconds>(42ns);
  message.attributes = {{"colour", "red"}, {"empty", ""}};
  EXPECT_EQ(result_of(look, message).status, SLUICE_DONE);
}

TEST(Handler, AnEmptyMessageHasEmptyViews) {
  const auto look = [](const sluice::Message& message, sluice::Context&) {
    EXPECT_TRUE(message.body().empty());
    EXPECT_TRUE(message.attributes().empty());
    EXPECT_EQ(message.attributes().begin(), message.attributes().end());
    EXPECT_FALSE(message.last_attempt());
    return sluice::done();
  };
  EXPECT_EQ(result_of(look, {.attempt = 9, .max_attempts = 0}).status, SLUICE_DONE);
}

TEST(HandlerTable, SaysWhatTheClassDeclares) {
  const sluice_handler& handler = sluice::testing::handler<Concurrent>();
  EXPECT_STREQ(handler.name, "named");
  EXPECT_STREQ(handler.help, "Helps.");
  EXPECT_EQ(handler.flags, SLUICE_HANDLER_CONCURRENT);
  ASSERT_EQ(handler.option_count, 2U);
  EXPECT_STREQ(handler.options[0]->name, "token");
  EXPECT_EQ(handler.options[0]->flags, SLUICE_OPTION_REQUIRED | SLUICE_OPTION_SECRET);
  EXPECT_EQ(handler.options[0]->default_value, nullptr);
  EXPECT_STREQ(handler.options[1]->default_value, "5");
  EXPECT_EQ(handler.options[1]->type, SLUICE_OPTION_INTEGER);
}

TEST(HandlerTable, SaysWhatTheClassDoesNotDeclare) {
  const sluice_handler& handler = sluice::testing::handler<ScriptedHandler>();
  EXPECT_EQ(handler.flags, SLUICE_HANDLER_OPEN_OPTIONS) << "a handle that is not const is not concurrent";
  EXPECT_EQ(handler.help, nullptr);
  EXPECT_EQ(handler.option_count, 0U);
  EXPECT_EQ(handler.extension, nullptr);
}

TEST(HandlerTable, AnswersForFeaturesAndNeverThrows) {
  const sluice_handler& handler = sluice::testing::handler<Concurrent>();
  EXPECT_NE(handler.extension("test/1"), nullptr);
  EXPECT_EQ(handler.extension("test/2"), nullptr);
  EXPECT_EQ(handler.extension("throws/1"), nullptr);
}

template <bool only>
struct Sender {
  static constexpr bool only_sends = only;
  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    context.send("mail", message.body());
    return sluice::done();
  }
};

struct MemberOfThatName {
  bool only_sends = true;
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) const { return sluice::done(); }
};

TEST(HandlerTable, SaysWhetherAHandlerOnlySends) {
  const sluice_handler& handler = sluice::testing::handler<Sender<true>>();
  ASSERT_NE(handler.extension, nullptr);
  const auto* effects = static_cast<const sluice_effects_handler*>(handler.extension(SLUICE_EFFECTS_1));
  ASSERT_NE(effects, nullptr);
  EXPECT_EQ(effects->struct_size, sizeof(sluice_effects_handler));
  EXPECT_EQ(effects->only_sends, 1);
  EXPECT_EQ(sluice::testing::handler<Sender<false>>().extension, nullptr);
  EXPECT_EQ(sluice::testing::handler<MemberOfThatName>().extension, nullptr);
}

TEST(PluginTable, IsTheGreetersExactly) {
  EXPECT_EQ(sluice_plugin_v1.magic, SLUICE_PLUGIN_MAGIC);
  EXPECT_EQ(sluice_plugin_v1.abi_major, 1U);
  EXPECT_EQ(sluice_plugin_v1.abi_minor, 0U);
  EXPECT_STREQ(sluice_plugin_v1.name, "greeter");
  EXPECT_STREQ(sluice_plugin_v1.version, "1.0.0");
  ASSERT_EQ(sluice_plugin_v1.handler_count, 1U);
  EXPECT_STREQ(sluice_plugin_v1.handlers[0]->name, "greeter") << "a handler without a name has the plugin's";
  EXPECT_EQ(sluice_plugin_v1.handlers[0]->flags, SLUICE_HANDLER_CONCURRENT | SLUICE_HANDLER_OPEN_OPTIONS);
}

TEST(PluginTable, HoldsSeveralHandlersUnderTheirNames) {
  constexpr sluice_plugin plugin = sluice::detail::PluginTable<Identity, Concurrent, WithHost>::make();
  ASSERT_EQ(plugin.handler_count, 2U);
  EXPECT_STREQ(plugin.handlers[0]->name, "named");
  EXPECT_STREQ(plugin.handlers[1]->name, "both");
}

TEST(Handler, HasTheHostFromItsConstructorToItsDestructor) {
  const HandlerTest test(sluice::testing::handler<WithHost>(), {}, "orders");
  const std::vector<sluice::testing::LogLine> lines = test.log();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].text, "made for orders");
  EXPECT_EQ(lines[0].level, SLUICE_LOG_WARN);
  EXPECT_EQ(lines[0].message_id, "");
}

TEST(Handler, WhatItsConstructorThrowsKeepsItFromBeing) {
  const HandlerTest test(sluice::testing::handler<ThrowsInConstructor>());
  EXPECT_FALSE(test.created());
  EXPECT_THAT(test.errors(), ElementsAre("threw something that is not a std::exception"));
}

TEST(Greeter, Greets) {
  HandlerTest test(sluice::testing::handler(sluice_plugin_v1, "greeter"), {{"greeting", "good morning"}});
  EXPECT_EQ(test.handle({.body = "world"}).status, SLUICE_DONE);
  EXPECT_TRUE(test.logged("good morning, world"));
  EXPECT_EQ(test.log()[0].message_id, "test-1");
  EXPECT_EQ(test.log()[0].level, SLUICE_LOG_INFO);
}

}  // namespace
