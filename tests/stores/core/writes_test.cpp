#include "host/stores/core/writes.hpp"

#include <gtest/gtest.h>

namespace sluice::queue::core {
namespace {

constexpr DoubtfulWrite kUpdate{.nonce = "mine", .version = 3};
constexpr DoubtfulWrite kRemoval{.nonce = {}, .version = 3};

DoubtfulWrite refused(DoubtfulWrite write) {
  write.refused = true;
  return write;
}

TEST(WriteFate, OurNonceOnTheRecordTellsThatItIsApplied) {
  EXPECT_EQ(fate_of(kUpdate, RecordTrace{"mine", 4}), WriteFate::applied);
  EXPECT_EQ(fate_of(refused(kUpdate), RecordTrace{"mine", 4}), WriteFate::applied) << "by an earlier try";
}

TEST(WriteFate, WhatIsGoneWasRemovedByWhoeverWantedThat) {
  EXPECT_EQ(fate_of(kRemoval, std::nullopt), WriteFate::applied);
  EXPECT_EQ(fate_of(kUpdate, std::nullopt), WriteFate::refused);
}

TEST(WriteFate, AnotherVersionIsTooLateAndTheSameOneMayStillBeChanged) {
  for (const DoubtfulWrite& write : {kUpdate, kRemoval}) {
    EXPECT_EQ(fate_of(write, RecordTrace{"theirs", 4}), WriteFate::refused);
    EXPECT_EQ(fate_of(write, RecordTrace{"theirs", 3}), WriteFate::unknown);
    EXPECT_EQ(fate_of(refused(write), RecordTrace{"theirs", 3}), WriteFate::refused);
  }
  EXPECT_EQ(fate_of(kRemoval, RecordTrace{{}, 3}), WriteFate::unknown) << "a record without a nonce is nobody's";
  EXPECT_EQ(fate_of({.nonce = {}, .version = {}}, RecordTrace{"theirs", 9}), WriteFate::unknown)
      << "it takes away whatever is there";
}

TEST(RefusedEffects, AreNamedAndSayWhatBecomesOfTheMessage) {
  const EffectWrite write{
      .write = SqlWrite{.statement = "UPDATE a"}, .label = "debit", .on_refusal = OnRefusal::reject};
  const SettleResult result = core::refused(part_of(write, 0, "accounts"), ErrorCode::conflict, "no such row");
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_TRUE(result.reject);
  EXPECT_EQ(result.error.message(), R"(write "debit" on table accounts was refused: no such row)");
  EXPECT_FALSE(refused_condition(part_of(EffectWrite{}, 1, {}), "it changed 0 rows", "UPDATE a").reject);
}

TEST(RefusedEffects, AStoreOfTheOtherKindSaysWhatToDo) {
  Effects effects;
  effects.writes.push_back({.write = ItemWrite{.table = "accounts", .item = "{}"}});
  effects.writes.push_back({.write = SqlWrite{.statement = "UPDATE a"}});
  const auto sql = refused_at_once(effects, WriteKind::item);
  ASSERT_TRUE(sql);
  EXPECT_NE(sql->error.message().find("write 2 was refused: it is an SQL statement"), std::string::npos);
  const auto item = refused_at_once(effects, WriteKind::sql);
  ASSERT_TRUE(item);
  EXPECT_NE(item->error.message().find("write 1 on DynamoDB table accounts was refused"), std::string::npos);
}

}  // namespace
}  // namespace sluice::queue::core
