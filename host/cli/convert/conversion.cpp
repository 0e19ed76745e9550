#include "host/cli/convert/conversion.hpp"

#include <algorithm>
#include <array>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <charconv>

#include "base/ranges.hpp"
#include "base/text/json_string.hpp"
#include "base/text/lower_case.hpp"

namespace sluice::cli::convert {

namespace {

/// As JSON has it, but for DEL.
std::string in_quotes(std::string_view value) { return boost::replace_all_copy(json_quoted(value), "\x7f", "\\u007f"); }

/// Writes a TOML file line by line.
class TomlText {
 public:
  void comment(std::string_view line) { text_ += "# " + std::string(line) + "\n"; }
  /// An empty line and "[name]".
  void table(std::string_view name) { text_ += (text_.empty() ? "[" : "\n[") + std::string(name) + "]\n"; }
  void string(std::string_view key, std::string_view value) { line(key, in_quotes(value)); }
  void number(std::string_view key, std::int64_t value) { line(key, std::to_string(value)); }
  void fraction(std::string_view key, double value) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed).ptr;
    const std::string text(digits.data(), end);
    line(key, text.find('.') == std::string::npos ? text + ".0" : text);
  }
  void flag(std::string_view key, bool value) { line(key, value ? "true" : "false"); }
  void duration(std::string_view key, config::Duration value) { line(key, in_quotes(config::format_duration(value))); }
  void strings(std::string_view key, const std::vector<Text>& values) {
    std::string text;
    for (const Text& value : values) {
      text += (text.empty() ? "" : ", ") + in_quotes(value.text);
    }
    line(key, "[" + text + "]");
  }
  const std::string& text() const { return text_; }

 private:
  void line(std::string_view key, std::string_view value) {
    text_.append(key).append(" = ").append(value).append("\n");
  }

  std::string text_;
};

/// Copies a string where it stands; `needed`: blank is a complaint.
void copy(Fields& fields, const std::string& path, TomlText& toml, std::string_view key, bool needed = false) {
  if (const auto text = fields.text(path, needed)) {
    toml.string(key, text->text);
  }
}

/// debug, info, warn or error; nothing when absent or, with a complaint, another word.
std::optional<std::string> level(Fields& fields, const std::string& path) {
  auto word = fields.word(path);
  if (!word) {
    return std::nullopt;
  }
  *word = lower_case(*word);
  const auto known = {"debug", "info", "warn", "error"};
  if (!contains(known, *word)) {
    fields.complain(path, "must be a valid value");
    return std::nullopt;
  }
  return word;
}

/// One word, or a list of them.
std::vector<std::string> handlers(Fields& fields) {
  std::vector<std::string> words;
  if (fields.meaning("logging.handler").empty()) {
    words = mapped(fields.list("logging.handler"), &Text::text);
  } else if (auto one = fields.word("logging.handler")) {
    words.push_back(std::move(*one));
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto known = {"text", "json", "rollbar", "sentry", "datadog"};
    if (!contains(known, words[i])) {
      fields.complain("logging.handlers." + std::to_string(i), "must be a valid value");
    }
  }
  return words;
}

/// Who it is to the services: outbox-worker took both from [tracking], whether that was enabled or not.
struct Identity {
  std::string service = "outbox-worker";
  std::string environment = "prod";
};

Identity read_identity(Fields& fields) {
  Identity identity;
  if (const auto service = fields.text("tracking.serviceName")) {
    identity.service = service->text;
  }
  if (const auto environment = fields.text("tracking.environment")) {
    identity.environment = environment->text;
  }
  return identity;
}

/// The handlers as a host has them, whose standard error has one format.
std::vector<Text> one_format(Fields& fields, const std::vector<std::string>& words) {
  const char* format = contains(words, "datadog") ? "datadog"
                       : contains(words, "json")  ? "json"
                       : contains(words, "text")  ? "text"
                                                  : nullptr;
  std::vector<Text> kept;
  for (const std::string& word : words) {
    const bool is_format = word == "text" || word == "json" || word == "datadog";
    if (!is_format || word == format) {
      kept.push_back({word, false});
    } else {
      fields.remark("logging.handler", word + " left out: standard error has one format, which is " + format);
    }
  }
  return kept;
}

/// What both services have: by which field lines may be sent there, from which level on, and as whose.
void write_sender(Fields& fields, const std::string& service, const std::string& field, const char* key,
                  const Identity& identity, TomlText& host) {
  const std::string path = "logging." + service;
  if (!fields.has(path)) {
    fields.complain(path, "is required");
    return;
  }
  host.table("log." + service);
  copy(fields, path + "." + field, host, key, true);
  host.string("level", level(fields, path + ".level").value_or("warn"));
  host.string("environment", identity.environment);
}

void write_sentry(Fields& fields, const Identity& identity, TomlText& host) {
  // The program reads dsn, its documentation says DSN.
  write_sender(fields, "sentry", fields.has("logging.sentry.DSN") ? "DSN" : "dsn", "dsn", identity, host);
  if (const auto rate = fields.fraction("logging.sentry.sampleRate")) {
    host.fraction("sample_rate", *rate);
  }
  if (const auto personal = fields.flag("logging.sentry.sendDefaultPII")) {
    host.flag("send_default_pii", *personal);
  }
  if (const auto ignored = fields.list("logging.sentry.ignoreErrors"); !ignored.empty()) {
    host.strings("ignore", ignored);
    fields.remark("logging.sentry.ignoreErrors",
                  "there they were patterns; here lines that contain one of them are not sent");
  }
}

void write_tracking(Fields& fields, const Identity& identity, TomlText& host) {
  if (!fields.flag("tracking.enabled").value_or(false)) {
    fields.leave_out("tracking.agentAddr", "tracking is not enabled");
    return;
  }
  host.table("tracing");
  copy(fields, "tracking.agentAddr", host, "endpoint", true);
  host.string("service", identity.service);
  host.string("environment", identity.environment);
}

void write_observation(Fields& fields, TomlText& host) {
  const Identity identity = read_identity(fields);
  const std::vector<std::string> words = handlers(fields);
  const auto least = level(fields, "logging.level");
  if (least || !words.empty()) {
    host.table("log");
  }
  if (least) {
    host.string("level", *least);
  }
  if (!words.empty()) {
    host.strings("handler", one_format(fields, words));
  }
  if (contains(words, "rollbar")) {
    write_sender(fields, "rollbar", "token", "token", identity, host);
  }
  if (contains(words, "sentry")) {
    write_sentry(fields, identity, host);
  }
  if (contains(words, "datadog")) {
    host.table("log.datadog");
    host.string("service", identity.service);
    host.string("environment", identity.environment);
  }
  for (const char* sender : {"rollbar", "sentry"}) {
    if (!contains(words, sender)) {
      fields.leave_out(std::string("logging.") + sender, "it is none of the handlers");
    }
  }
  write_tracking(fields, identity, host);
}

/// A file; relative ones lay beside whoever started outbox-worker.
void copy_path(Fields& fields, const std::string& path, TomlText& toml, std::string_view key, bool needed = false) {
  const auto text = fields.text(path, needed);
  if (!text) {
    return;
  }
  toml.string(key, text->text);
  if (text->text.front() != '/' && !text->has_variables) {
    fields.remark(path, "relative paths are relative to host.toml here");
  }
}

/// "mysql" or "postgres", by the scheme; empty with a complaint for anything else.
std::string kind_of_database(Fields& fields) {
  const std::string uri = fields.meaning("database.uri");
  for (const auto& [scheme, kind] :
       {std::pair("mysql://", "mysql"), {"postgres://", "postgres"}, {"postgresql://", "postgres"}}) {
    if (uri.rfind(scheme, 0) == 0) {
      return kind;
    }
  }
  if (fields.has("database.uri")) {
    fields.complain("database.uri",
                    uri.empty() ? "must be known to tell MySQL from PostgreSQL: set its variable and convert again"
                                : "must be a valid URL that begins with mysql:// or postgres://");
  }
  return {};
}

void write_url(Fields& fields, TomlText& host) {
  auto uri = fields.text("database.uri", true);
  if (!uri) {
    return;
  }
  // The name of a dialer of outbox-worker, by which alone it used its tunnel.
  const std::string_view dialer = "@mysql+tcp(";
  if (const std::size_t at = uri->text.find(dialer); at != std::string::npos) {
    uri->text.replace(at, dialer.size(), "@tcp(");
  }
  host.string("url", uri->text);
}

/// What only MySQL had there.
void write_tls(Fields& fields, const std::string& name, const std::string& kind, TomlText& host) {
  if (!fields.has("database.tls")) {
    return;
  }
  if (kind == "postgres") {
    for (const char* field : {"database.tls.insecureSkipVerify", "database.tls.serverName", "database.tls.caFile"}) {
      fields.leave_out(field,
                       "outbox-worker passed over it for PostgreSQL; write [outbox." + name + ".tls] to have it");
    }
    return;
  }
  host.table("outbox." + name + ".tls");
  const auto insecure = fields.flag("database.tls.insecureSkipVerify");
  if (insecure.value_or(false)) {
    host.flag("verify", false);
    fields.remark("database.tls.insecureSkipVerify",
                  "the server's certificate is not looked at; `verify = true` mends that");
  }
  copy_path(fields, "database.tls.caFile", host, "ca");
  copy(fields, "database.tls.serverName", host, "server_name");
}

void write_ssh(Fields& fields, const std::string& name, const std::string& kind, TomlText& host) {
  if (!fields.has("database.ssh")) {
    return;
  }
  host.table("outbox." + name + ".ssh");
  copy(fields, "database.ssh.host", host, "host", true);
  copy_path(fields, "database.ssh.privateKey", host, "private_key", true);
  if (const auto port = fields.number("database.ssh.port", {1, 65535, "must be a port"})) {
    host.number("port", *port);
  }
  copy(fields, "database.ssh.username", host, "user");
  copy_path(fields, "database.ssh.knownHosts", host, "known_hosts");
  if (const auto algorithms = fields.list("database.ssh.hostKeyAlgorithms"); !algorithms.empty()) {
    host.strings("host_key_algorithms", algorithms);
  }
  if (kind == "postgres") {
    fields.remark("database.ssh", "outbox-worker had no tunnel for PostgreSQL; here it is used");
  } else if (fields.meaning("database.uri").find("@mysql+tcp(") == std::string::npos) {
    fields.remark("database.ssh", "outbox-worker used it only with @mysql+tcp(host:port) in the uri; here it is used");
  }
}

/// How often rows are polled for.
void copy_interval(Fields& fields, TomlText& toml, std::string_view key) {
  constexpr config::Duration kUsual = std::chrono::seconds(5);
  if (const auto interval = fields.duration_text("outbox.pollingInterval", kUsual)) {
    toml.string(key, interval->text);
  }
}

void write_table(Fields& fields, TomlText& host) {
  copy(fields, "outbox.schema", host, "schema");
  copy(fields, "outbox.tableName", host, "table");
  copy(fields, "outbox.producerName", host, "producer", true);
  copy_interval(fields, host, "poll_interval");
  if (const auto limit = fields.number("outbox.findEventLimit", {0, 10'000, "must be no greater than 10000"});
      limit.value_or(0) > 0) {
    host.number("fetch_limit", *limit);
  }
  if (const auto limit = fields.number("outbox.retryCount", {0, 1000, "must be no greater than 1000"})) {
    if (*limit == 0) {
      fields.remark("outbox.retryCount", "outbox-worker takes 0 for its default of 10; so do the new files");
    } else {
      host.number("retry_limit", *limit);
    }
  }
}

void leave_pool_out(Fields& fields) {
  for (const char* field : {"maxOpenConn", "maxIdleConn", "maxLifeTimeSecond", "maxIdleSecond"}) {
    fields.leave_out(std::string("database.") + field,
                     "a host has a few connections to each outbox, opened again when they end; there is no pool");
  }
}

void write_outbox(Fields& fields, const std::string& name, TomlText& host) {
  host.table("outbox." + name);
  const std::string kind = kind_of_database(fields);
  host.string("kind", kind);
  write_url(fields, host);
  for (const char* field : {"username", "password"}) {
    copy(fields, std::string("database.") + field, host, field, true);
  }
  if (fields.has("outbox")) {
    write_table(fields, host);
  } else {
    fields.complain("outbox", "is required");
  }
  write_tls(fields, name, kind, host);
  write_ssh(fields, name, kind, host);
  leave_pool_out(fields);
  fields.remark("database",
                "while it is away /readyz answers 503, and /healthz 200, for a restart of the host mends no database; "
                "outbox-worker had /healthz alone, which answered 500: point what asked it at /readyz");
}

constexpr std::int64_t kConcurrency = 64;  // there it was as many as a poll brought groups

/// Its first wait was twice retryBackoff, as a job's over an outbox is; all else of the formula is the same too.
void write_retries(Fields& fields, TomlText& job) {
  constexpr config::Duration kUsual = std::chrono::seconds(20);
  constexpr config::Duration kLongest = std::chrono::hours(12);
  const config::Duration backoff = fields.duration("outbox.retryBackoff").value_or(kUsual);
  if (backoff > kLongest) {
    fields.complain("outbox.retryBackoff", "must be no greater than " + config::format_duration(kLongest));
  } else if (backoff > config::Duration::zero() && backoff != kUsual) {
    job.table("job.retry");
    job.duration("base", backoff * 2);
  }
}

TomlText job_file(Fields& fields, const std::string& name, std::string_view handler) {
  TomlText job;
  job.comment("From the configuration of outbox-worker, by `sluice outbox convert`.");
  job.table("job");
  job.string("source", "outbox:" + name);
  job.string("handler", handler);
  job.number("concurrency", kConcurrency);
  // Its default of 3000 never held anything up.
  const auto rate = fields.number("outbox.throughput", {0, 1'000'000, "must be no greater than 3000"});
  if (rate.value_or(0) > 0) {
    job.string("rate_limit", std::to_string(*rate) + "/s per host");
    fields.remark("outbox.throughput",
                  "it held for each type and began anew at each poll; here it is the job's, over all types");
  }
  return job;
}

/// What the job must be told where both publishers share one outbox.
void write_missing_types(TomlText& job, const std::string& where) {
  job.comment(
      "Every row must belong to one job alone. outbox-worker asked both publishers; list the types of this one.");
  job.strings("types",
              {{"${TYPES_OF_" + where + ":?list the aggregate types that go there in this job's file}", true}});
}

std::vector<Text> without(std::vector<Text> values, const std::vector<Text>& others) {
  std::erase_if(values, [&others](const Text& value) {
    return std::any_of(others.begin(), others.end(), [&value](const Text& other) { return other.text == value.text; });
  });
  return values;
}

struct Lists {
  std::vector<Text> allowed;
  std::vector<Text> denied;
  std::vector<Text> skipped;
  std::vector<Text> ignored;
};

/// What becomes of a row without a destination: it waits for the next poll, which is what a job does anyway.
void write_waits(Fields& fields, const std::string& publisher, TomlText& job) {
  copy_interval(fields, job, "unroutable_wait");
  fields.remark(publisher,
                "a row without a destination waits for one, with a warning; of a type that is no ARN or RN, or of "
                "another service, outbox-worker counted tries, as unroutable = \"retry\" in [job.options] does" +
                    std::string(publisher.ends_with("nats") ? "; a subject of no stream is a counted try, and in the "
                                                              "end a dead letter"
                                                            : ""));
  fields.remark(publisher,
                "while it cannot be reached rows wait and keep their tries; outbox-worker counted them, as outage = "
                "\"retry\" in [job.options] does");
}

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

NewFile sns_job(Fields& fields, const std::string& name, bool both) {
  TomlText job = job_file(fields, name, "sns");
  const Lists lists = read_lists(fields);
  write_filter(lists, job, both, "SNS");
  write_retries(fields, job);
  job.table("job.options");
  const auto region = fields.text("publisher.aws.region");
  job.string("region", region ? region->text : "ap-northeast-1");
  copy(fields, "publisher.aws.sns.endpoint", job, "endpoint");
  write_credentials(fields, job);
  write_refetch(fields, job);
  write_waits(fields, "publisher.aws", job);
  if (!lists.ignored.empty()) {
    job.strings("ignore_unreadable_topics", lists.ignored);
    fields.remark(
        "publisher.aws.sns.resources.ignoreFetchErrorResources",
        "topics whose attributes cannot be read are published to; outbox-worker passed over them without a warning");
  }
  return {"jobs.d/" + name + "-sns.toml", job.text()};
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

/// One address, or several with commas between them, as nats.go reads them.
void write_servers(Fields& fields, TomlText& job) {
  const auto servers = fields.text("publisher.nats.server", true);
  if (!servers) {
    return;
  }
  std::vector<std::string> parts{servers->text};
  if (!servers->has_variables) {  // a comma in a variable's default separates nothing
    boost::split(parts, servers->text, boost::is_any_of(","));
  }
  std::vector<Text> list;
  for (std::string& part : parts) {
    boost::trim(part);
    if (!part.empty()) {
      list.push_back({std::move(part), servers->has_variables});
    }
  }
  job.strings("servers", list);
}

NewFile nats_job(Fields& fields, const std::string& name, bool both) {
  TomlText job = job_file(fields, name, "nats");
  if (both) {
    job.table("job.outbox");
    write_missing_types(job, "NATS");
  }
  write_retries(fields, job);
  job.table("job.options");
  write_servers(fields, job);
  copy(fields, "publisher.nats.clientName", job, "name");
  copy(fields, "publisher.nats.domain", job, "domain");
  for (const auto& [field, key] : {std::pair("reconnectWait", "reconnect_wait"),
                                   {"reconnectJitter", "reconnect_jitter"},
                                   {"reconnectJitterTLS", "reconnect_jitter_tls"},
                                   {"timeout", "connect_timeout"}}) {
    if (const auto duration = fields.duration(std::string("publisher.nats.") + field)) {
      job.duration(key, *duration);
    }
  }
  fields.leave_out(
      "publisher.nats.maxReconnects",
      "the plugin reconnects for as long as it runs; after the last one outbox-worker published nothing any more");
  write_nats_tls(fields, job);
  write_nats_user(fields, job);
  write_waits(fields, "publisher.nats", job);
  fields.remark(
      "publisher.nats",
      "a message's id is the row's, so that two events of one payload are both stored; message_id = \"payload\" in "
      "[job.options] is what outbox-worker did");
  return {"jobs.d/" + name + "-nats.toml", job.text()};
}

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
  if (sns) {
    files.push_back(sns_job(fields, name, nats));
  }
  if (nats) {
    files.push_back(nats_job(fields, name, sns));
  }
  if (sns && nats) {
    fields.remark(
        "publisher",
        "both publishers: each job has to name its own aggregate types in [job.outbox], which the YAML does not say");
  }
  if (!sns) {
    for (const char* field : {"publisher.refetchTimer.enabled", "publisher.refetchTimer.interval"}) {
      fields.leave_out(field, "there is nothing to discover at NATS");
    }
  }
  return files;
}

}  // namespace

Conversion convert_worker_file(const std::string& text, const std::string& name,
                               const config::Environment& environment) {
  Conversion conversion;
  const auto fields = Fields::read(text, environment, conversion.complaints);
  if (fields == nullptr) {
    return conversion;
  }
  TomlText host;
  host.comment("From the configuration of outbox-worker, by `sluice outbox convert`.");
  host.comment("It said at which address it answers on the command line: --health-check-addr, by default :8080.");
  host.table("http");
  host.string("listen", "${SLUICE_LISTEN:-0.0.0.0:8080}");
  write_observation(*fields, host);
  write_outbox(*fields, name, host);
  std::vector<NewFile> jobs = write_jobs(*fields, name);
  if (!fields->complaints().empty()) {
    conversion.complaints = fields->complaints().text();
    return conversion;
  }
  conversion.files.push_back({"host.toml", host.text()});
  conversion.files.insert(conversion.files.end(), std::make_move_iterator(jobs.begin()),
                          std::make_move_iterator(jobs.end()));
  conversion.remarks = fields->take_remarks();
  return conversion;
}

}  // namespace sluice::cli::convert
