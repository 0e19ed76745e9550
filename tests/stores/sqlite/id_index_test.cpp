#include "host/stores/sqlite/id_index.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

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
    index_->add(std::span(&entry, 1));
    ++new_ids_;
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
    EXPECT_EQ(connection_.number("SELECT count(*) FROM ids_new"), new_ids_);
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

TEST(IdHash, NeverChanges) {
  // It is stored in files: another value would make every id in them unknown.
  EXPECT_NE(IdLookup::hash(1, "A-101"), IdLookup::hash(2, "A-101"));
  EXPECT_EQ(IdLookup::hash(1, ""), 58179400116750);
  EXPECT_EQ(IdLookup::hash(1, "A-101"), 126894187593343);
}

}  // namespace
}  // namespace sluice::queue::sqlite
