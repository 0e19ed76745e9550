// A file that an older Sluice has made is brought up to today's tables in place, and loses nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "host/stores/sqlite/id_index.hpp"
#include "host/stores/sqlite/schema.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using ::testing::HasSubstr;

// An id that tells its time.
constexpr const char* kTimed = "01909d5c-1a2b-7c3d-8e4f-5a6b7c8d9e0f";

/// Gives a file the index of ids that version 8 had, which knew nothing of their times.
void make_version_8(const std::string& path) {
  raw_sql(path,
          "ALTER TABLE ids_fresh RENAME TO ids_new; INSERT INTO ids_new SELECT hash + 1, seq FROM ids; "
          "DELETE FROM ids; UPDATE counters SET old_ids = 0, new_ids = (SELECT count(*) FROM ids_new); "
          "PRAGMA user_version = 8");
}

/// Takes from a file what version 7 did not have.
void make_version_7(const std::string& path) {
  make_version_8(path);
  raw_sql(path,
          "DELETE FROM chains WHERE seq IN (SELECT seq FROM deliveries WHERE until IS NOT NULL UNION ALL SELECT head "
          "FROM lanes); ALTER TABLE chains RENAME TO line; DROP TABLE tombstones; PRAGMA user_version = 7");
}

/// Gives a file the records of keys that version 6 had, of which these are some: as SQL, each with its seq.
void make_version_6(const std::string& path, const std::string& records = {}) {
  make_version_7(path);
  raw_sql(path,
          "DROP TABLE key_batches; DROP TABLE key_runs; DROP TABLE key_pages; DROP TABLE key_counters; "
          "CREATE TABLE key_records (seq INTEGER PRIMARY KEY, job INTEGER NOT NULL, until INTEGER NOT NULL, "
          "key BLOB NOT NULL, owner TEXT, result BLOB) STRICT; "
          "CREATE TABLE key_hashes (hash INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (hash, seq)) STRICT, "
          "WITHOUT ROWID; CREATE TABLE key_counters (one INTEGER PRIMARY KEY CHECK (one = 1), next_seq INTEGER NOT "
          "NULL, indexed INTEGER NOT NULL, settled INTEGER NOT NULL, records INTEGER NOT NULL, stamp INTEGER NOT NULL) "
          "STRICT; INSERT INTO key_counters VALUES (1, 1, 0, 0, 0, 0); PRAGMA user_version = 6; " +
              records);
}

/// Gives a file the lanes that version 5 had.
void make_version_5(const std::string& path) {
  make_version_6(path);
  raw_sql(path,
          "ALTER TABLE lanes RENAME TO numbered; CREATE TABLE lanes (lane INTEGER PRIMARY KEY, half INTEGER NOT NULL, "
          "head INTEGER, head_sent INTEGER NOT NULL, turn INTEGER NOT NULL, others INTEGER NOT NULL, first INTEGER, "
          "last INTEGER, last_sent INTEGER NOT NULL) STRICT; INSERT INTO lanes SELECT lane, half, head, head_sent, "
          "turn, others, first, last, last_sent FROM numbered; DROP TABLE numbered; DROP TABLE lane_numbers; "
          "PRAGMA user_version = 5");
}

/// Takes from a file what version 4 did not have of order and priorities.
void drop_ordering(const std::string& path) {
  make_version_8(path);
  raw_sql(path,
          "DROP TABLE lanes; DROP TABLE lane_numbers; DROP TABLE chains; DROP TABLE tombstones; DROP TABLE holds; "
          "ALTER TABLE queues DROP "
          "COLUMN kept; "
          "ALTER TABLE messages DROP COLUMN priority; PRAGMA user_version = 4");
}

/// Takes from a file what version 3 did not have.
void make_version_3(const std::string& path) {
  drop_ordering(path);
  raw_sql(
      path,
      "DROP TABLE key_jobs; DROP TABLE key_marks; DROP TABLE key_batches; DROP TABLE key_runs; DROP TABLE key_pages; "
      "DROP TABLE key_counters; DROP TABLE dedup_ids; DROP TABLE unique_keys; DROP TABLE send_clock; "
      "DROP TABLE notices; PRAGMA user_version = 3");
}

/// Takes from a file what version 2 did not have.
void make_version_2(const std::string& path) {
  make_version_3(path);
  raw_sql(path,
          "INSERT INTO ready SELECT * FROM suspects; DROP TABLE suspects; ALTER TABLE deliveries DROP COLUMN suspect; "
          "PRAGMA user_version = 2");
}

/// Takes from a file what version 1 did not have.
void make_old(const std::string& path) {
  make_version_2(path);
  raw_sql(path, "ALTER TABLE messages DROP COLUMN native; PRAGMA user_version = 1");
}

// The tables as version 1 made them, word for word.
constexpr const char* kVersion1 = R"sql(
PRAGMA journal_mode = WAL;
CREATE TABLE queues (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE halves (half INTEGER PRIMARY KEY, messages INTEGER NOT NULL) STRICT;
CREATE TABLE messages (
  seq INTEGER PRIMARY KEY, half INTEGER NOT NULL, sent_at INTEGER NOT NULL, created_at INTEGER NOT NULL,
  id TEXT NOT NULL, content_type TEXT, message_group TEXT, attributes BLOB, body BLOB NOT NULL
) STRICT;
CREATE TABLE ready (
  half INTEGER NOT NULL, sent_at INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (half, sent_at, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE deliveries (
  seq INTEGER PRIMARY KEY, half INTEGER NOT NULL, until INTEGER, leased INTEGER NOT NULL, version INTEGER NOT NULL,
  receives INTEGER NOT NULL, sent_at INTEGER NOT NULL, received_at INTEGER, updated_at INTEGER NOT NULL, failure BLOB
) STRICT;
CREATE INDEX deliveries_due ON deliveries (half, until, leased) WHERE until IS NOT NULL;
CREATE TABLE ids_new (hash INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (hash, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE ids (hash INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (hash, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE counters (
  one INTEGER PRIMARY KEY CHECK (one = 1), next_seq INTEGER NOT NULL, new_ids INTEGER NOT NULL, old_ids INTEGER NOT NULL
) STRICT;
PRAGMA user_version = 1;
)sql";

/// A file of version 1 with a message in each state: ready, delayed, in flight until `now` + 30 s, and dead.
void make_version_1(const std::string& path, WallTime now) {
  const auto text = [](std::int64_t number) { return std::to_string(number); };
  const std::int64_t at = now.time_since_epoch().count();
  const std::int64_t later = (now + std::chrono::seconds(30)).time_since_epoch().count();
  std::string sql = kVersion1;
  sql += "PRAGMA application_id = " + text(queue::sqlite::kApplicationId) + ";";
  sql += "INSERT INTO queues VALUES (1, 'orders'); INSERT INTO halves VALUES (2, 3), (3, 1);";
  sql += "INSERT INTO counters VALUES (1, 5, 4, 0);";
  std::int64_t seq = 0;
  for (const std::string id : {"ready", "delayed", "flying", "dead"}) {
    const std::string number = text(++seq);
    sql += "INSERT INTO ids_new VALUES (" + text(queue::sqlite::IdLookup::hash(1, id)) + "," + number + ");";
    sql += "INSERT INTO messages VALUES (" + number + "," + (id == "dead" ? "3" : "2") + "," + text(at) + "," +
           text(at) + ",'" + id + "',NULL,NULL,CAST('1:k,1:v,' AS BLOB),CAST('body of " + id + "' AS BLOB));";
  }
  const std::string end = "," + text(at) + ",";
  sql += "INSERT INTO ready VALUES (2" + end + "1), (3" + end + "4);";
  sql += "INSERT INTO deliveries VALUES (2, 2," + text(later) + ", 0, 1, 0" + end + "NULL" + end + "NULL)," + "(3, 2," +
         text(later) + ", 1, 2, 1" + end + text(at) + end + "NULL)," + "(4, 3, NULL, 0, 4, 0" + end + "NULL" + end +
         "CAST('4:late,0:,0:,1:3,1:0,' AS BLOB));";
  raw_sql(path, sql);
}

class SchemaUpgrade : public ::testing::Test {
 protected:
  std::unique_ptr<StoreDesk> open() { return open_store(file_, clock_, random_); }

  queue::StoredMessage get(Desk& store, const std::string& id) {
    auto found = store.get("orders", id, Deadline::never());
    EXPECT_TRUE(found) << (found ? "" : found.error().message());
    return found ? std::move(*found) : queue::StoredMessage();
  }

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
};

TEST_F(SchemaUpgrade, KeepsMessagesAndTakesNativeRecordsFromThenOn) {
  const std::vector<queue::NewMessage> sent{{.id = "a", .body = "first", .attributes = {{"k", "v"}}},
                                            {.id = "b", .body = "second"}};
  {
    auto store = open();
    store->send("orders", sent, Deadline::never());
    ASSERT_TRUE(store->claim({"orders"}, 1, std::chrono::seconds(30), Deadline::never()));
  }
  make_old(file_);
  {
    auto store = open();
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(get(*store, "a").message.body, "first");
    EXPECT_EQ(get(*store, "a").message.attributes, sent[0].attributes);
    EXPECT_EQ(get(*store, "a").message.attempt, 1U);
    queue::StoredMessage record = get(*store, "b");
    record.native = R"({"id":{"S":"b"}})";
    EXPECT_EQ(store->put("orders", std::span(&record, 1), queue::PutMode::replace, Deadline::never())[0].status,
              queue::PutStatus::written);
    const queue::NewMessage more{.id = "c", .body = "third"};
    EXPECT_EQ(store->send("orders", std::span(&more, 1), Deadline::never())[0].status, queue::SendStatus::sent);
    const auto page = store->list("orders", {.limit = 10, .cursor = {}, .native = true}, Deadline::never());
    ASSERT_TRUE(page) << page.error().message();
    ASSERT_EQ(page->messages.size(), 3U);
    EXPECT_EQ(page->messages[0].native, "");
    EXPECT_THAT(page->messages[1].native + page->messages[2].native, HasSubstr(R"("S":"b")"));
  }
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

TEST_F(SchemaUpgrade, TakesOverAFileOfVersion1AsItIs) {
  make_version_1(file_, clock_.wall_now());
  auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(all_ids(*store, "orders"), (std::vector<std::string>{"dead", "delayed", "flying", "ready"}));
  const auto counts = store->stats({"orders"}, Deadline::never());
  EXPECT_EQ(counts->ready, 1U);
  EXPECT_EQ(counts->delayed, 1U);
  EXPECT_EQ(counts->in_flight, 1U);
  EXPECT_EQ(get(*store, "dead").failure.error, "late");
  EXPECT_EQ(get(*store, "dead").version, 4);
  EXPECT_EQ(get(*store, "ready").message.attributes, (queue::Attributes{{"k", "v"}}));
  const std::vector<queue::NewMessage> again{{.id = "dead"}, {.id = "flying"}, {.id = "new"}};
  const auto results = store->send("orders", again, Deadline::never());
  EXPECT_EQ(results[0].status, queue::SendStatus::duplicate_id);
  EXPECT_EQ(results[1].status, queue::SendStatus::duplicate_id);
  EXPECT_EQ(results[2].status, queue::SendStatus::sent);
  // Whoever was working on it when the old one was stopped settles with the receipt of then.
  const queue::Completion settlement{.receipt = {.id = "flying", .version = 2, .locator = 3}};
  EXPECT_EQ(store->settle({"orders"}, std::span(&settlement, 1), Deadline::never())[0].status,
            queue::SettleStatus::applied);
  clock_.advance(std::chrono::seconds(31));
  EXPECT_EQ(store->claim({"orders"}, 10, std::chrono::seconds(30), Deadline::never())->size(), 3U);
  EXPECT_EQ(store->claim({"orders", queue::Half::dlq}, 10, std::chrono::seconds(30), Deadline::never())->size(), 1U);
  store.reset();
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

TEST_F(SchemaUpgrade, WhatVersion2BroughtBackFromAnUnknownEndIsSuspect) {
  {
    auto store = open();
    const std::vector<queue::NewMessage> sent{{.id = "a"}, {.id = "b"}, {.id = "c"}};
    store->send("orders", sent, Deadline::never());
    ASSERT_EQ(store->claim({"orders"}, 2, std::chrono::seconds(30), Deadline::never())->size(), 2U);
    clock_.advance(std::chrono::seconds(31));
    // Brings both back, and takes none.
    ASSERT_EQ(
        store->source({"orders"}).claim({.max = 1, .suspects = false}, Deadline::never())->deliveries.at(0).message.id,
        "c");
  }
  make_version_2(file_);
  auto store = open();
  for (const std::string id : {"a", "b"}) {
    const auto claimed = store->claim({"orders"}, 10, std::chrono::seconds(30), Deadline::never());
    ASSERT_EQ(claimed->size(), 1U);
    EXPECT_EQ(claimed->at(0).message.id, id);
    EXPECT_TRUE(claimed->at(0).suspect);
    EXPECT_EQ(claimed->at(0).message.attempt, 1U);
  }
  store.reset();
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

TEST_F(SchemaUpgrade, AnOldOneThatIsStillRunningLosesNothing) {
  auto store = open();
  const std::vector<queue::NewMessage> sent{{.id = "a"}, {.id = "b"}};
  store->send("orders", sent, Deadline::never());
  // What version 2 says when it claims, and when it settles what it has finished.
  EXPECT_THROW(raw_sql(file_, "INSERT INTO deliveries SELECT seq, half, 1, 1, 2, 1, sent_at, 5, 5, NULL FROM ready"),
               std::runtime_error);
  ASSERT_EQ(store->claim({"orders"}, 1, std::chrono::seconds(30), Deadline::never())->size(), 1U);
  raw_sql(file_,
          "DELETE FROM messages WHERE seq = 1 AND id = 'a' AND EXISTS (SELECT 1 FROM deliveries AS d WHERE d.seq = 1 "
          "AND d.version = 2 AND d.half = 2 AND d.until IS NOT NULL)");
  raw_sql(file_, "DELETE FROM deliveries WHERE seq = 1; UPDATE halves SET messages = messages - 1");
  EXPECT_EQ(all_ids(*store, "orders"), std::vector<std::string>{"b"});
  store.reset();
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

TEST_F(SchemaUpgrade, AFileOfVersion3GetsABoard) {
  {
    auto store = open();
    const queue::NewMessage sent{.id = "a"};
    store->send("orders", std::span(&sent, 1), Deadline::never());
  }
  make_version_3(file_);
  auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(all_ids(*store, "orders"), std::vector<std::string>{"a"});
  const auto board = store->queues().open_board("orders");
  ASSERT_TRUE(board);
  EXPECT_TRUE((*board)->post(queue::Topic::steering, {.text = "{}"}, Deadline::never()));
  EXPECT_EQ((*board)->read(queue::Topic::steering, {}, Deadline::never())->version, 1);
}

class UpgradeOfGroups : public SchemaUpgrade {
 protected:
  /// Groups of a file go on in their order after `make_old` has made it one of an older version.
  void go_on(void (*make_old)(const std::string&));
};

void UpgradeOfGroups::go_on(void (*make_old)(const std::string&)) {
  const auto claim = [](StoreDesk& store) {
    return store.source({"orders"})
        .claim({.max = 10, .rules = {.order = queue::Order::group}}, Deadline::never())
        ->deliveries;
  };
  std::vector<queue::Delivery> out;
  {
    auto store = open();
    std::vector<queue::NewMessage> sent;
    for (const std::string id : {"a1", "b1", "a2", "b2", "a3"}) {
      sent.push_back({.id = id, .body = id, .group = id.substr(0, 1)});
      clock_.advance(std::chrono::milliseconds(1));
      store->send("orders", std::span(&sent.back(), 1), Deadline::never());
    }
    out = claim(*store);
    ASSERT_EQ(out.size(), 2U);
  }
  make_old(file_);
  auto store = open();
  EXPECT_TRUE(claim(*store).empty());
  std::string order;
  while (!out.empty()) {
    std::vector<queue::Completion> done;
    for (const auto& delivery : out) {
      order += delivery.message.id + " ";
      done.push_back({.receipt = delivery.receipt});
    }
    for (const auto& result : store->settle({"orders"}, done, Deadline::never())) {
      EXPECT_EQ(result.status, queue::SettleStatus::applied);
    }
    out = claim(*store);
  }
  EXPECT_EQ(order, "a1 b1 a2 b2 a3 ");
  store.reset();
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

TEST_F(UpgradeOfGroups, OfVersion5) { go_on(make_version_5); }
TEST_F(UpgradeOfGroups, OfVersion7) { go_on(make_version_7); }

TEST_F(SchemaUpgrade, AViewOfTheUsersThatIsBrokenIsNoMatter) {
  open();
  make_version_7(file_);
  raw_sql(file_, "CREATE TABLE mine (a); CREATE VIEW seen AS SELECT a FROM mine; DROP TABLE mine");
  EXPECT_NE(open(), nullptr);
}

TEST_F(SchemaUpgrade, ATableOfTheUsersWithANameThatIsNeededIsSaid) {
  for (const std::string name : {"chains", "Tombstones", "ids_fresh", "sluice_leasing", "sluice_sending"}) {
    open();
    make_version_7(file_);
    raw_sql(file_, "CREATE TABLE " + name + " (a); INSERT INTO " + name + " VALUES (7)");
    try {
      open();
      ADD_FAILURE() << name;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("one of yours"), HasSubstr(" RENAME TO my_")));
    }
    raw_sql(file_, "ALTER TABLE " + name + " RENAME TO my_" + name);
    EXPECT_NE(open(), nullptr) << name;
    EXPECT_EQ(raw_sql(file_, "SELECT a FROM my_" + name).at(0), "7");
    std::filesystem::remove(file_);
  }
}

TEST_F(SchemaUpgrade, AVersionThatSomebodyHasLoweredIsNotTakenForATableOfTheUsers) {
  open();
  raw_sql(file_, "PRAGMA user_version = 8");
  try {
    open();
    ADD_FAILURE() << "it was upgraded once more";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("somebody has changed its version, set that back: PRAGMA user_version = 9"));
  }
  raw_sql(file_, "PRAGMA user_version = 9");
  EXPECT_NE(open(), nullptr);
}

TEST_F(SchemaUpgrade, AHostOfVersion7ThatIsStillRunningLeavesGroupsAlone) {
  auto store = open();
  const std::vector<queue::NewMessage> sent{{.id = "a1", .group = "a"}, {.id = "a2", .group = "a"}};
  store->send("orders", sent, Deadline::never());
  ASSERT_EQ(store->source({"orders"})
                .claim({.max = 10, .rules = {.order = queue::Order::group}}, Deadline::never())
                ->deliveries.size(),
            1U);
  // What it says when it sends to a group, when it looks for the next one of one, and when it lists them.
  for (const std::string sql :
       {"INSERT INTO line VALUES (9, 2, 1, 0, NULL, NULL)", "UPDATE line SET next = 9 WHERE seq = 2",
        "SELECT sent_at, suspected, before, next FROM line WHERE seq = 2", "SELECT seq FROM line WHERE half = 2"}) {
    EXPECT_THROW(raw_sql(file_, sql), std::runtime_error) << sql;
  }
  EXPECT_EQ(all_ids(*store, "orders"), (std::vector<std::string>{"a1", "a2"}));
  store.reset();
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

TEST_F(SchemaUpgrade, IdsOfVersion8ThatTellTheirTimeAreFound) {
  {
    auto store = open();
    const std::vector<queue::NewMessage> sent{{.id = "plain"}, {.id = kTimed, .body = "timed"}, {}};
    store->send("orders", sent, Deadline::never());
    store->send("bills", std::span(&sent[1], 1), Deadline::never());
  }
  make_version_8(file_);
  auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(get(*store, kTimed).message.body, "timed");
  for (const std::string& id : all_ids(*store, "orders")) {
    const queue::NewMessage again{.id = id};
    EXPECT_EQ(store->send("orders", std::span(&again, 1), Deadline::never())[0].status, queue::SendStatus::duplicate_id)
        << id;
  }
  const queue::NewMessage again{.id = kTimed};
  EXPECT_EQ(store->send("bills", std::span(&again, 1), Deadline::never())[0].status, queue::SendStatus::duplicate_id);
  store.reset();
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

TEST_F(SchemaUpgrade, AHostOfVersion8ThatIsStillRunningSendsNothing) {
  auto store = open();
  // What it says when it has put a message down, when it makes room, and when somebody asks for one.
  for (const std::string sql :
       {"INSERT OR FAIL INTO ids_new VALUES (1, 2)", "INSERT OR IGNORE INTO ids SELECT hash, seq FROM ids_new",
        "SELECT seq FROM ids_new WHERE hash = 1 UNION ALL SELECT seq FROM ids WHERE hash = 1"}) {
    EXPECT_THROW(raw_sql(file_, sql), std::runtime_error) << sql;
  }
}

TEST_F(SchemaUpgrade, KeysOfVersion6AreKeptWithTheirOwnersAndResults) {
  {
    auto store = open();
    const queue::NewMessage sent{.id = "a"};
    store->send("orders", std::span(&sent, 1), Deadline::never());
  }
  const std::string until = std::to_string((clock_.wall_now() + std::chrono::hours(1)).time_since_epoch().count());
  make_version_6(file_,
                 "INSERT INTO key_jobs VALUES (3, 1, 'pay'); INSERT INTO key_marks VALUES (" +
                     std::to_string(queue::sqlite::IdLookup::hash(3, "running")) + ", 3, x'72756E6E696E67', 'r', 1, " +
                     until +
                     "); WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO "
                     "key_records SELECT i, 3, " +
                     until +
                     ", CAST('k' || i AS BLOB), CASE i % 3 WHEN 0 THEN 'owner' || i END, CASE i % 5 WHEN 0 THEN "
                     "CAST('result' || i AS BLOB) END FROM n; INSERT INTO key_records VALUES (3001, 3, 5, x'6F6C64', "
                     "NULL, NULL); UPDATE key_counters SET next_seq = 3002, records = 3001");
  auto store = open();
  ASSERT_NE(store, nullptr);
  const auto keys = *store->queues().open_keys("orders");
  std::vector<queue::KeyClaim> claims;
  for (int i = 1; i <= 3001; ++i) {
    claims.push_back({"pay", "k" + std::to_string(i), "x", {}, 1});
  }
  claims.push_back({"pay", "old", "x", {}, 1});
  claims.push_back({"pay", "running", "x", std::chrono::seconds(30), 1});
  const auto answers = keys->begin(claims, Deadline::never());
  ASSERT_EQ(answers.size(), 3003U);
  for (std::size_t i = 1; i <= 3000; ++i) {
    const queue::KeyAnswer& answer = answers[i - 1];
    ASSERT_EQ(answer.state, queue::KeyState::done) << i;
    ASSERT_EQ(answer.owner, (i % 3 == 0 ? "owner" : "k") + std::to_string(i));
    ASSERT_EQ(answer.result, i % 5 == 0 ? "result" + std::to_string(i) : "");
  }
  EXPECT_EQ(answers[3000].state, queue::KeyState::ours);
  EXPECT_EQ(answers[3001].state, queue::KeyState::ours) << "its time had passed";
  EXPECT_EQ(answers[3002].state, queue::KeyState::running);
  EXPECT_EQ(keys->list("pay", 5000, {}, Deadline::never())->keys.size(), 3001U);
  EXPECT_EQ((*keys->get("pay", "k9", Deadline::never()))->owner, "owner9");
  EXPECT_EQ(raw_sql(file_, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'old_%' OR name = 'key_hashes'").at(0),
            "0");
}

TEST_F(SchemaUpgrade, HappensOnceForTwoThatOpenIt) {
  open();
  make_old(file_);
  auto first = open();
  auto second = open();
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  const queue::NewMessage message{.id = "a", .body = "x"};
  EXPECT_EQ(first->send("orders", std::span(&message, 1), Deadline::never())[0].status, queue::SendStatus::sent);
  EXPECT_EQ(get(*second, "a").message.body, "x");
}

}  // namespace
}  // namespace sluice::test
