#pragma once

#include <boost/system/result.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sluice::config {

/// What capacity costs, and by which attribute costs are told apart: [cost]. A value; the prices are those of DynamoDB
/// on demand in us-east-1 where the file gives none.
struct CostConfig {
  std::string currency = "USD";
  std::string as_of = "2026-11-01";  ///< the day that the prices are of
  double write_unit = 0.625;         ///< a million write request units
  double read_unit = 0.125;          ///< a million read request units
  double storage = 0.25;             ///< a GB and month
  double sqs_request = 0.40;         ///< a million requests to SQS standard, for comparisons alone
  double sqs_fifo_request = 0.50;    ///< a million requests to SQS FIFO, the same
  bool own_prices = false;           ///< the file gives some
  std::string attribute;             ///< of messages, such as "tenant"; empty: none
  std::uint32_t top = 20;            ///< so many of its values are told one by one
};

enum class LogLevel { trace, debug, info, warn, error };
/// What stands on standard error; `datadog` is JSON with the names that Datadog's agent looks for.
enum class LogFormat { text, json, datadog };

enum class SenderKind { rollbar, sentry, datadog };

/// A service that log lines are sent to: [log.rollbar], [log.sentry] or [log.datadog]. A value.
struct LogSender {
  SenderKind kind = SenderKind::sentry;
  LogLevel level = LogLevel::warn;
  std::string secret;    ///< the token, the DSN or the API key: never to be shown
  std::string endpoint;  ///< "https://host[:port]"; empty for sentry, whose DSN has it
  std::string environment;
  std::string service;
  std::map<std::string, std::string> tags;
  double sample_rate = 1;           ///< the share of lines that is sent
  bool send_default_pii = false;    ///< what may tell who somebody is goes out too: host names and message ids
  std::vector<std::string> ignore;  ///< lines that contain one of these are not sent
};

/// What Datadog wants to find in every line of its format.
struct DatadogFormat {
  std::string service = "sluice";
  std::string environment;
  std::map<std::string, std::string> tags;
};

enum class TraceProtocol { grpc, http };
enum class TraceSampler { always, never, ratio, parent };

/// Where spans go: [tracing]. A value.
struct TracingConfig {
  std::string endpoint;  ///< "http://host:port", and for HTTP a path
  TraceProtocol protocol = TraceProtocol::grpc;
  TraceSampler sampler = TraceSampler::parent;
  double ratio = 1;  ///< of traces that begin here; with sampler ratio of all
  std::string service = "sluice";
  std::string environment;
  std::map<std::string, std::string> attributes;  ///< of the resource
  std::map<std::string, std::string> headers;     ///< values are never to be shown
  std::string ca;                                 ///< PEM file; empty: the machine's authorities
};

/// Outboxes as host and job files describe them. Values.
enum class OutboxKind { postgres, mysql, dynamodb };

/// The names of an outbox table's columns. Of the last three a table may lack those that are called as here.
struct OutboxColumns {
  std::string id = "id";
  std::string order_by;  ///< empty: the id, a number. Otherwise ids are texts, and this is a number or a time
  std::string aggregate_type = "aggregate_type";
  std::string aggregate_id = "aggregate_id";
  std::string event = "event";
  std::string payload = "payload";
  std::string retry_at = "retry_at";
  std::string retry_count = "retry_count";
  std::string sent_at = "sent_at";
  std::string created_at = "created_at";  ///< empty: it is not used, as the next two
  std::string last_error = "last_error";
  std::string failed_at = "failed_at";

  friend bool operator==(const OutboxColumns&, const OutboxColumns&) = default;
};

struct OutboxTls {
  bool verify = true;
  std::string ca;
  std::string server_name;
  std::string certificate;
  std::string key;
};

/// The SSH server through which the database is reached.
struct OutboxSsh {
  std::string host;
  std::uint32_t port = 22;
  std::string user;
  std::string private_key;
  std::string known_hosts;  ///< empty: ~/.ssh/known_hosts
  std::vector<std::string> host_key_algorithms{"ssh-ed25519"};
  bool check_host_key = true;
};

/// [outbox.NAME] of a host file.
struct OutboxConfig {
  OutboxKind kind = OutboxKind::postgres;
  std::string url;       ///< holds a password as a rule: never to be shown
  std::string username;  ///< not empty: wins over the URL's
  std::string password;
  std::string schema;
  std::string table = "outbox";
  std::string producer;  ///< goes out as attribute `producer`; empty: the table's id
  std::chrono::nanoseconds poll_interval = std::chrono::seconds(5);
  std::uint32_t fetch_limit = 1000;
  std::chrono::nanoseconds lease = std::chrono::seconds(15);
  std::uint32_t buckets = 64;
  std::uint32_t retry_limit = 10;
  bool compat = false;      ///< compat = "outbox-worker": what has been sent is published again, as the original does
  bool side_table = false;  ///< coordination = "table"
  std::chrono::nanoseconds lag_limit{};  ///< a row that is due longer makes the host not ready; zero: none does
  std::vector<std::string> attributes;
  OutboxColumns columns;
  std::optional<OutboxTls> tls;
  std::optional<OutboxSsh> ssh;
  std::string region;  ///< DynamoDB, as the next one
  std::string endpoint;
};

/// [job.outbox]: which rows the job takes. Empty lists: all.
struct OutboxFilter {
  std::vector<std::string> types;
  std::vector<std::string> deny_types;
  std::vector<std::string> events;
  std::vector<std::string> skip_events;

  friend bool operator==(const OutboxFilter&, const OutboxFilter&) = default;
};

inline constexpr std::string_view kOutboxPrefix = "outbox:";

/// NAME of "outbox:NAME"; nothing for the name of a queue.
inline std::optional<std::string> outbox_named(std::string_view queue) {
  return queue.starts_with(kOutboxPrefix) ? std::optional(std::string(queue.substr(kOutboxPrefix.size())))
                                          : std::nullopt;
}

using Duration = std::chrono::nanoseconds;

/// A place in a configuration file. Line and column count from 1; 0 means the file as a whole.
struct Place {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  /// Always: two settings are equal that say the same, wherever they stand.
  friend bool operator==(const Place&, const Place&) { return true; }
};

/// One thing that is wrong, with the mend where there is one. `text()` is "file:line:column: message".
struct ConfigError {
  Place place;
  std::string message;

  std::string text() const;
};

/// A value, or everything that is wrong with the text at once (never an empty list).
template <typename T>
using Parsed = boost::system::result<T, std::vector<ConfigError>>;

/// A value of [job.options], as TOML wrote it. Tables are tables of strings.
using OptionValue =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>, std::map<std::string, std::string>>;

struct Option {
  OptionValue value;
  Place place;  ///< of the key, for errors that the plugin's own declaration brings

  friend bool operator==(const Option&, const Option&) = default;
};

enum class StoreKind { sqlite, dynamodb };
/// How a queue lies in its DynamoDB table.
enum class Layout { dynamomq, leased };
/// What is committed with a handler's effects in a leased queue: nothing more, or that its host still owns the shard.
enum class Fence { none, strict };
enum class Source { standard, dlq };
enum class Backoff { constant, linear, exponential };
enum class Jitter { none, full, equal };
enum class DeadLetterPolicy { move, discard, keep };
enum class Isolation { thread, process };
enum class Order { none, group, queue };
/// What becomes of a group whose head was dead-lettered: it goes on, or it waits for an operator.
enum class OnDeadLetter { go_on, hold };
enum class WhileRunning { wait, reject };
enum class OnDuplicate { skip, run };
enum class OnMissingKey { reject, run };
enum class CatchUp { none, last, all };

/// A store of queues. A value.
struct StoreConfig {
  StoreKind kind = StoreKind::sqlite;
  std::string path = "var/sluice.db";  ///< SQLite: the file
  std::string region;                  ///< DynamoDB; empty: from the AWS chain
  std::string endpoint;                ///< DynamoDB; empty: AWS's own
};

/// The table of leased queues that name no other: one has room for many.
inline constexpr const char* kLeasedTable = "sluice-queues";

/// How a queue differs from the defaults.
struct QueueConfig {
  std::string store;  ///< of [stores.NAME]; empty: the default one
  std::string table;  ///< default: of a leased queue kLeasedTable, else the queue's name
  std::string index = "dynamo-mq-index-queue_type-sent_at";
  Duration visibility_timeout = std::chrono::seconds(30);
  bool dedup_by_content = false;                    ///< messages of the same content count as duplicates
  Duration dedup_window = std::chrono::minutes(5);  ///< within which duplicates are not delivered
  /// Of a queue in a DynamoDB table; default: leased, where neither a table nor an index is named.
  Layout layout = Layout::dynamomq;
  std::uint32_t shards = 8;                     ///< of a leased queue, until its table says another number
  Fence fence = Fence::none;                    ///< of a leased queue
  std::uint64_t max_in_flight = 0;              ///< of everybody's; 0: no limit
  Duration max_lease = std::chrono::hours(12);  ///< no receipt is extended beyond
  // What each host may spend on it, in units a second; 0: no limit.
  double max_write_units = 0;
  double max_read_units = 0;
};

/// Datagrams between machines that wake hosts for what was put into their queues. A value.
struct WakeConfig {
  std::string listen;    ///< "host:port"; empty: this host cannot be woken by them
  std::string announce;  ///< where others reach it; empty: `listen`
  std::string secret;    ///< shared by all who ring and are rung; empty: anybody may ring
  bool ring = true;      ///< what this process puts into queues is rung for
};

/// The tree of a file: document.hpp.
struct Document;

struct HostConfig {
  std::string file;  ///< where it was read from; relative paths below are already resolved against its folder
  std::shared_ptr<const Document> document;        ///< as the file has it, secrets too; nullptr: read from none
  std::string name;                                ///< empty: the machine's host name
  std::vector<std::string> jobs{"jobs.d/*.toml"};  ///< glob patterns
  std::vector<Place> job_places;                   ///< where the file names each of them; none where it does not
  std::vector<std::string> plugin_dirs{"plugins"};
  Duration drain_timeout = std::chrono::seconds(25);
  std::string state_dir = "var";  ///< what the host notes about itself: crash ledgers

  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::text;
  DatadogFormat datadog;               ///< with that format
  std::vector<LogSender> log_senders;  ///< of each kind one at most
  std::optional<TracingConfig> tracing;

  std::string http_listen;  ///< "host:port"; empty: no HTTP
  WakeConfig wake;
  /// At most so often a queue is counted because somebody asks for its depth.
  Duration depth_interval = std::chrono::seconds(10);

  CostConfig cost;

  StoreConfig store;                          ///< where queues lie that name no other: [store] and [dynamodb]
  std::map<std::string, StoreConfig> stores;  ///< the others, by name

  std::map<std::string, QueueConfig> queues;
  std::map<std::string, OutboxConfig> outboxes;  ///< by NAME of [outbox.NAME]; as queues they are called "outbox:NAME"

  /// Not a key but the command line's word: plugins and files that others may write are used all the same.
  bool allow_insecure_files = false;
  /// [queues] create: handlers may send to queues that nobody knows, which makes them.
  bool create_queues = false;
  /// The file has plugin_dirs, be they the usual ones.
  bool names_plugin_dirs = false;

  /// The queue's settings; the defaults with its name as table when it has none of its own.
  QueueConfig queue(const std::string& name) const;
  /// The store of that name, which there is; empty: the one of queues that name none.
  const StoreConfig& store_named(const std::string& store_name) const {
    return store_name.empty() ? store : stores.at(store_name);
  }
  /// Of all stores, "" first.
  std::vector<std::string> store_names() const;
  /// The store that the queue lies in.
  const StoreConfig& store_of(const std::string& queue) const;
  /// Whether it lies in a DynamoDB table of the leased layout.
  bool leased(const std::string& queue) const;
  /// The outbox that "outbox:NAME" means; nullptr for any other name, and where there is none of that name.
  const OutboxConfig* outbox(const std::string& queue) const;
};

struct RetryConfig {
  std::uint32_t max_attempts = 5;  ///< 0 only where an outbox job leaves it to the outbox, until its file is known
  Backoff backoff = Backoff::exponential;
  Duration base = std::chrono::seconds(1);
  Duration max = std::chrono::minutes(15);
  Jitter jitter = Jitter::full;
  Place place{};  ///< of `max_attempts`

  friend bool operator==(const RetryConfig&, const RetryConfig&) = default;
};

/// What a job's handlers may use where they run in processes of their own.
struct LimitsConfig {
  std::uint64_t memory = 0;  ///< bytes; 0: no limit
  Duration cpu{};            ///< of one attempt; zero: no limit

  friend bool operator==(const LimitsConfig&, const LimitsConfig&) = default;
};

/// Which messages a job takes for the same, and what it does with the second one. A value.
struct IdempotencyConfig {
  enum class Kind { message, attribute, body };
  Kind kind = Kind::message;
  std::string path;  ///< the attribute's name, or a JSON pointer into the body
  Duration ttl = std::chrono::hours(24);
  WhileRunning while_running = WhileRunning::wait;
  OnDuplicate on_duplicate = OnDuplicate::skip;
  OnMissingKey on_missing = OnMissingKey::reject;  ///< for a message in which the key is not found

  friend bool operator==(const IdempotencyConfig&, const IdempotencyConfig&) = default;
};

/// One of several queues that a job draws from.
struct WeightedQueue {
  std::string name;
  std::uint32_t weight = 1;

  friend bool operator==(const WeightedQueue&, const WeightedQueue&) = default;
};

/// How often each priority has its turn where messages of all of them wait.
struct PriorityWeights {
  std::uint32_t critical = 8;
  std::uint32_t high = 4;
  std::uint32_t normal = 2;
  std::uint32_t low = 1;

  friend bool operator==(const PriorityWeights&, const PriorityWeights&) = default;
};

/// A message that is sent by the clock: [schedule.NAME] of a job file. A value.
struct ScheduleConfig {
  std::string name;
  Place place;       ///< of the table
  std::string cron;  ///< five fields, or empty
  Duration every{};  ///< with an empty `cron`
  std::string time_zone = "UTC";
  CatchUp catch_up = CatchUp::last;  ///< what becomes of times that passed while no host ran
  std::string queue;                 ///< the job's, unless the file names another one
  std::string body;
  std::string content_type = "text/plain";
  std::map<std::string, std::string> attributes;
  std::string group;
  std::string priority = "normal";

  friend bool operator==(const ScheduleConfig&, const ScheduleConfig&) = default;
};

/// The plugin that a job means, to the byte.
struct PluginPin {
  std::string file;    ///< its name in a plugin folder
  std::string sha256;  ///< of the whole file, 64 lower-case hexadecimal digits
  Place place;         ///< of `sha256`

  friend bool operator==(const PluginPin&, const PluginPin&) = default;
};

/// A handler that goes around the job's: [[job.around]] of a job file.
struct AroundConfig {
  std::string handler;
  Place handler_place;
  std::map<std::string, Option> options;

  friend bool operator==(const AroundConfig&, const AroundConfig&) = default;
};

struct JobConfig {
  std::string file;
  std::string name;  ///< default: the file's name without ".toml"
  Place name_place;  ///< the file as a whole when the name is the file's
  std::string queue;
  Place queue_place;
  Source source = Source::standard;
  std::string handler;
  Place handler_place;  ///< for "unknown handler", which only the host can tell
  std::optional<PluginPin> plugin;
  std::uint32_t concurrency = 8;
  std::uint32_t max_batch = 0;  ///< messages in a call of a batch handler; 0: the file does not say
  Duration max_wait{};          ///< for which the first of them may wait for the others
  Duration timeout = std::chrono::seconds(60);
  double rate_limit = 0;  ///< messages a second; 0: none
  std::string rate_text;  ///< the same as the file has it, " per host" behind it where each host has it; empty: none
  bool rate_per_host = false;  ///< each host has the limit for itself; otherwise all of them share it
  Duration poll_interval = std::chrono::seconds(1);  ///< the longest pause between two looks at an empty queue
  std::vector<WeightedQueue> queues;                 ///< several, of which `queue` is the first; empty: that alone
  Order order = Order::none;
  bool fair = false;  ///< turns by group for messages without order
  PriorityWeights priorities;
  bool weighs_priorities = false;  ///< the file has [job.priorities], be they the usual ones
  std::optional<IdempotencyConfig> idempotency;
  std::vector<ScheduleConfig> schedules;
  Isolation isolation = Isolation::thread;
  LimitsConfig limits;  ///< with isolation "process" only
  RetryConfig retry;
  DeadLetterPolicy dead_letter = DeadLetterPolicy::move;  ///< a job with source "dlq" has keep as its default
  OnDeadLetter on_dead_letter = OnDeadLetter::go_on;      ///< with order "group" or "queue"
  OutboxFilter outbox;                                    ///< with a source "outbox:NAME", which is then its `queue`
  std::map<std::string, Option> options;
  std::vector<AroundConfig> arounds;  ///< the outermost first

  /// The queues that it draws from.
  std::vector<std::string> queue_names() const;
  /// True when a host running one may leave it alone on reload for the other: all is equal but file, places and words,
  /// as in a rate of "1/s" and "60/m".
  bool same_job(const JobConfig& other) const;
  friend bool operator==(const JobConfig&, const JobConfig&) = default;
};

/// The jobs that could be read, and everything that is wrong with the others or between them.
struct JobFiles {
  std::vector<JobConfig> jobs;
  std::vector<ConfigError> errors;
};

/// Looks up `${VAR}`; nothing when unset.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The most handlers that go around those of one job.
inline constexpr std::size_t kMaxArounds = 8;
/// The most workers of one job.
inline constexpr std::uint32_t kMaxConcurrency = 1024;
/// The most messages that an asynchronous handler has at work.
inline constexpr std::uint32_t kMaxAsyncConcurrency = 100'000;
/// Messages in a call of a batch handler: the most, and unless its job says otherwise.
inline constexpr std::uint32_t kMaxBatch = 1000;
inline constexpr std::uint32_t kUsualBatch = 100;

/// Reads host configuration from text; `file` is used in errors and to resolve relative paths.
Parsed<HostConfig> parse_host_config(const std::string& text, const std::string& file, const Environment& environment);
Parsed<JobConfig> parse_job_config(const std::string& text, const std::string& file, const Environment& environment);

/// Reads the host file.
Parsed<HostConfig> load_host_config(const std::string& file, const Environment& environment);
/// Then every job file that its patterns name, in name order: the good ones, and all errors of all files together. Two
/// jobs of one name are an error; a pattern that matches nothing is not.
JobFiles load_job_files(const HostConfig& host, const Environment& environment);

/// The queues that the host file has a section for, that jobs draw from, or that their schedules send to.
std::set<std::string> queue_names(const HostConfig& host, const std::vector<JobConfig>& jobs);

/// The keys of a host file that say something else in `after` than in `before`, as they stand in the file, in the order
/// of their names: "host.drain_timeout", "queues.orders.table"; a table that came or went as a whole: "queues.orders".
std::vector<std::string> changed_keys(const HostConfig& before, const HostConfig& after);

/// The process's own environment.
Environment process_environment();

/// "1500ms", "30s", "15m", "2h", "1d", "250us", "40ns"; nothing for anything else, or a negative or overflowing one.
std::optional<Duration> parse_duration(const std::string& text);
/// The shortest of these spellings, such as "1500ms" or "15m".
std::string format_duration(Duration duration);

/// "512MiB", "64KiB", "2GiB" in bytes; nothing for anything else, zero, or what does not fit.
std::optional<std::uint64_t> parse_size(const std::string& text);
/// The shortest of these spellings; bytes as "1000 bytes".
std::string format_size(std::uint64_t bytes);

/// The candidate nearest to `word` by edit distance, when it is near enough to be meant; otherwise nothing.
std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace sluice::config
