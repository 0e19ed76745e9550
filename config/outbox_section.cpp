#include <algorithm>
#include <string_view>
#include <utility>

#include "base/ranges.hpp"
#include "config/reader.hpp"
#include "config/syntax.hpp"

namespace sluice::config {

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::uint32_t kMaxFetchLimit = 10'000;
constexpr std::uint32_t kMaxBuckets = 4096;
constexpr std::uint32_t kMaxRetryLimit = 1000;
constexpr std::size_t kMaxIdentifier = 64;     // MySQL's; PostgreSQL's is 63, which it cuts names to itself
constexpr std::size_t kMaxWithSideTable = 56;  // behind which "_sluice" stands, in PostgreSQL too

const char* identifier_complaint(const std::string& text) {
  const bool good = !text.empty() && text.size() <= kMaxIdentifier && !has_control(text);
  return good ? nullptr : "an identifier of the database, of 1 to 64 bytes";
}

const char* optional_identifier_complaint(const std::string& text) {
  return text.empty() ? nullptr : identifier_complaint(text);
}

const char* line_complaint(const std::string& text) {
  return !text.empty() && !has_control(text) ? nullptr : "a text of one line";
}

const char* server_complaint(const std::string& text) {
  const bool good = !text.empty() && !has_control(text) && text.find_first_of(" /@") == std::string::npos;
  return good ? nullptr : "the name or address of a machine";
}

bool is_url_of(OutboxKind kind, std::string_view url) {
  if (kind == OutboxKind::postgres) {
    return url.starts_with("postgres://") || url.starts_with("postgresql://");
  }
  const std::size_t at = url.rfind('@');
  const std::string_view rest = at == std::string_view::npos ? url : url.substr(at + 1);
  return url.starts_with("mysql://") || rest.starts_with("tcp(") || rest.starts_with("unix(");
}

void read_url(Section& section, OutboxConfig& outbox) {
  const bool postgres = outbox.kind == OutboxKind::postgres;
  const std::string shape =
      postgres ? "\"postgres://USER:PASSWORD@HOST:5432/DATABASE\"" : "\"mysql://USER:PASSWORD@HOST:3306/DATABASE\"";
  section.require("url", "say where the database is, as in url = " + shape);
  section.read_secret("url", outbox.url, any_complaint);
  if (section.text("url") != nullptr && !is_url_of(outbox.kind, outbox.url)) {
    section.error_at_value("url",
                           "must have the form " + shape + " (the value is not shown, for it may hold a password)");
  }
}

void read_columns(Section columns, OutboxColumns& names) {
  columns.read("id", names.id, identifier_complaint);
  columns.read("order_by", names.order_by, identifier_complaint);
  columns.read("aggregate_type", names.aggregate_type, identifier_complaint);
  columns.read("aggregate_id", names.aggregate_id, identifier_complaint);
  columns.read("event", names.event, identifier_complaint);
  columns.read("payload", names.payload, identifier_complaint);
  columns.read("retry_at", names.retry_at, identifier_complaint);
  columns.read("retry_count", names.retry_count, identifier_complaint);
  columns.read("sent_at", names.sent_at, identifier_complaint);
  columns.read("created_at", names.created_at, optional_identifier_complaint);
  columns.read("last_error", names.last_error, optional_identifier_complaint);
  columns.read("failed_at", names.failed_at, optional_identifier_complaint);
}

void read_tls(Section section, OutboxConfig& outbox) {
  if (!section.present()) {
    return;
  }
  OutboxTls tls;
  section.read("verify", tls.verify);
  section.read_path("ca", tls.ca);
  section.read("server_name", tls.server_name, server_complaint);
  section.read_path("certificate", tls.certificate);
  section.read_path("key", tls.key);
  if (tls.certificate.empty() != tls.key.empty()) {
    section.error_here(" has one of 'certificate' and 'key'; give both, or neither");
  }
  outbox.tls = std::move(tls);
}

void read_ssh(Section section, OutboxConfig& outbox) {
  if (!section.present()) {
    return;
  }
  OutboxSsh ssh;
  section.require("host", "name the SSH server", ssh.host, server_complaint);
  section.read("port", ssh.port, 1, 65535);
  section.read("user", ssh.user, line_complaint);
  section.require("private_key", "give the file of the key");
  section.read_path("private_key", ssh.private_key);
  section.read_path("known_hosts", ssh.known_hosts);
  section.read("host_key_algorithms", ssh.host_key_algorithms, line_complaint);
  section.read("check_host_key", ssh.check_host_key);
  if (outbox.tls && outbox.kind == OutboxKind::postgres) {
    section.error_here(
        " cannot stand beside its 'tls': libpq encrypts nothing on the private socket of "
        "the tunnel, which SSH encrypts; take one of them away");
  }
  outbox.ssh = std::move(ssh);
}

void read_sql(Section& section, OutboxConfig& outbox) {
  section.refuse({"region", "endpoint"}, "goes with kind = \"dynamodb\" only; leave it out");
  read_url(section, outbox);
  section.read("username", outbox.username, line_complaint);
  section.read_secret("password", outbox.password, any_complaint);
  section.read("schema", outbox.schema, identifier_complaint);
  outbox.side_table = section.choose("coordination", {"locks", "table"}) == 1;
  if (outbox.side_table && outbox.table.size() > kMaxWithSideTable) {
    section.error_at_value("table", "is longer than " + std::to_string(kMaxWithSideTable) +
                                        " bytes, and coordination = \"table\" adds '_sluice' to it; use \"locks\"");
  }
  read_tls(section.section("tls"), outbox);
  read_ssh(section.section("ssh"), outbox);
}

void read_dynamodb(Section& section, OutboxConfig& outbox) {
  section.refuse({"url", "username", "password", "schema", "coordination", "tls", "ssh", "compat"},
                 "goes with kind = \"postgres\" or \"mysql\" only; leave it out");
  if (!outbox.columns.order_by.empty()) {
    section.error_at_value("columns", "names 'order_by', which goes with kind = \"postgres\" or \"mysql\" only");
  }
  section.read("region", outbox.region, region_complaint);
  section.read("endpoint", outbox.endpoint, endpoint_complaint);
}

void read_rows(Section& section, OutboxConfig& outbox) {
  section.read("table", outbox.table, identifier_complaint);
  section.read("producer", outbox.producer, line_complaint);
  section.read("poll_interval", outbox.poll_interval, {milliseconds(10), hours(1)});
  section.read("fetch_limit", outbox.fetch_limit, 1, kMaxFetchLimit);
  section.read("lease", outbox.lease, {seconds(2), minutes(10)});
  section.read("buckets", outbox.buckets, 1, kMaxBuckets);
  section.read("retry_limit", outbox.retry_limit, 1, kMaxRetryLimit);
  section.read("lag_limit", outbox.lag_limit, {seconds(1), hours(720)});
  outbox.compat = section.choose("compat", {"outbox-worker"}) == 0;
  section.read("attributes", outbox.attributes, identifier_complaint);
  for (const char* taken : {"event", "aggregate_type", "aggregate_id", "producer", "tombstone"}) {
    if (contains(outbox.attributes, taken)) {
      section.error_at_value("attributes", std::string("names \"") + taken + "\", which every message has anyway");
    }
  }
  read_columns(section.section("columns"), outbox.columns);
}

void read_outbox(Section section, const Member& member, HostConfig& config) {
  section.check_name(member, "an outbox's");
  OutboxConfig outbox;
  read_rows(section, outbox);
  if (section.require("kind", "give it as \"postgres\", \"mysql\" or \"dynamodb\"") == nullptr ||
      !section.read("kind", outbox.kind)) {
    for (const char* key :
         {"url", "username", "password", "schema", "coordination", "tls", "ssh", "region", "endpoint"}) {
      section.find(key);  // which of them it may have is not known
    }
  } else if (outbox.kind == OutboxKind::dynamodb) {
    read_dynamodb(section, outbox);
  } else {
    read_sql(section, outbox);
  }
  config.outboxes.emplace(member.key, std::move(outbox));
}

const char* filter_complaint(const std::string& text) { return text.empty() ? "a text that is not empty" : nullptr; }

bool overlap(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  return std::any_of(one.begin(), one.end(), [&other](const std::string& text) { return contains(other, text); });
}

bool covers(const std::vector<std::string>& denied, const std::vector<std::string>& wanted) {
  return !wanted.empty() && std::all_of(wanted.begin(), wanted.end(),
                                        [&denied](const std::string& text) { return contains(denied, text); });
}

/// No row is wanted by both, as far as their lists show.
bool disjoint(const OutboxFilter& one, const OutboxFilter& other) {
  const bool by_type = !one.types.empty() && !other.types.empty() && !overlap(one.types, other.types);
  const bool by_event = !one.events.empty() && !other.events.empty() && !overlap(one.events, other.events);
  return by_type || by_event || covers(one.deny_types, other.types) || covers(other.deny_types, one.types) ||
         covers(one.skip_events, other.events) || covers(other.skip_events, one.events);
}

std::string unknown_outbox(const std::string& name, const HostConfig& host) {
  const auto meant = nearest(name, names_of(host.outboxes));
  return "source = \"outbox:" + abridged(name) + "\" names no outbox: " + host.file + " has no [outbox." +
         abridged(name) + "]" + (meant ? "; did you mean \"outbox:" + *meant + "\"?" : "; add it there");
}

void join_outbox(JobConfig& job, const HostConfig& host, std::vector<ConfigError>& errors) {
  const OutboxConfig* outbox = host.outbox(job.queue);
  if (outbox == nullptr) {
    errors.push_back({job.queue_place, unknown_outbox(outbox_named(job.queue).value_or(""), host)});
    return;
  }
  if (job.retry.max_attempts == 0) {
    job.retry.max_attempts = outbox->retry_limit;
  } else if (job.retry.max_attempts > outbox->retry_limit) {
    errors.push_back({job.retry.place, "'max_attempts' in [job.retry] is " + std::to_string(job.retry.max_attempts) +
                                           ", and a row of " + job.queue + " is a dead letter after " +
                                           std::to_string(outbox->retry_limit) + " tries; raise 'retry_limit' in " +
                                           "[outbox." + outbox_named(job.queue).value_or("") + "] of " + host.file +
                                           ", or lower it"});
  }
}

}  // namespace

void read_outboxes(Section outboxes, HostConfig& config) {
  for (const Member& member : outboxes.members()) {
    read_outbox(outboxes.section(member.key), member, config);
  }
}

bool read_outbox_source(Section job, JobConfig& config) {
  const std::string* text = job.text("source");
  const auto name = text == nullptr ? std::nullopt : outbox_named(*text);
  if (!name) {
    return false;
  }
  if (const char* expected = name_complaint(*name)) {
    job.error_at_value("source",
                       std::string("must be \"outbox:\" and ") + expected + "; it is \"" + abridged(*text) + "\"");
  }
  job.refuse({"queue"}, "cannot stand beside source = \"outbox:NAME\", which names it; leave it out");
  job.refuse({"queues"}, "cannot stand beside source = \"outbox:NAME\"; an outbox has a job of its own");
  config.queue = *text;
  config.queue_place = job.find("source")->value.place;
  config.order = Order::group;
  // The original's formula, with retry_count raised already: 20 s * 2^1 first, without a cap.
  config.retry = {.max_attempts = 0,
                  .backoff = Backoff::exponential,
                  .base = seconds(40),
                  .max = hours(24 * 366),
                  .jitter = Jitter::none};
  return true;
}

void read_outbox_filter(Section job, JobConfig& config) {
  Section filter = job.section("outbox");
  filter.read("types", config.outbox.types, filter_complaint);
  filter.read("deny_types", config.outbox.deny_types, filter_complaint);
  filter.read("events", config.outbox.events, filter_complaint);
  filter.read("skip_events", config.outbox.skip_events, filter_complaint);
  if (!outbox_named(config.queue)) {
    if (filter.present()) {
      filter.error_here(
          " needs rows to choose from: set source = \"outbox:NAME\" in [job], or "
          "take it away");
    }
    return;
  }
  if (config.order != Order::group) {
    job.refuse({"order"},
               "cannot be changed for an outbox, whose rows go out in order within each "
               "aggregate_id; leave it out");
  }
}

std::vector<ConfigError> join_outboxes(std::vector<JobConfig>& jobs, const HostConfig& host) {
  std::vector<ConfigError> errors;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!outbox_named(jobs[i].queue)) {
      continue;
    }
    join_outbox(jobs[i], host, errors);
    for (std::size_t j = 0; j < i; ++j) {
      if (jobs[j].queue == jobs[i].queue && !disjoint(jobs[j].outbox, jobs[i].outbox)) {
        errors.push_back({jobs[i].queue_place, "jobs \"" + jobs[j].name + "\" and \"" + jobs[i].name +
                                                   "\" may both take a row of " + jobs[i].queue +
                                                   ", and each would publish it; give them [job.outbox] lists that "
                                                   "have nothing in common, such as types and deny_types"});
      }
    }
  }
  return errors;
}

}  // namespace sluice::config
