#include "host/plugin/handler_instance.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/random.hpp"
#include "sluice/health.h"
#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ns;

/// A handler whose functions note what they were given.
struct Seen {
  int created = 0;
  int destroyed = 0;
  std::vector<std::string> options;
  std::string job;
  std::vector<std::string> texts;
  std::vector<std::string> attributes;
  sluice_message message{};
  const void* feature = nullptr;
  const void* attempt_feature = nullptr;
  const void* unknown_feature = nullptr;
};
Seen* seen = nullptr;

std::string text(sluice_string string) { return {string.data, string.size}; }

std::int32_t create(const sluice_host* host, const sluice_option_value* const* options, std::size_t count,
                    void** instance, void (*)(void*, sluice_string), void*) {
  ++seen->created;
  seen->job = text(host->job);
  seen->feature = host->extension(host, SLUICE_HEALTH_1);
  seen->unknown_feature = host->extension(host, "sluice.unknown/1");
  for (std::size_t i = 0; i < count; ++i) {
    std::string line =
        text(options[i]->name) + "=" + text(options[i]->string) + "/" + std::to_string(options[i]->integer);
    for (std::size_t j = 0; j < options[i]->item_count; ++j) {
      line += "," + text(options[i]->items[j]);
    }
    seen->options.push_back(line);
  }
  *instance = seen;
  return 0;
}

void destroy(void* instance) { ++static_cast<Seen*>(instance)->destroyed; }

void handle(void*, const sluice_message* message, const sluice_context* context) {
  seen->message = *message;
  seen->texts = {text(message->id), text(message->queue), text(message->body), text(message->content_type),
                 text(message->group)};
  seen->attributes.clear();
  for (std::size_t i = 0; i < message->attribute_count; ++i) {
    seen->attributes.push_back(text(message->attributes[i].name) + "=" + text(message->attributes[i].value));
  }
  seen->attempt_feature = context->extension(context, SLUICE_EFFECTS_1);
  const sluice_outcome outcome{sizeof(sluice_outcome), SLUICE_DONE, -1, {nullptr, 0}};
  context->report(context, &outcome);
}

constexpr sluice_handler kHandler{
    sizeof(sluice_handler), 0, "notes", nullptr, nullptr, 0, &create, &destroy, &handle, nullptr};

class HandlerInstanceTest : public ::testing::Test {
 public:
  HandlerInstanceTest() { seen = &record_; }
  ~HandlerInstanceTest() override { seen = nullptr; }

  Seen record_;
  FakeClock clock_;
  Attempt attempt_{clock_};
};

TEST_F(HandlerInstanceTest, AnExceptionWithoutATextIsAFaultAsAnyOther) {
  struct Mute : std::exception {
    const char* what() const noexcept override { return nullptr; }
  };
  sluice_handler handler = kHandler;
  handler.handle = [](void*, const sluice_message*, const sluice_context*) { throw Mute(); };
  auto instance = HandlerInstance::create({}, handler, "orders", {});
  ASSERT_TRUE(instance);
  const Outcome outcome = (*instance)->handle({queue::Message{}, "q", 5, attempt_});
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_EQ(outcome.breach, Breach::exception);
}

TEST_F(HandlerInstanceTest, CreatesOnceAndDestroysOnce) {
  {
    auto instance = HandlerInstance::create({}, kHandler, "orders", {});
    ASSERT_TRUE(instance);
    EXPECT_EQ(record_.created, 1);
    EXPECT_EQ(record_.job, "orders");
  }
  EXPECT_EQ(record_.destroyed, 1);
}

TEST_F(HandlerInstanceTest, HandsOverEveryOption) {
  OptionValues values;
  values.push_back({"a", SLUICE_OPTION_STRING, "text", 0, 0, {}});
  values.push_back({"b", SLUICE_OPTION_DURATION, "30s", 30'000'000'000, 0, {}});
  values.push_back({"c", SLUICE_OPTION_LIST, "", 0, 0, {"x", "", "y"}});
  auto instance = HandlerInstance::create({}, kHandler, "orders", values);
  EXPECT_THAT(record_.options, ::testing::ElementsAre("a=text/0", "b=30s/30000000000", "c=/0,x,,y"));
}

TEST_F(HandlerInstanceTest, HandsOverEveryFieldOfTheMessage) {
  auto created = HandlerInstance::create({}, kHandler, "orders", {});
  ASSERT_TRUE(created);
  HandlerInstance* instance = created->get();
  const queue::Message message{.id = "A-101",
                               .body = std::string("b\0y", 3),
                               .content_type = "application/json",
                               .attributes = {{"a", "1"}, {"b", ""}},
                               .group = "customer-7",
                               .attempt = 3,
                               .sent_at = WallTime(12345ns)};
  EXPECT_EQ(instance->handle({message, "orders", 5, attempt_}).status, OutcomeStatus::done);
  EXPECT_THAT(record_.texts,
              ::testing::ElementsAre("A-101", "orders", std::string("b\0y", 3), "application/json", "customer-7"));
  EXPECT_THAT(record_.attributes, ::testing::ElementsAre("a=1", "b="));
  EXPECT_EQ(record_.message.attempt, 3U);
  EXPECT_EQ(record_.message.max_attempts, 5U);
  EXPECT_EQ(record_.message.sent_at, 12345);
  EXPECT_EQ(record_.message.struct_size, sizeof(sluice_message));
}

TEST_F(HandlerInstanceTest, AttributesOfTheMessageBeforeAreGone) {
  auto created = HandlerInstance::create({}, kHandler, "orders", {});
  ASSERT_TRUE(created);
  HandlerInstance* instance = created->get();
  queue::Message many;
  for (int i = 0; i < 2000; ++i) {
    many.attributes["name-" + std::to_string(i)] = "value";
  }
  instance->handle({many, "q", 0, attempt_});
  EXPECT_EQ(record_.attributes.size(), 2000U);
  instance->handle({{}, "q", 0, attempt_});
  EXPECT_EQ(record_.attributes.size(), 0U);
}

TEST_F(HandlerInstanceTest, AnswersForTheFeaturesItHasAndNoOthers) {
  HealthBoard board;
  SeededRandom random;
  const SystemClock clock;
  auto created = HandlerInstance::create(
      {.log = {}, .effects = {SLUICE_STORE_SQLITE, false, &random, &clock}, .health = board.seat()}, kHandler, "j", {});
  ASSERT_TRUE(created);
  (*created)->handle({{}, "q", 0, attempt_});
  EXPECT_NE(record_.feature, nullptr);
  EXPECT_NE(record_.attempt_feature, nullptr);
  EXPECT_EQ(record_.unknown_feature, nullptr);

  auto plain = HandlerInstance::create({}, kHandler, "j", {});
  ASSERT_TRUE(plain);
  (*plain)->handle({{}, "q", 0, attempt_});
  EXPECT_EQ(record_.feature, nullptr);
  EXPECT_EQ(record_.attempt_feature, nullptr);
}

TEST_F(HandlerInstanceTest, OnlyConstHandlersAreConcurrent) {
  EXPECT_FALSE(is_concurrent(kHandler));
  EXPECT_TRUE(is_concurrent(fixture_handler("noop")));
  EXPECT_FALSE(is_concurrent(fixture_handler("leaks_thread")));
}

TEST_F(HandlerInstanceTest, ConcurrentCallsDoNotMixTheirMessages) {
  Bundle bundle("handle_throws_std");
  std::vector<std::jthread> workers;
  workers.reserve(4);
  for (int worker = 0; worker < 4; ++worker) {
    workers.emplace_back([&bundle, worker] {
      const SystemClock clock;
      Attempt attempt(clock);
      for (int i = 0; i < 200; ++i) {
        const std::string body = std::to_string(worker) + "-" + std::to_string(i);
        queue::Message message;
        message.body = body;
        EXPECT_EQ(bundle.instance->handle({message, "q", 0, attempt}).reason, "cannot work on " + body);
      }
    });
  }
}

}  // namespace
}  // namespace sluice::plugin
