#include "host/stores/sqlite/keys.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
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
    std::ofstream(connection_.path()).close();  // an empty file is an empty database
    EXPECT_TRUE(connection_.open(Connection::Access::write));
    connection_.execute("PRAGMA synchronous = OFF");
    EXPECT_TRUE(make_schema(connection_));
    keys_ = std::make_unique<Keys>(connection_);
    begin();
  }

  void begin() {
    connection_.execute("BEGIN");
    keys_->begin();
  }
  void end() {
    keys_->finish();
    connection_.execute("COMMIT");
    EXPECT_FALSE(connection_.failed()) << connection_.state().error().message();
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
    return record(KeyRecord{job, key, result, ttl, key == owner}, owner);
  }
  bool record(const KeyRecord& one, const std::string& owner) {
    const bool may = keys_->may_record(kQueue, one, owner, now_);
    if (may) {
      keys_->put_record(kQueue, one, owner, now_);
    }
    return may;
  }
  std::int64_t recorded() { return connection_.number("SELECT count(*) FROM sluice_keys WHERE done"); }
  std::int64_t marked() { return connection_.number("SELECT count(*) FROM sluice_keys WHERE NOT done"); }
  std::int64_t count(const std::string& table) { return connection_.number(("SELECT count(*) FROM " + table).c_str()); }

  test::TempFolder folder_;
  Connection connection_{folder_.file("keys.db")};
  std::unique_ptr<Keys> keys_;
  WallTime now_{1h};
};

TEST_F(KeysTest, ARecordTakesItsMarksPlaceAndIsFoundFromThenOn) {
  EXPECT_EQ(claim("k", "a").state, KeyState::ours);
  EXPECT_TRUE(record("k", "a", 24h, "paid"));
  EXPECT_EQ(marked(), 0);
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
  EXPECT_EQ(marked(), 0);
  EXPECT_TRUE(record("m", "m"));
  next_transaction();
  EXPECT_EQ(claim("m", "m", {}).state, KeyState::done);
  EXPECT_EQ(claim("m", "m", {}).owner, "m");
}

TEST_F(KeysTest, WhatASavepointTookBackIsNotThere) {
  record("before", "a");
  connection_.execute("SAVEPOINT one");
  record("inside", "b");
  connection_.execute("ROLLBACK TO one");
  record("after", "c");
  connection_.execute("RELEASE one");
  next_transaction();
  EXPECT_EQ(claim("before", "x", {}).state, KeyState::done);
  EXPECT_EQ(claim("inside", "x", {}).state, KeyState::ours);
  EXPECT_EQ(claim("after", "x", {}).state, KeyState::done);
  EXPECT_EQ(recorded(), 2);
}

TEST_F(KeysTest, AJobThatASavepointTookBackGetsANumberOfItsOwn) {
  connection_.execute("SAVEPOINT one");
  record("k", "a");
  connection_.execute("ROLLBACK TO one");
  const KeyRecord other{"ship", "k", {}, 24h};
  EXPECT_TRUE(record(other, "s"));
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
  EXPECT_EQ(connection_.number("SELECT count(*) FROM sluice_keys WHERE instr(key, x'73686F7274') > 0"), 0);
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
  EXPECT_EQ(marked(), 1);
}

TEST_F(KeysTest, OneOfManyIsForgottenAndListsGoOnBehindIt) {
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) {
    keys.push_back("k" + std::to_string(i));
    EXPECT_TRUE(record(KeyRecord{"pay", keys.back(), {}, 24h}, "m"));
  }
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
  std::sort(keys.begin(), keys.end());
  std::erase(keys, "k3");
  std::erase(keys, "k9");
  EXPECT_EQ(listed, keys);
  for (const std::string& key : keys) {
    keys_->forget(kQueue, "pay", key, now_);
  }
  EXPECT_EQ(recorded(), 0);
  next_transaction();
}

}  // namespace
}  // namespace sluice::queue::sqlite
