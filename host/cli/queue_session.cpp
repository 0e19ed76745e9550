#include "host/cli/queue_session.hpp"

#include <set>
#include <utility>

#include "host/cli/host_file.hpp"
#include "host/cli/queue_names.hpp"
#include "host/cli/text_output.hpp"
#include "host/cli/unopened.hpp"

namespace sluice::cli {

namespace {

constexpr const char* kDefaultTable = "dynamo-mq-table";

/// What to open, before it is opened.
struct Target {
  config::HostConfig host;
  std::string queue;
  bool from_file = false;
};

bool names_table(const Arguments& arguments) {
  return arguments.has("table-name") || arguments.has("index-name") || arguments.has("endpoint-url");
}

Target table_target(const Arguments& arguments) {
  Target target;
  target.host.store_kind = config::StoreKind::dynamodb;
  target.host.dynamodb_endpoint = arguments.get("endpoint-url");
  config::QueueConfig settings;
  settings.table = arguments.get("table-name", arguments.get("queue", kDefaultTable));
  settings.index = arguments.get("index-name", settings.index);
  target.queue = arguments.get("queue", settings.table);
  target.host.queues[target.queue] = settings;
  return target;
}

OrExit<std::string> choose_queue(const Arguments& arguments, const config::HostConfig& host) {
  if (!arguments.get("queue").empty()) {
    return arguments.get("queue");
  }
  const auto names = known_queues(host);
  if (names.size() == 1 && !arguments.has("queue")) {
    return names.front();
  }
  return Exit::usage(std::string("--queue is ") + (arguments.has("queue") ? "empty" : "missing") +
                     "; write --queue QUEUE" + (names.empty() ? "" : ", one of " + listed(names)));
}

OrExit<Target> file_target(const Arguments& arguments, QueueSession::Queue queue) {
  auto host = load_host_file(arguments);
  if (host.has_error()) {
    return host.error();
  }
  Target target{.host = std::move(*host), .queue = {}, .from_file = true};
  if (queue == QueueSession::Queue::optional && !arguments.has("queue")) {
    return target;
  }
  auto chosen = choose_queue(arguments, target.host);
  if (chosen.has_error()) {
    return chosen.error();
  }
  target.queue = std::move(*chosen);
  return target;
}

OrExit<Target> find_target(const Arguments& arguments, QueueSession::Queue queue, QueueSession::HostFiles files) {
  if (names_table(arguments)) {
    if (arguments.has("config")) {
      return Exit::usage(
          "--config names a host file, and --table-name, --index-name and --endpoint-url a table "
          "without one; give one or the other");
    }
    return table_target(arguments);
  }
  if (names_host_file(arguments) || (files == QueueSession::HostFiles::anywhere && default_host_file())) {
    return file_target(arguments, queue);
  }
  return table_target(arguments);
}

}  // namespace

std::vector<Flag> with_store_flags(std::vector<Flag> own) {
  own.push_back({.name = "queue",
                 .value = "QUEUE",
                 .help = "the queue [default: the only one of the host file, or the table's name]",
                 .common = true});
  Flag config = config_flag();
  config.common = true;
  own.push_back(config);
  own.push_back({.name = "table-name",
                 .value = "TABLE",
                 .help = "a DynamoDB table, without a host file [default: the queue's name, else dynamo-mq-table]",
                 .common = true});
  own.push_back({.name = "index-name",
                 .value = "INDEX",
                 .help = "its index [default: dynamo-mq-index-queue_type-sent_at]",
                 .common = true,
                 .alias = "queueing-index-name"});
  own.push_back({.name = "endpoint-url",
                 .value = "URL",
                 .help = "DynamoDB's address, without a host file [default: AWS's own]",
                 .common = true});
  Flag output = output_flag();
  output.common = true;
  own.push_back(output);
  return own;
}

OrExit<QueueSession> QueueSession::open(const Arguments& arguments, Queue queue, HostFiles files) {
  auto target = find_target(arguments, queue, files);
  if (target.has_error()) {
    return target.error();
  }
  auto parts = std::make_unique<Parts>();
  auto store = runtime::open_store(target->host, parts->clock, parts->random, nullptr);
  if (store.has_error()) {
    const bool surprises = !target->from_file && !names_table(arguments) && files == HostFiles::anywhere;
    return unopened(store.error(), surprises ? " (there is no host file, so a DynamoDB table is meant; --config "
                                               "FILE names a host file)"
                                             : "");
  }
  return QueueSession(std::move(target->host), std::move(target->queue), std::move(parts), std::move(*store));
}

queue::QueueAddress queue_address(const QueueSession& session, const Arguments& arguments) {
  return session.address(arguments.has("dlq") ? queue::QueueType::dlq : queue::QueueType::standard);
}

std::vector<std::string> known_queues(const config::HostConfig& host) {
  std::set<std::string> names;
  for (const auto& [name, settings] : host.queues) {
    names.insert(name);
  }
  for (const auto& job : config::load_job_files(host, config::process_environment()).jobs) {
    names.insert(job.queue);
  }
  return {names.begin(), names.end()};
}

}  // namespace sluice::cli
