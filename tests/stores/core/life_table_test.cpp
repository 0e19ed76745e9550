// docs/understand/job_lifecycle.md has the rules of host/stores/core as a table. It is made from them: with
// SLUICE_WRITE_LIFE_TABLE set this writes it there.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/stores/core/transitions.hpp"

namespace sluice::queue::core {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kPage = SLUICE_SOURCE_DIR "/docs/understand/job_lifecycle.md";
constexpr std::string_view kBegin = "<!-- made from host/stores/core: begin -->\n";
constexpr std::string_view kEnd = "<!-- made from host/stores/core: end -->\n";

constexpr WallTime kTableNow{1'700'000'000s};
constexpr Duration kDelay = 5s;
constexpr WallTime kLeaseEnd = kTableNow + 30s;
constexpr WallTime kPlace = kTableNow - 60s;
constexpr std::uint32_t kReceives = 3;

std::string word(WallTime time) {
  return time == kTableNow            ? "now"
         : time == kTableNow + kDelay ? "now + delay"
         : time == kLeaseEnd          ? "the lease's end"
         : time == kPlace             ? "before all others"
                                      : "?";
}

template <typename Value>
std::string cell(const std::optional<Value>& value, const char* nothing) {
  if constexpr (std::is_same_v<Value, std::optional<WallTime>>) {
    return !value ? "" : *value ? word(**value) : nothing;
  } else {
    return value ? word(*value) : "";
  }
}

std::string receives(const std::optional<std::uint32_t>& value) {
  return !value || *value == kReceives ? "" : *value == 0 ? "0" : *value > kReceives ? "+ 1" : "- 1";
}

std::string padded(const std::string& value) { return value.empty() ? "" : " " + value; }

std::string row(const std::string& name, const std::string& only, const StateChange& change) {
  if (change.removes) {
    return "| " + name + " |" + padded(only) + " | the record goes | | | | | | | |\n";
  }
  const std::string half = !change.half ? "" : *change.half == Half::dlq ? "DLQ" : "standard";
  const std::string suspect = !change.marks ? "" : (*change.marks & kSuspect) != 0 ? "yes" : "no";
  const std::string failure = !change.failure ? "" : change.failure->empty() ? "none" : "this one, and those before";
  std::string text = "| " + name + " |" + padded(only);
  for (const std::string& value : {half, cell(change.sent_at, ""), cell(change.hidden_until, "nothing"),
                                   cell(change.received_at, "nobody"), receives(change.receives), suspect}) {
    text += " |" + padded(value);
  }
  const std::string checkpoint = !change.checkpoint ? "" : change.checkpoint->empty() ? "none" : "this one";
  return text + " |" + padded(failure) + " |" + padded(checkpoint) + " |\n";
}

std::string only_when(ChangeAction action) {
  const Requirement required = requirement(action);
  std::string text = !required.half ? "" : *required.half == Half::dlq ? "in the DLQ" : "in the standard half";
  return text + (required.not_in_flight ? ", not in flight" : "");
}

std::string operators_row(const std::string& name, ChangeAction action) {
  const Change asked{.id = "a", .action = action, .after = kDelay, .failure = {.error = "by hand"}};
  const bool places = action == ChangeAction::move_to_front;
  return row(name, only_when(action), change(asked, {}, kTableNow, places ? std::optional(kPlace) : std::nullopt));
}

Completion completion(CompletionAction action) {
  return {.receipt = {}, .action = action, .delay = kDelay, .failure = {.error = "failed"}, .checkpoint = "half"};
}

std::string life_table() {
  const ClaimTerms terms{.now = kTableNow, .until = kLeaseEnd};
  const auto ended = [](const std::string& name, CompletionAction action) {
    return row(name, "", end(completion(action), {.receives = kReceives}, kTableNow));
  };
  Completion crashed = completion(CompletionAction::retry);
  crashed.marks = kSuspect;
  return "| what happens | only | half | place in its half | hidden until | received | receive count | suspect | "
         "failure | checkpoint |\n"
         "|---|---|---|---|---|---|---|---|---|---|\n" +
         row("claim", "", claim({.receives = kReceives}, terms)) +
         row("claim after a lease ran out unsettled", "",
             claim({.received_at = kTableNow, .receives = kReceives}, terms)) +
         row("claim of a suspect", "", claim({.receives = kReceives, .marks = kSuspect}, terms)) +
         row("extend", "", extension(kLeaseEnd)) +           //
         ended("checkpoint", CompletionAction::keep) +       //
         ended("done, discard", CompletionAction::remove) +  //
         ended("retry", CompletionAction::retry) +           //
         row("retry of what ended its process", "", end(crashed, {.receives = kReceives}, kTableNow)) +
         ended("snooze, release", CompletionAction::release) +          //
         ended("reject", CompletionAction::dead_letter) +               //
         operators_row("delete", ChangeAction::remove) +                //
         operators_row("hide, show", ChangeAction::set_visibility) +    //
         operators_row("delay", ChangeAction::delay) +                  //
         operators_row("move to front", ChangeAction::move_to_front) +  //
         operators_row("dead letter", ChangeAction::dead_letter) +      //
         operators_row("redrive", ChangeAction::redrive) +              //
         operators_row("reset", ChangeAction::reset);
}

std::string page() {
  std::ifstream file{std::string(kPage)};
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(LifeTable, OfThePageIsWhatTheCodeDoes) {
  std::string text = page();
  const auto begin = text.find(kBegin);
  const auto end = text.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const auto first = begin + kBegin.size();
  const std::string made = life_table();
  EXPECT_EQ(made.find('?'), std::string::npos);
  if (std::getenv("SLUICE_WRITE_LIFE_TABLE") != nullptr) {
    std::ofstream(std::string(kPage)) << text.replace(first, end - first, made);
    return;
  }
  EXPECT_EQ(text.substr(first, end - first), made) << "SLUICE_WRITE_LIFE_TABLE=1 writes it there";
}

}  // namespace
}  // namespace sluice::queue::core
