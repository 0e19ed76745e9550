#include "host/plugin/around.hpp"

#include "base/random.hpp"
#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using std::chrono_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// One of the handlers in the fixture "arounds".
const sluice_handler& one_of_arounds(const std::string& name) {
  const LibraryResult library = load_library(fixture_file("arounds"));
  return *find_handler(*library.plugin, name);
}

AroundSpec spec(const std::string& name, const std::map<std::string, std::string>& options = {}) {
  OptionValues values;
  for (const auto& [option, value] : options) {
    values.push_back({option, SLUICE_OPTION_STRING, value, 0, 0, {}});
  }
  return {&one_of_arounds(name), values};
}

AroundSpec trail(const std::string& mark, const std::string& at = "") {
  return spec("trail", {{"mark", mark}, {"at", at}});
}

class AroundTest : public ::testing::Test {
 protected:
  void open(const std::vector<AroundSpec>& arounds, const std::string& handler = "who") {
    auto made = make_within(surroundings(), one_of_arounds(handler), "orders", {}, arounds);
    ASSERT_TRUE(made) << made.error().message();
    instance_ = std::move(*made);
  }
  /// A handler of the fixture "kinds".
  void open_kind(const std::string& handler, const std::vector<AroundSpec>& arounds) {
    const LibraryResult library = load_library(fixture_file("kinds"));
    OptionValues values;
    values.push_back({"path", SLUICE_OPTION_STRING, "", 0, 0, {}});
    values.push_back({"sleep", SLUICE_OPTION_DURATION, "0s", 0, 0, {}});
    auto made = make_within(surroundings(), *find_handler(*library.plugin, handler), "orders", values, arounds);
    ASSERT_TRUE(made) << made.error().message();
    instance_ = std::move(*made);
  }
  static queue::Message message_of(const std::string& id, const std::map<std::string, std::string>& attributes) {
    queue::Message message;
    message.id = id;
    message.attributes.insert(attributes.begin(), attributes.end());
    return message;
  }
  HandlerSurroundings surroundings() {
    return {.log = log_.log(), .effects = {SLUICE_STORE_SQLITE, false, &random_, &clock_}};
  }
  Outcome handle(const std::string& body, const std::map<std::string, std::string>& attributes = {}) {
    queue::Message message;
    message.id = "A-101";
    message.body = body;
    message.content_type = "application/octet-stream";
    message.attributes.insert(attributes.begin(), attributes.end());
    return instance_->handle({message, "orders", 5, attempt_});
  }
  std::vector<std::string> log() const {
    std::vector<std::string> all;
    for (const LogRecord::Line& line : log_.lines()) {
      if (line.level != SLUICE_LOG_DEBUG) {
        all.push_back(line.text);
      }
    }
    return all;
  }
  static std::vector<std::string> staged(const Outcome& outcome) {
    std::vector<std::string> bodies;
    if (outcome.effects) {
      for (const queue::EmittedMessage& emitted : outcome.effects->messages) {
        bodies.push_back(emitted.message.body);
      }
    }
    return bodies;
  }

  LogRecord log_;
  SeededRandom random_{1};
  FakeClock clock_;
  Attempt attempt_{clock_};
  std::unique_ptr<HandlerInstance> instance_;
};

TEST_F(AroundTest, AKindOfHandlerOfItsOwn) {
  for (const char* name : {"timing", "decrypt", "tenant", "trail"}) {
    EXPECT_NE(around_of(one_of_arounds(name)), nullptr) << name;
  }
  EXPECT_EQ(around_of(one_of_arounds("who")), nullptr);
  EXPECT_EQ(around_of(fixture_handler("noop")), nullptr);
  EXPECT_TRUE(is_concurrent(one_of_arounds("timing")));
  EXPECT_FALSE(is_concurrent(one_of_arounds("trail")));
}

TEST_F(AroundTest, AHostThatDoesNotKnowThemIsToldSo) {
  open({}, "timing");
  const Outcome outcome = handle("x");
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_THAT(outcome.reason, HasSubstr("named in [[job.around]]"));
}

TEST_F(AroundTest, TheOutermostEntersFirstAndLeavesLast) {
  open({trail("a"), trail("b"), trail("c")});
  EXPECT_EQ(handle("x").reason, "x application/octet-stream for  trail=abc");
  EXPECT_THAT(log(), ElementsAre("c1 saw 4 x application/octet-stream for  trail=abc of ab",
                                 "b1 saw 4 x application/octet-stream for  trail=abc of a",
                                 "a1 saw 4 x application/octet-stream for  trail=abc of "));
}

TEST_F(AroundTest, BodyTypeAndAttributesAreReplaced) {
  open({spec("tenant"), spec("decrypt", {{"key", "\x01"}}), spec("timing")});
  EXPECT_EQ(handle("`ccv", {{"encrypted", "xor"}, {"tenant", "acme"}, {"n", "7"}}).reason,
            "abbw text/plain for acme n=7 tenant=acme");
  const Outcome plain = handle("x", {});
  EXPECT_EQ(plain.status, OutcomeStatus::reject);
  EXPECT_EQ(plain.reason, "it is not encrypted");
  EXPECT_THAT(log(), ElementsAre("left with status 4")) << "the handler is not called, nor what is further inwards";
}

TEST_F(AroundTest, AShortCutLeavesThoseThatWereEnteredAlone) {
  open({trail("a"), trail("b", "answer"), trail("c")});
  const Outcome outcome = handle("x");
  EXPECT_EQ(outcome.status, OutcomeStatus::retry);
  EXPECT_EQ(outcome.delay, Duration(7s));
  EXPECT_THAT(log(), ElementsAre("a1 saw 1 b answers of "));
}

TEST_F(AroundTest, LeavesAlsoWhenTheHandlerHasThrown) {
  open({trail("a"), trail("b")});
  const Outcome outcome = handle("throw");
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_EQ(outcome.reason, "who threw");
  EXPECT_THAT(log(), ElementsAre("b1 saw 6 who threw of a", "a1 saw 6 who threw of "));
}

TEST_F(AroundTest, WhatOneThrowsIsAFault) {
  open({trail("a"), trail("b", "enter"), trail("c")});
  EXPECT_EQ(handle("x").reason, "b threw");
  EXPECT_THAT(log(), ElementsAre("a1 saw 6 b threw of "));
  open({trail("a"), trail("b", "leave")});
  EXPECT_EQ(handle("x").reason, "b threw");
  EXPECT_EQ(log().back(), "a1 saw 6 b threw of ");
}

TEST_F(AroundTest, LeaveReplacesTheOutcomeForThoseFurtherOut) {
  open({trail("a"), trail("b", "retry"), trail("c", "done")});
  const Outcome outcome = handle("throw");
  EXPECT_EQ(outcome.status, OutcomeStatus::retry);
  EXPECT_EQ(outcome.delay, Duration(3s));
  EXPECT_EQ(outcome.reason, "b says so");
  EXPECT_THAT(log(), ElementsAre("c1 saw 6 who threw of ab", "b1 saw 0  of a", "a1 saw 1 b says so of "));
}

TEST_F(AroundTest, WhatTheyStageIsCommittedWithTheMessage) {
  open({trail("a", "stage")});
  const Outcome outcome = handle("stage");
  EXPECT_EQ(outcome.status, OutcomeStatus::done);
  EXPECT_THAT(staged(outcome), ElementsAre("entered a", "staged", "left a"));
}

TEST_F(AroundTest, WhatWasStagedBeforeAFailureIsDroppedWithIt) {
  open({trail("a", "stage"), trail("b", "done")});
  const Outcome outcome = handle("stage and retry");
  EXPECT_EQ(outcome.status, OutcomeStatus::done);
  EXPECT_THAT(staged(outcome), ElementsAre("left a")) << "b has made the failure good, and a stages once more";
  open({trail("a", "retry")});
  EXPECT_THAT(staged(handle("stage")), IsEmpty());
}

TEST_F(AroundTest, ConcurrentOnesAreSharedAndOthersAreEachWorkersOwn) {
  const std::vector<AroundSpec> specs{spec("timing"), trail("a")};
  const auto first = make_arounds(surroundings(), "orders", specs, {});
  ASSERT_TRUE(first);
  const auto second = make_arounds(surroundings(), "orders", specs, *first);
  ASSERT_TRUE(second);
  EXPECT_EQ((*first)[0].object, (*second)[0].object);
  EXPECT_NE((*first)[1].object, (*second)[1].object);

  auto made = HandlerInstance::create(surroundings(), one_of_arounds("who"), "orders", {});
  ASSERT_TRUE(made);
  queue::Message message;
  for (const AroundChain* workers : {&*first, &*first, &*second}) {
    EXPECT_EQ((*made)->handle({message, "q", 0, attempt_, workers}).status, OutcomeStatus::discard);
  }
  EXPECT_THAT(log()[0], HasSubstr("a1 saw"));
  EXPECT_THAT(log()[2], HasSubstr("a2 saw"));
  EXPECT_THAT(log()[4], HasSubstr("a1 saw")) << "another worker's";
}

TEST_F(AroundTest, EachMessageOfABatchIsEnteredAndLeft) {
  open_kind("batches", {trail("t"), spec("decrypt", {{"key", "k"}})});
  const std::array<queue::Message, 3> messages{message_of("a", {{"encrypted", "xor"}}),
                                               message_of("b", {{"encrypted", "xor"}, {"do", "reject"}}),
                                               message_of("c", {})};
  std::vector<Work> batch;
  for (const queue::Message& message : messages) {
    batch.push_back({message, "orders", 5, attempt_});
  }
  std::array<Outcome, 3> outcomes;
  instance_->handle_batch(batch, outcomes);
  EXPECT_EQ(outcomes[0].status, OutcomeStatus::done);
  EXPECT_EQ(outcomes[1].reason, "as it was told");
  EXPECT_EQ(outcomes[2].reason, "it is not encrypted") << "the handler has not seen it";
  EXPECT_THAT(log(), ElementsAre("t3 saw 3 it is not encrypted of ", "t3 saw 3 as it was told of ", "t3 saw 0  of "));
  instance_->handle_batch(std::span(batch).subspan(2), std::span(outcomes).subspan(2));
  EXPECT_EQ(outcomes[2].reason, "it is not encrypted") << "nothing is left of the batch";
}

TEST_F(AroundTest, ABatchThatThrowsIsLeftToo) {
  open_kind("batches", {trail("t", "retry")});
  const queue::Message message = message_of("a", {{"do", "throw"}});
  const std::array batch{Work{message, "orders", 5, attempt_}, Work{message, "orders", 5, attempt_}};
  std::array<Outcome, 2> outcomes;
  instance_->handle_batch(batch, outcomes);
  EXPECT_THAT(log(), ElementsAre("t2 saw 6 the whole batch of ", "t2 saw 6 the whole batch of "));
  EXPECT_EQ(outcomes[0].status, OutcomeStatus::retry);
}

TEST_F(AroundTest, OneThatEndsLaterIsLeftThen) {
  open_kind("coroutines", {trail("t"), spec("decrypt", {{"key", "k"}})});
  EXPECT_EQ(handle("x", {{"encrypted", "xor"}, {"do", "reject"}}).reason, "as it was told");
  EXPECT_EQ(handle("x", {{"encrypted", "xor"}, {"do", "throw"}}).status, OutcomeStatus::fault);
  EXPECT_EQ(handle("x", {}).reason, "it is not encrypted");
  EXPECT_THAT(log(), ElementsAre("t1 saw 3 as it was told of ", "t2 saw 6 as it was told of ",
                                 "t3 saw 3 it is not encrypted of "));
  open_kind("coroutines", {trail("t", "stage")});
  EXPECT_THAT(staged(handle("x", {{"do", "send"}})), ElementsAre("entered t", "A-101", "left t"));
}

TEST_F(AroundTest, OneThatForgetsItsMessageIsLeft) {
  open_kind("careless", {trail("t")});
  const Outcome outcome = handle("x", {{"do", "drop"}});
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_THAT(log().back(), HasSubstr("t1 saw 6 "));
}

TEST_F(AroundTest, OneThatCannotBeMadeKeepsTheJobFromStarting) {
  const auto made = make_within(surroundings(), one_of_arounds("who"), "orders", {}, std::array{spec("decrypt")});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message(), HasSubstr("the handler \"decrypt\" could not be created"));
}

/// Arounds as no C++ layer makes them: each of these functions is one fault.
namespace faulty {

std::int32_t create(const sluice_host*, const sluice_option_value* const*, std::size_t, void** instance,
                    void (*)(void*, sluice_string), void*) {
  *instance = nullptr;
  return 0;
}
void destroy(void*) {}
void handle(void*, const sluice_message*, const sluice_context*) {}
int left = 0;
void leave(void*, void*, const sluice_message*, const sluice_context*, const sluice_outcome*) { ++left; }

std::int32_t says_nothing(void*, const sluice_message*, const sluice_context*, sluice_around_call*) {
  return SLUICE_AROUND_ANSWERED;
}
std::int32_t size_without_bytes(void*, const sluice_message*, const sluice_context*, sluice_around_call* call) {
  call->body = {nullptr, 7};
  return SLUICE_AROUND_GO_ON;
}
std::int32_t throws(void*, const sluice_message*, const sluice_context*, sluice_around_call*) { throw 7; }
std::int32_t unknown(void*, const sluice_message*, const sluice_context* context, sluice_around_call*) {
  const sluice_outcome outcome{sizeof(sluice_outcome), SLUICE_DISCARD, -1, {"unknown", 7}};
  context->report(context, &outcome);
  return 99;
}
std::int32_t answers_and_goes_on(void*, const sluice_message*, const sluice_context* context, sluice_around_call*) {
  const sluice_outcome outcome{sizeof(sluice_outcome), SLUICE_DONE, -1, {nullptr, 0}};
  context->report(context, &outcome);
  return SLUICE_AROUND_GO_ON;
}

std::vector<const sluice_message*> entered_with;
std::int32_t notes(void*, const sluice_message* message, const sluice_context*, sluice_around_call*) {
  entered_with.push_back(message);
  return SLUICE_AROUND_GO_ON;
}
void leave_noted(void*, void*, const sluice_message* message, const sluice_context*, const sluice_outcome*) {
  EXPECT_EQ(message, entered_with.back());
  entered_with.pop_back();
}

template <auto enter, auto leave = &faulty::leave>
const void* extension(const char*) {
  static constexpr sluice_around kAround{sizeof(sluice_around), 0, enter, leave};
  return &kAround;
}
template <auto enter>
constexpr sluice_handler kHandler{sizeof(sluice_handler), 0, "faulty", nullptr, nullptr, 0, &create, &destroy, &handle,
                                  &extension<enter>};

}  // namespace faulty

TEST_F(AroundTest, FaultsOfThePluginAreNamed) {
  const auto reason_of = [this](const sluice_handler& handler) {
    faulty::left = 0;
    open({AroundSpec{&handler, {}}});
    const Outcome outcome = handle("x");
    EXPECT_EQ(outcome.status, OutcomeStatus::fault);
    return outcome.reason;
  };
  EXPECT_THAT(reason_of(faulty::kHandler<&faulty::says_nothing>), HasSubstr("without an outcome"));
  EXPECT_EQ(faulty::left, 0);
  EXPECT_THAT(reason_of(faulty::kHandler<&faulty::size_without_bytes>), HasSubstr("a size without bytes"));
  EXPECT_EQ(faulty::left, 1) << "it has gone on, and so it is left";
  EXPECT_THAT(reason_of(faulty::kHandler<&faulty::throws>), HasSubstr("not a std::exception"));
  EXPECT_EQ(faulty::left, 0);

  open({AroundSpec{&faulty::kHandler<&faulty::unknown>, {}}});
  EXPECT_EQ(handle("x").reason, "unknown");
  EXPECT_EQ(faulty::left, 0);
  open({AroundSpec{&faulty::kHandler<&faulty::answers_and_goes_on>, {}}});
  EXPECT_EQ(handle("x").status, OutcomeStatus::discard) << "the handler's word counts";
}

TEST_F(AroundTest, WhatOneHasSeenStaysWhereItIsUntilItIsLeft) {
  static constexpr sluice_handler kNoting{sizeof(sluice_handler),
                                          0,
                                          "notes",
                                          nullptr,
                                          nullptr,
                                          0,
                                          &faulty::create,
                                          &faulty::destroy,
                                          &faulty::handle,
                                          &faulty::extension<&faulty::notes, &faulty::leave_noted>};
  open({AroundSpec{&kNoting, {}}, AroundSpec{&kNoting, {}}, AroundSpec{&kNoting, {}}});
  faulty::entered_with.clear();
  handle("x");
  EXPECT_THAT(faulty::entered_with, ElementsAre());
}

TEST_F(AroundTest, ATableThatIsCutOrEmptyIsNone) {
  static sluice_around table{};
  const sluice_handler handler{sizeof(sluice_handler),
                               0,
                               "odd",
                               nullptr,
                               nullptr,
                               0,
                               &faulty::create,
                               &faulty::destroy,
                               &faulty::handle,
                               [](const char*) -> const void* { return &table; }};
  EXPECT_EQ(around_of(handler), nullptr);
  table = {8, 0, &faulty::throws, &faulty::leave};
  EXPECT_EQ(around_of(handler), nullptr);
  table = {sizeof(sluice_around), 0, &faulty::throws, nullptr};
  EXPECT_EQ(around_of(handler), nullptr);
  table = {sizeof(sluice_around), 0, &faulty::throws, &faulty::leave};
  EXPECT_NE(around_of(handler), nullptr);
}

}  // namespace
}  // namespace sluice::plugin
