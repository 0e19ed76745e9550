#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "config/document.hpp"
#include "config/files.hpp"
#include "config/reader.hpp"
#include "config/syntax.hpp"

namespace sluice::config {

namespace {

constexpr std::size_t kCurrencyLetters = 3;
constexpr std::uint32_t kMostValues = 200;

const char* currency_complaint(const std::string& text) {
  const bool letters = std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  return text.size() == kCurrencyLetters && letters ? nullptr : "three capital letters, such as \"USD\"";
}

void read_cost(Section cost, HostConfig& config) {
  CostConfig& read = config.cost;
  struct Price {
    const char* key;
    double* target;
    const char* example;
  };
  const std::array<Price, 5> prices{{{"write_unit", &read.write_unit, "0.625 for a million of them"},
                                     {"read_unit", &read.read_unit, "0.125 for a million of them"},
                                     {"storage", &read.storage, "0.25 for a GB and month"},
                                     {"sqs_request", &read.sqs_request, "0.40 for a million of them"},
                                     {"sqs_fifo_request", &read.sqs_fifo_request, "0.50 for a million of them"}}};
  cost.read("currency", read.currency, currency_complaint);
  const Member* first = cost.find("currency");
  for (const Price& price : prices) {
    cost.read(price.key, *price.target, kAmount, price.example);
    const Member* member = cost.find(price.key);
    first = first == nullptr ? member : first;
  }
  cost.read_day("as_of", read.as_of);
  read.own_prices = first != nullptr;
  if (read.own_prices && cost.find("as_of") == nullptr) {
    cost.refuse({first->key.c_str()}, "is a price of some day: say of which one beside it, as in as_of = 2026-11-01");
  }
  cost.read("attribute", read.attribute, label_complaint);
  cost.read("top", read.top, 1, kMostValues);
}

void read_budget(Section& section, StoreKind kind, QueueConfig& queue) {
  section.read("max_write_units", queue.max_write_units, kLimit, "100 for 100 write units a second");
  section.read("max_read_units", queue.max_read_units, kLimit, "50 for 50 read units a second");
  if (kind == StoreKind::sqlite) {
    section.refuse({"max_write_units", "max_read_units"},
                   "needs a queue in a DynamoDB table: SQLite is embedded and has no capacity to "
                   "keep below; limit the job with 'rate_limit' instead");
  }
}

constexpr std::size_t kShortestSecret = 16;
constexpr std::size_t kLongestSecret = 255;
constexpr std::array<std::string_view, 2> kWildcards{"0.0.0.0", "[::]"};

const char* address_complaint(const std::string& text) {
  return listen_complaint(text) == nullptr ? nullptr : "\"host:port\", such as \"10.0.0.5:7011\" or \"[fd00::5]:7011\"";
}

bool is_wildcard(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return contains(kWildcards, host);
}

const char* announce_complaint(const std::string& text) {
  if (is_wildcard(text)) {
    return "an address that others can send to; leave it out where 'listen' names one";
  }
  return address_complaint(text);
}

const char* secret_complaint(const std::string& text) {
  const bool good = text.size() >= kShortestSecret && text.size() <= kLongestSecret;
  return good ? nullptr : "16 to 255 bytes, such as `openssl rand -hex 32` prints";
}

void read_wake(Section wake, HostConfig& config) {
  WakeConfig& read = config.wake;
  wake.read("listen", read.listen, address_complaint);
  wake.read("announce", read.announce, announce_complaint);
  wake.read_secret("secret", read.secret, secret_complaint);
  wake.read("ring", read.ring);
  const Member* listen = wake.find("listen");
  const Member* announce = wake.find("announce");
  if (listen == nullptr) {
    wake.refuse({"announce"}, "goes with 'listen' only; add it, or leave this out");
  }
  if (listen != nullptr && announce == nullptr && is_wildcard(read.listen)) {
    wake.error_at_value("listen",
                        "stands for every address of this machine, so that "
                        "others cannot be told where to send; add 'announce' "
                        "with the one that they reach");
  }
}

constexpr const char* kExpected =
    "where an OTLP collector listens, such as \"http://localhost:4317\" or "
    "\"https://collector.example.com:4318/v1/traces\"";

/// "host:port" is what other OTLP programs call it, and is not encrypted there either.
std::string with_scheme(const std::string& text) {
  return text.find("://") == std::string::npos ? "http://" + text : text;
}

const char* collector_complaint(const std::string& text) {
  return !text.empty() && is_http_url(with_scheme(text), true) ? nullptr : kExpected;
}

/// With the protocol's own port, and for HTTP its own path, where none are given.
std::string completed(const std::string& text, TraceProtocol protocol) {
  std::string url = with_scheme(text);
  const std::size_t host = url.find("://") + 3;
  const std::size_t path = std::min(url.find('/', host), url.size());
  const std::string_view authority = std::string_view(url).substr(host, path - host);
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  std::string tail = url.substr(path);
  if (tail.empty() || tail == "/") {
    tail = protocol == TraceProtocol::http ? "/v1/traces" : "";
  }
  std::string port;
  if (colon == std::string_view::npos) {
    port = protocol == TraceProtocol::http ? ":4318" : ":4317";
  }
  return url.substr(0, path) + port + tail;
}

bool is_header_name(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.'; });
}

void check_headers(Section& tracing, TracingConfig& read) {
  for (const auto& [name, value] : read.headers) {
    if (!is_header_name(name)) {
      tracing.error_at_value("headers",
                             "must have names of letters, digits, '-', '_' and '.'; it has \"" + abridged(name) + "\"");
    }
  }
}

void read_tracing(Section tracing, HostConfig& config) {
  if (!tracing.present()) {
    return;
  }
  TracingConfig read;
  const Member* endpoint =
      tracing.require("endpoint", "say where the collector is, as in endpoint = \"http://localhost:4317\"");
  tracing.read_url("endpoint", read.endpoint, collector_complaint);
  tracing.read("protocol", read.protocol);
  tracing.read("sampler", read.sampler);
  tracing.read("ratio", read.ratio, kShare, "0.25");
  if (read.sampler == TraceSampler::always || read.sampler == TraceSampler::never) {
    tracing.refuse({"ratio"}, "goes with sampler = \"ratio\" or \"parent\" only; leave it out");
  }
  tracing.read("service", read.service, label_complaint);
  tracing.read("environment", read.environment, label_complaint);
  tracing.read("attributes", read.attributes);
  tracing.read("headers", read.headers);
  check_headers(tracing, read);
  tracing.read_path("ca", read.ca);
  if (endpoint != nullptr && !read.endpoint.empty()) {
    const bool has_path =
        with_scheme(read.endpoint).find('/', with_scheme(read.endpoint).find("://") + 3) != std::string::npos;
    if (read.protocol == TraceProtocol::grpc && has_path) {
      tracing.error_at_value("endpoint",
                             "has a path, which gRPC has none of; leave it out, or say protocol = \"http\"");
    }
    read.endpoint = completed(read.endpoint, read.protocol);
  }
  config.tracing = std::move(read);
}

const std::vector<std::string> kHandlers{"text", "json", "rollbar", "sentry", "datadog"};

const char* url_complaint(const std::string& text) {
  return is_http_url(text, false) ? nullptr : "an address such as \"https://collector.example.com\"";
}

const char* site_complaint(const std::string& text) {
  const bool good = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '-';
  });
  return good ? nullptr : "a Datadog site, such as \"datadoghq.com\" or \"datadoghq.eu\"";
}

/// "https://KEY@host[:port][/path]/PROJECT".
const char* dsn_complaint(const std::string& text) {
  constexpr const char* kDsn = "a DSN, \"https://KEY@HOST/PROJECT\", as Sentry shows it";
  const std::size_t scheme = text.find("://");
  const std::size_t at = text.find('@');
  if (scheme == std::string::npos || at == std::string::npos || at < scheme + 4) {
    return kDsn;
  }
  const std::string plain = text.substr(0, scheme + 3) + text.substr(at + 1);
  const std::size_t slash = text.rfind('/');
  const std::string_view key = std::string_view(text).substr(scheme + 3, at - scheme - 3);
  const auto is_word = [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_'; };
  const bool key_is_good = std::all_of(key.begin(), key.end(), [&](char c) { return is_word(c) || c == ':'; });
  const bool project_is_good = slash > at && slash + 1 < text.size() &&
                               std::all_of(text.begin() + static_cast<std::ptrdiff_t>(slash) + 1, text.end(), is_word);
  return is_http_url(plain, true) && key_is_good && project_is_good ? nullptr : kDsn;
}

struct Handlers {
  std::vector<std::string> words;
  bool sound = true;  ///< all of them could be read
};

/// Of `handler`, which may be one or a list.
Handlers read_handlers(Section& log) {
  const Member* member = log.find("handler");
  Handlers read;
  if (member == nullptr) {
    return read;
  }
  const auto take = [&](const Value& value) {
    const auto* text = std::get_if<std::string>(&value.content);
    if (std::holds_alternative<BrokenValue>(value.content)) {
      read.sound = false;
      return;
    }
    const bool known = text != nullptr && contains(kHandlers, *text);
    const bool twice = known && contains(read.words, *text);
    if (!known) {
      read.sound = false;
      const auto meant = text == nullptr ? std::nullopt : nearest(*text, kHandlers);
      log.error(value.place,
                "'handler' in [log] must be one, or a list, of \"text\", \"json\", \"rollbar\", \"sentry\" and "
                "\"datadog\"; " +
                    (text == nullptr ? std::string("it has ") + kind_of(value) : "it has \"" + abridged(*text) + "\"") +
                    (meant ? ": did you mean \"" + *meant + "\"?" : ""));
    } else if (twice) {
      log.error(value.place, "'handler' in [log] has \"" + *text + "\" twice");
    } else {
      read.words.push_back(*text);
    }
  };
  if (const auto* list = std::get_if<Array>(&member->value.content)) {
    std::for_each(list->begin(), list->end(), take);
  } else {
    take(member->value);
  }
  return read;
}

/// What the senders have in common.
void read_common(Section& section, LogSender& sender) {
  section.read("level", sender.level);
  section.read("environment", sender.environment, label_complaint);
  section.read("tags", sender.tags);
  section.read("sample_rate", sender.sample_rate, kShare, "0.25");
  section.read("ignore", sender.ignore, label_complaint);
}

LogSender read_rollbar(Section& section) {
  LogSender sender{.kind = SenderKind::rollbar, .endpoint = "https://api.rollbar.com", .environment = "production"};
  read_common(section, sender);
  section.require("token", "give a token with the scope post_server_item, as in token = \"${ROLLBAR_TOKEN}\"");
  section.read_secret("token", sender.secret, token_complaint);
  section.read_url("endpoint", sender.endpoint, url_complaint);
  section.read("send_default_pii", sender.send_default_pii);
  return sender;
}

LogSender read_sentry(Section& section) {
  LogSender sender{.kind = SenderKind::sentry};
  read_common(section, sender);
  section.require("dsn", "give the project's DSN, as in dsn = \"${SENTRY_DSN}\"");
  section.read_secret("dsn", sender.secret, dsn_complaint);
  section.read("send_default_pii", sender.send_default_pii);
  return sender;
}

/// Nothing where no key is given: then it is a format alone.
std::optional<LogSender> read_datadog(Section& section, HostConfig& config) {
  LogSender sender{.kind = SenderKind::datadog, .level = config.log_level, .service = config.datadog.service};
  read_common(section, sender);
  section.read("service", sender.service, label_complaint);
  section.read_secret("api_key", sender.secret, token_complaint);
  std::string site = "datadoghq.com";
  section.read("site", site, site_complaint);
  sender.endpoint = "https://http-intake.logs." + site;
  section.read_url("endpoint", sender.endpoint, url_complaint);
  sender.send_default_pii = true;  // Datadog's own agent sends the host's name with everything
  config.datadog = {sender.service, sender.environment, sender.tags};
  if (section.find("api_key") != nullptr) {
    return sender;
  }
  section.refuse({"level", "sample_rate", "ignore", "site", "endpoint"},
                 "is about what is sent, and without 'api_key' nothing is: lines are written to "
                 "standard error for Datadog's agent; give the key or leave this out");
  return std::nullopt;
}

/// What stands on standard error, which has one format.
void choose_format(Section& log, const std::vector<std::string>& handlers, HostConfig& config) {
  const bool sends = std::any_of(config.log_senders.begin(), config.log_senders.end(),
                                 [](const LogSender& sender) { return sender.kind == SenderKind::datadog; });
  std::vector<std::string> formats;
  for (const std::string& word : handlers) {
    if (word == "text" || word == "json" || (word == "datadog" && !sends)) {
      formats.push_back(word);
    }
  }
  if (formats.size() > 1) {
    log.error_at_value("handler", "asks for standard error as \"" + formats[0] + "\" and as \"" + formats[1] +
                                      "\"; keep one of them" +
                                      (contains(formats, "datadog") ? ", or give [log.datadog] an 'api_key', so that "
                                                                      "lines are sent there instead"
                                                                    : ""));
  }
  if (!formats.empty()) {
    log.refuse({"format"}, "stands beside a 'handler' that says it already; leave it out");
    config.log_format = formats.front() == "text"   ? LogFormat::text
                        : formats.front() == "json" ? LogFormat::json
                                                    : LogFormat::datadog;
  }
}

void read_log(Section log, HostConfig& config) {
  log.read("level", config.log_level);
  config.log_format = log.choose("format", {"text", "json"}) == 1 ? LogFormat::json : LogFormat::text;
  const Handlers handlers = read_handlers(log);
  for (const char* kind : {"rollbar", "sentry", "datadog"}) {
    Section section = log.section(kind);
    const bool wanted = contains(handlers.words, kind);
    if (section.present() && !wanted && handlers.sound) {
      section.error_here(std::string(" is used by nobody: put \"") + kind +
                         "\" into 'handler' of [log], or take the section away");
    }
    if (!wanted && !section.present()) {
      continue;
    }
    if (std::string_view(kind) == "rollbar") {
      config.log_senders.push_back(read_rollbar(section));
    } else if (std::string_view(kind) == "sentry") {
      config.log_senders.push_back(read_sentry(section));
    } else if (auto sender = read_datadog(section, config)) {
      config.log_senders.push_back(std::move(*sender));
    }
  }
  choose_format(log, handlers.words, config);
}

using std::chrono::hours;
using std::chrono::seconds;

void read_host(Section host, HostConfig& config) {
  host.read("name", config.name, host_name_complaint);
  host.read("jobs", config.jobs, pattern_complaint);
  if (const Member* jobs = host.find("jobs")) {
    if (const auto* patterns = std::get_if<Array>(&jobs->value.content)) {
      config.job_places = mapped(*patterns, &Value::place);
    }
  }
  config.names_plugin_dirs = host.find("plugin_dirs") != nullptr;
  host.read("plugin_dirs", config.plugin_dirs, path_complaint);
  host.read("drain_timeout", config.drain_timeout, {Duration::zero(), hours(24)});
  host.read_path("state_dir", config.state_dir);
}

/// The file, and the place that names it, of each SQLite store so far.
using StoreFiles = std::map<std::string, std::string>;

/// Two stores on one file would not know of each other, although they are in one process.
void check_file(Section& section, const std::string& path, StoreFiles& files) {
  const auto [first, added] = files.emplace(std::filesystem::path(path).lexically_normal().string(), section.title());
  if (!added) {
    section.error_at_value("path", "is the file of " + first->second +
                                       " too; a file is one store: give one of them another, or name one of them only");
  }
}

void read_store(Section section, const Member& member, HostConfig& config, StoreFiles& files) {
  section.check_name(member, "a store's");
  StoreConfig store;
  if (section.require("kind", "give it as \"sqlite\" or \"dynamodb\"") == nullptr ||
      !section.read("kind", store.kind)) {
    for (const char* key : {"path", "region", "endpoint"}) {
      section.find(key);  // which of them it may have is not known
    }
  } else if (store.kind == StoreKind::sqlite) {
    section.refuse({"region", "endpoint"}, "goes with kind = \"dynamodb\" only; leave it out");
    const Member* path = section.require("path", "give the file that it lies in");
    section.read_path("path", store.path);
    if (path != nullptr) {
      check_file(section, store.path, files);
    }
  } else {
    section.refuse({"path"}, "goes with kind = \"sqlite\" only; leave it out");
    section.read("region", store.region, region_complaint);
    section.read("endpoint", store.endpoint, endpoint_complaint);
  }
  config.stores.emplace(member.key, std::move(store));
}

void read_default_store(Section root, HostConfig& config) {
  Section store = root.section("store");
  store.read("kind", config.store.kind);
  store.read_path("path", config.store.path);
  Section dynamodb = root.section("dynamodb");
  dynamodb.read("region", config.store.region, region_complaint);
  dynamodb.read("endpoint", config.store.endpoint, endpoint_complaint);
}

void read_stores(Section root, HostConfig& config) {
  read_default_store(root, config);
  StoreFiles files;
  if (config.store.kind == StoreKind::sqlite) {
    files.emplace(std::filesystem::path(config.store.path).lexically_normal().string(), "the default store");
  }
  Section stores = root.section("stores", ".NAME");
  for (const Member& member : stores.members()) {
    read_store(stores.section(member.key), member, config, files);
  }
}

void read_store_name(Section& section, const HostConfig& config, QueueConfig& queue) {
  section.read("store", queue.store, name_complaint);
  if (queue.store.empty() || config.stores.contains(queue.store)) {
    return;
  }
  const auto names = names_of(config.stores);
  const auto meant = nearest(queue.store, names);
  section.error_at_value("store", "names no store: there is no [stores." + abridged(queue.store) + "]; " +
                                      (meant           ? "did you mean \"" + *meant + "\"?"
                                       : names.empty() ? "leave it out for the default store"
                                                       : "known are " + joined(names)));
}

StoreKind kind_of(const HostConfig& config, const QueueConfig& queue) {
  const auto store = config.stores.find(queue.store);
  return store == config.stores.end() ? config.store.kind : store->second.kind;
}

constexpr std::uint32_t kMostShards = 1024;

/// How the queue lies in its table, and what goes with one layout only.
void read_layout(Section& section, const HostConfig& config, QueueConfig& queue) {
  const bool names_table = section.find("table") != nullptr || section.find("index") != nullptr;
  const bool in_table = kind_of(config, queue) == StoreKind::dynamodb;
  queue.layout = in_table && !names_table ? Layout::leased : Layout::dynamomq;
  section.read("layout", queue.layout);
  section.read("shards", queue.shards, 1, kMostShards);
  section.read("fence", queue.fence);
  const bool leased = queue.layout == Layout::leased;
  if (leased && !in_table) {
    section.refuse({"layout"},
                   "is how a queue lies in a DynamoDB table, and this one lies in a SQLite file; take "
                   "it away, or give the queue a store of kind = \"dynamodb\"");
  }
  if (!leased) {
    section.refuse({"shards", "fence"}, "goes with layout = \"leased\" only; leave it out");
  } else {
    section.refuse({"index"},
                   "goes with layout = \"dynamomq\" only: a leased table has no "
                   "index; leave it out");
  }
  if (leased && section.find("table") == nullptr) {
    queue.table = kLeasedTable;
  }
}

constexpr std::uint32_t kMostInFlight = 120'000;  // SQS's

/// What SQS has for a queue: deduplication, and limits of what is in flight.
void read_sending_rules(Section& section, const HostConfig& config, QueueConfig& queue) {
  queue.dedup_by_content = section.choose("dedup", {"id", "content"}) == 1;
  section.read("dedup_window", queue.dedup_window, {seconds(1), hours(24 * 14)});
  std::uint32_t in_flight = 0;
  section.read("max_in_flight", in_flight, 1, kMostInFlight);
  queue.max_in_flight = in_flight;
  section.read("max_lease", queue.max_lease, {seconds(1), hours(12)});
  const Member* lease = section.find("max_lease");
  if (lease != nullptr && queue.max_lease < queue.visibility_timeout) {
    section.error_at_value("max_lease", "must not be shorter than visibility_timeout, " +
                                            format_duration(queue.visibility_timeout) + "; it is " +
                                            format_duration(queue.max_lease));
  }
  read_budget(section, kind_of(config, queue), queue);
  if (kind_of(config, queue) == StoreKind::dynamodb && queue.layout != Layout::leased) {
    section.refuse({"max_in_flight"},
                   "needs a queue on SQLite or a leased one: in a table of DynamoMQ's layout nobody can "
                   "count what is in flight without reading all of it; limit each host's job with "
                   "'concurrency' instead");
  }
}

void read_queue(Section section, const Member& member, HostConfig& config) {
  section.check_name(member, "a queue's");
  QueueConfig queue;
  queue.table = member.key;
  read_store_name(section, config, queue);
  section.read("table", queue.table, table_complaint);
  section.read("index", queue.index, table_complaint);
  read_layout(section, config, queue);
  // DynamoDB itself sets no limit; SQS's twelve hours is what users of queues expect, and below a second a lease would
  // lapse between two extensions.
  section.read("visibility_timeout", queue.visibility_timeout, {seconds(1), hours(12)});
  read_sending_rules(section, config, queue);
  config.queues.emplace(member.key, std::move(queue));
}

void read_queues(Section queues, HostConfig& config) {
  for (const Member& member : queues.members()) {
    // A queue may have that name too: [queues.create].
    if (member.key == "create" && !std::holds_alternative<Table>(member.value.content)) {
      queues.read("create", config.create_queues);
    } else {
      read_queue(queues.section(member.key), member, config);
    }
  }
}

/// What was installed beside the program is found wherever the host file lies, after what the file names.
void add_installed_plugins(HostConfig& config) {
  const std::string installed = installed_plugin_dir();
  std::error_code ignored;
  if (installed.empty()) {
    return;
  }
  const auto same = [&](const std::string& folder) { return std::filesystem::equivalent(folder, installed, ignored); };
  if (std::string* const named = find_where(config.plugin_dirs, same)) {
    *named = installed;  // however it is spelt
  } else {
    config.plugin_dirs.push_back(installed);
  }
}

void resolve_paths(HostConfig& config) {
  for (std::string& pattern : config.jobs) {
    pattern = resolve_path(pattern, config.file);
  }
  for (std::string& folder : config.plugin_dirs) {
    folder = resolve_path(folder, config.file);
  }
}

}  // namespace

Parsed<HostConfig> parse_host_config(const std::string& text, const std::string& file, const Environment& environment) {
  SLUICE_TRY(parsed, parse_document(text, file, environment));
  HostConfig config;
  config.file = file;
  config.document = std::make_shared<const Document>(std::move(*parsed));
  Reader reader(*config.document, file);
  Section root = reader.root();
  Section host = root.section("host");
  read_host(host, config);
  read_log(root.section("log"), config);
  read_tracing(root.section("tracing"), config);
  Section http = root.section("http");
  http.read("listen", config.http_listen, listen_complaint);
  http.read("depth_interval", config.depth_interval, {seconds(1), hours(24)});
  read_cost(root.section("cost"), config);
  read_wake(root.section("wake"), config);
  read_stores(root, config);
  read_queues(root.section("queues", ".NAME"), config);
  read_outboxes(root.section("outbox", ".NAME"), config);
  resolve_paths(config);
  add_installed_plugins(config);
  if (std::vector<ConfigError> errors = reader.finish(); !errors.empty()) {
    return errors;
  }
  return config;
}

}  // namespace sluice::config
