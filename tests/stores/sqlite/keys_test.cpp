#include "host/stores/sqlite/keys.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "host/stores/sqlite/key_batch.hpp"
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
  std::int64_t recorded() { return connection_.number("SELECT sum(records) FROM sluice_key_batches"); }
  /// Entries of the index that lie in the file.
  std::int64_t indexed() { return connection_.number("SELECT sum(length(entries)) / 12 FROM sluice_key_pages"); }
  void expect_whole() {
    EXPECT_EQ(connection_.number("SELECT records FROM sluice_key_counters"), recorded());
    EXPECT_EQ(connection_.number("SELECT sum(entries) FROM sluice_key_runs"), indexed());
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
  EXPECT_EQ(count("sluice_key_marks"), 0);
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
  EXPECT_EQ(recorded(), 1);
}

TEST_F(KeysTest, ALateOwnerMayWriteWhereNobodyElseCame) {
  claim("k", "a", 60s);
  now_ += 61s;
  EXPECT_TRUE(record("k", "a"));
}

TEST_F(KeysTest, AMessagesOwnIdIsRecordedWithoutAMark) {
  EXPECT_EQ(claim("m", "m", {}).state, KeyState::ours);
  EXPECT_EQ(count("sluice_key_marks"), 0);
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
  EXPECT_EQ(connection_.number("SELECT records FROM sluice_key_counters"), 2);
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
  EXPECT_EQ(count("sluice_key_jobs"), 2);
}

TEST_F(KeysTest, ExpiredRecordsAreSweptByThoseWhoWrite) {
  for (int i = 0; i < 3000; ++i) {
    record("k" + std::to_string(i), "m", 60s);
  }
  next_transaction();
  EXPECT_EQ(recorded(), 3000);
  now_ += 61s;
  int transactions = 0;
  for (; recorded() > transactions + 1 && transactions < 100; ++transactions) {
    record("later" + std::to_string(transactions), "m", 24h);
    const std::int64_t before = recorded();
    next_transaction();
    EXPECT_LE(before - recorded(), 600) << "in pieces, so that nobody waits for them";
  }
  EXPECT_LE(transactions, 20);
  expect_whole();
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
  EXPECT_EQ(connection_.number("SELECT count(*) FROM sluice_key_batches WHERE instr(content, x'73686F7274') > 0"), 0);
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
  EXPECT_EQ(count("sluice_key_marks"), 1);
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
  EXPECT_GT(connection_.number("SELECT indexed FROM sluice_key_counters"), 1000);
  expect_whole();
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
  EXPECT_GT(connection_.number("SELECT indexed FROM sluice_key_counters"), 300);
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
  EXPECT_GT(connection_.number("SELECT indexed FROM sluice_key_counters"), 500);
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
  EXPECT_GT(indexed(), 500);
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
  EXPECT_GT(indexed(), 500) << "which this process has never seen in its tail";
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
  EXPECT_LE(recorded(), 500);
  EXPECT_LE(indexed(), 3000);
  expect_whole();
}

TEST_F(KeysTest, RecordsOfOneCommitShareARow) {
  for (int i = 0; i < 500; ++i) {
    const std::string id = "0190f5d2-4f7e-7a0b-9c55-0000000" + std::to_string(10'000 + i);
    const KeyRecord one{"pay", id, {}, 24h, true};
    EXPECT_TRUE(keys_->record(kQueue, one, id, now_));
  }
  keys_->flush_records();
  next_transaction();
  EXPECT_EQ(recorded(), 500);
  EXPECT_LE(count("sluice_key_batches"), 6);
  EXPECT_EQ(connection_.number("SELECT max(length(content)) <= 4000 FROM sluice_key_batches"), 1)
      << "a page of the file";
}

TEST_F(KeysTest, ARowHasTheRecordsOfOneJobAndOneEnd) {
  const KeyRecord a{"pay", "a", {}, 24h};
  const KeyRecord b{"ship", "b", {}, 24h};
  const KeyRecord c{"ship", "c", {}, 1h};
  const KeyRecord d{"ship", "d", std::string(32'768, 'r'), 1h};
  for (const auto& one : {a, b, c, d}) {
    EXPECT_TRUE(keys_->record(kQueue, one, "m", now_));
  }
  keys_->flush_records();
  next_transaction();
  EXPECT_EQ(count("sluice_key_batches"), 4) << "a large result lies alone";
  EXPECT_EQ(claim("a", "x", {}).until, now_ + 24h);
  const KeyClaim last{"ship", "d", "x", {}, 1};
  EXPECT_EQ(keys_->claim(kQueue, std::span(&last, 1), now_).at(0).result.size(), 32'768U);
}

TEST_F(KeysTest, OneOfManyIsForgottenAndListsGoOnBehindIt) {
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) {
    keys.push_back("k" + std::to_string(i));
    EXPECT_TRUE(keys_->record(kQueue, {"pay", keys.back(), {}, 24h}, "m", now_));
  }
  keys_->flush_records();
  KeyPage page = list_keys(connection_, kQueue, "pay", 7, {}, now_);
  ASSERT_EQ(page.keys.size(), 7U);
  EXPECT_TRUE(keys_->forget(kQueue, "pay", "k3", now_));
  EXPECT_TRUE(keys_->forget(kQueue, "pay", "k9", now_));
  EXPECT_FALSE(keys_->forget(kQueue, "pay", "k9", now_));
  EXPECT_EQ(claim("k9", "x", {}).state, KeyState::ours);
  EXPECT_FALSE(find_key(connection_, kQueue, "pay", "k9", now_));
  EXPECT_EQ(find_key(connection_, kQueue, "pay", "k10", now_)->owner, "m");
  std::vector<std::string> listed;
  while (true) {
    for (const StoredKey& key : page.keys) {
      listed.push_back(key.key);
    }
    if (page.next.empty()) {
      break;
    }
    page = list_keys(connection_, kQueue, "pay", 7, page.next, now_);
  }
  std::erase(keys, "k9");  // k3 had been shown before
  EXPECT_EQ(listed, keys);
  for (const std::string& key : keys) {
    keys_->forget(kQueue, "pay", key, now_);
  }
  EXPECT_EQ(count("sluice_key_batches"), 0);
  next_transaction();
  expect_whole();
}

TEST_F(KeysTest, RunsAreMergedSoThatFewAreLookedInto) {
  for (int i = 0; i < 600; ++i) {
    for (int j = 0; j < 40; ++j) {
      const std::string id = std::to_string(i) + "/" + std::to_string(j);
      keys_->record(kQueue, {"pay", id, {}, 24h, true}, id, now_);
    }
    keys_->flush_records();
    next_transaction();
    ASSERT_LE(count("sluice_key_runs"), 16);
  }
  EXPECT_GT(indexed(), 20'000);
  expect_whole();
  for (int i = 0; i < 600; i += 7) {
    ASSERT_EQ(claim(std::to_string(i) + "/13", "x", {}).state, KeyState::done) << i;
    ASSERT_EQ(find_key(connection_, kQueue, "pay", std::to_string(i) + "/13", now_)->done, true) << i;
  }
}

TEST_F(KeysTest, RunsOfWhatHasExpiredGo) {
  for (int i = 0; i < 300; ++i) {
    for (int j = 0; j < 20; ++j) {
      record(std::to_string(i) + "/" + std::to_string(j), "m", 2s);
    }
    now_ += 1s;
    next_transaction();
  }
  EXPECT_LE(indexed(), 2'500);
  EXPECT_LE(count("sluice_key_runs"), 12);
}

TEST_F(KeysTest, AHashThatMeetsByChanceIsNoDuplicate) {
  record("k", "a");
  next_transaction();
  // Another key under the same hash, as nobody could find one to send.
  connection_.execute("UPDATE sluice_key_batches SET content = CAST(replace(content, 'k', 'j') AS BLOB)");
  EXPECT_EQ(claim("k", "b").state, KeyState::ours);
  EXPECT_TRUE(record("k", "b"));
}

TEST(KeyBatch, GivesBackWhatItWasGiven) {
  std::string batch;
  append_key(batch, "own", "own", {});
  append_key(batch, std::string("\0\1", 2), "m", "result");
  append_key(batch, std::string(1'000, 'k'), std::string(2'048, 'o'), std::string(40'000, 'r'));
  append_key(batch, {}, "m", {});
  KeyBatchReader reader(batch);
  const auto first = reader.next();
  EXPECT_EQ(first->key, "own");
  EXPECT_EQ(first->owner, "own");
  EXPECT_EQ(reader.next()->result, "result");
  EXPECT_EQ(reader.next()->result.size(), 40'000U);
  EXPECT_EQ(reader.next()->owner, "m");
  EXPECT_FALSE(reader.next());
  const std::string rest = without_key(batch, *find_in_batch(batch, std::string("\0\1", 2)));
  EXPECT_EQ(rest.size(), batch.size());
  EXPECT_FALSE(find_in_batch(rest, std::string("\0\1", 2)));
  EXPECT_EQ(find_in_batch(rest, "own")->owner, "own");
  EXPECT_EQ(find_in_batch(rest, {})->owner, "m");
}

TEST(KeyBatch, EndsWhereItIsCutOff) {
  std::string batch;
  append_key(batch, "a", "m", {});
  const std::size_t first = batch.size();
  append_key(batch, std::string(300, 'k'), "owner", std::string(300, 'r'));
  for (std::size_t size = first; size < batch.size(); ++size) {
    KeyBatchReader reader(std::string_view(batch).substr(0, size));
    EXPECT_EQ(reader.next()->key, "a");
    EXPECT_FALSE(reader.next()) << size;
  }
}

}  // namespace
}  // namespace sluice::queue::sqlite
