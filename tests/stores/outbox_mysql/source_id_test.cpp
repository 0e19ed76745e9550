// What a database is called where messages are deduplicated.

#include <gmock/gmock.h>

#include "host/stores/outbox/outbox_queues.hpp"
#include "tests/stores/outbox_mysql/outbox_table.hpp"

namespace sluice::queue::outbox::mysql {
namespace {

using testing::HasSubstr;

class MysqlSourceId : public OutboxTable {
 protected:
  SourceId source_of(Settings settings, const std::string& host = "one") {
    settings.application = "sluice " + host;
    return database(settings)->open_reader(soon()).value()->source_id(soon()).value();
  }
  Settings in_database(const std::string& other) {
    Settings settings = this->settings();
    settings.config.url = server().url(other);
    return settings;
  }
  void drop_kept_id() { sql("DROP TABLE outbox_source"); }
};

TEST_F(MysqlSourceId, IsKeptBesideTheTableAndTheSameOnEveryRelay) {
  const SourceId source = source_of(settings(), "one");
  EXPECT_EQ(source.id, "mysql-" + value("SELECT id FROM outbox_source"));
  EXPECT_EQ(source.id.size(), std::string("mysql-").size() + 36);
  EXPECT_EQ(source.doubt, "");
  EXPECT_EQ(source_of(settings(), "two").id, source.id);
  EXPECT_EQ(desk()->source_id(soon()).value().id, source.id);
  Settings named = settings();
  named.config.schema = name();
  EXPECT_EQ(source_of(named).id, source.id);
}

TEST_F(MysqlSourceId, IsMadeOnce) {
  const SourceId before = source_of(settings());
  drop_kept_id();
  sql("DROP TABLE outbox");
  make_table(settings());
  const SourceId anew = source_of(settings());
  EXPECT_NE(anew.id, before.id);
  sql("DROP TABLE outbox");
  make_table(settings());
  EXPECT_EQ(source_of(settings()).id, anew.id) << "the statements do nothing where it is there";
}

TEST_F(MysqlSourceId, ATableOfTheSameNameInAnotherDatabaseHasAnother) {
  const std::string other = name() + "_tenant";
  sql("CREATE DATABASE " + other);
  sql("USE " + other);
  make_table(settings());
  EXPECT_NE(source_of(in_database(other)).id, source_of(settings()).id);
  drop_kept_id();
  sql("USE " + name());
  drop_kept_id();
  EXPECT_NE(source_of(in_database(other)).id, source_of(settings()).id) << "and where it is not kept";
  EXPECT_EQ(source_of(settings(), "two").id, source_of(settings(), "one").id);
}

TEST_F(MysqlSourceId, WhereItIsNotKeptTheMendIsTold) {
  const auto mend = [this](const Settings& settings) { return source_of(settings).doubt; };
  sql("CREATE USER '" + name() + "'@'%'");
  sql("GRANT SELECT, UPDATE ON " + name() + ".outbox TO '" + name() + "'@'%'");
  Settings poor = settings();
  poor.config.username = name();
  EXPECT_THAT(mend(poor), HasSubstr("there is no row of `outbox_source` that the user may read"));
  sql("GRANT SELECT ON " + name() + ".outbox_source TO '" + name() + "'@'%'");
  EXPECT_EQ(mend(poor), "");
  sql("DELETE FROM outbox_source");
  EXPECT_THAT(mend(settings()), HasSubstr("make the table with what `sluice outbox ddl` prints"));
  drop_kept_id();
  EXPECT_THAT(mend(settings()), HasSubstr("or give each database a 'producer' of its own"));
}

TEST_F(MysqlSourceId, AJobThatGoesOnWithoutItSaysSo) {
  drop_kept_id();
  insert(1, "orders", "a");
  Mutex mutex;
  Condition changed;
  std::vector<std::string> warnings;
  const auto warned = [&] { return !warnings.empty(); };
  const auto database = this->database();
  OutboxOptions options{.settings = settings()};
  options.report = [&](const std::string& text) {
    const MutexLock lock(mutex);
    warnings.push_back(text);
    changed.notify_all();
  };
  {
    const auto source = *make_outbox_source(std::move(options), {.job = "relay"}, *database, clock_, random_);
    source->start({});
    const MutexLock lock(mutex);
    changed.wait_until(mutex, clock_.steady_now() + std::chrono::minutes(1), warned);
  }
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], HasSubstr("outbox orders: there is no row of `outbox_source`"));
}

}  // namespace
}  // namespace sluice::queue::outbox::mysql
