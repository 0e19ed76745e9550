// What only the embedded store says of effects: which statements it runs, which it refuses and in which words, and that
// none of them can stop or spoil what others commit.

#include "host/queue/effects.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "tests/stores/sqlite/effects_rig.hpp"

namespace sluice::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(SqliteEffects, EveryKindOfValueIsBoundByItsNumber) {
  sql("CREATE TABLE kinds (a, b, c, d, e)");
  const SettleResult result =
      run({"INSERT INTO kinds VALUES (?1, ?2, ?3, ?4, ?5)",
           {std::monostate(), std::int64_t{-7}, 0.5, std::string("te\0xt", 5), SqlBlob{std::string("\0\xFF", 2)}}});
  ASSERT_EQ(result.status, SettleStatus::applied) << result.error.message();
  EXPECT_THAT(sql("SELECT typeof(a) || typeof(b) || b || typeof(c) || c || typeof(d) || hex(d) || typeof(e) || hex(e) "
                  "FROM kinds"),
              ElementsAre("nullinteger-7real0.5text7465007874blob00FF"));
}

TEST_F(SqliteEffects, WhatIsBoundIsForgottenBetweenRuns) {
  sql("CREATE TABLE notes (text)");
  const std::string insert = "INSERT INTO notes VALUES (?1)";
  EXPECT_EQ(run({insert, {std::string("first")}}).status, SettleStatus::applied);
  EXPECT_THAT(refusal({insert, {}}), HasSubstr("it takes 1 parameters and was given 0"));
  EXPECT_EQ(run({insert, {std::monostate()}}).status, SettleStatus::applied);
  EXPECT_THAT(sql("SELECT typeof(text) FROM notes"), ElementsAre("text", "null"));
}

TEST_F(SqliteEffects, RowsAreCounted) {
  EXPECT_EQ(run(debit(1)).status, SettleStatus::applied);
  EXPECT_EQ(run({"UPDATE accounts SET balance = balance + 1 WHERE name = 'alice'", {}, {}}).status,
            SettleStatus::applied);
  EXPECT_EQ(refusal({"UPDATE accounts SET balance = 3", {}, 1}),
            "write 1 on table accounts was refused: it changed 2 rows and had to change 1: UPDATE accounts SET balance "
            "= 3; mend the data or the condition before the attempts run out, or stage the write with "
            "otherwise_reject() where another attempt cannot help");
  EXPECT_THAT(refusal({"DELETE FROM accounts WHERE name = 'carol'", {}, 1}),
              HasSubstr("it changed 0 rows and had to change 1: DELETE FROM accounts WHERE name = 'carol'; mend"));
}

TEST_F(SqliteEffects, AStatementThatReadsIsACheck) {
  const std::string rich = "SELECT 1 FROM accounts WHERE balance >= ?1";
  EXPECT_EQ(run({rich, {std::int64_t{10}}, 1}).status, SettleStatus::applied);
  EXPECT_THAT(refusal({rich, {std::int64_t{11}}, 1}),
              HasSubstr("it returned 0 rows and had to return 1: " + rich + "; mend"));
  EXPECT_THAT(refusal({rich, {std::int64_t{0}}, 1}),
              HasSubstr("it returned more than 1 rows and had to return 1: " + rich + "; mend"));
  EXPECT_THAT(refusal({rich, {std::int64_t{1}}, {}}), HasSubstr("it only reads; say how many rows it has to return"));
}

TEST_F(SqliteEffects, WhatIsWrongWithAStatementIsSaid) {
  EXPECT_EQ(refusal({"UPDATE accounts SET balance = 1; DELETE FROM accounts", {}, {}}),
            "write 1 on table accounts was refused: it is more than one statement; stage each as a write of its own");
  EXPECT_THAT(refusal({"UPDATE accounts SET balance = 1; nonsense", {}, {}}), HasSubstr("more than one statement"));
  EXPECT_THAT(refusal({"  -- nothing", {}, {}}), HasSubstr("it is empty"));
  EXPECT_THAT(refusal({"", {}, {}}), HasSubstr("it is empty"));
  EXPECT_EQ(refusal({std::string("UPDATE accounts SET balance = 1\0", 32), {}, {}}),
            "write 1 was refused: it has a zero byte; give values as parameters");
  EXPECT_THAT(refusal({"UPDATE account SET balance = 1", {}, {}}),
              HasSubstr("no such table: account; make it in the store's own file, or mend the name"));
  EXPECT_THAT(refusal({"UPDATE accounts SET balanse = 1", {}, {}}), HasSubstr("no such column: balanse; make it"));
  EXPECT_THAT(refusal({"UPDAET accounts", {}, {}}), HasSubstr("near \"UPDAET\": syntax error; mend the statement"));
  EXPECT_THAT(refusal({"EXPLAIN UPDATE accounts SET balance = 1", {}, {}}), HasSubstr("it is an EXPLAIN"));
  EXPECT_THAT(refusal(debit(11)), HasSubstr("it breaks a constraint: CHECK constraint failed: balance >= 0: UPDATE "
                                            "accounts SET balance = balance - ?1 WHERE name = 'alice'; mend"));
  EXPECT_THAT(refusal({"UPDATE accounts SET balance = nothing(1)", {}, {}}), HasSubstr("; mend the statement"));
  EXPECT_THAT(refusal({"INSERT INTO accounts VALUES ('bob', 1)", {}, {}}), HasSubstr("UNIQUE constraint failed"));
}

TEST_F(SqliteEffects, ASemicolonOrACommentAtTheEndIsNoSecondStatement) {
  EXPECT_EQ(run({"UPDATE accounts SET balance = 5 WHERE name = 'bob'; -- done\n ;", {}, 1}).status,
            SettleStatus::applied);
  EXPECT_EQ(balance("bob"), "5");
}

TEST_F(SqliteEffects, OurTablesAreOutOfReach) {
  for (const char* const table :
       {"sluice_messages", "Sluice_Deliveries", "sluice_key_jobs", "sqlite_schema", "sqlite_master"}) {
    EXPECT_THAT(refusal({"SELECT * FROM " + std::string(table), {}, 0}), HasSubstr("which is not yours")) << table;
  }
  EXPECT_THAT(refusal({"DELETE FROM SLUICE_MESSAGES", {}, {}}),
              HasSubstr("it uses table sluice_messages, which is not yours"));
  EXPECT_THAT(refusal({"UPDATE main.deliveries SET version = 9", {}, {}}), HasSubstr("deliveries"));
  EXPECT_THAT(refusal({"INSERT INTO accounts SELECT id, 1 FROM sluice_messages", {}, {}}), HasSubstr("messages"));
  EXPECT_THAT(refusal({"INSERT INTO sluice_ready VALUES (2, 0, 1)", {}, {}}), HasSubstr("ready"));
}

TEST_F(SqliteEffects, NeitherDoTriggersAndViewsReachThem) {
  sql("CREATE TRIGGER sly AFTER UPDATE ON accounts BEGIN DELETE FROM sluice_messages; END; "
      "CREATE VIEW peek AS SELECT body FROM sluice_messages");
  EXPECT_THAT(refusal(debit(1)), HasSubstr("it uses table sluice_messages"));
  EXPECT_THAT(refusal({"SELECT * FROM peek", {}, 1}), HasSubstr("it uses table sluice_messages"));
}

TEST_F(SqliteEffects, ATableThatIsMadeWhileAStatementIsKeptIsSeen) {
  EXPECT_EQ(run(debit(1)).status, SettleStatus::applied);
  sql("CREATE TABLE log (name TEXT); CREATE TRIGGER logged AFTER UPDATE ON accounts BEGIN INSERT INTO log VALUES "
      "(new.name); END");
  EXPECT_EQ(run(debit(1)).status, SettleStatus::applied);
  EXPECT_THAT(sql("SELECT name FROM log"), ElementsAre("alice"));
  sql("DROP TRIGGER logged; CREATE TRIGGER sly AFTER UPDATE ON accounts BEGIN DELETE FROM sluice_messages; END");
  const auto delivery = claim(1).at(0);
  const SettleResult result = settle({with(delivery, {debit(1)})}).at(0);
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_THAT(result.error.message(), HasSubstr("it uses table sluice_messages"));
  sql("DROP TRIGGER sly");
  EXPECT_EQ(settle({with(delivery, {debit(1)})}).at(0).status, SettleStatus::applied);
}

TEST_F(SqliteEffects, TablesThatAModuleMakesAreTablesToo) {
  sql("CREATE VIRTUAL TABLE notes USING fts5(text); CREATE VIRTUAL TABLE places USING rtree(id, low, high)");
  const auto works = [this](SqlWrite write) {
    const SettleResult result = run(std::move(write));
    EXPECT_EQ(result.status, SettleStatus::applied) << result.error.message();
  };
  works({"SELECT 1 FROM json_each(?1) WHERE value = 2", {std::string("[1,2]")}, 1});
  works({"UPDATE accounts SET balance = balance + value FROM json_tree('[1]') WHERE type = 'integer'", {}, 2});
  works({"INSERT INTO notes VALUES ('hello world')", {}, 1});
  works({"SELECT 1 FROM notes WHERE notes MATCH 'world'", {}, 1});
  works({"INSERT INTO places VALUES (1, 2, 3)", {}, 1});
  // The schema is read anew, and with it the modules' tables.
  sql("CREATE TABLE more (a)");
  works({"DELETE FROM notes WHERE notes MATCH 'world'", {}, 1});
  sql("UPDATE accounts SET balance = 10 WHERE name = 'alice'");
  EXPECT_THAT(refusal({"UPDATE sqlite_master SET sql = ''", {}, {}}), HasSubstr("was refused"));
  EXPECT_THAT(refusal({"SELECT sql FROM sqlite_master", {}, 0}), HasSubstr("which is not yours"));
}

TEST_F(SqliteEffects, NothingButReadingAndWritingRowsIsAllowed) {
  for (const char* const statement :
       {"CREATE TABLE more (a)", "DROP TABLE accounts", "ALTER TABLE accounts ADD COLUMN more",
        "PRAGMA user_version = 9", "ATTACH ':memory:' AS other", "CREATE TEMP TABLE more (a)", "REINDEX", "ANALYZE"}) {
    EXPECT_THAT(refusal({statement, {}, {}}), HasSubstr("it does more than SELECT, INSERT, UPDATE or DELETE"))
        << statement;
  }
  for (const char* const statement : {"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT mine", "RELEASE effects"}) {
    EXPECT_THAT(refusal({statement, {}, {}}), HasSubstr("it begins or ends a transaction")) << statement;
  }
  EXPECT_THAT(refusal({"VACUUM", {}, {}}), HasSubstr("was refused"));
  EXPECT_THAT(refusal({"SELECT load_extension('x')", {}, 1}), HasSubstr("load_extension"));
  EXPECT_THAT(refusal({"SELECT * FROM pragma_table_info('accounts')", {}, 2}), HasSubstr("was refused"));
}

TEST_F(SqliteEffects, NothingReachesBeyondTheTablesOfTheFile) {
  // A tokenizer is a pointer to code.
  EXPECT_THAT(refusal({"SELECT fts3_tokenizer('simple')", {}, 1}), HasSubstr("it calls fts3_tokenizer"));
  EXPECT_THAT(refusal({"SELECT FTS3_Tokenizer('mine', ?1)", {SqlBlob{"\1\2\3\4\5\6\7\1"}}, 1}),
              HasSubstr("it calls fts3_tokenizer, which is not for handlers"));
  sql("CREATE VIEW sly AS SELECT fts3_tokenizer('simple')");
  EXPECT_THAT(refusal({"SELECT * FROM sly", {}, 1}), HasSubstr("was refused"));
  // Pages and statements of everybody.
  for (const char* const table : {"dbstat", "sqlite_stmt", "sqlite_dbpage", "pragma_function_list"}) {
    EXPECT_THAT(refusal({"SELECT * FROM " + std::string(table), {}, 0}), HasSubstr("was refused")) << table;
  }
  EXPECT_THAT(refusal({"ATTACH ?1 AS other", {file_ + ".other"}, {}}), HasSubstr("it does more than SELECT"));
  EXPECT_FALSE(std::filesystem::exists(file_ + ".other"));
  for (const char* const function : {"readfile('/etc/passwd')", "writefile('x', 'y')", "edit('x')"}) {
    EXPECT_THAT(refusal({"SELECT " + std::string(function), {}, 1}), HasSubstr("no such function")) << function;
  }
}

// Also of a file whose schema somebody has laid out for it.
TEST_F(SqliteEffects, NeitherDoesWhatLiesInTheFile) {
  sql("CREATE TABLE bait (x); CREATE TRIGGER sly AFTER INSERT ON bait BEGIN "
      "SELECT fts3_tokenizer('simple'), load_extension('x'); END");
  EXPECT_THAT(refusal({"INSERT INTO bait VALUES (1)", {}, {}}), HasSubstr("was refused"));
}

TEST_F(SqliteEffects, AutomaticNumbersWork) {
  sql("CREATE TABLE entries (number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT)");
  EXPECT_EQ(run({"INSERT INTO entries (name) VALUES (?1)", {std::string("a")}, 1}).status, SettleStatus::applied);
  EXPECT_EQ(run({"INSERT INTO entries (name) VALUES (?1) RETURNING number", {std::string("b")}, 1}).status,
            SettleStatus::applied);
  EXPECT_THAT(sql("SELECT number || name FROM entries"), ElementsAre("1a", "2b"));
}

TEST_F(SqliteEffects, ADeduplicationIdThatIsTooLongIsRefusedAsSendersAre) {
  auto effects = std::make_shared<Effects>();
  effects->messages.push_back({"receipts", {.id = "B-1", .body = "x", .dedup_id = std::string(10'000, 'k')}});
  const auto delivery = claim(1).at(0);
  const auto result = settle({{.receipt = delivery.receipt, .effects = effects}}).at(0);
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_THAT(result.error.message(), HasSubstr("message B-1 to queue receipts was refused: the deduplication id"));
  EXPECT_THAT(result.error.message(), HasSubstr("send a hash of it instead"));
}

TEST_F(SqliteEffects, AWriteToDynamoDbIsOfTheWrongStore) {
  auto effects = std::make_shared<Effects>();
  effects->writes.push_back({queue::ItemWrite{.table = "Accounts", .item = "{}"}, "debit"});
  const auto delivery = claim(1).at(0);
  const auto result = settle({{.receipt = delivery.receipt, .effects = effects}}).at(0);
  EXPECT_EQ(result.status, SettleStatus::refused);
  EXPECT_EQ(
      result.error.message(),
      "write \"debit\" on DynamoDB table Accounts was refused: the message lies in a SQLite store; write with SQL "
      "statements there, or put the queue into DynamoDB");
}

// A statement that never ends makes SQLite undo the whole transaction: the others of it are committed all the same.
TEST_F(SqliteEffects, AStatementThatNeverEndsIsRefusedAndItsNeighboursAreCommitted) {
  const auto deliveries = claim(4);
  const SqlWrite endless{
      "INSERT INTO accounts WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
      "SELECT i, 1 FROM n",
      {},
      {}};
  const auto results = settle({with(deliveries[0], {debit(1)}),
                               with(deliveries[1], {debit(1), endless}),
                               {.receipt = deliveries[2].receipt},
                               with(deliveries[3], {debit(1), endless})});
  EXPECT_EQ(results[0].status, SettleStatus::applied);
  EXPECT_EQ(results[1].status, SettleStatus::refused);
  EXPECT_THAT(results[1].error.message(), HasSubstr("write 2 on table accounts was refused: it ran longer"));
  EXPECT_EQ(results[2].status, SettleStatus::applied);
  EXPECT_EQ(results[3].status, SettleStatus::refused);
  EXPECT_EQ(balance("alice"), "9");
  EXPECT_EQ(settle({{.receipt = deliveries[1].receipt}, {.receipt = deliveries[3].receipt}})[0].status,
            SettleStatus::applied);
}

TEST_F(SqliteEffects, NeitherDoesOneThatOnlyReads) {
  EXPECT_THAT(
      refusal({"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0", {}, 1}),
      HasSubstr("it ran longer than the statements of a message may, 900 ms together"));
}

TEST_F(SqliteEffects, AStatementThatEndsTheTransactionIsRefusedAndItsNeighboursAreCommitted) {
  sql("CREATE TABLE once (name TEXT UNIQUE ON CONFLICT ROLLBACK); INSERT INTO once VALUES ('a')");
  const auto deliveries = claim(2);
  const auto results = settle(
      {with(deliveries[0], {debit(1)}), with(deliveries[1], {debit(1), {"INSERT INTO once VALUES ('a')", {}, {}}})});
  EXPECT_EQ(results[0].status, SettleStatus::applied);
  EXPECT_EQ(results[1].status, SettleStatus::refused);
  EXPECT_THAT(results[1].error.message(), HasSubstr("UNIQUE constraint failed"));
  EXPECT_EQ(balance("alice"), "9");
  EXPECT_EQ(settle({{.receipt = deliveries[1].receipt}})[0].status, SettleStatus::applied);
}

TEST_F(SqliteEffects, ManyStatementsAreKeptInBoundsAndWorkOn) {
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(run({"UPDATE accounts SET balance = balance + 1 WHERE name = 'bob' AND " + std::to_string(i) + " >= 0",
                     {},
                     1})
                    .status,
                SettleStatus::applied);
    }
  }
  EXPECT_EQ(balance("bob"), "200");
}

TEST_F(SqliteEffects, WhatARefusedCompletionHadStagedIsNotSent) {
  const auto deliveries = claim(3);
  std::vector<Completion> completions;
  for (const auto& delivery : deliveries) {
    auto effects = std::make_shared<Effects>();
    effects->messages.push_back({"receipts", {.id = "of " + delivery.message.id, .body = "r"}, true});
    completions.push_back({.receipt = delivery.receipt, .effects = effects});
    if (completions.size() != 2) {
      effects->messages.push_back({"", {.id = "to nowhere", .body = "r"}, true});
    }
  }
  const auto results = settle(completions);
  EXPECT_EQ(results[0].status, SettleStatus::refused);
  EXPECT_EQ(results[1].status, SettleStatus::applied);
  EXPECT_EQ(results[2].status, SettleStatus::refused);
  EXPECT_THAT(all_ids(*store_, "receipts"), ElementsAre("of " + deliveries[1].message.id));
}

TEST_F(SqliteEffects, MessagesKeepTheOrderOfTheirSenders) {
  // Of more completions than one savepoint holds.
  const auto deliveries = claim(300);
  for (const bool made : {false, true}) {
    const std::string queue = made ? "made" : "given";
    std::vector<Completion> completions;
    std::vector<std::string> ids;
    for (std::size_t i = made ? 150 : 0; i < (made ? 300U : 150U); ++i) {
      auto effects = std::make_shared<Effects>();
      for (const char* const part : {"b", "a"}) {
        ids.push_back(part + deliveries[i].message.id);
        effects->messages.push_back({queue, {.id = ids.back(), .body = "r"}, made});
      }
      completions.push_back({.receipt = deliveries[i].receipt, .effects = std::move(effects)});
    }
    for (const SettleResult& result : settle(completions)) {
      ASSERT_EQ(result.status, SettleStatus::applied) << result.error.message();
    }
    const auto sent = store_->claim({queue}, 1000, 30s, Deadline::never());
    std::vector<std::string> found;
    for (const auto& delivery : *sent) {
      found.push_back(delivery.message.id);
    }
    EXPECT_EQ(found, ids);
  }
}

TEST_F(SqliteEffects, RandomBatchesAddUp) {
  sql("UPDATE accounts SET balance = 1000000");
  std::size_t applied = 0;
  std::size_t sent = 0;
  for (int round = 0; round < 12; ++round) {
    const auto deliveries = claim(static_cast<std::size_t>(1 + random_.unit() * 300));
    // In every other round all ids are the host's own, so that messages are put down at the end of the batch.
    const bool made = round % 2 == 0;
    std::vector<Completion> completions;
    for (const auto& delivery : deliveries) {
      auto effects = std::make_shared<Effects>();
      effects->writes.push_back({debit(1)});
      if (random_.unit() < 0.7) {
        const bool twice = !made && random_.unit() < 0.05;
        effects->messages.push_back(
            {"receipts" + std::to_string(sent % 3), {.id = twice ? "same" : delivery.message.id, .body = "r"}, made});
      }
      if (random_.unit() < 0.03) {
        effects->messages.push_back({"", {.id = "to nowhere", .body = "r"}, made});
      }
      if (random_.unit() < 0.03) {
        effects->writes.push_back({SqlWrite{"DELETE FROM accounts WHERE name = 'carol'", {}, 1}});
      }
      const bool none = random_.unit() < 0.2;
      completions.push_back({.receipt = delivery.receipt,
                             .action = queue::CompletionAction::remove,
                             .effects = none ? nullptr : std::move(effects)});
    }
    const auto results = settle(completions);
    for (std::size_t i = 0; i < results.size(); ++i) {
      ASSERT_NE(results[i].status, SettleStatus::lost);
      ASSERT_NE(results[i].status, SettleStatus::failed) << results[i].error.message();
      const bool with_effects = results[i].status == SettleStatus::applied && completions[i].effects;
      applied += with_effects ? 1 : 0;
      sent += with_effects ? completions[i].effects->messages.size() : 0;
    }
    ASSERT_EQ(balance("alice"), std::to_string(1'000'000 - applied));
  }
  std::size_t found = 0;
  for (int queue = 0; queue < 3; ++queue) {
    found += all_ids(*store_, "receipts" + std::to_string(queue)).size();
  }
  EXPECT_EQ(found, sent);
}

}  // namespace
}  // namespace sluice::test
