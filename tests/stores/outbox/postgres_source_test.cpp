// The source on a real PostgreSQL: what it hands out in which order, what it writes, and how several share a table.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "host/stores/outbox/postgres/postgres_database.hpp"
#include "tests/stores/outbox/postgres_rig.hpp"
#include "tests/support/loopback.hpp"

namespace sluice::queue::outbox {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::OutboxTable;
using test::SourceRig;

std::vector<std::string> ids_of(const std::vector<Delivery>& deliveries) {
  std::vector<std::string> ids;
  ids.reserve(deliveries.size());
  for (const Delivery& delivery : deliveries) {
    ids.push_back(delivery.message.id);
  }
  return ids;
}

using Ids = std::vector<std::string>;

TEST(PostgresOutbox, ARowBecomesAMessageWithItsColumnsAsAttributes) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.sql(
      "INSERT INTO @T (id, aggregate_type, aggregate_id, event, payload, retry_count, traceparent, created_at) VALUES "
      "(9007199254740993, 'rn::nats:::orders', '1:1', 'created', '{\"a\" :  1}', 3, '00-ab', '2026-01-02 03:04:05Z')");
  SourceRig rig(table);
  const auto claimed = rig.claim();
  ASSERT_EQ(claimed.size(), 1U);
  const Message& message = claimed[0].message;
  EXPECT_EQ(message.id, "9007199254740993") << "beyond what a double holds";
  EXPECT_EQ(message.body, "{\"a\" :  1}") << "json keeps its bytes";
  EXPECT_EQ(message.content_type, "application/json");
  EXPECT_EQ(message.group, "1:1");
  EXPECT_EQ(message.attempt, 4U);
  Attributes attributes = message.attributes;
  EXPECT_EQ(attributes["source_id"].compare(0, 9, "postgres-"), 0) << attributes["source_id"];
  attributes.erase("source_id");
  EXPECT_EQ(attributes, (Attributes{{"aggregate_id", "1:1"},
                                    {"aggregate_type", "rn::nats:::orders"},
                                    {"event", "created"},
                                    {"producer", "shop"},
                                    {"traceparent", "00-ab"}}));
  EXPECT_EQ(message.sent_at, WallTime(seconds(1'767'323'045)));
  EXPECT_EQ(claimed[0].leased_until, SteadyTime::max());
}

TEST(PostgresOutbox, WhatFollowsARowThatWasHandledGoesBeforeItIsMarked) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "a", "a"});
  SourceRig rig(table);
  ASSERT_TRUE(rig.source->traits().runs_ahead);
  const auto first = rig.claim();
  ASSERT_EQ(ids_of(first), Ids{"1"});
  auto stale = first[0].receipt;
  ++stale.locator;
  rig.source->handled(std::vector{stale});
  EXPECT_TRUE(rig.claim_now().empty());
  rig.source->handled(std::vector{first[0].receipt});
  const auto second = rig.claim();
  ASSERT_EQ(ids_of(second), Ids{"2"});
  EXPECT_EQ(table.count("sent_at IS NOT NULL"), 0);
  EXPECT_TRUE(rig.claim_now().empty());
  EXPECT_EQ(rig.settle(second[0], CompletionAction::remove), SettleStatus::applied);
  EXPECT_EQ(rig.settle(first[0], CompletionAction::remove), SettleStatus::applied);
  EXPECT_EQ(ids_of(rig.claim()), Ids{"3"});
  EXPECT_EQ(table.count("sent_at IS NOT NULL"), 2);
}

TEST(PostgresOutbox, RowsOfAGroupGoOneAfterTheOtherAndGroupsSideBySide) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "a", "b", "", "", "a"});
  SourceRig rig(table);
  const auto first = rig.claim();
  EXPECT_EQ(ids_of(first), (Ids{"1", "3", "4", "5"}));
  EXPECT_TRUE(rig.claim_now().empty());
  EXPECT_EQ(rig.settle(first[0], CompletionAction::remove), SettleStatus::applied);
  EXPECT_EQ(ids_of(rig.claim()), Ids{"2"});
  EXPECT_EQ(table.count("sent_at IS NOT NULL"), 1);
  EXPECT_EQ(table.count("sent_at BETWEEN now() - interval '1 minute' AND now() + interval '1 minute'"), 1);
}

TEST(PostgresOutbox, AFailureIsWrittenWithItsTimeAndHoldsItsGroup) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "a", "b"});
  SourceRig rig(table);
  const auto first = rig.claim();
  ASSERT_EQ(ids_of(first), (Ids{"1", "3"}));
  EXPECT_EQ(rig.settle(first[0], CompletionAction::retry, seconds(40), "no such topic"), SettleStatus::applied);
  EXPECT_EQ(rig.settle(first[1], CompletionAction::remove), SettleStatus::applied);
  EXPECT_EQ(table.sql("SELECT retry_count || ' ' || last_error || ' ' || (retry_at - now() BETWEEN '30 s' AND '40 s') "
                      "FROM @T WHERE id = 1"),
            Ids{"1 no such topic true"});
  table.sql("UPDATE @T SET retry_at = now() WHERE id = 1");
  table.sql("SELECT pg_notify('sluice_outbox', 'changed:@T')");
  const auto again = rig.claim();
  ASSERT_EQ(ids_of(again), Ids{"1"});
  EXPECT_EQ(again[0].message.attempt, 2U);
}

TEST(PostgresOutbox, ADeadLetterIsAtItsLimitAndItsGroupGoesOn) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "a"});
  SourceRig rig(table);
  EXPECT_EQ(rig.settle(rig.claim().at(0), CompletionAction::dead_letter, {}, "never"), SettleStatus::applied);
  EXPECT_EQ(table.count("id = 1 AND retry_count = 10 AND retry_at IS NULL AND sent_at IS NULL"), 1);
  EXPECT_EQ(ids_of(rig.claim()), Ids{"2"});
}

TEST(PostgresOutbox, ADeadLetterMayHoldItsGroup) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "a", "b"});
  table.sql("UPDATE @T SET retry_count = 10 WHERE id = 1");
  SourceRig rig(table, {.job = "relay", .hold_dead = true});
  EXPECT_EQ(ids_of(rig.claim()), Ids{"3"});
  table.sql("UPDATE @T SET retry_count = NULL WHERE id = 1");
  table.sql("SELECT pg_notify('sluice_outbox', 'changed:@T')");
  EXPECT_EQ(ids_of(rig.claim()), Ids{"1"});
}

// Whatever a handler says of its failure: the row has its tries, and ends as a dead letter.
TEST(PostgresOutbox, AReasonThatItsColumnCannotHoldCostsTheReasonAndNotTheMark) {
  SLUICE_NEEDS_POSTGRES();
  const std::string nul("a\0b", 3);
  for (const std::string column : {"varchar(12)", "char(12)", "text", "text CHECK (last_error NOT LIKE '%secret%')"}) {
    OutboxTable table;
    table.sql("ALTER TABLE @T DROP COLUMN last_error");
    table.sql("ALTER TABLE @T ADD COLUMN last_error " + column);
    table.insert({"a", "b", "c", "d", "e"});
    SourceRig rig(table);
    const auto out = rig.claim();
    ASSERT_EQ(out.size(), 5U) << column;
    EXPECT_EQ(rig.settle(out[0], CompletionAction::retry, hours(1), "\u00e4\u00f6\u00fc and a secret that is longer"),
              SettleStatus::applied)
        << column;
    EXPECT_EQ(rig.settle(out[1], CompletionAction::dead_letter, {}, std::string(100'000, 'x') + " secret"),
              SettleStatus::applied)
        << column;
    EXPECT_EQ(rig.settle(out[2], CompletionAction::retry, hours(1), nul), SettleStatus::applied) << column;
    EXPECT_EQ(rig.settle(out[3], CompletionAction::retry, hours(1), "\xff\xc3 bytes"), SettleStatus::applied) << column;
    EXPECT_EQ(rig.settle(out[4], CompletionAction::retry, hours(1), ""), SettleStatus::applied) << column;
    EXPECT_EQ(table.sql("SELECT coalesce(retry_count, 0) FROM @T ORDER BY id"), (Ids{"1", "10", "1", "1", "1"}))
        << column;
    const auto kept = table.sql("SELECT coalesce(rtrim(last_error), '') FROM @T ORDER BY id");
    if (column.find("(12)") != std::string::npos) {
      EXPECT_EQ(kept[0], "\u00e4\u00f6\u00fc and a se") << column << ": characters, not bytes";
      EXPECT_EQ(kept[1], "xxxxxxxxxxxx") << column;
    } else if (column == "text") {
      EXPECT_EQ(kept[1], std::string(4096, 'x'));
    } else {
      EXPECT_EQ(kept[0], "") << column << ": nobody knows what would do";
    }
    EXPECT_EQ(kept[2], "a?b") << column;
    EXPECT_EQ(kept[3], "?? bytes") << column;
    EXPECT_EQ(kept[4], "") << column;
  }
}

TEST(PostgresOutbox, FiftyThousandGroupsThatWaitStopNobodyAndAreSaid) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.sql(
      "INSERT INTO @T (id, aggregate_type, aggregate_id, event, payload, retry_count, retry_at) SELECT n, 'orders', "
      "'g' || (n % 52000), 'e', '{}', CASE WHEN n <= 52000 THEN 1 END, CASE WHEN n <= 52000 THEN localtimestamp + "
      "interval '1 hour' END FROM generate_series(1, 60000) n");
  table.sql(
      "INSERT INTO @T (id, aggregate_type, aggregate_id, event, payload) VALUES (60001, 'bills', 'b', 'e', '{}')");
  SourceRig rig(table);
  const auto out = rig.claim();
  EXPECT_EQ(ids_of(out), Ids{"60001"});
  const MutexLock lock(rig.mutex);
  ASSERT_EQ(rig.warnings.size(), 1U);
  EXPECT_NE(rig.warnings[0].find("groups wait"), std::string::npos) << rig.warnings[0];
}

TEST(PostgresOutbox, AReleaseWritesNothingAndTheRowComesAgain) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a"});
  SourceRig rig(table);
  EXPECT_EQ(rig.settle(rig.claim().at(0), CompletionAction::release), SettleStatus::applied);
  EXPECT_EQ(table.count("retry_count IS NULL AND retry_at IS NULL AND sent_at IS NULL"), 1);
  EXPECT_EQ(rig.claim().at(0).message.attempt, 1U);
}

TEST(PostgresOutbox, ReceiptsOfAnEarlierDeliverySettleNothing) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a"});
  SourceRig rig(table);
  const auto first = rig.claim().at(0);
  rig.settle(first, CompletionAction::release);
  const auto second = rig.claim().at(0);
  EXPECT_EQ(rig.settle(first, CompletionAction::remove), SettleStatus::lost);
  EXPECT_EQ(table.count("sent_at IS NULL"), 1);
  EXPECT_EQ(rig.settle(second, CompletionAction::remove), SettleStatus::applied);
}

TEST(PostgresOutbox, NewRowsAreToldOfByTheTrigger) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  SourceRig rig(table);
  EXPECT_TRUE(rig.claim_now().empty());
  const SteadyTime before = rig.clock.steady_now();
  table.insert({"a"}, 7);
  EXPECT_EQ(ids_of(rig.claim()), Ids{"7"});
  EXPECT_LT(rig.clock.steady_now() - before, seconds(4)) << "the poll interval is 5 s";
}

TEST(PostgresOutbox, ATransactionThatCommitsLateLosesNothing) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  SourceRig rig(table);
  rig.claim_now();
  OutboxTable other;  // its connection
  other.sql("BEGIN");
  const std::string name = table.settings().config.table;
  other.sql("INSERT INTO " + name +
            " (id, aggregate_type, aggregate_id, event, payload) VALUES (1, 't', 'a', 'e', '1')");
  table.insert({"b"}, 2);
  EXPECT_EQ(rig.drain(1), std::vector<std::int64_t>{2});
  other.sql("COMMIT");
  EXPECT_EQ(rig.drain(1), std::vector<std::int64_t>{1});
}

TEST(PostgresOutbox, FiltersChooseByTypeResourceAndEvent) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.sql(
      "INSERT INTO @T (id, aggregate_type, aggregate_id, event, payload) VALUES "
      "(1, 'arn:aws:sns:eu-west-1:1:orders', 'a', 'created', '1'), (2, 'rn::nats:::orders', 'a', 'created', '1'),"
      "(3, 'rn::nats:::bills', 'a', 'created', '1'), (4, 'plain', 'a', 'created', '1'), (5, 'plain', 'b', 'noise', "
      "'1')");
  {
    SourceRig rig(table, {.job = "one", .types = {"orders", "plain"}, .skip_events = {"noise"}});
    EXPECT_EQ(ids_of(rig.claim()), (Ids{"1", "2", "4"}));
  }
  {
    SourceRig rig(table, {.job = "two", .deny_types = {"orders", "plain"}});
    EXPECT_EQ(ids_of(rig.claim()), Ids{"3"});
  }
  SourceRig rig(table, {.job = "three", .events = {"noise"}});
  EXPECT_EQ(ids_of(rig.claim()), Ids{"5"});
}

TEST(PostgresOutbox, UnreadableRowsBecomeDeadLettersAndHoldNobody) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.sql("ALTER TABLE @T ALTER COLUMN aggregate_type DROP NOT NULL, ALTER COLUMN event DROP NOT NULL");
  table.sql(
      "INSERT INTO @T (id, aggregate_type, aggregate_id, event, payload) VALUES (1, NULL, 'a', 'e', '1'), "
      "(2, 't', 'a', NULL, '1'), (3, 't', 'a', 'e', '1')");
  SourceRig rig(table);
  EXPECT_EQ(ids_of(rig.claim()), Ids{"3"});
  for (int i = 0; i < 400 && table.count("retry_count = 10") < 2; ++i) {
  }
  EXPECT_EQ(table.sql("SELECT last_error FROM @T WHERE retry_count = 10 ORDER BY id"),
            (Ids{"aggregate_type is NULL", "event is NULL"}));
}

TEST(PostgresOutbox, RowsThatWaitForEverHoldNobodyElse) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.sql(
      "INSERT INTO @T (id, aggregate_type, aggregate_id, event, payload, retry_at, created_at) VALUES "
      "(1, 't', 'a', 'e', '1', 'infinity', now()), (2, 't', 'b', 'e', '1', '9999-12-31', now()), "
      "(3, 't', '', 'e', '1', '9999-12-31', now()), (4, 't', 'c', 'e', '1', NULL, '-infinity'), "
      "(5, 't', 'd', 'e', '1', '-infinity', '9999-12-31')");
  SourceRig rig(table);
  EXPECT_EQ(rig.drain(2), (std::vector<std::int64_t>{4, 5}));
  EXPECT_EQ(table.count("sent_at IS NULL"), 3);
}

TEST(PostgresOutbox, ANullPayloadIsATombstone) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.sql("ALTER TABLE @T ALTER COLUMN payload DROP NOT NULL");
  table.sql(
      "INSERT INTO @T (id, aggregate_type, aggregate_id, event, payload) VALUES (1, 't', 'a', 'e', '1'), "
      "(2, 't', 'a', 'deleted', NULL)");
  SourceRig rig(table);
  const auto first = rig.claim();
  ASSERT_EQ(ids_of(first), Ids{"1"});
  EXPECT_FALSE(first[0].message.attributes.contains("tombstone"));
  EXPECT_EQ(rig.settle(first[0], CompletionAction::remove), SettleStatus::applied);
  const auto second = rig.claim();
  ASSERT_EQ(ids_of(second), Ids{"2"});
  EXPECT_EQ(second[0].message.body, "");
  EXPECT_EQ(second[0].message.attributes.at("tombstone"), "true");
  EXPECT_EQ(second[0].message.content_type, kTextPlain) << "it is no JSON";
}

TEST(PostgresOutbox, LargePayloadsComeAFewAtATime) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.sql(
      "INSERT INTO @T (id, aggregate_type, aggregate_id, event, payload) SELECT n, 't', n::text, 'e', "
      "to_json(repeat('x', 10 * 1024 * 1024)) FROM generate_series(1, 5) n");
  SourceRig rig(table);
  const auto ids = rig.drain(5);
  EXPECT_EQ(std::set<std::int64_t>(ids.begin(), ids.end()).size(), 5U);
  EXPECT_EQ(table.count("sent_at IS NOT NULL"), 5);
}

/// A way to a server for one connection. Whoever comes after it finds nobody who speaks, until that one has ended.
class WayForOne {
 public:
  explicit WayForOne(int server) : server_(test::connect_to_loopback(server)) {}
  int port() const { return port_; }

 private:
  void carry() {
    const test::Descriptor client(::accept(listener_.get(), nullptr, nullptr));
    const timeval patience{10, 0};
    ::setsockopt(client.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    std::array<pollfd, 2> ends{{{client.get(), POLLIN, 0}, {server_.get(), POLLIN, 0}}};
    std::array<char, 65536> block{};
    for (bool open = true; open && ::poll(ends.data(), ends.size(), 10'000) > 0;) {
      for (const std::size_t end : {0, 1}) {
        if (open && ends[end].revents != 0) {
          const auto size = ::recv(ends[end].fd, block.data(), block.size(), 0);
          open =
              size > 0 && ::send(ends[1 - end].fd, block.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL) == size;
        }
      }
    }
    listener_.reset();
  }

  test::Descriptor listener_ = test::listen_on_loopback();
  const int port_ = test::local_port(listener_);
  const test::Descriptor server_;
  std::jthread thread_{[this] { carry(); }};
};

// Who has enough tells the server so on a connection of its own.
TEST(PostgresOutbox, AServerThatCannotBeToldToStopIsWaitedForUntilTheDeadlineOnly) {
  SLUICE_NEEDS_POSTGRES();
  const OutboxTable once_it_is_up;
  const WayForOne way(test::postgres()->port());
  Settings settings{
      .config = {.url = "postgres://sluice:secret@127.0.0.1:" + std::to_string(way.port()) + "/postgres"}};
  const SystemClock clock;
  const auto session = postgres::connect(settings, "", Deadline::after(clock, seconds(20)));
  ASSERT_TRUE(session) << session.error().message();
  const SteadyTime begun = clock.steady_now();
  const auto read = (*session)->stream(
      "SELECT repeat('x', 1000000) FROM generate_series(1, 100)", [](Cells&&) { return false; },
      Deadline::after(clock, seconds(1)));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), ErrorCode::timeout);
  EXPECT_LT(clock.steady_now() - begun, seconds(5));
}

TEST(PostgresOutbox, ARowThatTheApplicationHasLockedHoldsUpItsGroupAlone) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "a", "b"});
  SourceRig rig(table);
  const auto first = rig.claim();
  ASSERT_EQ(first.size(), 2U);
  OutboxTable other;
  other.sql("BEGIN");
  other.sql("SELECT 1 FROM " + table.settings().config.table + " WHERE id = 1 FOR UPDATE");
  const std::vector<Completion> both{{.receipt = first[0].receipt}, {.receipt = first[1].receipt}};
  const auto results = rig.source->settle(both, rig.deadline());
  EXPECT_EQ(results[0].status, SettleStatus::lost) << "it comes back, and the host knows what became of it";
  EXPECT_EQ(results[1].status, SettleStatus::applied);
  other.sql("COMMIT");
  const auto again = rig.claim();
  ASSERT_EQ(ids_of(again), Ids{"1"});
  EXPECT_EQ(again[0].message.sent_at, first[0].message.sent_at) << "by which it is known again";
}

TEST(PostgresOutbox, ARowThatATriggerRefusesToHaveMarkedHoldsUpItsGroupAlone) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "b", "c", "d"});
  table.sql(
      "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 3 THEN RAISE "
      "EXCEPTION 'not this one'; END IF; RETURN NEW; END $$");
  table.sql("CREATE TRIGGER refuse BEFORE UPDATE ON @T FOR EACH ROW EXECUTE FUNCTION refuse()");
  SourceRig rig(table);
  const auto all = rig.claim();
  ASSERT_EQ(all.size(), 4U);
  std::vector<Completion> completions;
  completions.reserve(all.size());
  for (const Delivery& delivery : all) {
    completions.push_back({.receipt = delivery.receipt});
  }
  const auto results = rig.source->settle(completions, rig.deadline());
  EXPECT_EQ(table.count("sent_at IS NOT NULL"), 3);
  EXPECT_EQ(results[2].status, SettleStatus::lost);
  const MutexLock lock(rig.mutex);
  ASSERT_EQ(rig.warnings.size(), 1U);
  EXPECT_NE(rig.warnings[0].find("row 3 cannot be marked"), std::string::npos) << rig.warnings[0];
  EXPECT_NE(rig.warnings[0].find("not this one"), std::string::npos) << rig.warnings[0];
}

TEST(PostgresOutbox, AnotherProcessSettlesWhatADeadOneWasHandedUnlessTheRowHasMovedOn) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "b"});
  std::vector<Delivery> held;
  {
    SourceRig dead(table);
    held = dead.claim();
  }
  ASSERT_EQ(held.size(), 2U);
  table.sql("UPDATE @T SET retry_count = 5 WHERE id = 2");
  SystemClock clock;
  SeededRandom random;
  const auto database = table.database();
  const auto source = *make_outbox_source({.settings = table.settings()}, {}, *database, clock, random);
  const std::vector<Completion> completions{
      {.receipt = held[0].receipt, .action = CompletionAction::retry, .delay = seconds(9)},
      {.receipt = held[1].receipt, .action = CompletionAction::retry, .delay = seconds(9)}};
  const auto results = source->settle(completions, Deadline::after(clock, seconds(20)));
  EXPECT_EQ(results[0].status, SettleStatus::applied);
  EXPECT_EQ(results[1].status, SettleStatus::lost);
  EXPECT_EQ(table.sql("SELECT retry_count FROM @T ORDER BY id"), (Ids{"1", "5"}));
}

TEST(PostgresOutbox, ThreeSourcesShareTheTableAndNobodyIsHandedWhatAnotherHas) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  std::vector<std::string> groups;
  groups.reserve(600);
  for (int i = 0; i < 600; ++i) {
    groups.push_back("g" + std::to_string(i % 100));
  }
  table.insert(groups);
  std::vector<std::unique_ptr<SourceRig>> rigs;
  rigs.reserve(3);
  for (int i = 0; i < 3; ++i) {
    rigs.push_back(std::make_unique<SourceRig>(table));
  }
  std::set<std::string> out;
  std::map<std::string, std::int64_t> last;
  std::size_t done = 0;
  std::set<std::size_t> worked;
  for (int round = 0; round < 4000 && done < groups.size(); ++round) {
    const std::size_t member = static_cast<std::size_t>(round) % rigs.size();
    for (const Delivery& delivery : rigs[member]->claim(7, milliseconds(100))) {
      EXPECT_TRUE(out.insert(delivery.message.id).second) << delivery.message.id << " was handed out twice";
      const std::int64_t id = std::stoll(delivery.message.id);
      EXPECT_LT(last[delivery.message.group], id) << "out of order in " << delivery.message.group;
      last[delivery.message.group] = id;
      worked.insert(member);
      done += rigs[member]->settle(delivery, CompletionAction::remove) == SettleStatus::applied ? 1 : 0;
    }
  }
  EXPECT_EQ(done, groups.size());
  EXPECT_EQ(table.count("sent_at IS NOT NULL"), 600);
  EXPECT_GT(worked.size(), 1U) << "those who join get a part";
}

void a_host_that_names_the_schema_shares_with_one_that_does_not(bool side_table) {
  OutboxTable table(side_table);
  std::vector<std::string> groups;
  groups.reserve(40);
  for (int i = 0; i < 40; ++i) {
    groups.push_back("g" + std::to_string(i));
  }
  table.insert(groups);
  SourceRig one(table);
  const auto held = one.claim();
  ASSERT_EQ(held.size(), groups.size());
  SourceRig other(table, {.job = "relay"}, seconds(15), 64, "public");
  for (const Delivery& delivery : held) {
    EXPECT_EQ(ids_of(other.claim(100, milliseconds(50))), Ids()) << "what the first one has out";
    EXPECT_EQ(one.settle(delivery, CompletionAction::remove), SettleStatus::applied);
  }
  table.insert(groups, 1001);
  std::set<std::string> out;
  std::size_t of_other = 0;
  while (out.size() < groups.size()) {
    for (SourceRig* rig : {&one, &other}) {
      for (const Delivery& delivery : rig->claim(3, milliseconds(50))) {
        EXPECT_TRUE(out.insert(delivery.message.id).second) << delivery.message.id << " was handed out twice";
        EXPECT_EQ(rig->settle(delivery, CompletionAction::remove), SettleStatus::applied);
        of_other += rig == &other ? 1 : 0;
      }
    }
  }
  EXPECT_GT(of_other, 0U) << "they share";
}

TEST(PostgresOutbox, AHostThatNamesTheSchemaSharesWithOneThatDoesNot) {
  SLUICE_NEEDS_POSTGRES();
  a_host_that_names_the_schema_shares_with_one_that_does_not(false);
}

TEST(PostgresOutbox, AHostThatNamesTheSchemaSharesTheSideTableToo) {
  SLUICE_NEEDS_POSTGRES();
  a_host_that_names_the_schema_shares_with_one_that_does_not(true);
}

TEST(PostgresOutbox, WhatAKilledSessionHeldGoesToAnotherAndItsOwnerIsTold) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "a"});
  SourceRig first(table);
  const auto held = first.claim();
  ASSERT_EQ(ids_of(held), Ids{"1"});
  table.sql("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()");
  EXPECT_EQ(first.settle(held[0], CompletionAction::remove), SettleStatus::lost) << "no mark without the locks";
  EXPECT_EQ(table.count("sent_at IS NOT NULL"), 0);
  EXPECT_EQ(first.drain(2), (std::vector<std::int64_t>{1, 2})) << "it connects again and takes the rows anew";
  EXPECT_EQ(first.lost(), Ids{"1"});
}

TEST(PostgresOutbox, ASessionThatIsSilentForLongerThanItsLeaseIsEndedByTheServer) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  auto settings = table.settings();
  settings.config.lease = seconds(2);
  SystemClock clock;
  SeededRandom random;
  const auto database = make_postgres_database(settings, clock, random);
  const auto deadline = [&] { return Deadline::after(clock, seconds(20)); };
  auto silent = database->open_locks(deadline());
  ASSERT_TRUE(silent);
  ASSERT_TRUE((*silent)->join({"space", 4}, deadline()));
  ASSERT_EQ((*silent)->lock(std::vector<std::uint32_t>{0, 1}, deadline())->size(), 2U);
  auto other = database->open_locks(deadline());
  ASSERT_TRUE((*other)->join({"space", 4}, deadline()));
  std::size_t got = 0;
  for (const SteadyTime until = clock.steady_now() + seconds(30); got == 0 && clock.steady_now() < until;) {
    got = (*other)->lock(std::vector<std::uint32_t>{0}, deadline())->size();
  }
  EXPECT_EQ(got, 1U);
  const auto marked = (*silent)->mark(std::vector{sent_mark({1})}, deadline());
  ASSERT_FALSE(marked);
}

TEST(PostgresOutbox, HostsWithAnotherNumberOfBucketsDoNotShare) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a"});
  SourceRig first(table);
  ASSERT_EQ(first.claim().size(), 1U);
  SourceRig other(table, {.job = "relay"}, seconds(15), 32);
  const auto refused = other.source->claim({.max = 1}, other.deadline());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("into 64 buckets, and this one into 32"), std::string::npos)
      << refused.error().message();
}

}  // namespace
}  // namespace sluice::queue::outbox
