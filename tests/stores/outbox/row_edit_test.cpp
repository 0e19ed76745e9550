// What a mark and an operator's change make of a row, for all databases.

#include <gtest/gtest.h>

#include "host/stores/outbox/rows.hpp"

namespace sluice::queue::outbox {
namespace {

using Value = RowEdit::Value;
constexpr std::uint32_t kLimit = 10;

RowEdit edit(ChangeAction action, std::string error = {}) {
  return edit_of({}, Change{.action = action, .after = std::chrono::seconds(5), .failure = {.error = std::move(error)}},
                 kLimit);
}

TEST(RowEdit, ARedriveIsAResetOfDeadLettersOnly) {
  for (const ChangeAction action : {ChangeAction::redrive, ChangeAction::reset}) {
    const RowEdit fresh = edit(action);
    EXPECT_EQ(retries_after(fresh, 12), std::nullopt);
    EXPECT_EQ(fresh.due, Value::clear);
    EXPECT_EQ(fresh.reason, Value::clear);
    EXPECT_TRUE(takes_effect(fresh, 12, true));
    EXPECT_EQ(takes_effect(fresh, 3, false), action == ChangeAction::reset);
  }
}

TEST(RowEdit, ADeadLetterHasAsManyTriesAsTheLimitOrMore) {
  EXPECT_EQ(retries_after(edit(ChangeAction::dead_letter), 2), kLimit);
  EXPECT_EQ(retries_after(edit(ChangeAction::dead_letter), 12), 12U);
  EXPECT_EQ(edit(ChangeAction::dead_letter).reason, Value::keep) << "no reason is given";
  EXPECT_EQ(edit(ChangeAction::dead_letter, "by hand").error, "by hand");
}

TEST(RowEdit, ADelayKeepsTheTriesAndAMarkSetsThem) {
  EXPECT_EQ(retries_after(edit(ChangeAction::delay), 3), 3U);
  EXPECT_EQ(edit(ChangeAction::delay).after, std::chrono::seconds(5));
  const RowEdit failed = retry_mark({}, 4, std::chrono::seconds(9));
  EXPECT_EQ(retries_after(failed, 7), 4U);
  EXPECT_EQ(failed.due, Value::set);
  EXPECT_EQ(failed.after, std::chrono::seconds(9));
  EXPECT_EQ(dead_mark({}, 10).due, Value::clear);
}

TEST(RowEdit, WhatIsRemovedCountsAsSent) {
  EXPECT_TRUE(edit(ChangeAction::remove).sent);
  EXPECT_EQ(sent_mark({}).reason, Value::clear);
}

TEST(RowEdit, OnlyIfIsAboutTheTriesBefore) {
  const RowEdit reset = edit_of({}, Change{.action = ChangeAction::reset, .version = 3}, kLimit);
  EXPECT_TRUE(takes_effect(reset, 2, false));
  EXPECT_FALSE(takes_effect(reset, 3, false));
}

}  // namespace
}  // namespace sluice::queue::outbox
