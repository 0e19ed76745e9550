#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/reader.hpp"
#include "tests/config/support.hpp"

namespace sluice::config {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

JobConfig job_of(const std::string& text, const std::string& file = "/etc/sluice/jobs.d/relay.toml") {
  auto parsed = parse_job_config(text, file, [](const std::string&) { return std::nullopt; });
  return std::move(*parsed);
}

constexpr const char* kHost = R"(
[outbox.orders]
kind = "postgres"
url = "postgres://db/shop"
)";

TEST(OutboxConfig, HasTheOriginalsDefaults) {
  const HostConfig host = host_of(kHost);
  const OutboxConfig& outbox = host.outboxes.at("orders");
  EXPECT_EQ(outbox.table, "outbox");
  EXPECT_EQ(outbox.schema, "");
  EXPECT_EQ(outbox.poll_interval, seconds(5));
  EXPECT_EQ(outbox.fetch_limit, 1000U);
  EXPECT_EQ(outbox.retry_limit, 10U);
  EXPECT_EQ(outbox.lease, seconds(15));
  EXPECT_EQ(outbox.buckets, 64U);
  EXPECT_FALSE(outbox.compat);
  EXPECT_EQ(outbox.columns, OutboxColumns());
  EXPECT_EQ(outbox.columns.retry_count, "retry_count");
  EXPECT_EQ(host.outbox("outbox:orders"), &outbox);
  EXPECT_EQ(host.outbox("outbox:bills"), nullptr);
  EXPECT_EQ(host.outbox("orders"), nullptr);
}

TEST(OutboxConfig, ReadsEveryKeyAndResolvesPaths) {
  const HostConfig host = host_of(R"(
[outbox.orders]
kind = "mysql"
url = "shop:secret@tcp(db:3306)/shop?parseTime=true"
username = "relay"
password = "p"
schema = "app"
table = "events"
producer = "shop"
poll_interval = "1s"
fetch_limit = 10000
lease = "30s"
buckets = 16
retry_limit = 3
compat = "outbox-worker"
coordination = "table"
attributes = ["traceparent"]
[outbox.orders.columns]
aggregate_id = "key"
last_error = "why"
failed_at = ""
order_by = "position"
[outbox.orders.tls]
ca = "ca.pem"
server_name = "db.internal"
certificate = "c.pem"
key = "/k.pem"
[outbox.orders.ssh]
host = "bastion"
user = "relay"
private_key = "id_ed25519"
check_host_key = false
)");
  const OutboxConfig& outbox = host.outboxes.at("orders");
  EXPECT_EQ(outbox.kind, OutboxKind::mysql);
  EXPECT_EQ(outbox.username, "relay");
  EXPECT_TRUE(outbox.compat);
  EXPECT_TRUE(outbox.side_table);
  EXPECT_EQ(outbox.columns.aggregate_id, "key");
  EXPECT_EQ(outbox.columns.last_error, "why");
  EXPECT_EQ(outbox.columns.failed_at, "");
  EXPECT_EQ(outbox.columns.created_at, "created_at");
  EXPECT_EQ(outbox.columns.order_by, "position");
  EXPECT_EQ(outbox.tls->ca, "/etc/sluice/ca.pem");
  EXPECT_EQ(outbox.tls->key, "/k.pem");
  EXPECT_TRUE(outbox.tls->verify);
  EXPECT_EQ(outbox.ssh->private_key, "/etc/sluice/id_ed25519");
  EXPECT_EQ(outbox.ssh->port, 22U);
  EXPECT_FALSE(outbox.ssh->check_host_key);
  EXPECT_EQ(outbox.ssh->host_key_algorithms, std::vector<std::string>{"ssh-ed25519"});
}

TEST(OutboxConfig, AJobOfAnOutboxRetriesAsTheOriginalUnlessItSaysOtherwise) {
  const JobConfig job = job_of("[job]\nsource = \"outbox:orders\"\nhandler = \"log\"\n");
  EXPECT_EQ(job.queue, "outbox:orders");
  EXPECT_EQ(job.source, Source::standard);
  EXPECT_EQ(job.order, Order::group);
  EXPECT_EQ(job.retry.backoff, Backoff::exponential);
  EXPECT_EQ(job.retry.base, seconds(40)) << "20 s * 2^1, since retry_count is raised first";
  EXPECT_EQ(job.retry.jitter, Jitter::none);
  EXPECT_GT(job.retry.max, hours(24 * 300));
  const JobConfig own = job_of(
      "[job]\nsource = \"outbox:orders\"\nhandler = \"log\"\n[job.retry]\nmax_attempts = 3\nbase = \"1s\"\nmax = "
      "\"1m\"\njitter = \"full\"\n[job.outbox]\ntypes = [\"a\"]\nskip_events = [\"noise\"]\n");
  EXPECT_EQ(own.retry.max_attempts, 3U);
  EXPECT_EQ(own.retry.max, seconds(60));
  EXPECT_EQ(own.outbox.types, std::vector<std::string>{"a"});
  EXPECT_FALSE(own.same_job(job));
}

TEST(OutboxConfig, TheLimitOfTriesIsTheOutboxsUnlessTheJobHasALowerOne) {
  HostConfig host = host_of(kHost);
  host.outboxes["orders"].retry_limit = 7;
  const std::string text = "[job]\nsource = \"outbox:orders\"\nhandler = \"log\"\n";
  std::vector<JobConfig> jobs{job_of(text)};
  EXPECT_TRUE(join_outboxes(jobs, host).empty());
  EXPECT_EQ(jobs[0].retry.max_attempts, 7U);
  jobs[0] = job_of(text + "[job.retry]\nmax_attempts = 8\n");
  const auto errors = join_outboxes(jobs, host);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_NE(errors[0].message.find("a dead letter after 7 tries"), std::string::npos) << errors[0].message;
  EXPECT_TRUE(errors[0].text().starts_with("/etc/sluice/jobs.d/relay.toml:5:16: ")) << errors[0].text();
}

TEST(OutboxConfig, AScheduleBesideItsJobNamesTheQueueItSendsTo) {
  const std::string text = "[job]\nsource = \"outbox:orders\"\nhandler = \"log\"\n[schedule.nightly]\nevery = \"1h\"\n";
  EXPECT_EQ(errors_text(parse_job_config(text, "jobs.d/relay.toml", environment_of({}))),
            "jobs.d/relay.toml:4:11: [schedule.nightly] has no 'queue'; name one, for the job's source is an outbox, "
            "which its application alone writes\n");
  EXPECT_EQ(job_of(text + "queue = \"reports\"\n").schedules.front().queue, "reports");
}

TEST(OutboxConfig, AnUnknownOutboxIsNamedWithTheNearest) {
  std::vector<JobConfig> jobs{job_of("[job]\nsource = \"outbox:order\"\nhandler = \"log\"\n")};
  const auto errors = join_outboxes(jobs, host_of(kHost));
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_NE(errors[0].message.find("did you mean \"outbox:orders\"?"), std::string::npos) << errors[0].message;
}

TEST(OutboxConfig, TwoJobsMustNotTakeTheSameRows) {
  const auto with = [](const std::string& name, const std::string& lists) {
    return job_of("[job]\nname = \"" + name + "\"\nsource = \"outbox:orders\"\nhandler = \"log\"\n[job.outbox]\n" +
                  lists);
  };
  const HostConfig host = host_of(kHost);
  const auto clash = [&](const std::string& one, const std::string& other) {
    std::vector<JobConfig> jobs{with("one", one), with("two", other)};
    return !join_outboxes(jobs, host).empty();
  };
  EXPECT_TRUE(clash("", "types = [\"a\"]\n"));
  EXPECT_TRUE(clash("types = [\"a\", \"b\"]\n", "types = [\"b\"]\n"));
  EXPECT_FALSE(clash("types = [\"a\"]\n", "types = [\"b\"]\n"));
  EXPECT_FALSE(clash("types = [\"a\"]\n", "deny_types = [\"a\", \"b\"]\n"));
  EXPECT_TRUE(clash("types = [\"a\", \"c\"]\n", "deny_types = [\"a\"]\n"));
  EXPECT_FALSE(clash("events = [\"x\"]\n", "skip_events = [\"x\"]\n"));
}

TEST(OutboxConfig, AChangeOfAnOutboxTakesARestart) {
  const HostConfig before = host_of(kHost);
  std::string text = kHost;
  EXPECT_TRUE(changed_keys(before, host_of(text)).empty());
  text.replace(text.find("postgres://"), 11, "postgres://another-");
  EXPECT_EQ(changed_keys(before, host_of(text)), std::vector<std::string>{"outbox.orders.url"});
}

}  // namespace
}  // namespace sluice::config
