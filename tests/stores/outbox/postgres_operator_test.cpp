// What operators and the start see of an outbox on a real PostgreSQL: rows, counts, changes, and what is wrong by name.

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "base/timestamp.hpp"
#include "host/stores/outbox/outbox_queues.hpp"
#include "host/stores/outbox/postgres/postgres_database.hpp"
#include "tests/stores/outbox/postgres_rig.hpp"
#include "tests/support/loopback.hpp"

namespace sluice::queue::outbox {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using test::OutboxTable;
using ::testing::HasSubstr;
using ::testing::Not;

class OperatorRig {
 public:
  explicit OperatorRig(OutboxTable& table)
      : database(table.database()),
        oper_(make_outbox_operator({.settings = table.settings()}, *database, clock)),
        oper(*oper_) {}
  Deadline deadline() const { return Deadline::after(clock, seconds(20)); }
  ChangeStatus change(const std::string& id, ChangeAction action, Duration after = {}) {
    return oper.change(std::vector{Change{.id = id, .action = action, .after = after}}, deadline()).at(0).status;
  }

  SystemClock clock;
  std::unique_ptr<Database> database;
  const std::unique_ptr<Operator> oper_;
  Operator& oper;
};

std::string finding(const Settings& settings) {
  const SystemClock clock;
  SeededRandom random;
  const auto database = make_postgres_database(settings, clock, random);
  auto desk = database->open_admin(Deadline::after(clock, seconds(20)));
  if (!desk) {
    return std::string(to_string(desk.error().code())) + ": " + desk.error().message();
  }
  const auto findings = (*desk)->inspect(Deadline::after(clock, seconds(20)));
  if (!findings) {
    return std::string(to_string(findings.error().code())) + ": " + findings.error().message();
  }
  return findings->empty() ? "" : std::string((*findings)[0].fatal ? "fatal: " : "remark: ") + (*findings)[0].text;
}

TEST(PostgresOperator, TellsWhichHostHasTheBucketOfARow) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "b"});
  Settings settings = table.settings();
  settings.application = std::string(Settings::kApplication) + "web-1";
  const SystemClock clock;
  SeededRandom random;
  const auto database = make_postgres_database(settings, clock, random);
  const auto jobs = std::make_shared<TakingJobs>(std::vector{Selection{.job = "relay"}, Selection{.job = "other"}});
  const auto oper = make_outbox_operator({.settings = settings, .jobs = jobs}, *database, clock);
  const Deadline deadline = Deadline::after(clock, seconds(20));
  const auto owner_of = [&] { return (*oper->owner_of("1", deadline)).value_or(PartOwner{}); };
  EXPECT_THAT(owner_of().part, ::testing::StartsWith("bucket "));
  EXPECT_EQ(owner_of().owner, "") << "nobody has it";
  const auto locks = *database->open_locks(deadline);
  ASSERT_TRUE(locks->join({"relay", settings.config.buckets}, deadline));
  std::vector<std::uint32_t> all(settings.config.buckets);
  std::iota(all.begin(), all.end(), 0U);
  ASSERT_TRUE(locks->lock(all, deadline));
  EXPECT_EQ(owner_of().owner, "host web-1 for job relay");
  EXPECT_EQ(oper->owner_of("3", deadline).error().code(), ErrorCode::not_found);
}

TEST(PostgresOperator, IdsThatAreNotUniqueByThemselvesAreRefused) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "b"});
  table.sql("ALTER TABLE @T DROP CONSTRAINT @T_pkey, ADD PRIMARY KEY (aggregate_id, id)");
  EXPECT_THAT(finding(table.settings()), HasSubstr("remark: column \"id\" of table")) << "a sequence makes them";
  table.sql("ALTER TABLE @T ALTER id DROP IDENTITY");
  EXPECT_THAT(finding(table.settings()), HasSubstr("fatal: column \"id\" of table"));
  EXPECT_THAT(finding(table.settings()), HasSubstr("is not unique by itself"));
  OperatorRig rig(table);
  const auto listed = rig.oper.list({}, rig.deadline());
  ASSERT_FALSE(listed) << "so is the start of a job, which looks at the table first";
  EXPECT_THAT(listed.error().message(), HasSubstr("make a unique index on it alone"));
  table.sql("CREATE UNIQUE INDEX ON @T (id) WHERE sent_at IS NULL");
  EXPECT_THAT(finding(table.settings()), HasSubstr("fatal: ")) << "of what was sent it says nothing";
  table.sql("CREATE UNIQUE INDEX ON @T (id)");
  EXPECT_THAT(finding(table.settings()), Not(HasSubstr("unique")));
}

TEST(PostgresOperator, HalvesAreTriesLeftAndTriesUsedUp) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "a", "b", "b"});
  table.sql("UPDATE @T SET retry_count = 10, last_error = 'no such topic' WHERE id = 2");
  table.sql("UPDATE @T SET retry_count = 2, retry_at = now() + interval '1 h' WHERE id = 3");
  table.sql("UPDATE @T SET sent_at = now() WHERE id = 4");
  OperatorRig rig(table);
  const auto pending = rig.oper.list({}, rig.deadline());
  ASSERT_TRUE(pending) << pending.error().message();
  ASSERT_EQ(pending->messages.size(), 2U);
  EXPECT_EQ(pending->messages[1].message.id, "3");
  EXPECT_EQ(pending->messages[1].message.attempt, 2U);
  EXPECT_EQ(pending->messages[1].state(rig.clock.wall_now()), MessageState::delayed);
  const auto dead = rig.oper.list({.half = Half::dlq}, rig.deadline());
  ASSERT_EQ(dead->messages.size(), 1U);
  EXPECT_EQ(dead->messages[0].failure.error, "no such topic");
  EXPECT_EQ(dead->messages[0].message.body, "{\"n\": 2}");
  const auto stats = rig.oper.stats({}, rig.deadline());
  EXPECT_EQ(stats->ready, 1U);
  EXPECT_EQ(stats->delayed, 1U);
  EXPECT_EQ(rig.oper.stats({.half = Half::dlq}, rig.deadline())->total(), 1U);
  EXPECT_EQ(rig.oper.get("4", rig.deadline()).error().code(), ErrorCode::not_found);
  EXPECT_EQ(rig.oper.get("x", rig.deadline()).error().code(), ErrorCode::not_found);
  const auto overview = rig.oper.overview({.half = Half::dlq, .errors = 5}, rig.deadline());
  ASSERT_EQ(overview->errors.size(), 1U);
  EXPECT_EQ(overview->errors[0].error, "no such topic");
}

TEST(PostgresOperator, TimesThatOursDoNotReachAreTheirEnds) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "b", "c"});
  table.sql("UPDATE @T SET retry_at = '9999-12-31' WHERE id = 1");
  table.sql("UPDATE @T SET retry_at = 'infinity' WHERE id = 2");
  table.sql("UPDATE @T SET created_at = '-infinity' WHERE id = 3");
  OperatorRig rig(table);
  const auto pending = rig.oper.list({}, rig.deadline());
  ASSERT_TRUE(pending) << pending.error().message();
  ASSERT_EQ(pending->messages.size(), 3U);
  EXPECT_EQ(pending->messages[0].invisible_until, kEndOfTime);
  EXPECT_EQ(pending->messages[1].invisible_until, kEndOfTime);
  EXPECT_EQ(pending->messages[2].message.sent_at, WallTime());
  const auto stats = rig.oper.stats({}, rig.deadline());
  ASSERT_TRUE(stats) << stats.error().message();
  EXPECT_EQ(stats->delayed, 2U);
}

/// Keeps how many rows were excluded at the last count.
class CountedApart final : public OutboxObserver {
 public:
  void published(const std::string& /*type*/, Duration /*latency*/) override {}
  void failed(const std::string& /*type*/, const std::string& /*reason*/) override {}
  void marked(std::size_t /*rows*/) override {}
  void excluded(std::uint64_t rows) override { rows_ = rows; }
  std::uint64_t rows() const { return rows_; }

 private:
  std::uint64_t rows_ = 0;
};

TEST(PostgresOperator, RowsThatNoJobTakesAreCountedApart) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "b", "c", "d", "e"});
  table.sql("UPDATE @T SET aggregate_type = 'arn:aws:sns:eu-west-1:1:audit' WHERE id = 1");
  table.sql("UPDATE @T SET event = 'touched' WHERE id = 2");
  table.sql("UPDATE @T SET retry_count = 10 WHERE id = 3");
  const SystemClock clock;
  SeededRandom random;
  const auto counted = std::make_shared<CountedApart>();
  OutboxOptions options{.settings = table.settings(), .observer = counted};
  OutboxQueues queues(options, table.database(), clock, random);
  const auto oper = *queues.open_operator("outbox:orders");
  const auto ready = [&] { return oper->stats({}, Deadline::after(clock, seconds(20)))->ready; };
  EXPECT_EQ(ready(), 4U) << "as long as there are no jobs";
  const Selection orders{.job = "orders", .deny_types = {"audit"}, .skip_events = {"touched"}};
  auto source = *queues.open_selected({"outbox:orders"}, orders);
  EXPECT_EQ(ready(), 2U);
  EXPECT_EQ(counted->rows(), 2U);
  EXPECT_EQ(oper->stats({.half = Half::dlq}, Deadline::after(clock, seconds(20)))->ready, 1U);
  const auto desk = *queues.database().open_admin(Deadline::after(clock, seconds(20)));
  const auto counts = desk->count({.details = true, .jobs = queues.jobs()}, Deadline::after(clock, seconds(20)));
  EXPECT_EQ(counts->oldest_id, 4);
  EXPECT_EQ(counts->by_type.at("orders"), 2U);
  auto audit = *queues.open_selected({"outbox:orders"}, {.job = "audit", .types = {"audit"}});
  EXPECT_EQ(ready(), 3U);
  EXPECT_EQ(counted->rows(), 1U);
  audit.reset();
  EXPECT_EQ(ready(), 2U) << "its job has ended";
  audit = *queues.open_selected({"outbox:orders"}, {.job = "all"});
  EXPECT_EQ(ready(), 4U);
  EXPECT_EQ(counted->rows(), 0U);
}

TEST(PostgresOperator, PagesGoOnWhereTheLastOneEnded) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "b", "c"});
  OperatorRig rig(table);
  for (const bool newest : {false, true}) {
    ListRequest request{.limit = 2, .newest_first = newest};
    const auto first = rig.oper.list(request, rig.deadline());
    request.cursor = first->next;
    const auto second = rig.oper.list(request, rig.deadline());
    ASSERT_EQ(second->messages.size(), 1U);
    EXPECT_EQ(second->messages[0].message.id, newest ? "1" : "3");
    EXPECT_EQ(second->next, "");
  }
}

TEST(PostgresOperator, ChangesRowsAndDeletesNone) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "b", "c", "d", "e"});
  table.sql("UPDATE @T SET retry_count = 10 WHERE id = 1");
  OperatorRig rig(table);
  EXPECT_EQ(rig.change("1", ChangeAction::redrive), ChangeStatus::applied);
  EXPECT_EQ(table.count("id = 1 AND retry_count IS NULL"), 1);
  EXPECT_EQ(rig.change("2", ChangeAction::redrive), ChangeStatus::conflict);
  EXPECT_EQ(rig.change("2", ChangeAction::dead_letter), ChangeStatus::applied);
  EXPECT_EQ(table.count("id = 2 AND retry_count = 10"), 1);
  EXPECT_EQ(rig.change("3", ChangeAction::delay, hours(1)), ChangeStatus::applied);
  EXPECT_EQ(table.count("id = 3 AND retry_at > now() + interval '59 min'"), 1);
  EXPECT_EQ(rig.change("4", ChangeAction::remove), ChangeStatus::applied);
  EXPECT_EQ(table.count("id = 4 AND sent_at IS NOT NULL"), 1) << "marked as sent, and kept";
  EXPECT_EQ(rig.change("4", ChangeAction::reset), ChangeStatus::conflict);
  EXPECT_EQ(rig.change("99", ChangeAction::remove), ChangeStatus::not_found);
  EXPECT_EQ(rig.change("3/5", ChangeAction::remove), ChangeStatus::not_found) << "a row of DynamoDB's is called so";
  EXPECT_EQ(rig.oper.get("3/5", rig.deadline()).error().code(), ErrorCode::not_found);
  EXPECT_EQ(table.count("id = 5 AND sent_at IS NULL"), 1);
  EXPECT_EQ(rig.change("5", ChangeAction::move_to_front), ChangeStatus::failed);
  const auto stale =
      rig.oper.change(std::vector{Change{.id = "5", .action = ChangeAction::remove, .version = 7}}, rig.deadline());
  EXPECT_EQ(stale.at(0).status, ChangeStatus::conflict);
  EXPECT_EQ(table.count("true"), 5);
}

TEST(PostgresOperator, AReasonIsCutToWhatItsColumnHolds) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.sql("ALTER TABLE @T ALTER last_error TYPE varchar(6)");
  table.insert({"a"});
  OperatorRig rig(table);
  Change change{.id = "1", .action = ChangeAction::dead_letter};
  change.failure.error = std::string("by\0hand, and long", 17);
  EXPECT_EQ(rig.oper.change(std::vector{change}, rig.deadline()).at(0).status, ChangeStatus::applied);
  EXPECT_EQ(table.count("retry_count = 10 AND last_error = 'by?han'"), 1);
}

TEST(PostgresOperator, PrunesWhatWasSentLongAgoAndNothingElse) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a", "b", "c", "d"});
  table.sql("UPDATE @T SET sent_at = now() - interval '8 days' WHERE id < 3");
  table.sql("UPDATE @T SET sent_at = now() - interval '6 days' WHERE id = 3");
  OperatorRig rig(table);
  auto desk = rig.database->open_admin(rig.deadline());
  EXPECT_EQ(*(*desk)->prune({.sent_before = hours(7 * 24), .dry_run = true}, rig.deadline()), 2U);
  EXPECT_EQ(table.count("true"), 4);
  EXPECT_EQ(*(*desk)->prune({.sent_before = hours(7 * 24), .limit = 1}, rig.deadline()), 1U);
  EXPECT_EQ(*(*desk)->prune({.sent_before = hours(7 * 24)}, rig.deadline()), 1U);
  EXPECT_EQ(table.sql("SELECT id FROM @T ORDER BY id"), (std::vector<std::string>{"3", "4"}));
}

TEST(PostgresInspection, ATableMadeByTheDdlHasNothingToBeSaidOf) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  EXPECT_EQ(finding(table.settings()), "");
}

TEST(PostgresInspection, NamesWhatIsMissingOrWrong) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  const std::string name = "\"" + table.settings().config.table + "\"";
  Settings settings = table.settings();
  settings.config.columns.retry_at = "next_try";
  EXPECT_EQ(finding(settings),
            "fatal: table " + name +
                " has no column \"next_try\"; name it as 'retry_at' in [outbox.NAME.columns], or add it");
  settings = table.settings();
  settings.config.table = "nowhere";
  EXPECT_NE(finding(settings).find("fatal: there is no table \"nowhere\" (as user sluice sees it)"), std::string::npos);
  table.sql("ALTER TABLE @T ALTER COLUMN retry_count TYPE text");
  EXPECT_EQ(finding(table.settings()),
            "fatal: column \"retry_count\" of table " + name + " is of type text, and 'retry_count' must be int");
}

TEST(PostgresInspection, RemarksOnIndexesAndTheTrigger) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  const std::string name = table.settings().config.table;
  table.sql("DROP TRIGGER sluice_outbox_notify ON @T");
  EXPECT_NE(finding(table.settings()).find("no trigger that tells of new rows"), std::string::npos);
  table.sql("DROP INDEX " + name + "_groups");
  EXPECT_NE(finding(table.settings()).find("remark: table \"" + name + "\" has no index that begins with"),
            std::string::npos);
  table.sql("DROP INDEX " + name + "_pending");
  EXPECT_NE(finding(table.settings()).find("has no index on \"id\" WHERE \"sent_at\" IS NULL"), std::string::npos);
}

// A host named the first one, and after that was mended the next.
TEST(PostgresInspection, NamesAllThatIsWrongAtOnce) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.sql("ALTER TABLE @T DROP COLUMN retry_at, ALTER COLUMN retry_count TYPE text");
  OperatorRig rig(table);
  const auto listed = rig.oper.list({.limit = 1}, rig.deadline());
  ASSERT_TRUE(listed.has_error());
  EXPECT_THAT(listed.error().message(), AllOf(HasSubstr("has no column \"retry_at\""), HasSubstr("is of type text")));
}

TEST(PostgresConnect, SaysWhatIsWrongAndNeverThePassword) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  Settings settings = table.settings();
  const auto with = [&](const std::string& url) {
    settings.config.url = url;
    return finding(settings);
  };
  const std::string wrong = with(test::postgres()->url("sluice", "geheim"));
  EXPECT_NE(wrong.find("denied: "), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("password authentication failed for user \"sluice\""), std::string::npos) << wrong;
  EXPECT_EQ(wrong.find("geheim"), std::string::npos) << wrong;
  const std::string nowhere =
      with("postgres://sluice:secret@127.0.0.1:" + std::to_string(test::postgres()->port()) + "/nowhere");
  EXPECT_EQ(nowhere.find("queue_missing: "), 0U) << nowhere;
  const std::string nobody = with("postgres://sluice:geheim@127.0.0.1:1/x");
  EXPECT_EQ(nobody.find("unavailable: "), 0U);
  EXPECT_EQ(nobody.find_first_of("\t\n"), std::string::npos) << nobody;
  const std::string garbled = with("postgres://sluice:geheim@[::1/x");
  EXPECT_EQ(garbled.find("geheim"), std::string::npos) << garbled;
  // '/', '?' and '@' in a password that nobody has written as %2F, %3F and %40.
  const std::string place = "@127.0.0.1:" + std::to_string(test::postgres()->port()) + "/postgres";
  for (const std::string password : {"ge/heim", "ge?heim", "ge@heim", "77/heim", "@/heim", "ge@/heim", "ge/@heim"}) {
    EXPECT_THAT(with("postgres://sluice:" + password + place), HasSubstr("password authentication failed"));
  }
  for (const std::string password :
       {"ge/heim", "ge/77?heim", "77/heim?geheim", "77/77?geheim=heim", "ge%zzheim", "%zz/heim"}) {
    for (const std::string parameters : {"", "?connect_timeout=3", "?nonsense=1"}) {
      const std::string text = with("postgres://nobody.invalid:" + password + place + parameters);
      EXPECT_NE(text, "");
      EXPECT_EQ(text.find("heim"), std::string::npos) << text;
      EXPECT_EQ(text.find("\"ge"), std::string::npos) << text;
    }
  }
  EXPECT_THAT(with("postgres://sluice:secret" + place + "?nonsense=1"), HasSubstr("\"nonsense\""));
  settings.config.username = "nobody-here";
  EXPECT_NE(with(test::postgres()->url()).find("\"nobody-here\""), std::string::npos);
}

TEST(PostgresConnect, GoesToTheNextServerWhereOneDoesNotAnswer) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  Settings settings = table.settings();
  const test::Descriptor silent = test::listen_on_loopback();
  const std::string first = "@127.0.0.1:" + std::to_string(test::local_port(silent)) + ",";
  settings.config.url.replace(settings.config.url.find('@'), 1, first);
  const SystemClock clock;
  SeededRandom random;
  const auto database = make_postgres_database(settings, clock, random);
  const auto desk = database->open_admin(Deadline::after(clock, seconds(6)));
  EXPECT_TRUE(desk.has_value()) << desk.error().message();
}

TEST(PostgresConnect, AServerOfSeveralWithoutAPortHasTheUsualOne) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  Settings settings = table.settings();
  settings.config.url.replace(settings.config.url.find('@'), 1, "@127.0.0.2,");
  const SystemClock clock;
  SeededRandom random;
  const auto database = make_postgres_database(settings, clock, random);
  const auto desk = database->open_admin(Deadline::after(clock, seconds(10)));
  EXPECT_TRUE(desk.has_value()) << desk.error().message();
}

TEST(PostgresConnect, VerifiesTheServersCertificateAndName) {
  SLUICE_NEEDS_POSTGRES();
  const auto secure = test::PostgresServer::start({"-c", "fsync=off"});
  const std::string folder = secure->folder();
  const std::string make = "cd " + folder +
                           " && openssl req -new -x509 -days 2 -nodes -subj /CN=db.internal -addext "
                           "subjectAltName=DNS:db.internal -keyout server.key -out server.crt >/dev/null 2>&1 && "
                           "chmod 600 server.key && chown --reference=data server.key server.crt && cp -p server.crt "
                           "server.key data/ && echo \"ssl = on\" >> data/postgresql.conf";
  ASSERT_EQ(std::system(make.c_str()), 0);
  secure->restart();
  Settings settings{.name = "orders", .config = {.url = secure->url()}};
  settings.config.tls = config::OutboxTls{.ca = folder + "/server.crt", .server_name = "db.internal"};
  std::string good;
  for (int i = 0; i < 200 && good.find("there is no table") == std::string::npos; ++i) {
    good = finding(settings);  // it may still be starting up
  }
  EXPECT_NE(good.find("there is no table"), std::string::npos) << "connected, and verified: " << good;
  settings.config.url =
      "postgres://sluice:secret@nobody.invalid:" + std::to_string(secure->port()) + "/postgres?hostaddr=127.0.0.1";
  EXPECT_NE(finding(settings).find("there is no table"), std::string::npos) << finding(settings);
  settings.config.url = secure->url();
  settings.config.tls->server_name = "other.internal";
  EXPECT_NE(finding(settings).find("does not match host name"), std::string::npos) << finding(settings);
  settings.config.tls.emplace();
  EXPECT_NE(finding(settings).find("denied: "), std::string::npos)
      << "an authority that nobody knows: " << finding(settings);
  settings.config.tls = config::OutboxTls{.verify = false};
  EXPECT_NE(finding(settings).find("there is no table"), std::string::npos) << finding(settings);
  settings.config.url = test::postgres()->url();
  EXPECT_NE(finding(settings).find("server does not support SSL"), std::string::npos) << finding(settings);
}

TEST(PostgresErrors, AreNamedByTheirCode) {
  using postgres::statement_error;
  EXPECT_EQ(statement_error("42P01", "x").code(), ErrorCode::queue_missing);
  EXPECT_EQ(statement_error("42703", "x").code(), ErrorCode::invalid);
  EXPECT_EQ(statement_error("42501", "x").code(), ErrorCode::denied);
  EXPECT_EQ(statement_error("25006", "x").code(), ErrorCode::unavailable);
  EXPECT_EQ(statement_error("40P01", "x").code(), ErrorCode::throttled);
  EXPECT_EQ(statement_error("55P03", "x").code(), ErrorCode::throttled);
  EXPECT_EQ(statement_error("57P01", "x").code(), ErrorCode::unavailable);
  EXPECT_EQ(statement_error("57P05", "x").code(), ErrorCode::unavailable);
  EXPECT_EQ(statement_error("53100", "x").code(), ErrorCode::full);
  EXPECT_EQ(statement_error("P0001", "x").code(), ErrorCode::conflict);
  EXPECT_EQ(statement_error("XX000", "x").code(), ErrorCode::internal);
  EXPECT_EQ(statement_error("", "server closed the connection").code(), ErrorCode::unavailable);
  EXPECT_NE(statement_error("40P01", "deadlock detected").message().find("deadlock detected (SQLSTATE 40P01)"),
            std::string::npos);
}

// As while a shell was idle and the server was started anew.
TEST(PostgresOperator, AChangeOnASessionThatTheServerHasEndedIsMadeOnAnother) {
  SLUICE_NEEDS_POSTGRES();
  OutboxTable table;
  table.insert({"a"});
  OperatorRig rig(table);
  ASSERT_TRUE(rig.oper.stats({}, rig.deadline()));
  table.sql(
      "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE application_name = 'sluice' AND pid <> "
      "pg_backend_pid()");
  const auto changed = rig.oper.change(std::vector{Change{.id = "1", .action = ChangeAction::delay}}, rig.deadline());
  EXPECT_EQ(changed.at(0).status, ChangeStatus::applied) << changed.at(0).error.message();
}

}  // namespace
}  // namespace sluice::queue::outbox
