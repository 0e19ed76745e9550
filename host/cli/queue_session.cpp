#include "host/cli/queue_session.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "base/ranges.hpp"
#include "base/shell_word.hpp"
#include "base/text/joined.hpp"
#include "base/text/visible.hpp"
#include "config/syntax.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::cli {

namespace {

constexpr std::array<const char*, 2> kDefaultPlaces{"host.toml", "/etc/sluice/host.toml"};
constexpr const char* kVariable = "SLUICE_CONFIG";
constexpr std::array<const char*, 3> kOverrides{"index", "endpoint", "region"};
constexpr std::array<const char*, 4> kFileOptions{"config", "index", "endpoint", "region"};

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// The host file that --config or SLUICE_CONFIG names, whether or not there is one.
struct NamedFile {
  std::string path;
  const char* by;
};

std::optional<NamedFile> named_host_file(const Arguments& arguments) {
  if (arguments.has("config")) {
    return NamedFile{arguments.get("config"), "--config"};
  }
  const std::string variable = config::process_environment()(kVariable).value_or("");
  return variable.empty() ? std::nullopt : std::optional(NamedFile{variable, kVariable});
}

/// The host file that lies at a default place.
std::optional<std::string> default_host_file() {
  const auto* const found = find_where(kDefaultPlaces, exists);
  return found == nullptr ? std::nullopt : std::optional<std::string>(*found);
}

/// The first option of this command line that says where a table is; null: there is none.
const char* const* first_override(const Arguments& arguments) {
  return find_where(kOverrides, [&arguments](const char* option) { return arguments.has(option); });
}

/// Whether the command says that it is about a table in DynamoDB, without a host file.
bool means_dynamodb(const Arguments& arguments) {
  return arguments.has("table") || first_override(arguments) != nullptr;
}

/// Whether a command of DynamoMQ's tool is about a table whatever a host file says.
bool means_their_table(const Arguments& arguments) {
  return (arguments.has("endpoint") || arguments.has("index")) && !arguments.has("queue") && !arguments.has("config");
}

Exit no_host_file(const std::string& else_name) {
  return {kExitConfiguration,
          "no host file: there is neither host.toml in this folder nor /etc/sluice/host.toml; name "
          "one with --config FILE or the variable SLUICE_CONFIG" +
              else_name};
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
  const std::vector<std::string> names = known_queues(host, arguments.get("job"));
  if (names.size() == 1 && !arguments.has("queue")) {
    return names.front();
  }
  return Exit::usage(std::string("--queue is ") + (arguments.has("queue") ? "empty" : "missing") +
                     "; write --queue QUEUE" + (names.empty() ? "" : ", one of " + sluice::joined(names)));
}

OrExit<void> check_table_name(const std::string& name) {
  return config::table_complaint(name) == nullptr
             ? OrExit<void>()
             : Exit::usage("\"" + name +
                           "\" is no name for a table or an index; one has 3 to 255 of the characters "
                           "a-z A-Z 0-9 _ - .");
}

/// What the command line says otherwise than the host file.
OrExit<void> apply_overrides(const Arguments& arguments, const std::string& name, config::HostConfig& host) {
  const auto* const first = first_override(arguments);
  if (first == nullptr) {
    return {};
  }
  const config::QueueConfig queue = host.queue(name);
  config::StoreConfig& store = queue.store.empty() ? host.store : host.stores.at(queue.store);
  if (store.kind == config::StoreKind::sqlite) {
    return Exit::usage("--" + std::string(*first) + " says where a table is, and queue " + name + " of " + host.file +
                       " lies in the file " + store.path + "; leave it out, or name a table with --table");
  }
  if (arguments.has("index") && queue.layout == config::Layout::leased) {
    return Exit::usage("--index goes with tables of DynamoMQ's layout, and queue " + name +
                       " lies in the leased table " + queue.table +
                       ", which has no index; leave it out, or name a table with --table");
  }
  store.endpoint = arguments.get("endpoint", store.endpoint);
  store.region = arguments.get("region", store.region);
  if (const auto named = host.queues.find(name); named != host.queues.end()) {
    named->second.index = arguments.get("index", named->second.index);
  }
  return {};
}

}  // namespace

OrExit<std::string> find_host_file(const Arguments& arguments) {
  if (const auto named = named_host_file(arguments)) {
    return exists(named->path) ? OrExit<std::string>(named->path)
                               : Exit(kExitConfiguration, "there is no host file " + named->path + ", which " +
                                                              named->by + " names; mend the name");
  }
  const auto place = default_host_file();
  return place ? OrExit<std::string>(*place) : no_host_file({});
}

OrExit<config::HostConfig> load_host_file(const Arguments& arguments) {
  SLUICE_TRY(path, find_host_file(arguments));
  SLUICE_TRY(host, config::load_host_config(*path, config::process_environment()));
  return std::move(*host);
}

bool works_by_host_file(const Arguments& arguments) {
  return !arguments.has("table") && (named_host_file(arguments) || default_host_file());
}

std::vector<config::JobConfig> counting_jobs(const config::HostConfig& host) {
  auto files = config::load_job_files(host, config::process_environment());
  return files.errors.empty() ? std::move(files.jobs) : std::vector<config::JobConfig>();
}

OrExit<void> check_job_files(const config::HostConfig& host) {
  const auto jobs = config::load_job_files(host, config::process_environment());
  return jobs.errors.empty() ? OrExit<void>() : Exit(jobs.errors);
}

std::vector<std::string> known_queues(const config::HostConfig& host, const std::string& job) {
  const auto jobs = config::load_job_files(host, config::process_environment()).jobs;
  if (const auto* const named = find_where(jobs, [&job](const auto& one) { return one.name == job; })) {
    return named->queue_names();
  }
  const auto names = config::queue_names(host, jobs);
  return {names.begin(), names.end()};
}

OrExit<bool> names_queue(const Arguments& line, bool may_be_own) {
  const std::string& word = line.plain().front();
  auto host = load_host_file(line);
  if (host.has_error()) {
    return false;  // whoever opens the queue says so
  }
  static_cast<void>(apply_overrides(line, word, *host));
  OpenQueues open(*host);
  const auto known = check_known(open.queues, word, Deadline::after(open.clock, std::chrono::seconds(5)),
                                 "the first word names the queue where files know other than one; `sluice queues` "
                                 "lists them");
  if (!known.has_error()) {
    return true;
  }
  const bool is_optional = may_be_own || known_queues(*host, line.get("job")).size() == 1;
  return is_optional ? OrExit<bool>(false) : OrExit<bool>(known.error());
}

OrExit<void> check_known(runtime::HostQueues& queues, const std::string& queue, Deadline deadline,
                         const std::string& mend) {
  const auto known = queues.check_known(queue, mend, deadline);
  if (known) {
    return {};
  }
  return known.error().code() == ErrorCode::not_found ? Exit::usage(known.error().message()) : unopened(known.error());
}

std::string mend_of(const Error& error, const std::string& queue, const std::string& options) {
  using queue::table::TableFault;
  if (config::outbox_named(queue)) {
    return {};  // its own errors say the mend
  }
  switch (queue::table::table_fault(error)) {
    case TableFault::no_table:
      return "; make it with: sluice table create " + options;
    case TableFault::no_index:
      return "; see what it has with: sluice table check " + options;
    case TableFault::other_keys:
      return "; look with: sluice table check " + options;
    case TableFault::none:
      break;
  }
  return {};
}

std::string options_of_host_file(const Arguments& arguments, const std::string& queue) {
  return "--queue " + shell_word(queue) + given(arguments, kFileOptions);
}

Exit unopened(const Error& error) {
  return {error.code() == ErrorCode::invalid ? kExitConfiguration : kExitFailure, error.message()};
}

bool looks_are_billed(const config::HostConfig& host, const std::string& queue) {
  const config::OutboxConfig* const outbox = host.outbox(queue);
  return outbox != nullptr ? outbox->kind == config::OutboxKind::dynamodb
                           : host.store_of(queue).kind == config::StoreKind::dynamodb;
}

operate::TableTariff tariff_of(const config::HostConfig& host, const std::string& queue) {
  if (host.outbox(queue) != nullptr || !looks_are_billed(host, queue)) {
    return {};
  }
  return {host.queue(queue).layout, queue};
}

OrExit<QueuePlace> QueuePlace::find(const Arguments& arguments, Queue queue, HostFiles files) {
  if (arguments.has("table") && arguments.has("config")) {
    return Exit::usage("--config names a host file, and --table a table without one; give one or the other");
  }
  const bool anywhere = files == HostFiles::anywhere;
  const bool has_file = named_host_file(arguments) || (anywhere && default_host_file());
  if (has_file && !arguments.has("table") && !(files == HostFiles::named_only && means_their_table(arguments))) {
    return of_host_file(arguments, queue);
  }
  if (anywhere && queue != Queue::table && !means_dynamodb(arguments)) {
    return no_host_file(queue == Queue::apart ? ", or with --region REGION say that tables in DynamoDB are meant"
                                              : ", or a table in DynamoDB with --table TABLE");
  }
  return of_table(arguments, queue, anywhere ? std::string_view() : queue::dynamomq::kDefaultTableName);
}

OrExit<QueuePlace> QueuePlace::of_table(const Arguments& arguments, Queue queue, std::string_view default_table) {
  QueuePlace place;
  place.host_.store.kind = config::StoreKind::dynamodb;
  place.host_.store.endpoint = arguments.get("endpoint");
  place.host_.store.region = arguments.get("region");
  place.names_table_ = true;
  if (queue == Queue::apart) {
    place.queue_ = arguments.get("from");
    place.naming_ = given(arguments, kOverrides);
    place.names_table_ = false;
    for (const char* const side : {"from", "to"}) {
      if (const std::string name = arguments.get(side); !name.empty()) {
        SLUICE_PASS_ON(check_table_name(name));
        place.host_.queues[name].table = name;
      }
    }
    return place;
  }
  config::QueueConfig settings;
  settings.table = arguments.get("table", arguments.get("queue", default_table));
  if (settings.table.empty() && default_table.empty()) {
    return Exit::usage("which table? Write --table TABLE; a host file, which would say it, is not there");
  }
  settings.index = arguments.get("index", settings.index);
  for (const std::string& name : {settings.table, settings.index}) {
    SLUICE_PASS_ON(check_table_name(name));
  }
  place.queue_ = arguments.get("queue", settings.table);
  place.naming_ = "--table " + shell_word(settings.table) + given(arguments, kOverrides);
  place.host_.queues[place.queue_] = std::move(settings);
  return place;
}

OrExit<QueuePlace> QueuePlace::of_host_file(const Arguments& arguments, Queue queue) {
  SLUICE_TRY(host, load_host_file(arguments));
  QueuePlace place;
  place.host_ = std::move(*host);
  place.naming_ = given(arguments, kFileOptions);
  if (queue == Queue::apart) {
    place.queue_ = arguments.get("from");
    const auto* first = first_override(arguments);
    for (const char* const side : {"from", "to"}) {
      const std::string name = arguments.get(side);
      // One of the two may lie in a file.
      if (place.host_.store_of(name).kind == config::StoreKind::dynamodb) {
        SLUICE_PASS_ON(apply_overrides(arguments, name, place.host_));
        first = nullptr;
      }
    }
    return first == nullptr ? OrExit<QueuePlace>(std::move(place))
                            : Exit::usage("--" + std::string(*first) + " says where a table is, and queues " +
                                          arguments.get("from") + " and " + arguments.get("to") + " of " +
                                          place.host_.file + " both lie in files; leave it out");
  }
  if (queue == Queue::needed || queue == Queue::table || arguments.has("queue")) {
    SLUICE_TRY(chosen, choose_queue(arguments, place.host_));
    place.queue_ = std::move(*chosen);
    SLUICE_PASS_ON(apply_overrides(arguments, place.queue_, place.host_));
  }
  return place;
}

std::string QueuePlace::mend(const Error& error, const std::string& queue) const {
  return mend_of(error, queue, names_table_ ? naming_ : "--queue " + shell_word(queue) + naming_);
}

std::string this_machine() {
  std::array<char, 256> machine{};
  return ::gethostname(machine.data(), machine.size() - 1) == 0 ? machine.data() : "?";
}

std::string this_operator() {
  const uid_t user = ::getuid();
  const passwd* const entry = ::getpwuid(user);
  const std::string name = entry == nullptr ? "user " + std::to_string(user) : std::string(entry->pw_name);
  // As the environment says it, so that it is taken for a name only where it looks like one.
  const std::string behind_sudo = config::process_environment()("SUDO_USER").value_or("");
  const bool as_another = config::name_complaint(behind_sudo) == nullptr && behind_sudo != name;
  return (as_another ? behind_sudo + " as " : "") + name + "@" + this_machine();
}

void QueueSession::warn(const std::string& line) {
  Console::end_progress();
  std::fprintf(stderr, "sluice: %s\n", visible(line).c_str());
}

OrExit<QueueSession> QueueSession::open(const Arguments& arguments, Queue queue, HostFiles files) {
  SLUICE_TRY(place, QueuePlace::find(arguments, queue, files));
  QueueSession session(std::make_unique<Parts>(std::move(*place)));
  if (!session.host().outboxes.empty()) {
    session.queues().count_for(counting_jobs(session.host()));
  }
  if (!session.queue().empty()) {
    if (queue != Queue::unchecked && !arguments.has("create")) {
      SLUICE_PASS_ON(check_known(session.queues(), session.queue(), session.deadline()));
    }
    SLUICE_TRY(oper, or_end(operate::AuditedOperator::open(session.queues(), session.queue(), this_operator(),
                                                           session.random()),
                            unopened));
    session.operator_ = std::move(*oper);
    SLUICE_PASS_ON(session.check_plain_id(arguments));
  }
  return session;
}

OrExit<void> QueueSession::check_plain_id(const Arguments& arguments) {
  const std::string& word = arguments.plain_id();
  if (word.empty() || host().file.empty()) {
    return {};
  }
  const auto found = oper().get(word, deadline());
  if (found) {
    return {};
  }
  const auto known = check_known(queues(), word, deadline());
  if (found.error().code() != ErrorCode::not_found || !known.has_error()) {
    return failure(found.error());
  }
  return Exit(message_ids(arguments).size() > 1 ? kExitUsage : kExitFailure,
              found.error().message() + ", and " + known.error().lines().front());
}

Result<operate::QueueCounter> QueueSession::open_counter(const std::string& queue) {
  using Method = operate::QueueCounter::Method;
  SLUICE_TRY(opened, queues().open_operator(queue));
  const bool told = !looks_are_billed(host(), queue) || host().leased(queue);
  return operate::QueueCounter(std::move(*opened), told ? Method::as_told : Method::by_pages, clock());
}

void QueueSession::finish_deed(const operate::DeedCount& count, const std::string& stopped_by) {
  if (const auto noted = oper().finish(count, stopped_by, deadline()); !noted) {
    warn(open_deed(explained(noted.error())));
  }
}

const void* store_identity(const config::HostConfig& host, const std::string& queue) {
  const config::OutboxConfig* const outbox = host.outbox(queue);
  return outbox == nullptr ? static_cast<const void*>(&host.store_of(queue)) : outbox;
}

std::vector<std::string> QueueSession::all_queues(std::vector<std::string>& failures) {
  std::vector<std::string> names = known_queues(host());
  auto made = queues().made_by_messages(Deadline::after(clock(), kStorePatience));
  if (made) {
    names.insert(names.end(), made->begin(), made->end());
  } else {
    failures.push_back(made.error().message());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace sluice::cli
