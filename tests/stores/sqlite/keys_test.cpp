#include "host/stores/sqlite/keys.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "host/stores/sqlite/schema.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"

namespace sluice::queue::sqlite {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;

constexpr std::int64_t kQueue = 7;

/// The tables of a store, with just what its keys look at.
class KeysTest : public ::testing::Test {
 public:
  ~KeysTest() override { end(); }

 protected:
  KeysTest() {
    connection_.wait_for_locks_until(SteadyTime::max());
    EXPECT_TRUE(connection_.open(Connection::Access::create));
    connection_.execute("PRAGMA synchronous = OFF");
    EXPECT_TRUE(make_schema(connection_));
    keys_ = make_keys(connection_);
    begin();
  }

  /// Which write their index early.
  static std::unique_ptr<Keys> make_keys(Connection& connection) {
    return std::make_unique<Keys>(connection, KeyIndexLimits{.tail = 300, .piece = 50, .stale = 400});
  }
  void begin() {
    connection_.execute("BEGIN");
    keys_->begin();
  }
  void end() {
    keys_->finish();
    connection_.execute("COMMIT");
    EXPECT_FALSE(connection_.failed()) << connection_.failure().message();
  }
  void next_transaction() {
    end();
    begin();
  }

  KeyAnswer claim(const std::string& key, const std::string& owner, Duration hold_for = 60s) {
    const KeyClaim one{"pay", key, owner, hold_for, 1};
    return keys_->claim(kQueue, std::span(&one, 1), now_).at(0);
  }
  bool record(const std::string& key, const std::string& owner, Duration ttl = 24h, const std::string& result = {}) {
    return record("pay", key, owner, ttl, result);
  }
  bool record(const char* job, const std::string& key, const std::string& owner, Duration ttl,
              const std::string& result) {
    const KeyRecord one{job, key, result, ttl, key == owner};
    const bool recorded = keys_->record(kQueue, one, owner, now_);
    keys_->flush_records();
    return recorded;
  }
  std::int64_t count(const std::string& table) { return connection_.number(("SELECT count(*) FROM " + table).c_str()); }

  test::TempFolder folder_;
  Connection connection_{folder_.file("keys.db")};
  std::unique_ptr<Keys> keys_;
  WallTime now_{1h};
};

TEST_F(KeysTest, ARecordTakesItsMarksPlaceAndIsFoundFromThenOn) {
  EXPECT_EQ(claim("k", "a").state, KeyState::ours);
  EXPECT_TRUE(record("k", "a", 24h, "paid"));
  EXPECT_EQ(count("key_marks"), 0);
  for (int i = 0; i < 2; ++i) {
    const KeyAnswer answer = claim("k", "b");
    EXPECT_EQ(answer.state, KeyState::done);
    EXPECT_EQ(answer.owner, "a");
    EXPECT_EQ(answer.result, "paid");
    EXPECT_EQ(answer.until, now_ + 24h);
    next_transaction();
  }
  now_ += 24h;
  EXPECT_EQ(claim("k", "b").state, KeyState::ours) << "it has been forgotten";
}

TEST_F(KeysTest, ALateOwnerDoesNotWriteOverAnothersMarkOrRecord) {
  claim("k", "a", 60s);
  now_ += 61s;
  EXPECT_EQ(claim("k", "b").state, KeyState::ours);
  EXPECT_FALSE(record("k", "a")) << "b is at work with it";
  EXPECT_EQ(claim("k", "a").state, KeyState::running);
  EXPECT_TRUE(record("k", "b"));
  EXPECT_FALSE(record("k", "a")) << "b has done it";
  next_transaction();
  EXPECT_FALSE(record("k", "a"));
  EXPECT_EQ(claim("k", "c").owner, "b");
  EXPECT_EQ(count("key_records"), 1);
}

TEST_F(KeysTest, ALateOwnerMayWriteWhereNobodyElseCame) {
  claim("k", "a", 60s);
  now_ += 61s;
  EXPECT_TRUE(record("k", "a"));
}

TEST_F(KeysTest, AMessagesOwnIdIsRecordedWithoutAMark) {
  EXPECT_EQ(claim("m", "m", {}).state, KeyState::ours);
  EXPECT_EQ(count("key_marks"), 0);
  EXPECT_TRUE(record("m", "m"));
  next_transaction();
  EXPECT_EQ(claim("m", "m", {}).state, KeyState::done);
  EXPECT_EQ(claim("m", "m", {}).owner, "m");
}

TEST_F(KeysTest, WhatASavepointTookBackIsNotThere) {
  record("before", "a");
  const Keys::Mark mark = keys_->mark();
  connection_.execute("SAVEPOINT one");
  record("inside", "b");
  connection_.execute("ROLLBACK TO one");
  keys_->back_to(mark);
  record("after", "c");
  connection_.execute("RELEASE one");
  next_transaction();
  EXPECT_EQ(claim("before", "x", {}).state, KeyState::done);
  EXPECT_EQ(claim("inside", "x", {}).state, KeyState::ours);
  EXPECT_EQ(claim("after", "x", {}).state, KeyState::done);
  EXPECT_EQ(connection_.number("SELECT records FROM key_counters"), 2);
}

TEST_F(KeysTest, AJobThatASavepointTookBackGetsANumberOfItsOwn) {
  const Keys::Mark mark = keys_->mark();
  connection_.execute("SAVEPOINT one");
  record("k", "a");
  connection_.execute("ROLLBACK TO one");
  keys_->back_to(mark);
  const KeyRecord other{"ship", "k", {}, 24h};
  EXPECT_TRUE(keys_->record(kQueue, other, "s", now_));
  EXPECT_TRUE(record("k", "a"));
  connection_.execute("RELEASE one");
  next_transaction();
  EXPECT_EQ(claim("k", "x", {}).owner, "a");
  EXPECT_EQ(count("key_jobs"), 2);
}

TEST_F(KeysTest, ExpiredRecordsAreSweptByThoseWhoWrite) {
  for (int i = 0; i < 3000; ++i) {
    record("k" + std::to_string(i), "m", 60s);
  }
  next_transaction();
  EXPECT_EQ(count("key_records"), 3000);
  now_ += 61s;
  int transactions = 0;
  for (; count("key_records") > transactions + 1 && transactions < 100; ++transactions) {
    record("later" + std::to_string(transactions), "m", 24h);
    const std::int64_t before = count("key_records");
    next_transaction();
    EXPECT_LE(before - count("key_records"), 600) << "in pieces, so that nobody waits for them";
  }
  EXPECT_LE(transactions, 20);
  EXPECT_EQ(connection_.number("SELECT records FROM key_counters"), count("key_records"));
}

TEST_F(KeysTest, RecordsOfAShortLifeGoBetweenThoseOfALongOne) {
  for (int i = 0; i < 500; ++i) {
    record("long" + std::to_string(i), "m", 1000h);
    record("short" + std::to_string(i), "m", 60s);
  }
  next_transaction();
  now_ += 61s;
  for (int i = 0; i < 40; ++i) {
    record("tick" + std::to_string(i), "m", 1000h);
    next_transaction();
  }
  EXPECT_EQ(connection_.number("SELECT count(*) FROM key_records WHERE key LIKE 'short%'"), 0);
  EXPECT_EQ(claim("long7", "x", {}).state, KeyState::done);
}

TEST_F(KeysTest, MarksOfDeadHostsAreSwept) {
  for (int i = 0; i < 200; ++i) {
    claim("k" + std::to_string(i), "m", 60s);
  }
  next_transaction();
  now_ += 61s;
  for (int i = 0; i < 12; ++i) {
    claim("other", "m");
    next_transaction();
  }
  EXPECT_EQ(count("key_marks"), 1);
}

TEST_F(KeysTest, RecordsAreFoundWhileTheirIndexIsWrittenAndAfterwards) {
  std::set<std::string> known;
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 10; ++j) {
      const std::string key = "k" + std::to_string(i) + "/" + std::to_string(j);
      record(key, "m");
      known.insert(key);
    }
    next_transaction();
    for (const char* const one : {"k0/0", "k7/3", "k100/9"}) {
      ASSERT_EQ(claim(one, "x", {}).state, known.count(one) > 0 ? KeyState::done : KeyState::ours) << one << i;
    }
  }
  EXPECT_GT(connection_.number("SELECT indexed FROM key_counters"), 1000);
  EXPECT_EQ(connection_.number("SELECT settled FROM key_counters"), count("key_hashes"));
  auto fresh = make_keys(connection_);
  std::swap(keys_, fresh);
  keys_->begin();
  for (const std::string& key : known) {
    ASSERT_EQ(claim(key, "x", {}).state, KeyState::done) << "a process that starts now: " << key;
  }
}

TEST_F(KeysTest, ATransactionThatFailsTakesItsRecordsAndItsIndexBack) {
  std::vector<std::string> kept;
  std::vector<std::string> lost;
  for (int i = 0; i < 120; ++i) {
    const bool fails = i % 3 == 1;
    for (int j = 0; j < 10; ++j) {
      const std::string key = "k" + std::to_string(i) + "/" + std::to_string(j);
      record(key, "m");
      (fails ? lost : kept).push_back(key);
    }
    if (fails) {
      keys_->finish();
      connection_.execute("ROLLBACK");
      begin();
    } else {
      next_transaction();
    }
  }
  EXPECT_GT(connection_.number("SELECT indexed FROM key_counters"), 300);
  for (const std::string& key : kept) {
    ASSERT_EQ(claim(key, "x", {}).state, KeyState::done) << key;
  }
  for (const std::string& key : lost) {
    ASSERT_EQ(claim(key, "x", {}).state, KeyState::ours) << key;
  }
}

TEST_F(KeysTest, ProcessesThatTakeTurnsKnowEachOthersRecords) {
  end();
  Connection second(connection_.path());
  second.wait_for_locks_until(SteadyTime::max());
  ASSERT_TRUE(second.open(Connection::Access::write));
  auto other = make_keys(second);
  Connection* mine = &connection_;
  Connection* others = &second;
  std::vector<std::string> kept;
  for (int i = 0; i < 150; ++i) {
    std::swap(keys_, other);
    std::swap(mine, others);
    mine->execute("BEGIN");
    keys_->begin();
    for (int j = 0; j < 10; ++j) {
      kept.push_back("k" + std::to_string(i) + "/" + std::to_string(j));
      record(kept.back(), "m");
    }
    const bool fails = i % 7 == 3;
    keys_->finish();
    mine->execute(fails ? "ROLLBACK" : "COMMIT");
    if (fails) {
      kept.resize(kept.size() - 10);
    }
  }
  EXPECT_GT(connection_.number("SELECT indexed FROM key_counters"), 500);
  for (int turn = 0; turn < 2; ++turn) {
    std::swap(keys_, other);
    std::swap(mine, others);
    mine->execute("BEGIN");
    keys_->begin();
    for (const std::string& key : kept) {
      ASSERT_EQ(claim(key, "x", {}).state, KeyState::done) << key;
    }
    ASSERT_EQ(claim("k3/0", "x", {}).state, KeyState::ours) << "it was taken back";
    mine->execute("COMMIT");
  }
  ASSERT_EQ(mine, &connection_) << "after an even number of turns";
  begin();
}

TEST_F(KeysTest, AProcessThatComesLaterLearnsTheIndexPieceByPiece) {
  constexpr int kRecords = 2'000;
  for (int i = 0; i < kRecords; ++i) {
    const std::string id = "m" + std::to_string(i);
    EXPECT_TRUE(record(id, id));
    if (i % 50 == 49) {
      next_transaction();
    }
  }
  end();
  keys_.reset();
  EXPECT_GT(count("key_hashes"), 500);
  keys_ = make_keys(connection_);
  // From its first transaction on, long before it has learnt all of them.
  for (int i = 0; i < kRecords; i += 20) {
    begin();
    EXPECT_EQ(claim("m" + std::to_string(i), "other", Duration::zero()).state, KeyState::done) << i;
    EXPECT_EQ(claim("n" + std::to_string(i), "other", Duration::zero()).state, KeyState::ours) << i;
    end();
  }
  begin();
  for (int i = 0; i < kRecords; ++i) {
    EXPECT_EQ(claim("m" + std::to_string(i), "other", Duration::zero()).state, KeyState::done) << i;
  }
}

TEST_F(KeysTest, RecordsThatAnotherProcessIndexedMeanwhileAreFound) {
  EXPECT_EQ(claim("none", "a").state, KeyState::ours);
  end();
  Connection other_connection(folder_.file("keys.db"));
  other_connection.wait_for_locks_until(SteadyTime::max());
  ASSERT_TRUE(other_connection.open(Connection::Access::write));
  const auto other = make_keys(other_connection);
  for (int i = 0; i < 2'000; ++i) {
    if (i % 50 == 0) {
      other_connection.execute("BEGIN IMMEDIATE");
      other->begin();
    }
    const std::string id = "m" + std::to_string(i);
    const KeyRecord one{"pay", id, {}, 24h, true};
    EXPECT_TRUE(other->record(kQueue, one, id, now_));
    other->flush_records();
    if (i % 50 == 49) {
      other->finish();
      other_connection.execute("COMMIT");
    }
  }
  EXPECT_GT(count("key_hashes"), 500) << "which this process has never seen in its tail";
  begin();
  for (int i = 0; i < 2'000; ++i) {
    EXPECT_EQ(claim("m" + std::to_string(i), "other", Duration::zero()).state, KeyState::done) << i;
  }
}

TEST_F(KeysTest, EntriesWithoutARecordAreSwept) {
  for (int i = 0; i < 400; ++i) {
    for (int j = 0; j < 10; ++j) {
      record("k" + std::to_string(i) + "/" + std::to_string(j), "m", 2s);
    }
    now_ += 1s;
    next_transaction();
  }
  EXPECT_LE(count("key_records"), 500);
  EXPECT_LE(count("key_hashes"), 3000);
  EXPECT_EQ(connection_.number("SELECT settled FROM key_counters"), count("key_hashes"));
}

TEST_F(KeysTest, AHashThatMeetsByChanceIsNoDuplicate) {
  record("k", "a");
  next_transaction();
  // Another key under the same hash, as nobody could find one to send.
  connection_.execute("UPDATE key_records SET key = CAST('other' AS BLOB)");
  EXPECT_EQ(claim("k", "b").state, KeyState::ours);
  EXPECT_TRUE(record("k", "b"));
}

}  // namespace
}  // namespace sluice::queue::sqlite
