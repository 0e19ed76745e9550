#include "host/stores/sqlite/id_index.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/uuid.hpp"
#include "host/stores/sqlite/schema.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"

namespace sluice::queue::sqlite {
namespace {

/// The tables of a store, with just what the index of ids looks at.
class IdIndexTest : public ::testing::Test {
 public:
  ~IdIndexTest() override { connection_.execute("COMMIT"); }

 protected:
  IdIndexTest() {
    connection_.wait_for_locks_until(SteadyTime::max());
    EXPECT_TRUE(connection_.open(Connection::Access::create));
    connection_.execute("PRAGMA synchronous = OFF");
    EXPECT_TRUE(make_schema(connection_));
    index_ =
        std::make_unique<IdIndex>(connection_, IdIndexLimits{.fresh = 300, .piece = 50, .stale = 400, .clear = 100});
    lookup_ = std::make_unique<IdLookup>(connection_);
    connection_.execute("BEGIN");
  }

  void add(const std::string& id) {
    const std::int64_t seq = next_seq_++;
    connection_.execute(("INSERT INTO messages VALUES (" + std::to_string(seq) + ", 2, 0, 0, '" + id +
                         "', NULL, NULL, NULL, x'', NULL, NULL)")
                            .c_str());
    const IdEntry entry{IdLookup::hash(1, id), seq};
    const std::span<const IdEntry> one(&entry, 1);
    const bool has_time = IdLookup::has_time(id);
    index_->add(has_time ? NewIds{{}, one} : NewIds{one, {}});
    ++(has_time ? old_ids_ : new_ids_);
    live_[id] = seq;
    sweep();
  }
  void remove(const std::string& id) {
    connection_.execute(("DELETE FROM messages WHERE seq = " + std::to_string(live_.at(id))).c_str());
    live_.erase(id);
    sweep();
  }
  void sweep() { index_->sweep(new_ids_, old_ids_, static_cast<std::int64_t>(live_.size())); }
  void check() {
    ASSERT_FALSE(connection_.failed()) << connection_.failure().message();
    EXPECT_EQ(connection_.number("SELECT count(*) FROM ids_fresh"), new_ids_);
    EXPECT_EQ(connection_.number("SELECT count(*) FROM ids"), old_ids_);
    for (const auto& [id, seq] : live_) {
      ASSERT_EQ(lookup_->find(1, id), seq) << id;
    }
  }

  test::TempFolder folder_;
  Connection connection_{folder_.file("ids.db")};
  std::unique_ptr<IdIndex> index_;
  std::unique_ptr<IdLookup> lookup_;
  std::int64_t next_seq_ = 1;
  std::int64_t new_ids_ = 0;
  std::int64_t old_ids_ = 0;
  std::map<std::string, std::int64_t> live_;
};

TEST_F(IdIndexTest, FindsWhatIsThereAndNothingElse) {
  for (int i = 0; i < 2000; ++i) {
    add("id" + std::to_string(i));
  }
  check();
  EXPECT_LE(new_ids_, 350) << "new entries go over to the large table";
  EXPECT_GE(old_ids_, 1600);
  EXPECT_EQ(lookup_->find(1, "id2000"), std::nullopt);
  EXPECT_EQ(lookup_->find(2, "id7"), std::nullopt) << "another queue";
}

TEST_F(IdIndexTest, ForgetsRemovedOnesAndStaysSmall) {
  std::mt19937 dice(7);
  for (int i = 0; i < 12000; ++i) {
    add("id" + std::to_string(i));
    if (live_.size() > 100) {
      remove(std::next(live_.begin(), static_cast<std::ptrdiff_t>(dice() % live_.size()))->first);
    }
  }
  check();
  EXPECT_EQ(lookup_->find(1, "id0").has_value(), live_.contains("id0"));
  EXPECT_LT(new_ids_ + old_ids_, 300 + 400 + 4 * 101 + 100);
}

TEST_F(IdIndexTest, AnOldMessageThatStaysDoesNotStopTheSweep) {
  add("oldest");
  for (int i = 0; i < 5000; ++i) {
    add("id" + std::to_string(i));
    remove("id" + std::to_string(i));
  }
  check();
  EXPECT_LT(new_ids_ + old_ids_, 300 + 400 + 100);
}

TEST_F(IdIndexTest, AnEmptyFileIsCleared) {
  for (int i = 0; i < 1000; ++i) {
    add("id" + std::to_string(i));
  }
  while (!live_.empty()) {
    remove(live_.begin()->first);
  }
  check();
  EXPECT_EQ(new_ids_ + old_ids_, 0);
}

TEST_F(IdIndexTest, TheSameIdAgainIsFoundAtItsNewPlace) {
  for (int round = 0; round < 50; ++round) {
    add("again");
    check();
    remove("again");
    EXPECT_EQ(lookup_->find(1, "again"), std::nullopt);
  }
}

TEST_F(IdIndexTest, ThoseWithATimeAreSweptInPiecesToo) {
  // All within the same second, which is a small part of all hashes.
  SeededRandom random(3);
  const auto made = [&](int i) { return make_uuid_v7(random, WallTime(std::chrono::milliseconds(100'000 + i / 8))); };
  std::int64_t most = 0;
  for (int i = 0; i < 12000; ++i) {
    add(i % 3 == 0 ? "id" + std::to_string(i) : made(i));
    if (live_.size() > 100) {
      const std::int64_t before = new_ids_ + old_ids_;
      remove(std::next(live_.begin(), i % 100)->first);
      most = std::max(most, before - new_ids_ - old_ids_);
    }
  }
  check();
  EXPECT_LT(new_ids_ + old_ids_, 300 + 400 + 4 * 101 + 100);
  EXPECT_LE(most, 2 * 51) << "one piece of each table";
  EXPECT_GT(most, 10);
}

TEST_F(IdIndexTest, OneHashOfManyIsNoEndlessPiece) {
  add("id");
  for (int i = 0; i < 700; ++i) {
    const std::int64_t seq = next_seq_++;
    const IdEntry entry{7, seq};
    index_->add(NewIds{{}, std::span(&entry, 1)});
    ++old_ids_;
  }
  for (int i = 0; i < 3; ++i) {
    sweep();
  }
  check();
  EXPECT_LT(old_ids_, 100);
}

TEST(IdHash, ThoseThatCameTogetherLieTogether) {
  SeededRandom random(5);
  const auto made = [&random](std::int64_t milliseconds) {
    return IdLookup::hash(1, make_uuid_v7(random, WallTime(std::chrono::milliseconds(milliseconds))));
  };
  std::int64_t last = 0;
  for (std::int64_t at = 1'720'000'000'000; at < 1'720'000'000'050; ++at) {
    for (int i = 0; i < 20; ++i) {
      const std::int64_t hash = made(at);
      EXPECT_GT(hash, last);
      EXPECT_LT(hash, kHashEnd);
    }
    last = made(at) | ((1 << 20) - 1);
  }
}

TEST(IdHash, WhatLooksLikeATimeAndIsNoneHasAHashToo) {
  for (const std::string id : {"zzzzzzzz-zzzz-7zzz-zzzz-zzzzzzzzzzzz", "        -    -7   -    -            ",
                               "01909D5C-1A2B-7C3D-8E4F-5A6B7C8D9E0F"}) {
    EXPECT_TRUE(IdLookup::has_time(id)) << id;
    EXPECT_GE(IdLookup::hash(1, id), 0) << id;
    EXPECT_LT(IdLookup::hash(1, id), kHashEnd) << id;
  }
  for (const std::string id : {"01909d5c-1a2b-4c3d-8e4f-5a6b7c8d9e0f", "01909d5c-1a2b-7c3d-8e4f-5a6b7c8d9e0",
                               "01909d5c01a2b-7c3d-8e4f-5a6b7c8d9e0f", ""}) {
    EXPECT_FALSE(IdLookup::has_time(id)) << id;
  }
}

TEST(IdHash, NeverChanges) {
  // It is stored in files: another value would make every id in them unknown.
  EXPECT_NE(IdLookup::hash(1, "A-101"), IdLookup::hash(2, "A-101"));
  EXPECT_EQ(IdLookup::hash(1, ""), 58179400116750);
  EXPECT_EQ(IdLookup::hash(1, "A-101"), 126894187593343);
  EXPECT_EQ(IdLookup::hash(1, "01909d5c-1a2b-7c3d-8e4f-5a6b7c8d9e0f"), 235027635652247);
  EXPECT_EQ(IdLookup::hash(2, "01909d5c-1a2b-7c3d-8e4f-5a6b7c8d9e0f"), 235027635611563);
}

}  // namespace
}  // namespace sluice::queue::sqlite
