#include "host/cli/queue_place.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/shell_word.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/mend.hpp"
#include "host/cli/queue_names.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::cli {

namespace {

constexpr std::array<const char*, 3> kOverrides{"index", "endpoint", "region"};
constexpr std::size_t kShortestName = 3;
constexpr std::size_t kLongestName = 255;

bool is_name(const std::string& name) {
  return name.size() >= kShortestName && name.size() <= kLongestName &&
         std::all_of(name.begin(), name.end(), [](char byte) {
           return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
                  byte == '_' || byte == '-' || byte == '.';
         });
}

Exit check_names(const config::QueueConfig& queue) {
  for (const std::string& name : {queue.table, queue.index}) {
    if (!is_name(name)) {
      return Exit::usage("\"" + name +
                         "\" is no name for a table or an index; one has 3 to 255 of the characters a-z A-Z 0-9 _ - .");
    }
  }
  return Exit::ok();
}

/// The options of this command line out of `names`, as they are typed.
template <typename Names>
std::string given(const Arguments& arguments, const Names& names) {
  std::string options;
  for (const char* const name : names) {
    if (arguments.has(name)) {
      options += " --" + std::string(name) + " " + shell_word(arguments.get(name));
    }
  }
  return options;
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

/// What the command line says otherwise than the host file.
Exit apply_overrides(const Arguments& arguments, const std::string& name, config::HostConfig& host) {
  const auto first = std::find_if(kOverrides.begin(), kOverrides.end(),
                                  [&arguments](const char* option) { return arguments.has(option); });
  if (first == kOverrides.end()) {
    return Exit::ok();
  }
  config::QueueConfig queue = host.queue(name);
  config::StoreConfig& store = queue.store.empty() ? host.store : host.stores.at(queue.store);
  if (store.kind == config::StoreKind::sqlite) {
    return Exit::usage("--" + std::string(*first) + " says where a table is, and queue " + name + " of " + host.file +
                       " lies in the file " + store.path + "; leave it out, or name a table with --table");
  }
  queue.index = arguments.get("index", queue.index);
  store.endpoint = arguments.get("endpoint", store.endpoint);
  store.region = arguments.get("region", store.region);
  host.queues[name] = std::move(queue);
  return Exit::ok();
}

}  // namespace

bool names_table(const Arguments& arguments) {
  const bool placed = arguments.has("endpoint") || arguments.has("index");
  return arguments.has("table") || (placed && !arguments.has("queue") && !arguments.has("config"));
}

OrExit<QueuePlace> QueuePlace::find(const Arguments& arguments, Queue queue, HostFiles files) {
  if (arguments.has("table") && arguments.has("config")) {
    return Exit::usage("--config names a host file, and --table a table without one; give one or the other");
  }
  const bool has_file = names_host_file(arguments) || (files == HostFiles::anywhere && default_host_file());
  if (names_table(arguments) || !has_file) {
    auto place = of_table(arguments);
    if (place) {
      place->by_default_ = files == HostFiles::anywhere && !names_table(arguments);
    }
    return place;
  }
  return of_host_file(arguments, queue);
}

OrExit<QueuePlace> QueuePlace::of_table(const Arguments& arguments) {
  QueuePlace place;
  place.host_.store.kind = config::StoreKind::dynamodb;
  place.host_.store.endpoint = arguments.get("endpoint");
  place.host_.store.region = arguments.get("region");
  config::QueueConfig settings;
  settings.table = arguments.get("table", arguments.get("queue", std::string(queue::dynamomq::kDefaultTableName)));
  settings.index = arguments.get("index", settings.index);
  if (Exit wrong = check_names(settings); wrong.code() != kExitOk) {
    return wrong;
  }
  place.queue_ = arguments.get("queue", settings.table);
  place.names_table_ = true;
  place.naming_ = "--table " + shell_word(settings.table) + given(arguments, kOverrides);
  place.host_.queues[place.queue_] = std::move(settings);
  return place;
}

OrExit<QueuePlace> QueuePlace::of_host_file(const Arguments& arguments, Queue queue) {
  SLUICE_TRY(host, load_host_file(arguments));
  QueuePlace place;
  place.host_ = std::move(*host);
  place.naming_ = given(arguments, std::array{"config", "index", "endpoint", "region"});
  if (queue == Queue::needed || arguments.has("queue")) {
    SLUICE_TRY(chosen, choose_queue(arguments, place.host_));
    place.queue_ = std::move(*chosen);
    if (Exit wrong = apply_overrides(arguments, place.queue_, place.host_); wrong.code() != kExitOk) {
      return wrong;
    }
  }
  return place;
}

std::string QueuePlace::explained(const Error& error, const std::string& queue) const {
  return error.message() + mend(error, queue);
}

std::string QueuePlace::mend(const Error& error, const std::string& queue) const {
  return mend_of(error, names_table_ ? naming_ : "--queue " + shell_word(queue) + naming_);
}

std::string options_of_host_file(const Arguments& arguments, const std::string& queue) {
  return "--queue " + shell_word(queue) + given(arguments, std::array{"config", "index", "endpoint", "region"});
}

std::vector<Flag> with_place_flags(std::vector<Flag> own, Outboxes outboxes) {
  own.push_back({.name = "queue",
                 .value = "QUEUE",
                 .help = "the queue [default: the only one of the host file, or the table's name]",
                 .common = true});
  if (outboxes == Outboxes::taken) {
    own.push_back({.name = "outbox",
                   .value = "NAME",
                   .help = "the rows of [outbox.NAME]: the same as --queue outbox:NAME",
                   .common = true});
  }
  Flag config = config_flag();
  config.common = true;
  own.push_back(config);
  own.push_back({.name = "table",
                 .value = "TABLE",
                 .help = "a DynamoDB table, without a host file [default: the queue's name, else dynamo-mq-table]",
                 .common = true,
                 .alias = "table-name"});
  own.push_back({.name = "index",
                 .value = "INDEX",
                 .help = "its index [default: dynamo-mq-index-queue_type-sent_at]",
                 .common = true,
                 .alias = "index-name"});
  own.push_back({.name = "endpoint",
                 .value = "URL",
                 .help = "DynamoDB's address [default: AWS's own]",
                 .common = true,
                 .alias = "endpoint-url"});
  own.push_back({.name = "region",
                 .value = "REGION",
                 .help = "AWS region [default: from the environment or profile]",
                 .common = true});
  return own;
}

std::vector<std::string> known_queues(const config::HostConfig& host) {
  std::set<std::string> names;
  for (const auto& [name, settings] : host.queues) {
    names.insert(name);
  }
  for (const auto& [name, outbox] : host.outboxes) {
    names.insert(std::string(config::kOutboxPrefix) + name);
  }
  for (const auto& job : config::load_job_files(host, config::process_environment()).jobs) {
    for (const config::WeightedQueue& queue : work::queues_of(job)) {
      names.insert(queue.name);
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace sluice::cli
