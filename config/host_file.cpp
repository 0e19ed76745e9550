#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "config/document.hpp"
#include "config/files.hpp"
#include "config/reader.hpp"
#include "config/sections.hpp"
#include "config/syntax.hpp"

namespace sluice::config {

namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr std::array<Choice<StoreKind>, 2> kStoreKinds{
    {{"sqlite", StoreKind::sqlite}, {"dynamodb", StoreKind::dynamodb}}};

void read_host(Section host, HostConfig& config) {
  host.read("name", config.name, host_name_complaint);
  host.read("jobs", config.jobs, pattern_complaint);
  if (const Member* jobs = host.find("jobs")) {
    if (const auto* patterns = std::get_if<Array>(&jobs->value.content)) {
      for (const Value& pattern : *patterns) {
        config.job_places.push_back(pattern.place);
      }
    }
  }
  host.read("plugin_dirs", config.plugin_dirs, path_complaint);
  host.read("drain_timeout", config.drain_timeout, {Duration::zero(), hours(24)});
  host.read("state_dir", config.state_dir, path_complaint);
}

/// The members of a table at the file's top level; none when it is absent.
const Table& members_of(const Table& root, std::string_view key) {
  static const Table kNone;
  for (const Member& top : root) {
    if (const auto* table = std::get_if<Table>(&top.value.content); table != nullptr && top.key == key) {
      return *table;
    }
  }
  return kNone;
}

void check_name(Reader& reader, const Member& member, const std::string& whose) {
  if (const char* expected = name_complaint(member.key)) {
    reader.error(member.place,
                 whose + " name must be " + std::string(expected) + "; it is \"" + abridged(member.key) + "\"");
  }
}

/// The file, and the place that names it, of each SQLite store so far.
using StoreFiles = std::map<std::string, std::string>;

/// Two stores on one file would not know of each other, although they are in one process.
void check_file(Reader& reader, const Place& place, const std::string& title, const std::string& path,
                StoreFiles& files) {
  const auto [first, added] = files.emplace(std::filesystem::path(path).lexically_normal().string(), title);
  if (!added) {
    reader.error(place, "'path' in " + title + " is the file of " + first->second + " too; a file is one store: give " +
                            "one of them another, or name one of them only");
  }
}

/// A key that the other kind of store has.
void refuse_key(Reader& reader, Section& section, const std::string& key, const char* kind) {
  if (const Member* member = section.find(key)) {
    reader.error(member->place, section.naming(key) + "goes with kind = \"" + kind + "\" only; leave it out");
  }
}

void read_store(Section section, Reader& reader, const Member& member, HostConfig& config, StoreFiles& files) {
  check_name(reader, member, "a store's");
  StoreConfig store;
  if (section.require("kind", "give it as \"sqlite\" or \"dynamodb\"") == nullptr ||
      !section.read("kind", store.kind, kStoreKinds)) {
    for (const char* key : {"path", "region", "endpoint"}) {
      section.find(key);  // which of them it may have is not known
    }
  } else if (store.kind == StoreKind::sqlite) {
    refuse_key(reader, section, "region", "dynamodb");
    refuse_key(reader, section, "endpoint", "dynamodb");
    const Member* path = section.require("path", "give the file that it lies in");
    section.read("path", store.path, path_complaint);
    if (path != nullptr) {
      store.path = resolve_path(store.path, config.file);
      check_file(reader, path->value.place, section.title(), store.path, files);
    }
  } else {
    refuse_key(reader, section, "path", "sqlite");
    section.read("region", store.region, region_complaint);
    section.read("endpoint", store.endpoint, endpoint_complaint);
  }
  config.stores.emplace(member.key, std::move(store));
}

void read_default_store(Section root, HostConfig& config) {
  Section store = root.section("store");
  store.read("kind", config.store.kind, kStoreKinds);
  store.read("path", config.store.path, path_complaint);
  config.store.path = resolve_path(config.store.path, config.file);
  Section dynamodb = root.section("dynamodb");
  dynamodb.read("region", config.store.region, region_complaint);
  dynamodb.read("endpoint", config.store.endpoint, endpoint_complaint);
}

void read_stores(Section root, Reader& reader, const Table& tree, HostConfig& config) {
  read_default_store(root, config);
  StoreFiles files;
  if (config.store.kind == StoreKind::sqlite) {
    files.emplace(std::filesystem::path(config.store.path).lexically_normal().string(), "the default store");
  }
  Section stores = root.section("stores");
  for (const Member& member : members_of(tree, "stores")) {
    read_store(stores.section(member.key), reader, member, config, files);
  }
}

void read_store_name(Section& section, Reader& reader, const HostConfig& config, QueueConfig& queue) {
  section.read("store", queue.store, name_complaint);
  if (queue.store.empty() || config.stores.contains(queue.store)) {
    return;
  }
  std::vector<std::string> names;
  std::string listed;
  for (const auto& [name, store] : config.stores) {
    names.push_back(name);
    listed += (listed.empty() ? "" : ", ") + name;
  }
  const auto meant = nearest(queue.store, names);
  reader.error(section.find("store")->value.place, section.naming("store") + "names no store: there is no [stores." +
                                                       abridged(queue.store) + "]; " +
                                                       (meant           ? "did you mean \"" + *meant + "\"?"
                                                        : names.empty() ? "leave it out for the default store"
                                                                        : "known are " + listed));
}

StoreKind kind_of(const HostConfig& config, const QueueConfig& queue) {
  const auto store = config.stores.find(queue.store);
  return store == config.stores.end() ? config.store.kind : store->second.kind;
}

constexpr std::array<Choice<Layout>, 2> kLayouts{{{"dynamomq", Layout::dynamomq}, {"leased", Layout::leased}}};
constexpr std::array<Choice<Fence>, 2> kFences{{{"none", Fence::none}, {"strict", Fence::strict}}};
constexpr std::uint32_t kMostShards = 1024;

/// How the queue lies in its table, and what goes with one layout only.
void read_layout(Section& section, Reader& reader, const HostConfig& config, QueueConfig& queue) {
  section.read("layout", queue.layout, kLayouts);
  section.read("shards", queue.shards, 1, kMostShards);
  section.read("fence", queue.fence, kFences);
  const bool leased = queue.layout == Layout::leased;
  if (const Member* layout = section.find("layout"); leased && kind_of(config, queue) != StoreKind::dynamodb) {
    reader.error(layout->place, section.naming("layout") +
                                    "is how a queue lies in a DynamoDB table, and this one lies in a SQLite file; take "
                                    "it away, or give the queue a store of kind = \"dynamodb\"");
  }
  for (const char* key : {"shards", "fence"}) {
    if (const Member* member = section.find(key); member != nullptr && !leased) {
      reader.error(member->place, section.naming(key) + "goes with layout = \"leased\" only; leave it out");
    }
  }
  if (const Member* index = section.find("index"); index != nullptr && leased) {
    reader.error(index->place, section.naming("index") +
                                   "goes with layout = \"dynamomq\" only: a leased table has no "
                                   "index; leave it out");
  }
  if (leased && section.find("table") == nullptr) {
    queue.table = kLeasedTable;
  }
}

constexpr std::array<Choice<bool>, 2> kDedups{{{"id", false}, {"content", true}}};
constexpr std::uint32_t kMostInFlight = 120'000;  // SQS's

/// What SQS has for a queue: deduplication, and limits of what is in flight.
void read_sending_rules(Section& section, Reader& reader, const HostConfig& config, QueueConfig& queue) {
  section.read("dedup", queue.dedup_by_content, kDedups);
  section.read("dedup_window", queue.dedup_window, {seconds(1), hours(24 * 14)});
  std::uint32_t in_flight = 0;
  section.read("max_in_flight", in_flight, 1, kMostInFlight);
  queue.max_in_flight = in_flight;
  section.read("max_lease", queue.max_lease, {seconds(1), hours(12)});
  const Member* lease = section.find("max_lease");
  if (lease != nullptr && queue.max_lease < queue.visibility_timeout) {
    reader.error(lease->value.place, section.naming("max_lease") + "must not be shorter than visibility_timeout, " +
                                         format_duration(queue.visibility_timeout) + "; it is " +
                                         format_duration(queue.max_lease));
  }
  read_budget(section, reader, kind_of(config, queue), queue);
  const Member* limit = section.find("max_in_flight");
  if (limit != nullptr && kind_of(config, queue) == StoreKind::dynamodb && queue.layout != Layout::leased) {
    reader.error(limit->place,
                 section.naming("max_in_flight") +
                     "needs a queue on SQLite or a leased one: in a table of DynamoMQ's layout nobody can "
                     "count what is in flight without reading all of it; limit each host's job with "
                     "'concurrency' instead");
  }
}

void read_queue(Section section, Reader& reader, const Member& member, HostConfig& config) {
  check_name(reader, member, "a queue's");
  QueueConfig queue;
  queue.table = member.key;
  read_store_name(section, reader, config, queue);
  section.read("table", queue.table, table_complaint);
  section.read("index", queue.index, table_complaint);
  read_layout(section, reader, config, queue);
  // DynamoDB itself sets no limit; SQS's twelve hours is what users of queues expect, and below a second a lease would
  // lapse between two extensions.
  section.read("visibility_timeout", queue.visibility_timeout, {seconds(1), hours(12)});
  read_sending_rules(section, reader, config, queue);
  config.queues.emplace(member.key, std::move(queue));
}

void read_queues(Section queues, Reader& reader, const Table& tree, HostConfig& config) {
  for (const Member& member : members_of(tree, "queues")) {
    read_queue(queues.section(member.key), reader, member, config);
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
  read_log(root.section("log"), reader, config);
  read_tracing(root.section("tracing"), reader, config);
  Section http = root.section("http");
  http.read("listen", config.http_listen, listen_complaint);
  http.read("depth_interval", config.depth_interval, {seconds(1), hours(24)});
  read_cost(root.section("cost"), reader, config);
  read_wake(root.section("wake"), reader, config);
  read_stores(root, reader, document.root, config);
  read_queues(root.section("queues"), reader, document.root, config);
  read_outboxes(root, reader, document.root, config);
  resolve_paths(config);
  if (std::vector<ConfigError> errors = reader.finish(); !errors.empty()) {
    return errors;
  }
  return config;
}

}  // namespace sluice::config
