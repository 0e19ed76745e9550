// Tables as others make them, on a real PostgreSQL: with UUIDs, without columns that we know, without our trigger.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/stores/outbox/postgres_rig.hpp"

namespace sluice::queue::outbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::OutboxTable;
using test::SourceRig;
using Texts = std::vector<std::string>;

// As outbox-worker's page has it.
constexpr const char* kBare =
    "CREATE TABLE @T (id bigint PRIMARY KEY, aggregate_type varchar(255) NOT NULL, aggregate_id varchar(255) NOT NULL, "
    "event varchar(255) NOT NULL, payload json NOT NULL, retry_at timestamp, retry_count int, sent_at timestamp);";

// As Debezium's page has it, with what a relay writes and a column for the order.
constexpr const char* kDebezium =
    "CREATE TABLE @T (id uuid NOT NULL PRIMARY KEY, aggregatetype varchar(255) NOT NULL, aggregateid varchar(255) NOT "
    "NULL, type varchar(255) NOT NULL, payload jsonb);"
    "ALTER TABLE @T ADD COLUMN position bigint GENERATED ALWAYS AS IDENTITY;";

config::OutboxColumns debezium(const std::string& order_by) {
  config::OutboxColumns columns;
  columns.order_by = order_by;
  columns.aggregate_type = "aggregatetype";
  columns.aggregate_id = "aggregateid";
  columns.event = "type";
  return columns;
}

std::string uuid(char digit) { return std::string(8, digit) + "-0000-4000-8000-000000000000"; }

Texts ids_in(const std::vector<Delivery>& deliveries) {
  Texts ids;
  ids.reserve(deliveries.size());
  for (const Delivery& delivery : deliveries) {
    ids.push_back(delivery.message.id);
  }
  return ids;
}

class Desk {
 public:
  explicit Desk(OutboxTable& table)
      : database_(table.database()),
        operator_(make_outbox_operator({.settings = table.settings()}, *database_, clock_)) {}

  std::vector<StoredMessage> list(Half half, std::size_t limit = 100, bool newest_first = false) {
    std::vector<StoredMessage> all;
    ListRequest request{.half = half, .limit = limit, .newest_first = newest_first};
    do {
      auto page = operator_->list(request, deadline());
      EXPECT_TRUE(page) << page.error().message();
      if (!page) {
        return all;
      }
      std::move(page->messages.begin(), page->messages.end(), std::back_inserter(all));
      request.cursor = page->next;
    } while (!request.cursor.empty());
    return all;
  }
  Texts findings() {
    auto desk = database_->open_admin(deadline());
    auto found = (*desk)->inspect(deadline());
    Texts texts;
    for (const Finding& finding : *found) {
      texts.push_back((finding.fatal ? "fatal: " : "") + finding.text);
    }
    return texts;
  }
  Operator& self() { return *operator_; }
  Deadline deadline() const { return Deadline::after(clock_, seconds(20)); }

 private:
  SystemClock clock_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Operator> operator_;
};

bool any_has(const Texts& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&part](const std::string& text) { return text.find(part) != std::string::npos; });
}

TEST(PostgresTables, ADeadLetterOfABareTableSaysNoMoreThanIsKnown) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table(kBare, {});
  table.insert({"a", "b"});
  SourceRig rig(table);
  const auto claimed = rig.claim();
  ASSERT_EQ(claimed.size(), 2U);
  EXPECT_EQ(rig.settle(claimed[0], CompletionAction::dead_letter, {}, "never"), SettleStatus::applied);
  EXPECT_EQ(rig.settle(claimed[1], CompletionAction::retry, seconds(60), "later"), SettleStatus::applied);
  Desk desk(table);
  const auto dead = desk.list(Half::dlq);
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0].failure.error.find("not known: the row has no 'last_error'"), 0U) << dead[0].failure.error;
  EXPECT_EQ(dead[0].failure.attempts, 0U) << "it was rejected at its first try, and has retry_count = 10";
  EXPECT_EQ(dead[0].failure.failed_at, WallTime{});
  EXPECT_TRUE(any_has(desk.findings(), "has no column for 'last_error'"));
}

TEST(PostgresTables, ColumnsThatAreThereAreUsedWithoutBeingNamed) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table(kBare, {});
  table.run_all(table.database()->ddl(true));
  table.insert({"a"});
  SourceRig rig(table);
  EXPECT_EQ(rig.settle(rig.claim().at(0), CompletionAction::dead_letter, {}, "never"), SettleStatus::applied);
  Desk desk(table);
  const auto dead = desk.list(Half::dlq);
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0].failure.error, "never");
  const Duration ago = SystemClock().wall_now() - dead[0].failure.failed_at;
  EXPECT_LT(std::chrono::abs(ago), std::chrono::minutes(5));
  const Change redrive{.id = "1", .action = ChangeAction::redrive};
  EXPECT_EQ(desk.self().change(std::vector{redrive}, desk.deadline()).at(0).status, ChangeStatus::applied);
  EXPECT_EQ(table.count("failed_at IS NULL AND last_error IS NULL"), 1);
}

TEST(PostgresTables, AColumnOfAnotherTypeOrNoneByWishIsNotUsed) {
  SLUICE_NEEDS_POSTGRES();
  for (const bool by_wish : {false, true}) {
    config::OutboxColumns columns;
    columns.last_error = by_wish ? "" : "last_error";
    OutboxTable table(kBare, columns);
    table.sql(std::string("ALTER TABLE @T ADD COLUMN last_error ") + (by_wish ? "text" : "int"));
    table.insert({"a"});
    SourceRig rig(table);
    EXPECT_EQ(rig.settle(rig.claim().at(0), CompletionAction::dead_letter, {}, "never"), SettleStatus::applied);
    EXPECT_EQ(table.count("last_error IS NULL AND retry_count = 10"), 1) << by_wish;
  }
}

TEST(PostgresTables, TheDdlMayBeRunAgainAndCompletesATableThatIsInUse) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable ours;
  ours.run_all(ours.database()->ddl(false));
  OutboxTable table(kBare, {});
  const std::string ddl = table.database()->ddl(true);
  EXPECT_NE(ddl.find("CREATE INDEX CONCURRENTLY IF NOT EXISTS"), std::string::npos) << ddl;
  table.run_all(ddl);
  table.run_all(ddl);
  EXPECT_EQ(Desk(table).findings(), Texts{});
  EXPECT_EQ(Desk(ours).findings(), Texts{});
}

TEST(PostgresTables, WithoutAnIndexOnGroupsTheFirstRowsOfEachAreFound) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table(kBare, {});
  std::vector<std::string> groups(150, "a");
  groups.insert(groups.end(), 150, "A");
  table.insert(groups);
  SourceRig rig(table);
  std::vector<std::int64_t> ids = rig.drain(300);
  EXPECT_EQ(ids.size(), 300U);
  std::stable_partition(ids.begin(), ids.end(), [](std::int64_t id) { return id <= 150; });
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end())) << "each in its order";
}

// Neither waits for the next poll, which is 5 s away.
TEST(PostgresTables, WithoutATriggerRowsAreLookedFor) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table(kBare, {});
  SourceRig rig(table);
  EXPECT_TRUE(rig.claim_now().empty());
  for (std::int64_t id = 1; id <= 3; ++id) {
    table.insert({"a"}, id);
    const auto claimed = rig.claim(1000, seconds(3));
    ASSERT_EQ(ids_in(claimed), Texts{std::to_string(id)});
    EXPECT_EQ(rig.settle(claimed[0], CompletionAction::remove), SettleStatus::applied);
  }
}

TEST(PostgresTables, UuidsGoOutInTheOrderOfTheirColumn) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table(kDebezium, debezium("position"));
  table.run_all(table.database()->ddl(true));
  EXPECT_EQ(Desk(table).findings(), Texts{});
  table.sql("INSERT INTO @T (id, aggregatetype, aggregateid, type, payload) VALUES ('" + uuid('f') +
            "', 'orders', 'a', 'created', '{}'), ('" + uuid('1') + "', 'orders', 'a', 'paid', '{}'), ('" + uuid('9') +
            "', 'orders', 'a', 'gone', NULL), ('" + uuid('8') + "', 'orders', '', 'note', '1')");
  SourceRig rig(table);
  const auto first = rig.claim();
  ASSERT_EQ(ids_in(first), (Texts{uuid('f'), uuid('8')}));
  EXPECT_EQ(first[0].message.attributes.at("event"), "created");
  EXPECT_EQ(rig.settle(first[0], CompletionAction::remove), SettleStatus::applied);
  const auto second = rig.claim();
  ASSERT_EQ(ids_in(second), Texts{uuid('1')});
  EXPECT_EQ(rig.settle(second[0], CompletionAction::retry, milliseconds(1), "no"), SettleStatus::applied);
  const auto again = rig.claim();
  ASSERT_EQ(ids_in(again), Texts{uuid('1')}) << "a failure holds its group";
  EXPECT_EQ(again[0].message.attempt, 2U);
  EXPECT_EQ(rig.settle(again[0], CompletionAction::dead_letter, {}, "never"), SettleStatus::applied);
  const auto last = rig.claim();
  ASSERT_EQ(ids_in(last), Texts{uuid('9')});
  EXPECT_EQ(last[0].message.attributes.at("tombstone"), "true");
  EXPECT_EQ(table.count("sent_at IS NOT NULL AND position = 1"), 1);
  EXPECT_EQ(table.count("retry_count = 10 AND last_error = 'never' AND position = 2"), 1);
}

// Rows of one transaction have the same now(), so that their ids decide.
TEST(PostgresTables, TextIdsAreListedAndReadInPagesByATimeAndTheirBytes) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table(
      "CREATE TABLE @T (id text PRIMARY KEY, aggregate_type text NOT NULL, aggregate_id text NOT NULL, event text NOT "
      "NULL, payload text, created_at timestamptz NOT NULL DEFAULT now(), retry_at timestamptz, retry_count int, "
      "sent_at timestamptz, last_error text);",
      [] {
        config::OutboxColumns columns;
        columns.order_by = "created_at";
        return columns;
      }());
  table.sql(
      "INSERT INTO @T (id, aggregate_type, aggregate_id, event, payload, created_at) SELECT chr(64 + i % 50) || ' /' "
      "|| "
      "i, 't', 'g' || i % 3, 'e', 'x', timestamptz '2026-01-02 03:04:05.678901Z' + (i / 10) * interval '1 microsecond' "
      "FROM generate_series(1, 100) AS i");
  const Texts order = table.sql("SELECT id FROM @T ORDER BY created_at, id COLLATE \"C\"");
  Desk desk(table);
  Texts listed;
  for (const StoredMessage& message : desk.list(Half::standard, 7)) {
    listed.push_back(message.message.id);
  }
  EXPECT_EQ(listed, order);
  listed.clear();
  for (const StoredMessage& message : desk.list(Half::standard, 7, true)) {
    listed.push_back(message.message.id);
  }
  std::reverse(listed.begin(), listed.end());
  EXPECT_EQ(listed, order);
  EXPECT_EQ(desk.self().get(order[3], desk.deadline())->message.id, order[3]);
  EXPECT_EQ(desk.self().get("'; DROP", desk.deadline()).error().code(), ErrorCode::not_found);
  const Change away{.id = order[3], .action = ChangeAction::remove};
  EXPECT_EQ(desk.self().change(std::vector{away}, desk.deadline()).at(0).status, ChangeStatus::applied);
  // Group by group in that order, read in pages of few.
  SystemClock clock;
  SeededRandom random;
  OutboxOptions options{.settings = table.settings()};
  options.settings.config.fetch_limit = 7;
  const auto database = table.database();
  const auto source = *make_outbox_source(options, {.job = "relay"}, *database, clock, random);
  source->start({});
  std::map<std::string, Texts> out;
  for (std::size_t count = 0; count < 99;) {
    const auto claimed = source->claim({.max = 100}, Deadline::after(clock, seconds(20)));
    ASSERT_TRUE(claimed) << claimed.error().message();
    std::vector<Completion> completions;
    for (const Delivery& delivery : claimed->deliveries) {
      out[delivery.message.group].push_back(delivery.message.id);
      completions.push_back({.receipt = delivery.receipt});
    }
    count += completions.size();
    for (const SettleResult& result : source->settle(completions, Deadline::after(clock, seconds(20)))) {
      EXPECT_EQ(result.status, SettleStatus::applied);
    }
  }
  source->stop();
  std::map<std::string, Texts> expected;
  for (const std::string& id : order) {
    if (id != order[3]) {
      expected["g" + std::to_string(std::stoi(id.substr(3)) % 3)].push_back(id);
    }
  }
  EXPECT_EQ(out, expected);
}

// A column of a fixed width shows its texts filled up with spaces, and compares them without.
TEST(PostgresTables, RowsOfAGroupWhoseNameIsFilledUpWithSpacesAreFound) {
  SLUICE_NEEDS_POSTGRES();
  for (const bool indexed : {false, true}) {
    std::string padded = kBare;
    for (std::size_t at = 0; (at = padded.find("varchar(255)", at)) != std::string::npos;) {
      padded.replace(at, 12, "char(12)");
    }
    OutboxTable table(padded, {});
    if (indexed) {
      table.run_all(table.database()->ddl(true));
    }
    table.insert({"a", "b", "a"});
    const auto database = table.database();
    const auto reader = *database->open_reader(Desk(table).deadline());
    std::vector<std::uint32_t> buckets(table.settings().config.buckets);
    std::iota(buckets.begin(), buckets.end(), 0U);
    const Selection everything;
    FetchRequest request{.buckets = buckets, .filter = &everything};
    const Page page = *reader->fetch(request, Desk(table).deadline());
    ASSERT_EQ(page.rows.size(), 3U);
    EXPECT_EQ(page.rows[0].group, (Group{"orders", "a"}));
    EXPECT_EQ(page.rows[0].event, "created");
    const std::vector<Group> groups{page.rows[0].group};
    const auto found = reader->fetch_groups(groups, request, Desk(table).deadline());
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_EQ(found->at(0).rows.size(), 2U) << indexed;
    request.without = groups;
    EXPECT_EQ(reader->fetch(request, Desk(table).deadline())->rows.size(), 1U) << indexed;
  }
}

TEST(PostgresTables, AUuidWithoutAColumnForTheOrderIsNamed) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table(kDebezium, debezium(""));
  const Texts found = Desk(table).findings();
  EXPECT_TRUE(any_has(found, "is of type uuid")) << found.front();
  EXPECT_TRUE(any_has(found, "'order_by' in [outbox.NAME.columns]"));
}

TEST(PostgresTables, TheDdlMakesATableOfUuidsToo) {
  SLUICE_NEEDS_POSTGRES();
  for (const std::string order : {"position", "created_at"}) {
    config::OutboxColumns columns;
    columns.order_by = order;
    OutboxTable table("", columns);
    table.run_all(table.database()->ddl(false));
    EXPECT_EQ(Desk(table).findings(), Texts{});
  }
}

}  // namespace
}  // namespace sluice::queue::outbox
