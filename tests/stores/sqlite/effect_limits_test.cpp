// What statements of handlers may take of what all share: the lock of the file, the disk, the memory of the process.
// One that takes more is refused, and the others of its batch are committed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/stores/sqlite/effects_rig.hpp"

namespace sluice::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr std::int64_t kMiB = 1024 * 1024;

std::vector<SettleStatus> statuses(const std::vector<SettleResult>& results) {
  std::vector<SettleStatus> all;
  all.reserve(results.size());
  for (const SettleResult& result : results) {
    all.push_back(result.status);
  }
  return all;
}

/// No file of this process can grow beyond this while it lives, as on a disk that is full then.
class FileLimit {
 public:
  explicit FileLimit(std::uintmax_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

class EffectLimits : public SqliteEffects {
 protected:
  EffectLimits() { sql("CREATE TABLE notes (text)"); }

  std::uintmax_t log_bytes() const { return std::filesystem::file_size(file_ + "-wal"); }
  static SqlWrite note(std::int64_t bytes) { return {"INSERT INTO notes VALUES (zeroblob(?1))", {bytes}, 1}; }
  static SqlWrite notes(std::int64_t count, std::int64_t bytes) {
    return {
        "INSERT INTO notes WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) "
        "SELECT zeroblob(?2) FROM n",
        {count, bytes},
        {}};
  }
  /// Some 20 ms of work.
  static SqlWrite slow() {
    return {
        "UPDATE accounts SET balance = balance + (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
        "WHERE i < 100000) SELECT count(*) > 0 FROM n) WHERE name = 'bob'",
        {},
        1};
  }
};

TEST_F(EffectLimits, WhatFindsNoRoomInTheFileIsRefusedAloneAndItsNeighboursAreCommitted) {
  store_ = open_store(file_, clock_, random_, {.path = {}, .max_file_bytes = 2 * kMiB});
  const auto deliveries = claim(6);
  const auto results = settle({with(deliveries[0], {debit(1)}),
                               with(deliveries[1], {debit(1), note(3 * kMiB)}),
                               {.receipt = deliveries[2].receipt},
                               with(deliveries[3], {debit(1)}),
                               with(deliveries[4], {debit(1), notes(100, 50'000)}),
                               with(deliveries[5], {debit(1)})});
  EXPECT_THAT(statuses(results), ElementsAre(SettleStatus::applied, SettleStatus::refused, SettleStatus::applied,
                                             SettleStatus::applied, SettleStatus::refused, SettleStatus::applied));
  EXPECT_THAT(results[1].error.message(), HasSubstr("its effects could not be committed, and others could: no room"));
  EXPECT_FALSE(results[1].reject) << "there may be room later";
  EXPECT_EQ(balance("alice"), "7");
  EXPECT_EQ(settle({{.receipt = deliveries[1].receipt}, {.receipt = deliveries[4].receipt}})[0].status,
            SettleStatus::applied);
}

TEST_F(EffectLimits, SoIsWhatOnlyTheCommitFindsNoRoomFor) {
  const auto deliveries = claim(5);
  const std::vector<Completion> completions{with(deliveries[0], {debit(1)}),
                                            with(deliveries[1], {debit(1), note(3 * kMiB)}),
                                            with(deliveries[2], {debit(1)}),
                                            {.receipt = deliveries[3].receipt},
                                            with(deliveries[4], {debit(1)})};
  std::vector<SettleResult> results;
  {
    const FileLimit full(log_bytes() + kMiB);
    results = settle(completions);
  }
  EXPECT_THAT(statuses(results), ElementsAre(SettleStatus::applied, SettleStatus::refused, SettleStatus::applied,
                                             SettleStatus::applied, SettleStatus::applied));
  EXPECT_THAT(results[1].error.message(), HasSubstr("no room"));
  EXPECT_EQ(balance("alice"), "7");
}

TEST_F(EffectLimits, ADiskThatHasNoRoomForAnythingRefusesNobody) {
  const auto deliveries = claim(3);
  const std::vector<Completion> completions{
      with(deliveries[0], {debit(1)}), with(deliveries[1], {note(kMiB)}), {.receipt = deliveries[2].receipt}};
  {
    const FileLimit full(log_bytes());
    for (const SettleResult& result : settle(completions)) {
      EXPECT_EQ(result.status, SettleStatus::failed);
      EXPECT_EQ(result.error.code(), ErrorCode::full) << result.error.message();
    }
    for (const SettleResult& result : settle({completions[1]})) {
      EXPECT_EQ(result.status, SettleStatus::failed) << "also where it is alone";
    }
  }
  EXPECT_THAT(settle(completions), Each(Field(&SettleResult::status, SettleStatus::applied)));
}

TEST_F(EffectLimits, NorDoesAFileThatIsTakenAwayMeanwhile) {
  const auto deliveries = claim(2);
  std::filesystem::rename(file_ + "-wal", file_ + ".away");
  for (const SettleResult& result : settle({with(deliveries[0], {debit(1)}), with(deliveries[1], {debit(1)})})) {
    EXPECT_EQ(result.status, SettleStatus::failed);
  }
  std::filesystem::rename(file_ + ".away", file_ + "-wal");
}

TEST_F(EffectLimits, ATableOfTheUsersThatIsDamagedStopsNobodyElse) {
  sql("INSERT INTO notes VALUES ('a')");
  const auto deliveries = claim(3);
  // As bad sectors leave it: its page is no page.
  const std::int64_t page = std::stoll(sql("SELECT rootpage FROM sqlite_schema WHERE name = 'notes'").at(0));
  store_.reset();
  sql("PRAGMA wal_checkpoint(TRUNCATE)");
  const auto put = [&](char byte) {
    std::fstream(file_, std::ios::in | std::ios::out | std::ios::binary).seekp((page - 1) * 4096).put(byte);
  };
  put('\x7F');
  store_ = open_store(file_, clock_, random_);
  const auto results = settle(
      {with(deliveries[0], {debit(1)}), with(deliveries[1], {debit(1), note(1)}), with(deliveries[2], {debit(1)})});
  EXPECT_THAT(statuses(results), ElementsAre(SettleStatus::applied, SettleStatus::refused, SettleStatus::applied));
  EXPECT_THAT(results[1].error.message(), HasSubstr("is damaged"));
  EXPECT_EQ(balance("alice"), "8");
  put('\x0D');
}

TEST_F(EffectLimits, AMessageCannotFillTheLog) {
  const auto before = log_bytes();
  EXPECT_THAT(refusal(notes(1'000'000'000, 100'000)), HasSubstr("was refused: it "));
  EXPECT_LT(log_bytes(), before + 100 * kMiB);
}

// A batch of slow statements is several transactions, between which others write.
TEST_F(EffectLimits, OthersWriteWhileABatchOfSlowStatementsIsSettled) {
  const auto deliveries = claim(60);
  std::vector<Completion> completions;
  completions.reserve(deliveries.size());
  for (const auto& delivery : deliveries) {
    completions.push_back(with(delivery, {slow()}));
  }
  std::atomic<bool> settled = false;
  std::vector<SettleResult> results;
  int sent = 0;
  {
    std::jthread settling([&] {
      results = settle(completions);
      settled = true;
    });
    while (!settled) {
      const queue::NewMessage message{.body = "x"};
      ASSERT_EQ(store_->send("others", std::span(&message, 1), Deadline::never())[0].status, queue::SendStatus::sent);
      sent += settled ? 0 : 1;
    }
  }
  EXPECT_THAT(results, Each(Field(&SettleResult::status, SettleStatus::applied)));
  EXPECT_EQ(balance("bob"), "60");
  EXPECT_GE(sent, 4) << "a transaction takes a tenth of a second or so";
  EXPECT_GE(calls_, 2) << "and a call no more than half a second, if it is not for one of them";
}

// Each makes SQLite undo the whole transaction.
TEST_F(EffectLimits, ManyThatNeverEndAreRefusedOneByOneAndWhatIsDoneIsCommitted) {
  const auto deliveries = claim(6);
  const SqlWrite endless = notes(1'000'000'000'000, 0);
  const std::vector<Completion> completions{with(deliveries[0], {debit(1)}), with(deliveries[1], {endless}),
                                            with(deliveries[2], {endless}),  with(deliveries[3], {debit(1)}),
                                            with(deliveries[4], {endless}),  {.receipt = deliveries[5].receipt}};
  const auto first = store_->settle({"orders"}, completions, Deadline::never());
  EXPECT_EQ(first[0].status, SettleStatus::applied);
  EXPECT_EQ(first[1].status, SettleStatus::refused);
  EXPECT_EQ(first[5].status, SettleStatus::applied);
  EXPECT_TRUE(first[2].left && first[3].left && first[4].left) << "the call has lasted long enough";
  const auto then = settle({completions[2], completions[3], completions[4]});
  EXPECT_THAT(statuses(then), ElementsAre(SettleStatus::refused, SettleStatus::applied, SettleStatus::refused));
  EXPECT_EQ(balance("alice"), "8");
}

// Nothing can interrupt a function of SQL while it is at work.
TEST_F(EffectLimits, AFunctionThatWouldNotEndIsRefused) {
  const std::string many(3 * kMiB / 2, 'a');
  const std::string half = std::string(many.size() / 2, 'a') + "b";
  for (const char* const call : {"instr(?1, ?2)", "replace(?1, ?2, 'x')", "trim(?1, 'b' || ?2)", "ltrim(?1, 'b' || ?2)",
                                 "rtrim(?1, 'b' || ?2)", "json_patch(?1, ?2)"}) {
    EXPECT_THAT(refusal({std::string("SELECT ") + call, {many, half}, 1}), HasSubstr("would take too long")) << call;
  }
  for (const char* const call : {"?1 LIKE '%' || ?2", "?1 GLOB '*' || ?2"}) {
    EXPECT_THAT(refusal({std::string("SELECT ") + call, {many, half}, 1}), HasSubstr("pattern too complex")) << call;
  }
}

TEST_F(EffectLimits, FunctionsThatAreBoundedAreSqlitesOwn) {
  const std::vector<SqlValue> values{std::monostate(),
                                     std::int64_t{1212},
                                     std::int64_t{12},
                                     2.5,
                                     std::string(),
                                     std::string("é1212é"),
                                     std::string("2"),
                                     std::string("é"),
                                     SqlBlob{"\x01\xC3\xA9\x02"},
                                     SqlBlob{"\xA9"},
                                     std::string(R"({"a":1,"b":{"c":2}})"),
                                     std::string(R"({"a":null,"b":{"d":[1]}})")};
  sql("CREATE TABLE two (a, b); CREATE TABLE found (a, b, instr, instead, trimmed, left, right)");
  const std::string functions = "a, b, instr(a, b), replace(a, b, 'xé'), trim(a, b), ltrim(a, b), rtrim(a, b)";
  for (const SqlValue& a : values) {
    for (const SqlValue& b : values) {
      ASSERT_EQ(run({"INSERT INTO two VALUES (?1, ?2)", {a, b}, 1}).status, SettleStatus::applied);
    }
  }
  const auto result = run({"INSERT INTO found SELECT " + functions + " FROM two", {}, 144});
  ASSERT_EQ(result.status, SettleStatus::applied) << result.error.message();
  const std::string quoted =
      "quote(a) || quote(b) || quote(instr) || quote(instead) || quote(trimmed) || quote(left) || quote(right)";
  EXPECT_EQ(sql("SELECT " + quoted + " FROM found"),
            sql("SELECT " + quoted +
                " FROM (SELECT a, b, instr(a, b) AS instr, replace(a, b, 'xé') AS instead, trim(a, b) AS trimmed, "
                "ltrim(a, b) AS left, rtrim(a, b) AS right FROM two)"));
  EXPECT_EQ(run({"INSERT INTO notes SELECT json_object('n', json_patch(?1, ?2))", {values[10], values[11]}, 1}).status,
            SettleStatus::applied);
  EXPECT_THAT(sql("SELECT text FROM notes"), ElementsAre(R"({"n":{"b":{"c":2,"d":[1]}}})"));
  EXPECT_THAT(refusal({"SELECT json_patch('{', '{}')", {}, 1}), HasSubstr("malformed JSON"));
}

TEST_F(EffectLimits, AValueHasABound) {
  EXPECT_EQ(run(note(4 * kMiB - 100)).status, SettleStatus::applied);
  for (const char* const value : {"zeroblob(900000000)", "zeroblob(4194305)", "hex(zeroblob(3000000))",
                                  "replace(hex(zeroblob(10000)), '0', hex(zeroblob(1000)))"}) {
    EXPECT_THAT(refusal({std::string("INSERT INTO notes VALUES (") + value + ")", {}, 1}),
                HasSubstr("it makes or reads a value of more than 4194304 bytes"))
        << value;
  }
  EXPECT_EQ(sql("SELECT count(*) FROM notes").at(0), "1");
}

TEST_F(EffectLimits, OurOwnMessagesMayBeLarger) {
  EXPECT_EQ(run(debit(1)).status, SettleStatus::applied);
  const queue::NewMessage large{.id = "large", .body = std::string(10 * kMiB, 'x')};
  EXPECT_EQ(store_->send("orders", std::span(&large, 1), Deadline::never())[0].status, queue::SendStatus::sent);
  EXPECT_EQ(store_->claim({"orders"}, 1, 30s, Deadline::never())->at(0).message.body.size(), 10U * kMiB);
}

TEST_F(EffectLimits, SoHasTheMemoryOfAStatement) {
  const auto deliveries = claim(3);
  // Sorted in memory.
  const SqlWrite sorts{
      "SELECT x FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
      "SELECT i, printf('%*s', 1000000, i) AS x FROM n) ORDER BY x",
      {},
      1};
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  const auto results = settle(
      {with(deliveries[0], {debit(1)}), with(deliveries[1], {debit(1), sorts}), with(deliveries[2], {debit(1)})});
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_THAT(statuses(results), ElementsAre(SettleStatus::applied, SettleStatus::refused, SettleStatus::applied));
  EXPECT_THAT(results[1].error.message(), HasSubstr("it takes more memory than a statement may"));
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 200 * 1024) << "KiB";
  EXPECT_EQ(balance("alice"), "8");
}

TEST_F(EffectLimits, TheStatementsOfAMessageShareItsTime) {
  const SqlWrite long_one{
      "SELECT count(*) FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) "
      "SELECT i FROM n)",
      {},
      1};
  const auto deliveries = claim(2);
  const auto results =
      settle({with(deliveries[0], std::vector<SqlWrite>(98, long_one)), with(deliveries[1], {debit(1)})});
  EXPECT_EQ(results[0].status, SettleStatus::refused);
  EXPECT_THAT(results[0].error.message(), HasSubstr("longer than the statements of a message may"));
  EXPECT_EQ(results[1].status, SettleStatus::applied);
}

/// What a completion of a random batch does, and what has to become of it whatever the others do.
enum class Kind { plain, good, emits, slow, condition, constraint, ends_all, huge, hungry, no_room, endless, lost };
constexpr std::array kKinds{Kind::plain,    Kind::good, Kind::emits,  Kind::slow,    Kind::condition, Kind::constraint,
                            Kind::ends_all, Kind::huge, Kind::hungry, Kind::no_room, Kind::lost};

class EffectMix : public EffectLimits {
 protected:
  EffectMix() {
    sql("CREATE TABLE once (name TEXT UNIQUE ON CONFLICT ROLLBACK); INSERT INTO once VALUES ('a'); "
        "UPDATE accounts SET balance = 100000");
  }

  static SettleStatus expected(Kind kind) {
    switch (kind) {
      case Kind::plain:
      case Kind::good:
      case Kind::emits:
      case Kind::slow:
        return SettleStatus::applied;
      case Kind::lost:
        return SettleStatus::lost;
      default:
        return SettleStatus::refused;
    }
  }
  /// Whatever it is, it takes one from alice first.
  static std::vector<SqlWrite> writes(Kind kind) {
    switch (kind) {
      case Kind::slow:
        return {debit(1), slow()};
      case Kind::condition:
        return {debit(1), {"DELETE FROM accounts WHERE name = 'carol'", {}, 1}};
      case Kind::constraint:
        return {debit(1), debit(1'000'000)};
      case Kind::ends_all:
        return {debit(1), {"INSERT INTO once VALUES ('a')", {}, {}}};
      case Kind::huge:
        return {debit(1), note(900'000'000)};
      case Kind::hungry:
        return {debit(1),
                {"INSERT INTO notes SELECT group_concat(x) FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL "
                 "SELECT i + 1 FROM n WHERE i < 300) SELECT i, randomblob(1000000) AS x FROM n ORDER BY x)"}};
      case Kind::no_room:
        return {debit(1), notes(400, 50'000)};
      case Kind::endless:
        return {debit(1), notes(1'000'000'000'000, 0)};
      default:
        return {debit(1)};
    }
  }
  Completion of(const queue::Delivery& delivery, Kind kind) {
    if (kind == Kind::plain) {
      return {.receipt = delivery.receipt};
    }
    Completion made = with(delivery, writes(kind));
    if (kind == Kind::emits) {
      auto effects = std::make_shared<Effects>(*made.effects);
      // In every other one the id is the host's own, so that it is put down last.
      effects->messages.push_back({"receipts", {.id = "of " + delivery.message.id, .body = "r"}, random_.unit() < 0.5});
      made.effects = std::move(effects);
    }
    if (kind == Kind::lost) {
      EXPECT_EQ(settle({{.receipt = delivery.receipt}}).at(0).status, SettleStatus::applied);
      ++made.receipt.version;
    }
    return made;
  }
  std::vector<Kind> random_kinds(std::size_t count) {
    std::vector<Kind> kinds;
    for (std::size_t i = 0; i < count; ++i) {
      // Half of them do no harm.
      const std::size_t among = random_.unit() < 0.5 ? 3 : kKinds.size();
      kinds.push_back(kKinds[static_cast<std::size_t>(random_.unit() * static_cast<double>(among))]);
    }
    return kinds;
  }
  /// The first messages of so many groups, each with one behind it.
  std::vector<queue::Delivery> claim_heads(std::size_t count) {
    for (std::size_t i = 0; i < 2 * count; ++i) {
      const queue::NewMessage message{.body = "x", .group = "g" + std::to_string(i % count)};
      EXPECT_EQ(store_->send("orders", std::span(&message, 1), Deadline::never())[0].status, queue::SendStatus::sent);
    }
    return claim_in_order();
  }
  std::vector<queue::Delivery> claim_in_order() {
    auto claimed =
        store_->source({"orders"})
            .claim({.max = 1000, .visibility = 30s, .rules = {.order = queue::Order::group}}, Deadline::never());
    EXPECT_TRUE(claimed) << claimed.error().message();
    return std::move(claimed->deliveries);
  }
  void settle_and_check(const std::vector<Kind>& kinds, bool groups = false) {
    const auto deliveries = groups ? claim_heads(kinds.size()) : claim(kinds.size());
    ASSERT_EQ(deliveries.size(), kinds.size());
    std::vector<Completion> completions;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      completions.push_back(of(deliveries[i], kinds[i]));
    }
    const auto results = settle(completions);
    std::vector<Completion> rest;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      EXPECT_EQ(results[i].status, expected(kinds[i]))
          << i << " of kind " << static_cast<int>(kinds[i]) << ": " << results[i].error.message();
      const bool applied = results[i].status == SettleStatus::applied;
      taken_ += applied && kinds[i] != Kind::plain ? 1 : 0;
      slow_ += applied && kinds[i] == Kind::slow ? 1 : 0;
      emitted_ += applied && kinds[i] == Kind::emits ? 1 : 0;
      if (results[i].status == SettleStatus::refused) {
        rest.push_back({.receipt = deliveries[i].receipt});
      }
    }
    EXPECT_EQ(balance("alice"), std::to_string(100'000 - taken_));
    EXPECT_EQ(balance("bob"), std::to_string(100'000 + slow_));
    EXPECT_EQ(all_ids(*store_, "receipts").size(), emitted_);
    EXPECT_EQ(sql("SELECT count(*) FROM notes").at(0), "0");
    // Nothing of a refusal has touched the delivery itself.
    for (const SettleResult& result : settle(rest)) {
      EXPECT_EQ(result.status, SettleStatus::applied);
    }
    if (groups) {
      rest.clear();
      for (const auto& behind : claim_in_order()) {
        rest.push_back({.receipt = behind.receipt});
      }
      EXPECT_EQ(rest.size(), kinds.size()) << "what waited behind them is let out";
      settle(rest);
    }
    EXPECT_EQ(all_ids(*store_, "orders").size(), 0U);
  }

  std::size_t taken_ = 0;
  std::size_t slow_ = 0;
  std::size_t emitted_ = 0;
};

TEST_F(EffectMix, EachOfARandomBatchBecomesWhatItWouldAlone) {
  store_ = open_store(file_, clock_, random_, {.path = {}, .max_file_bytes = 8 * kMiB});
  for (int round = 0; round < 12; ++round) {
    const auto kinds = random_kinds(static_cast<std::size_t>(1 + random_.unit() * (round % 3 == 0 ? 200 : 12)));
    ASSERT_NO_FATAL_FAILURE(settle_and_check(kinds, round >= 6)) << "round " << round;
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

TEST_F(EffectMix, SoItDoesBesideStatementsThatNeverEndAndOthersWriteMeanwhile) {
  store_ = open_store(file_, clock_, random_, {.path = {}, .max_file_bytes = 8 * kMiB});
  std::vector<Kind> kinds = random_kinds(40);
  for (const std::size_t place : {3U, 17U, 39U}) {
    kinds[place] = Kind::endless;
  }
  std::atomic<bool> settled = false;
  std::atomic<int> sent = 0;
  {
    const std::jthread others([&] {
      while (!settled) {
        const queue::NewMessage message{.body = "x"};
        EXPECT_EQ(store_->send("others", std::span(&message, 1), Deadline::never())[0].status, queue::SendStatus::sent);
        ++sent;
      }
    });
    settle_and_check(kinds);
    settled = true;
  }
  EXPECT_GE(sent, 3) << "in between";
}

// The disk tells of it at the commit only, where all of a transaction looks alike.
TEST_F(EffectMix, SoItDoesOnADiskWithLittleRoom) {
  std::vector<Kind> kinds(60, Kind::good);
  for (const std::size_t place : {0U, 7U, 8U, 30U, 59U}) {
    kinds[place] = Kind::huge;
  }
  const auto deliveries = claim(kinds.size());
  std::vector<Completion> completions;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    completions.push_back(kinds[i] == Kind::good
                              ? with(deliveries[i], {debit(1)})
                              : with(deliveries[i], {debit(1), note(3 * kMiB), note(3 * kMiB), note(3 * kMiB)}));
  }
  const FileLimit little(log_bytes() + 8 * kMiB);
  const auto results = settle(completions);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    EXPECT_EQ(results[i].status, expected(kinds[i])) << i << ": " << results[i].error.message();
  }
  EXPECT_EQ(balance("alice"), std::to_string(100'000 - 55));
}

}  // namespace
}  // namespace sluice::test
