// What a table is called where messages are deduplicated: each table by another name, and by the same on every relay.

#include <gmock/gmock.h>

#include <string>

#include "host/stores/outbox/outbox_queues.hpp"
#include "host/stores/outbox/postgres/postgres_database.hpp"
#include "tests/stores/outbox/postgres_rig.hpp"

namespace sluice::queue::outbox {
namespace {

using std::chrono::seconds;
using test::OutboxTable;
using test::SourceRig;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// As a relay of that name learns it, from the session that it reads rows with.
SourceId source_of(Settings settings, const std::string& host = "one") {
  settings.application = "sluice " + host;
  const SystemClock clock;
  SeededRandom random;
  const Deadline soon = Deadline::after(clock, seconds(20));
  const auto database = make_postgres_database(settings, clock, random);
  auto session = database->open_reader(soon);
  const auto source = session ? (*session)->source_id(soon) : Result<SourceId>(session.error());
  EXPECT_TRUE(source) << source.error().message();
  return source ? *source : SourceId();
}

Settings in_database(const OutboxTable& table, const std::string& url, const std::string& database) {
  Settings settings = table.settings();
  settings.config.url = url.substr(0, url.rfind('/') + 1) + database;
  return settings;
}

void make_table(const Settings& settings) {
  const SystemClock clock;
  const Deadline soon = Deadline::after(clock, seconds(60));
  std::unique_ptr<SqlConnection> connection;
  for (int attempt = 0; attempt < 200 && !connection; ++attempt) {
    if (auto opened = postgres::connect(settings, "", soon)) {
      connection = std::move(*opened);
    }
  }
  ASSERT_TRUE(connection);
  ASSERT_TRUE(connection->run("CREATE TABLE " + settings.config.table + " (LIKE pg_class)", soon));
}

TEST(PostgresSourceId, EveryRelayGivesTheSameId) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  const SourceId source = source_of(table.settings(), "one");
  EXPECT_THAT(source.id, testing::MatchesRegex("postgres-[0-9]{15,}-[0-9]+-[0-9]+"));
  EXPECT_EQ(source.doubt, "");
  EXPECT_EQ(source_of(table.settings(), "two").id, source.id);
  Settings named = table.settings();
  named.config.schema = "public";
  EXPECT_EQ(source_of(named).id, source.id) << "however the table is named";
  Settings pooled = table.settings();
  pooled.config.side_table = true;
  EXPECT_EQ(source_of(pooled).id, source.id);
}

TEST(PostgresSourceId, ATableOfTheSameNameElsewhereHasAnother) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  const SourceId here = source_of(table.settings());
  table.sql("CREATE SCHEMA @T_schema");
  table.sql("CREATE TABLE @T_schema.@T (LIKE @T)");
  Settings schema = table.settings();
  schema.config.schema = schema.config.table + "_schema";
  EXPECT_NE(source_of(schema).id, here.id);

  table.sql("CREATE DATABASE @T_tenant");
  const Settings tenant = in_database(table, test::postgres()->url(), table.settings().config.table + "_tenant");
  make_table(tenant);
  EXPECT_NE(source_of(tenant).id, here.id);

  const auto other = test::PostgresServer::start();
  const Settings shard = in_database(table, other->url(), "postgres");
  make_table(shard);
  EXPECT_NE(source_of(shard).id, here.id);
}

TEST(PostgresSourceId, ATableThatIsMadeAnewHasAnother) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  const SourceId before = source_of(table.settings());
  table.sql("TRUNCATE @T");
  EXPECT_EQ(source_of(table.settings()).id, before.id);
  table.sql("CREATE TABLE @T_copy (LIKE @T)");
  table.sql("DROP TABLE @T");
  table.sql("ALTER TABLE @T_copy RENAME TO @T");
  EXPECT_NE(source_of(table.settings()).id, before.id) << "its ids begin anew";
}

TEST(PostgresSourceId, GoesOutWithEveryMessageWhateverItsProducer) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "b"});
  const std::string id = source_of(table.settings()).id;
  SourceRig rig(table, {.job = "relay"}, seconds(15), 64, "", "");
  const auto claimed = rig.claim();
  ASSERT_EQ(claimed.size(), 2U);
  EXPECT_EQ(claimed[0].message.attributes.at("producer"), id);
  EXPECT_EQ(claimed[1].message.attributes.at("producer"), id);
  {
    const MutexLock lock(rig.mutex);
    EXPECT_THAT(rig.warnings, IsEmpty());
  }

  const SystemClock clock;
  const auto database = table.database();
  const Deadline soon = Deadline::after(clock, seconds(20));
  const auto unnamed = make_outbox_operator({.settings = table.settings()}, *database, clock);
  EXPECT_EQ(unnamed->get("1", soon)->message.attributes.at("producer"), id);
  Settings produced = table.settings();
  produced.config.producer = "shop";
  const auto named = make_outbox_operator({.settings = produced}, *database, clock);
  EXPECT_EQ(named->get("1", soon)->message.attributes.at("producer"), "shop");
  EXPECT_EQ(named->get("1", soon)->message.attributes.at("source_id"), id) << "by which brokers know the row again";
}

TEST(PostgresSourceId, AUserWhoMayNotAskForTheClusterIsTold) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a"});
  table.sql("CREATE ROLE @T_user LOGIN PASSWORD 'secret'");
  table.sql("GRANT SELECT, UPDATE ON @T TO @T_user");
  Settings settings = table.settings();
  settings.config.username = settings.config.table + "_user";
  EXPECT_EQ(source_of(settings).id, source_of(table.settings()).id) << "no right but those of a relay is needed";

  table.sql("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC");
  const SourceId doubtful = source_of(settings);
  table.sql("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC");
  EXPECT_THAT(doubtful.id, HasSubstr("postgres-127.0.0.1-" + std::to_string(test::postgres()->port()) + "-"));
  EXPECT_THAT(doubtful.doubt, HasSubstr("GRANT EXECUTE ON FUNCTION pg_control_system() to the user"));
}

}  // namespace
}  // namespace sluice::queue::outbox
