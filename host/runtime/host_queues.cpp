#include "host/runtime/host_queues.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "host/queue/error_groups.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "host/stores/emit_source.hpp"
#include "host/stores/leased/leased_queues.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/outbox/dynamodb/outbox_place.hpp"
#include "host/stores/outbox/mysql/mysql_database.hpp"
#include "host/stores/outbox/postgres/postgres_database.hpp"
#include "host/stores/outbox/tunnel/ssh_tunnel.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"

namespace sluice::runtime {

namespace {

std::string no_region(const std::string& setting) {
  return "no AWS region is named; set " + setting + ", the variable AWS_REGION, or region in your AWS profile";
}

Error settings_error(const dynamo::Error& error) {
  const bool denied = error.kind == dynamo::ErrorKind::no_credentials;
  return {denied ? ErrorCode::denied : ErrorCode::invalid, error.message};
}

/// How somebody says which region a store is in.
std::string region_setting(const config::HostConfig& host, const std::string& store) {
  if (host.file.empty()) {
    return "--region REGION";
  }
  return (store.empty() ? "[dynamodb]" : "[stores." + store + "]") + " region in " + host.file;
}

std::string store_text(const std::string& name) {
  return name.empty() ? "the default store" : "store \"" + name + "\"";
}

using queue::outbox::Database;
using queue::outbox::Settings;

/// A store is asked for so long whether it knows a queue.
constexpr Duration kLookTime = std::chrono::seconds(5);
constexpr Duration kLookAgain = std::chrono::hours(1);

/// Tells the metrics. A reason stands without its numbers, ids and addresses, so that it is one series.
class OutboxMeter final : public queue::outbox::OutboxObserver {
 public:
  explicit OutboxMeter(observe::OutboxMetrics& metrics) : metrics_(metrics) {}
  void published(const std::string& type, Duration latency) override { metrics_.published(type, latency); }
  void failed(const std::string& type, const std::string& reason) override {
    metrics_.failed(type, queue::folded_error(reason));
  }
  void marked(std::size_t rows) override { metrics_.marked(rows); }
  void excluded(std::uint64_t rows) override { metrics_.excluded(rows); }

 private:
  observe::OutboxMetrics& metrics_;
};

/// Where the database answers, as the SSH server reaches it.
Result<queue::outbox::postgres::ServerPlace> target_of(const config::OutboxConfig& outbox) {
  if (outbox.kind != config::OutboxKind::mysql) {
    return queue::outbox::postgres::server_of(outbox.url);
  }
  SLUICE_TRY(address, queue::outbox::mysql::parse_url(outbox.url));
  return queue::outbox::postgres::ServerPlace{address->host, address->port};
}

Result<queue::outbox::Tunnel> tunnel_of(const config::OutboxConfig& outbox, const Clock& clock) {
  if (!outbox.ssh) {
    return queue::outbox::Tunnel();
  }
  SLUICE_TRY(target, target_of(outbox));
  return queue::outbox::make_ssh_tunnel({*outbox.ssh, target->host, target->port}, clock);
}

/// The one place that knows which databases there are.
Result<std::unique_ptr<Database>> database_of(Settings settings, const OutboxSeams& seams,
                                              std::unique_ptr<DynamoDbConnection>& connection) {
  const config::OutboxConfig& outbox = settings.config;
  if (outbox.kind == config::OutboxKind::dynamodb) {
    SLUICE_TRY(opened, DynamoDbConnection::open({.region = outbox.region,
                                                 .endpoint = outbox.endpoint,
                                                 .region_setting = "region in [outbox." + settings.name + "]",
                                                 .metrics = seams.metrics,
                                                 .book = seams.book},
                                                seams.clock, seams.random));
    connection = *std::move(opened);
    return queue::outbox::make_dynamodb_outbox(std::move(settings), connection->client(), seams.clock, seams.random);
  }
  SLUICE_TRY(tunnel, tunnel_of(outbox, seams.clock));
  settings.tunnel = std::move(*tunnel);
  if (outbox.kind == config::OutboxKind::mysql) {
    return queue::outbox::make_mysql_database(settings, seams.clock, seams.random);
  }
  return queue::outbox::make_postgres_database(settings, seams.clock, seams.random);
}

queue::DedupRules dedup_of(const config::HostConfig& config, const std::string& queue) {
  const config::QueueConfig settings = config.queue(queue);
  return {settings.dedup_by_content, settings.dedup_window};
}

// Two stores may be one table, in which one process has a heartbeat for each.
std::string incarnation_in(const std::string& process, const std::string& store) {
  return store.empty() ? process : process + "." + store;
}

/// Whether there is anything to hold what handlers send to.
bool has_emit_rules(const config::HostConfig& config) {
  return !config.create_queues || !config.stores.empty() ||
         std::any_of(config.queues.begin(), config.queues.end(),
                     [&](const auto& queue) { return dedup_of(config, queue.first).any(); });
}

}  // namespace

DynamoDbConnection::Options DynamoDbConnection::options_of(const config::HostConfig& host, const std::string& store) {
  const config::StoreConfig& settings = host.store_named(store);
  Options options;
  options.region = settings.region;
  options.endpoint = settings.endpoint;
  options.region_setting = region_setting(host, store);
  std::set<std::string> shared;
  for (const auto& [name, queue] : host.queues) {
    if (queue.store == store && !options.queues.emplace(host.queue(name).table, name).second) {
      shared.insert(host.queue(name).table);
    }
  }
  // What is spent on a table of several queues is its own.
  for (const std::string& table : shared) {
    options.queues.erase(table);
  }
  return options;
}

Result<std::unique_ptr<DynamoDbConnection>> DynamoDbConnection::open(const Options& options, const Clock& clock,
                                                                     Random& random) {
  std::unique_ptr<DynamoDbConnection> made(new DynamoDbConnection(options));
  dynamo::Connection::Options connection_options{
      .region = options.region,
      .endpoint = options.endpoint,
      .observer = [connection = made.get()](const dynamo::CallRecord& call) { connection->count(call); }};
  auto connection =
      dynamo::Connection::open(std::move(connection_options), no_region(options.region_setting), clock, random);
  if (connection.has_error()) {
    return settings_error(connection.error());
  }
  made->connection_ = std::move(*connection);
  return made;
}

void DynamoDbConnection::count(const dynamo::CallRecord& call) {
  const auto found = queues_.find(call.table);
  const std::string& queue = found == queues_.end() ? call.table : found->second;
  const cost::Spent spent{1, call.capacity.read, call.capacity.write};
  if (book_ != nullptr) {
    book_->spent(queue, spent);
  }
  if (metrics_ != nullptr) {
    metrics_->dynamodb_request(queue, call);
  }
  const MutexLock lock(mutex_);
  cost_ += spent;
}

std::string host_name(const config::HostConfig& config) {
  if (!config.name.empty()) {
    return config.name;
  }
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string("host");
}

std::optional<Error> beyond_store(const config::HostConfig& config, const std::string& from, const std::string& to) {
  if (config::outbox_named(from)) {
    return std::nullopt;  // it shares a transaction with no queue, and sends to all of them
  }
  const std::string here = config.queue(from).store;
  const std::string there = config.queue(to).store;
  if (here == there) {
    return std::nullopt;
  }
  return Error(ErrorCode::invalid, "queue " + to + " lies in " + store_text(there) + ", the handler's queue " + from +
                                       " in " + store_text(here) +
                                       ", and a transaction cannot write both; give [queues." + to +
                                       "] the store of queue " + from + ", or send to a queue that lies there");
}

Result<OpenOutbox> open_outbox(const config::HostConfig& host, const std::string& name, OutboxSeams seams) {
  const auto found = host.outboxes.find(name);
  if (found == host.outboxes.end()) {
    return Error(ErrorCode::queue_missing, host.file + " has no [outbox." + name + "]; add it, or check the name");
  }
  queue::outbox::OutboxOptions options{
      .settings = {.name = name,
                   .config = found->second,
                   .application = std::string(Settings::kApplication) + host_name(host)},
      .report = std::move(seams.report)};
  std::vector<queue::Selection> jobs;
  for (const config::JobConfig& job : seams.jobs) {
    if (config::outbox_named(job.queue) == name) {
      jobs.push_back(selection_of(job));
    }
  }
  options.jobs = std::make_shared<queue::outbox::TakingJobs>(std::move(jobs));
  if (seams.metrics != nullptr) {
    options.observer = std::make_shared<OutboxMeter>(seams.metrics->outbox(name));
  }
  OpenOutbox open;
  SLUICE_TRY(database, database_of(options.settings, seams, open.connection));
  open.queues = std::make_unique<queue::outbox::OutboxQueues>(std::move(options), *std::move(database), seams.clock,
                                                              seams.random);
  return open;
}

queue::Selection selection_of(const config::JobConfig& job) {
  return {.job = job.name,
          .types = job.outbox.types,
          .deny_types = job.outbox.deny_types,
          .events = job.outbox.events,
          .skip_events = job.outbox.skip_events,
          .hold_dead = job.on_dead_letter == config::OnDeadLetter::hold};
}

HostQueues::HostQueues(const config::HostConfig& config, const Clock& clock, Random& random, observe::Metrics* metrics,
                       Report report, cost::CostBook* book)
    : config_(config),
      clock_(clock),
      random_(random),
      metrics_(metrics),
      report_(std::move(report)),
      book_(book),
      incarnation_(queue::leased::make_incarnation(host_name(config), random)) {}

Result<std::unique_ptr<queue::Source>> HostQueues::open_source(const queue::QueueAddress& address) {
  const auto store = store_of(address.queue);
  auto source = store ? (*store)->open_source(address) : Result<std::unique_ptr<queue::Source>>(store.error());
  if (!source || !has_emit_rules(config_)) {
    return source;
  }
  return queue::emitting(
      std::move(*source),
      {.refused = [this, from = address.queue](const std::string& to) { return beyond_store(config_, from, to); },
       .unknown = [this](const std::string& to, Deadline deadline) { return unknown_to_handlers(to, deadline); },
       .dedup = [this](const std::string& to) { return dedup_of(config_, to); }});
}

Result<std::unique_ptr<queue::Source>> HostQueues::open_selected(const queue::QueueAddress& address,
                                                                 const queue::Selection& selection) {
  if (!config::outbox_named(address.queue)) {
    return open_source(address);
  }
  SLUICE_TRY(store, store_of(address.queue));
  SLUICE_TRY(source, (*store)->open_selected(address, selection));
  return queue::sending_first(
      std::move(*source),
      [this](const std::string& to) -> Result<std::unique_ptr<queue::Sender>> {
        if (auto unknown = unknown_to_handlers(to, Deadline::after(clock_, kLookTime))) {
          return *std::move(unknown);
        }
        return open_sender(to);
      },
      clock_,
      [this, from = address.queue](const std::string& warning) {
        if (report_) {
          report_(from + ": " + warning);
        }
      });
}

Result<std::unique_ptr<queue::Sender>> HostQueues::open_sender(const std::string& queue) {
  const auto store = store_of(queue);
  auto sender = store ? (*store)->open_sender(queue) : Result<std::unique_ptr<queue::Sender>>(store.error());
  if (!sender) {
    return sender;
  }
  return queue::deduplicating(std::move(*sender), dedup_of(config_, queue));
}

Result<std::unique_ptr<queue::NoticeBoard>> HostQueues::open_board(const std::string& queue) {
  // An application's table holds no notices: those of its jobs lie in the host's own file, where it has one.
  const bool own_file = config::outbox_named(queue) && config_.store.kind == config::StoreKind::sqlite;
  if (own_file) {
    SLUICE_TRY(file, open_store({}));
    return (*file)->queues->open_board(queue);
  }
  SLUICE_TRY(store, store_of(queue));
  return (*store)->open_board(queue);
}

Result<std::vector<std::string>> HostQueues::made_by_messages_in(const std::string& store, Deadline deadline) {
  auto made = ask_for_made(store, deadline);
  if (made || made.error().code() != ErrorCode::denied) {
    return made;
  }
  // Whose queues all have tables of DynamoMQ need have no right to another one.
  const auto files = config::load_job_files(config_, config::process_environment());
  const auto names = config::queue_names(config_, files.jobs);
  const auto lies_there = [&](const std::string& queue) {
    return !config::outbox_named(queue) && config_.queue(queue).store == store;
  };
  const bool all_elsewhere = std::none_of(
      names.begin(), names.end(), [&](const std::string& queue) { return lies_there(queue) && config_.leased(queue); });
  return all_elsewhere && std::any_of(names.begin(), names.end(), lies_there) ? none_made(store) : std::move(made);
}

std::vector<std::string> HostQueues::none_made(const std::string& store) {
  const MutexLock lock(mutex_);
  absent_at_[store] = clock_.steady_now();
  return {};
}

Result<std::vector<std::string>> HostQueues::ask_for_made(const std::string& store, Deadline deadline) {
  const config::StoreConfig& settings = config_.store_named(store);
  std::error_code unreadable;
  if (settings.kind == config::StoreKind::sqlite && !std::filesystem::exists(settings.path, unreadable)) {
    return std::vector<std::string>();
  }
  SLUICE_TRY(open, open_store(store));
  auto made = (*open)->queues->made_by_messages(deadline);
  if ((*open)->tables == nullptr) {
    return made;
  }
  if (!made && made.error().code() == ErrorCode::queue_missing) {
    return none_made(store);
  }
  if (made) {
    // Also what lies in a table of its own by now.
    std::erase_if(
        *made, [&](const std::string& queue) { return config_.queue(queue).store == store && !config_.leased(queue); });
  }
  return made;
}

Result<std::vector<std::string>> HostQueues::made_by_messages(Deadline deadline) {
  std::vector<std::string> all;
  for (const std::string& store : config_.store_names()) {
    if (has_no_table_for_made(store)) {
      continue;
    }
    SLUICE_TRY(made, made_by_messages_in(store, deadline));
    std::copy_if(made->begin(), made->end(), std::back_inserter(all),
                 [&](const std::string& queue) { return config_.queue(queue).store == store; });
  }
  return all;
}

bool HostQueues::has_no_table_for_made(const std::string& store) const {
  const MutexLock lock(mutex_);
  const auto found = absent_at_.find(store);
  return found != absent_at_.end() && clock_.steady_now() < found->second + kLookAgain;
}

std::string HostQueues::known_elsewhere(const std::string& queue, Deadline deadline) {
  for (const std::string& store : config_.store_names()) {
    if (store == config_.queue(queue).store) {
      continue;
    }
    const auto made = ask_for_made(store, deadline);
    if (made && std::find(made->begin(), made->end(), queue) != made->end()) {
      return "the host file does not say where queue \"" + queue + "\" lies, and messages have made one in " +
             (store.empty() ? "the default store" : "store " + store) + "; give [queues." + queue + "] store = \"" +
             store + "\"";
    }
  }
  return {};
}

Result<void> HostQueues::check_known(const std::string& queue, const std::string& mend, Deadline deadline) {
  const bool outbox = config::outbox_named(queue).has_value();
  // A table of its own has to be there; in one for many queues any name would do.
  const bool in_table =
      !outbox && config_.store_of(queue).kind == config::StoreKind::dynamodb && !config_.leased(queue);
  if (in_table || config_.queues.contains(queue)) {
    return {};
  }
  {
    const MutexLock lock(mutex_);
    if (known_.contains(queue)) {
      return {};
    }
  }
  const auto files = config::load_job_files(config_, config::process_environment());
  auto names = config::queue_names(config_, files.jobs);
  if (!outbox && !names.contains(queue)) {
    SLUICE_TRY(made, ask_for_made(config_.queue(queue).store, deadline));
    names.insert(made->begin(), made->end());
  }
  if (!names.contains(queue) && !files.errors.empty()) {
    return Error(ErrorCode::invalid, "nobody can tell whether there is a queue \"" + queue +
                                         "\", as a job file is wrong: " + files.errors.front().text());
  }
  if (!names.contains(queue)) {
    if (std::string elsewhere = outbox ? std::string() : known_elsewhere(queue, deadline); !elsewhere.empty()) {
      return Error(ErrorCode::not_found, std::move(elsewhere));
    }
    const auto meant = config::nearest(queue, {names.begin(), names.end()});
    return Error(ErrorCode::not_found, "no job, host file or earlier message knows a queue \"" + queue + "\"" +
                                           (meant ? "; did you mean \"" + *meant + "\"? " : "; ") + mend);
  }
  const MutexLock lock(mutex_);
  known_.insert(queue);
  return {};
}

std::optional<Error> HostQueues::unknown_to_handlers(const std::string& queue, Deadline deadline) {
  if (config_.create_queues) {
    return std::nullopt;
  }
  auto known = check_known(queue,
                           "a new queue is named by a job or by [queues." + queue +
                               "] in the host file, or handlers make it with [queues] create = true",
                           deadline);
  // What a store that does not answer knows, nobody can tell; it will say so itself. Nor what a job file knows that is
  // being edited: no message is a dead letter for that.
  return known || known.error().code() != ErrorCode::not_found ? std::nullopt : std::optional(std::move(known).error());
}

std::optional<cost::Spent> HostQueues::cost() const {
  std::optional<cost::Spent> sum;
  const MutexLock lock(mutex_);
  for (const auto& [name, slot] : slots_) {
    if (slot.store && slot.store->connection != nullptr) {
      (sum ? *sum : sum.emplace()) += slot.store->connection->cost();
    }
  }
  return sum;
}

Result<std::unique_ptr<queue::MoveOwnership>> HostQueues::take_ownership(const std::string& queue,
                                                                         const std::vector<queue::Half>& halves) {
  if (!config_.leased(queue)) {
    return std::unique_ptr<queue::MoveOwnership>();
  }
  SLUICE_TRY(store, open_store(config_.queue(queue).store));
  return (*store)->tables->queue(queue).take_ownership(halves);
}

Result<HostQueues::OpenStore*> HostQueues::open_store(const std::string& name) {
  MutexLock lock(mutex_);
  Slot& slot = slots_[name];  // slots are never removed, so that the reference holds
  changed_.wait_until(mutex_, SteadyTime::max(), [&slot]() SLUICE_NO_TSA { return !slot.opening; });
  if (slot.store) {
    return slot.store.get();
  }
  slot.opening = true;
  lock.unlock();
  auto opened = open(name);
  lock.lock();
  slot.opening = false;
  changed_.notify_all();
  SLUICE_PASS_ON(opened);
  slot.store = std::move(*opened);
  return slot.store.get();
}

Result<void> HostQueues::ended(const queue::EndedOwner& owner, Deadline deadline) {
  std::set<std::pair<std::string, std::string>> tables;  // each with its store
  Result<void> all;
  for (const std::string& queue : owner.queues) {
    const config::QueueConfig lies = config_.queue(queue);
    if (!config_.leased(queue) || !tables.emplace(lies.store, lies.table).second) {
      continue;
    }
    const auto store = open_store(lies.store);
    const std::string incarnation = incarnation_in(owner.incarnation, lies.store);
    auto told = store ? (*store)->tables->queue(queue).owner_ended(incarnation, owner.settled, deadline)
                      : Result<void>(store.error());
    if (all) {
      all = std::move(told);
    }
  }
  return all;
}

Result<std::unique_ptr<HostQueues::OpenStore>> HostQueues::open(const std::string& name) const {
  auto opened = std::make_unique<OpenStore>();
  if (const auto outbox = config::outbox_named(name)) {
    // What could be better a host says in its log, and of the commands `outbox status` alone.
    Report report = metrics_ == nullptr ? Report() : report_;
    SLUICE_TRY(made, open_outbox(config_, *outbox, {clock_, random_, metrics_, std::move(report), book_, jobs_}));
    opened->connection = std::move(made->connection);
    opened->queues = std::move(made->queues);
    return opened;
  }
  const config::StoreConfig& store = config_.store_named(name);
  if (store.kind == config::StoreKind::dynamodb) {
    return open_dynamodb(name);
  }
  SLUICE_TRY(queues, queue::open_sqlite_queues({.path = store.path, .report = report_}, clock_, random_));
  opened->queues = std::move(*queues);
  return opened;
}

Result<std::unique_ptr<HostQueues::OpenStore>> HostQueues::open_dynamodb(const std::string& name) const {
  DynamoDbConnection::Options options = DynamoDbConnection::options_of(config_, name);
  options.metrics = metrics_;
  options.book = book_;
  SLUICE_TRY(connection, DynamoDbConnection::open(options, clock_, random_));
  queue::table::TableOptions common{.host = host_name(config_), .region = (*connection)->region(), .warn = report_};
  if (config_.wake.ring) {
    common.ring = config_.wake.secret;
  }
  queue::dynamomq::DynamoMqOptions places{common};
  queue::leased::LeasedOptions leased{common};
  leased.incarnation = incarnation_in(incarnation_, name);
  for (const auto& [queue, settings] : config_.queues) {
    if (settings.store == name && settings.layout == config::Layout::leased) {
      leased.queues[queue] = {
          .table = settings.table, .shards = settings.shards, .strict_fence = settings.fence == config::Fence::strict};
    } else if (settings.store == name) {
      places.queues[queue] = {.table = settings.table, .index = settings.index};
    }
  }
  auto queues = std::make_unique<queue::table::TableQueues>(
      common, (*connection)->client(), clock_, random_,
      [this, in_own = queue::dynamomq::in_dynamomq_tables(places),
       in_leased = queue::leased::in_leased_tables(leased, clock_)](const auto& parts, const std::string& queue) {
        // Without a name: the one that stands for the table of those that messages make.
        return queue.empty() || config_.leased(queue) ? in_leased(parts, queue) : in_own(parts, queue);
      });
  auto opened = std::make_unique<OpenStore>();
  opened->connection = std::move(*connection);
  opened->tables = queues.get();
  opened->queues = std::move(queues);
  return opened;
}

}  // namespace sluice::runtime
