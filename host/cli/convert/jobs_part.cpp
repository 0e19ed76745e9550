#include <algorithm>

#include "host/cli/convert/conversion.hpp"

namespace sluice::cli::convert {

namespace {

constexpr std::int64_t kConcurrency = 64;  // there it was as many as a poll brought groups
constexpr config::Duration kRetryBackoff = std::chrono::seconds(20);
constexpr config::Duration kLongestBase = std::chrono::hours(24);

/// What both kinds of job take from [outbox].
struct Pace {
  std::optional<std::int64_t> throughput;  ///< its default of 3000 never held anything up
  config::Duration retry_backoff = kRetryBackoff;
};

Pace read_pace(Fields& fields) {
  Pace pace;
  if (const auto rate = fields.number("outbox.throughput", {0, 1'000'000, "must be no greater than 3000"});
      rate && *rate > 0) {
    pace.throughput = *rate;
    fields.remark("outbox.throughput",
                  "it held for each type and began anew at each poll; here it is the job's, over all types");
  }
  if (const auto backoff = fields.duration("outbox.retryBackoff"); backoff && *backoff > config::Duration::zero()) {
    pace.retry_backoff = *backoff;
  }
  return pace;
}

/// Its first wait was twice retryBackoff, as a job's over an outbox is; all else of the formula is the same too.
void write_retries(Fields& fields, const Pace& pace, TomlText& job) {
  if (pace.retry_backoff == kRetryBackoff) {
    return;
  }
  if (pace.retry_backoff > kLongestBase / 2) {
    fields.complain("outbox.retryBackoff", "must be no greater than " + config::format_duration(kLongestBase / 2));
    return;
  }
  job.table("job.retry");
  job.duration("base", pace.retry_backoff * 2);
}

class JobFile {
 public:
  JobFile(const std::string& name, std::string handler, const Pace& pace)
      : path_("jobs.d/" + name + "-" + handler + ".toml"), handler_(std::move(handler)) {
    toml.comment("From the configuration of outbox-worker, by `sluice outbox convert`.");
    toml.table("job");
    toml.string("source", "outbox:" + name);
    toml.string("handler", handler_);
    toml.number("concurrency", kConcurrency);
    if (pace.throughput) {
      toml.string("rate_limit", std::to_string(*pace.throughput) + "/s");
    }
  }

  NewFile take() const { return {path_, toml.text()}; }

  TomlText toml;

 private:
  std::string path_;
  std::string handler_;
};

/// What the job must be told where both publishers share one outbox.
void write_missing_types(TomlText& job, const std::string& where) {
  job.comment(
      "Every row must belong to one job alone. outbox-worker asked both publishers; list the types of this one.");
  job.strings("types",
              {{"${TYPES_OF_" + where + ":?list the aggregate types that go there in this job's file}", true}});
}

constexpr const char* kTypesRemark =
    "both publishers: each job has to name its own aggregate types in [job.outbox], which the YAML does not say";

std::vector<Text> without(std::vector<Text> values, const std::vector<Text>& others) {
  values.erase(std::remove_if(values.begin(), values.end(),
                              [&others](const Text& value) {
                                return std::any_of(others.begin(), others.end(),
                                                   [&value](const Text& other) { return other.text == value.text; });
                              }),
               values.end());
  return values;
}

struct Lists {
  std::vector<Text> allowed;
  std::vector<Text> denied;
  std::vector<Text> skipped;
  std::vector<Text> ignored;
};

/// They stood at SNS and held for every row.
Lists read_lists(Fields& fields) {
  const std::string path = "publisher.aws.sns.resources.";
  Lists lists{fields.list(path + "whitelist"), fields.list(path + "blacklist"), fields.list(path + "skipEvents"),
              fields.list(path + "ignoreFetchErrorResources")};
  lists.allowed = without(std::move(lists.allowed), lists.denied);
  return lists;
}

void write_filter(const Lists& lists, TomlText& job, bool both, const char* where) {
  if (lists.allowed.empty() && lists.denied.empty() && lists.skipped.empty() && !both) {
    return;
  }
  job.table("job.outbox");
  if (!lists.allowed.empty()) {
    job.strings("types", lists.allowed);
  } else if (both) {
    write_missing_types(job, where);
  }
  if (!lists.denied.empty()) {
    job.strings("deny_types", lists.denied);
  }
  if (!lists.skipped.empty()) {
    job.strings("skip_events", lists.skipped);
  }
}

void write_refetch(Fields& fields, TomlText& job) {
  const auto enabled = fields.flag("publisher.refetchTimer.enabled");
  const auto interval = fields.duration("publisher.refetchTimer.interval");
  if (enabled && !*enabled) {
    fields.remark("publisher.refetchTimer.enabled",
                  "outbox-worker takes false for its default, true; here topics are listed once a year");
    job.duration("refetch_interval", std::chrono::hours(24 * 365));
  } else if (interval && *interval > config::Duration::zero()) {
    job.duration("refetch_interval", *interval);
  }
}

void write_credentials(Fields& fields, TomlText& job) {
  const auto access = fields.text("publisher.aws.accessKey");
  const auto secret = fields.text("publisher.aws.secretKey");
  if (access && secret) {
    job.string("access_key_id", access->text);
    job.string("secret_access_key", secret->text);
  } else if (access || secret) {
    fields.remark(
        access ? "publisher.aws.accessKey" : "publisher.aws.secretKey",
        "left out: without the other key outbox-worker asked AWS's chain of credentials, and so does the plugin");
  }
}

NewFile sns_job(Fields& fields, const std::string& name, const Pace& pace, bool both) {
  JobFile job(name, "sns", pace);
  const Lists lists = read_lists(fields);
  write_filter(lists, job.toml, both, "SNS");
  write_retries(fields, pace, job.toml);
  job.toml.table("job.options");
  const auto region = fields.text("publisher.aws.region");
  job.toml.string("region", region ? region->text : "ap-northeast-1");
  copy(fields, "publisher.aws.sns.endpoint", job.toml, "endpoint");
  write_credentials(fields, job.toml);
  write_refetch(fields, job.toml);
  if (!lists.ignored.empty()) {
    job.toml.strings("ignore_unreadable_topics", lists.ignored);
    fields.remark(
        "publisher.aws.sns.resources.ignoreFetchErrorResources",
        "topics whose attributes cannot be read are published to; outbox-worker passed over them without a warning");
  }
  return job.take();
}

/// The first of a list of files, with a remark on the others.
void copy_first(Fields& fields, const std::string& path, TomlText& job, std::string_view key,
                const std::string& others) {
  const auto files = fields.list(path);
  if (!files.empty()) {
    job.string(key, files.front().text);
  }
  if (files.size() > 1) {
    fields.remark(path, "the first file alone is written: " + others);
  }
}

void write_nats_tls(Fields& fields, TomlText& job) {
  if (!fields.has("publisher.nats.tls")) {
    return;
  }
  job.flag("tls", true);
  copy(fields, "publisher.nats.tls.serverName", job, "server_name");
  copy_first(fields, "publisher.nats.tls.rootCAs", job, "ca_file", "put the others' certificates into it");
  copy(fields, "publisher.nats.tls.clientCert", job, "certificate_file");
  copy(fields, "publisher.nats.tls.clientKey", job, "key_file");
}

void write_nats_user(Fields& fields, TomlText& job) {
  if (fields.has("publisher.nats.userInfo")) {
    copy(fields, "publisher.nats.userInfo.user", job, "username", true);
    copy(fields, "publisher.nats.userInfo.password", job, "password", true);
  }
  if (fields.has("publisher.nats.userCredentials")) {
    copy(fields, "publisher.nats.userCredentials.userOrChainedFile", job, "credentials_file", true);
    copy_first(fields, "publisher.nats.userCredentials.seedFiles", job, "seed_file", "the plugin takes one");
  }
  copy(fields, "publisher.nats.token", job, "token");
}

/// One address, or several with commas between them.
void write_servers(Fields& fields, TomlText& job) {
  const auto servers = fields.text("publisher.nats.server", true);
  if (!servers) {
    return;
  }
  std::vector<Text> list;
  std::string_view rest = servers->text;
  while (!rest.empty()) {
    // A comma in a variable's default separates nothing.
    const std::size_t comma = servers->has_variables ? rest.size() : std::min(rest.find(','), rest.size());
    list.push_back({std::string(rest.substr(0, comma)), servers->has_variables});
    rest.remove_prefix(std::min(rest.size(), comma + 1));
  }
  job.strings("servers", list);
}

NewFile nats_job(Fields& fields, const std::string& name, const Pace& pace, bool both) {
  JobFile job(name, "nats", pace);
  if (both) {
    job.toml.table("job.outbox");
    write_missing_types(job.toml, "NATS");
  }
  write_retries(fields, pace, job.toml);
  job.toml.table("job.options");
  write_servers(fields, job.toml);
  copy(fields, "publisher.nats.clientName", job.toml, "name");
  copy(fields, "publisher.nats.domain", job.toml, "domain");
  for (const auto& [field, key] : {std::pair("reconnectWait", "reconnect_wait"),
                                   {"reconnectJitter", "reconnect_jitter"},
                                   {"reconnectJitterTLS", "reconnect_jitter_tls"},
                                   {"timeout", "connect_timeout"}}) {
    if (const auto duration = fields.duration(std::string("publisher.nats.") + field)) {
      job.toml.duration(key, *duration);
    }
  }
  fields.leave_out(
      "publisher.nats.maxReconnects",
      "the plugin reconnects for as long as it runs; after the last one outbox-worker published nothing any more");
  write_nats_tls(fields, job.toml);
  write_nats_user(fields, job.toml);
  fields.remark(
      "publisher.nats",
      "a message's id is the row's, so that two events of one payload are both stored; message_id = \"payload\" in "
      "[job.options] is what outbox-worker did");
  return job.take();
}

}  // namespace

std::vector<NewFile> write_jobs(Fields& fields, const std::string& name) {
  std::vector<NewFile> files;
  if (!fields.has("publisher")) {
    fields.complain("publisher", "is required");
    return files;
  }
  const bool sns = fields.has("publisher.aws");
  const bool nats = fields.has("publisher.nats");
  if (!sns && !nats) {
    fields.complain("publisher", "set the Publisher: aws or nats");
    return files;
  }
  const Pace pace = read_pace(fields);
  if (sns) {
    files.push_back(sns_job(fields, name, pace, nats));
  }
  if (nats) {
    files.push_back(nats_job(fields, name, pace, sns));
  }
  if (sns && nats) {
    fields.remark("publisher", kTypesRemark);
  }
  if (!sns) {
    for (const char* field : {"publisher.refetchTimer.enabled", "publisher.refetchTimer.interval"}) {
      fields.leave_out(field, "there is nothing to discover at NATS");
    }
  }
  return files;
}

}  // namespace sluice::cli::convert
