#include <utility>

#include "config/document.hpp"
#include "config/files.hpp"
#include "config/reader.hpp"
#include "config/syntax.hpp"

namespace sluice::config {

namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr std::array<Choice<LogLevel>, 5> kLogLevels{{{"trace", LogLevel::trace},
                                                      {"debug", LogLevel::debug},
                                                      {"info", LogLevel::info},
                                                      {"warn", LogLevel::warn},
                                                      {"error", LogLevel::error}}};
constexpr std::array<Choice<LogFormat>, 2> kLogFormats{{{"text", LogFormat::text}, {"json", LogFormat::json}}};
constexpr std::array<Choice<StoreKind>, 2> kStoreKinds{
    {{"sqlite", StoreKind::sqlite}, {"dynamodb", StoreKind::dynamodb}}};

void read_host(Section host, HostConfig& config) {
  host.read("name", config.name, host_name_complaint);
  host.read("jobs", config.jobs, pattern_complaint);
  host.read("plugin_dirs", config.plugin_dirs, path_complaint);
  host.read("drain_timeout", config.drain_timeout, {Duration::zero(), hours(24)});
  host.read("state_dir", config.state_dir, path_complaint);
}

void read_queue(Section section, Reader& reader, const Member& member, HostConfig& config) {
  if (const char* expected = name_complaint(member.key)) {
    reader.error(member.place,
                 "a queue's name must be " + std::string(expected) + "; it is \"" + abridged(member.key) + "\"");
  }
  QueueConfig queue;
  queue.table = member.key;
  section.read("table", queue.table, table_complaint);
  section.read("index", queue.index, table_complaint);
  // DynamoDB itself sets no limit; SQS's twelve hours is what users of queues expect, and below a second a lease would
  // lapse between two extensions.
  section.read("visibility_timeout", queue.visibility_timeout, {seconds(1), hours(12)});
  config.queues.emplace(member.key, std::move(queue));
}

void read_queues(Section queues, Reader& reader, const Table& root, HostConfig& config) {
  for (const Member& top : root) {
    const auto* table = std::get_if<Table>(&top.value.content);
    if (top.key != "queues" || table == nullptr) {
      continue;
    }
    for (const Member& member : *table) {
      read_queue(queues.section(member.key), reader, member, config);
    }
  }
}

void resolve_paths(HostConfig& config) {
  for (std::string& pattern : config.jobs) {
    pattern = resolve_path(pattern, config.file);
  }
  for (std::string& folder : config.plugin_dirs) {
    folder = resolve_path(folder, config.file);
  }
  config.state_dir = resolve_path(config.state_dir, config.file);
  config.sqlite_path = resolve_path(config.sqlite_path, config.file);
}

}  // namespace

Parsed<HostConfig> parse_host_config(const std::string& text, const std::string& file, const Environment& environment) {
  Parsed<Document> parsed = parse_document(text, file, environment);
  if (auto* errors = std::get_if<std::vector<ConfigError>>(&parsed)) {
    return std::move(*errors);
  }
  const Document& document = std::get<Document>(parsed);
  Reader reader(document, file);
  Section root = reader.root();
  HostConfig config;
  config.file = file;
  read_host(root.section("host"), config);
  Section log = root.section("log");
  log.read("level", config.log_level, kLogLevels);
  log.read("format", config.log_format, kLogFormats);
  root.section("http").read("listen", config.http_listen, listen_complaint);
  Section store = root.section("store");
  store.read("kind", config.store_kind, kStoreKinds);
  store.read("path", config.sqlite_path, path_complaint);
  Section dynamodb = root.section("dynamodb");
  dynamodb.read("region", config.dynamodb_region, region_complaint);
  dynamodb.read("endpoint", config.dynamodb_endpoint, endpoint_complaint);
  read_queues(root.section("queues"), reader, document.root, config);
  resolve_paths(config);
  if (std::vector<ConfigError> errors = reader.finish(); !errors.empty()) {
    return errors;
  }
  return config;
}

}  // namespace sluice::config
