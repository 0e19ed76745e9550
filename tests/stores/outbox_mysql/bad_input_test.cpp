#include <gmock/gmock.h>

#include "tests/stores/outbox_mysql/outbox_table.hpp"
#include "tests/support/loopback.hpp"

namespace sluice::queue::outbox::mysql {
namespace {

using testing::HasSubstr;

class MysqlBadInput : public OutboxTable {
 protected:
  Error refusal(const Settings& wrong) const {
    const auto session = database(wrong)->open_reader(soon());
    return session ? Error(ErrorCode::internal, "it was opened") : session.error();
  }
  Settings of_user(const std::string& user) {
    Settings settings = this->settings();
    settings.config.username = user;
    settings.config.password = "right-word";
    return settings;
  }
  std::vector<Finding> findings(const Settings& settings) {
    return database(settings)->open_admin(soon()).value()->inspect(soon()).value();
  }
};

TEST_F(MysqlBadInput, AWrongPasswordIsNamedAndNotShown) {
  sql("CREATE USER 'w1'@'%' IDENTIFIED BY 'other-word'");
  const Error error = refusal(of_user("w1"));
  EXPECT_EQ(error.code(), ErrorCode::denied);
  EXPECT_THAT(error.message(), HasSubstr("refuses the user or the password"));
  EXPECT_THAT(error.message(), Not(HasSubstr("right-word")));
}

TEST_F(MysqlBadInput, AServerThatIsNotThereIsNamed) {
  Settings nobody = settings();
  nobody.config.url = "mysql://u:secret@127.0.0.1:" + std::to_string(test::free_loopback_port()) + "/d";
  EXPECT_EQ(refusal(nobody).code(), ErrorCode::unavailable);
  EXPECT_THAT(refusal(nobody).message(), HasSubstr("nobody answers"));
  EXPECT_THAT(refusal(nobody).message(), Not(HasSubstr("secret")));
  nobody.config.url = "mysql://u:secret@no-such-machine.invalid/d";
  EXPECT_EQ(refusal(nobody).code(), ErrorCode::unavailable);
}

TEST_F(MysqlBadInput, AServerThatDoesNotAnswerIsWaitedForUntilTheDeadlineOnly) {
  const test::Descriptor silent = test::listen_on_loopback();
  Settings stuck = settings();
  stuck.config.url = "mysql://u@127.0.0.1:" + std::to_string(test::local_port(silent)) + "/d";
  const auto session = database(stuck)->open_reader(Deadline::after(clock_, std::chrono::milliseconds(200)));
  ASSERT_TRUE(session.has_error());
  EXPECT_EQ(session.error().code(), ErrorCode::timeout);
}

TEST_F(MysqlBadInput, AQueryThatTakesTooLongEndsTheSession) {
  const Settings connect{.config = {.url = server().url(name())}};
  const auto session = mysql::connect(connect, clock_, soon()).value();
  const auto slept = session->run("SELECT SLEEP(1000)", Deadline::after(clock_, std::chrono::milliseconds(200)));
  ASSERT_TRUE(slept.has_error());
  EXPECT_EQ(slept.error().code(), ErrorCode::timeout);
  EXPECT_EQ(session->run("SELECT 1", soon()).error().code(), ErrorCode::unavailable);
}

TEST_F(MysqlBadInput, AnUnknownDatabaseIsNamed) {
  Settings wrong = settings();
  wrong.config.url = server().url("nowhere");
  EXPECT_EQ(refusal(wrong).code(), ErrorCode::queue_missing);
  EXPECT_THAT(refusal(wrong).message(), HasSubstr("no such database"));
}

TEST_F(MysqlBadInput, AMissingTableIsNamed) {
  sql("DROP TABLE outbox");
  const auto found = findings(settings());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].fatal);
  EXPECT_EQ(found[0].code, ErrorCode::queue_missing);
  EXPECT_THAT(found[0].text, HasSubstr("sluice outbox ddl"));
  const auto session = reader();
  EXPECT_EQ(session->fetch({.buckets = all_buckets_, .filter = &everything_}, soon()).error().code(),
            ErrorCode::queue_missing);
}

TEST_F(MysqlBadInput, MissingColumnsAndWrongTypesAreNamed) {
  sql("ALTER TABLE outbox DROP COLUMN retry_count, DROP COLUMN traceparent, MODIFY retry_at VARCHAR(20), MODIFY "
      "payload INT");
  const auto found = findings(settings());
  std::string all;
  for (const Finding& finding : found) {
    EXPECT_TRUE(finding.fatal);
    all += finding.text + "\n";
  }
  EXPECT_EQ(found.size(), 4U) << all;
  EXPECT_THAT(all, HasSubstr("has no column `retry_count`"));
  EXPECT_THAT(all, HasSubstr("has no column `traceparent`"));
  EXPECT_THAT(all, HasSubstr("is of type varchar, and 'retry_at' must be DATETIME(6)"));
  EXPECT_THAT(all, HasSubstr("is of type int, and 'payload' must be JSON"));
  const auto session = reader();
  const auto fetched = session->fetch({.buckets = all_buckets_, .filter = &everything_}, soon());
  EXPECT_EQ(fetched.error().code(), ErrorCode::invalid);
  EXPECT_THAT(fetched.error().message(), HasSubstr("retry_count"));
}

TEST_F(MysqlBadInput, MissingRightsAreNamed) {
  sql("CREATE USER 'w2'@'%' IDENTIFIED BY 'right-word'");
  EXPECT_EQ(refusal(of_user("w2")).code(), ErrorCode::denied) << "no right to the database";
  sql("GRANT SELECT ON " + name() + ".* TO 'w2'@'%'");
  const auto found = findings(of_user("w2"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].code, ErrorCode::denied);
  EXPECT_THAT(found[0].text, HasSubstr("GRANT SELECT, UPDATE ON the table to it"));
  sql("GRANT UPDATE ON " + name() + ".* TO 'w2'@'%'");
  EXPECT_TRUE(findings(of_user("w2")).empty());
}

TEST_F(MysqlBadInput, AReadOnlyServerIsNamed) {
  sql("CREATE USER 'w3'@'%' IDENTIFIED BY 'right-word'");
  sql("GRANT SELECT, UPDATE ON " + name() + ".* TO 'w3'@'%'");
  insert(1, "t", "a");
  const auto session = database(of_user("w3"))->open_locks(soon()).value();
  sql("SET GLOBAL read_only = 1");
  const auto found = findings(of_user("w3"));
  const auto marked = session->mark(std::vector{sent_mark({1})}, soon());
  sql("SET GLOBAL read_only = 0");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].text, HasSubstr("read-only"));
  ASSERT_TRUE(marked.has_error());
  EXPECT_EQ(marked.error().code(), ErrorCode::unavailable);
  EXPECT_THAT(marked.error().message(), HasSubstr("read-only"));
}

TEST_F(MysqlBadInput, AMissingIndexIsSaidAndNotFatal) {
  sql("DROP INDEX outbox_pending ON outbox");
  const auto found = findings(settings());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(found[0].fatal);
  EXPECT_THAT(found[0].text, HasSubstr("CREATE INDEX"));
}

TEST_F(MysqlBadInput, NamesOfTablesAndColumnsMayHoldAnything) {
  Settings odd = settings();
  odd.config.table = "out `box` -- '";
  odd.config.columns.aggregate_type = "type` of";
  odd.config.columns.event = "key";
  make_table(odd);
  EXPECT_TRUE(findings(odd).empty());
  const auto session = database(odd)->open_reader(soon()).value();
  EXPECT_TRUE(pending(*session).empty());
}

TEST_F(MysqlBadInput, ATableInAnotherDatabaseIsFoundByItsSchema) {
  Settings elsewhere = settings();
  elsewhere.config.url = server().url("mysql");
  elsewhere.config.schema = name();
  EXPECT_TRUE(findings(elsewhere).empty());
  elsewhere.config.schema = "nowhere";
  EXPECT_EQ(findings(elsewhere).front().fatal, true);
}

TEST_F(MysqlBadInput, AServerThatGoesAwayEndsTheSessionAndTheNextOneWorks) {
  insert(1, "t", "a");
  const auto session = locks();
  server().restart();
  const auto marked = session->mark(std::vector{sent_mark({1})}, soon());
  ASSERT_TRUE(marked.has_error());
  EXPECT_EQ(marked.error().code(), ErrorCode::unavailable);
  const auto again = locks();
  EXPECT_EQ(again->mark(std::vector{sent_mark({1})}, soon())->front(), MarkStatus::written);
}

TEST_F(MysqlBadInput, ALargePayloadIsReadWhole) {
  sql("SET GLOBAL max_allowed_packet = 67108864");
  sql("INSERT INTO outbox (id,aggregate_type,aggregate_id,event,payload) VALUES "
      "(1,'t','a','e',CONCAT('\"',REPEAT('x',10000000),'\"'))");
  const auto session = reader();
  const auto page = session->fetch({.buckets = all_buckets_, .filter = &everything_}, soon());
  ASSERT_TRUE(page) << page.error().message();
  ASSERT_EQ(page->rows.size(), 1U);
  EXPECT_EQ(page->rows[0].payload.size(), 10'000'002U);
}

TEST_F(MysqlBadInput, IdsThatAreNotUniqueByThemselvesAreRefused) {
  sql("ALTER TABLE outbox ADD KEY ids (id), DROP PRIMARY KEY, ADD PRIMARY KEY (aggregate_id, id)");
  auto found = findings(settings());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(found[0].fatal) << "the server counts them";
  sql("ALTER TABLE outbox MODIFY id BIGINT NOT NULL");
  found = findings(settings());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].fatal);
  EXPECT_THAT(found[0].text, HasSubstr("is not unique by itself"));
  sql("ALTER TABLE outbox ADD UNIQUE KEY only (id)");
  EXPECT_THAT(findings(settings()), ::testing::IsEmpty());
}

TEST_F(MysqlBadInput, ASideTableThatIsNotThereIsNamed) {
  Settings table = settings();
  table.config.side_table = true;
  const auto findings = database(table)->open_admin(soon()).value()->inspect(soon());
  ASSERT_TRUE(findings) << findings.error().message();
  ASSERT_EQ(findings->size(), 1U);
  EXPECT_TRUE(findings->front().fatal);
  EXPECT_EQ(findings->front().code, ErrorCode::queue_missing);
  EXPECT_THAT(findings->front().text, HasSubstr("coordination = \"table\" needs `outbox_sluice`"));
}

}  // namespace
}  // namespace sluice::queue::outbox::mysql
