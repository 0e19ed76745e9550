#include "tests/stores/outbox/postgres_rig.hpp"

#include <atomic>
#include <stdexcept>
#include <utility>

#include "host/stores/outbox/postgres/postgres_database.hpp"

namespace sluice::test {

using queue::outbox::Settings;

PostgresServer* postgres() {
  static const std::unique_ptr<PostgresServer> server = PostgresServer::start();
  return server.get();
}

OutboxTable::OutboxTable(bool side_table) : side_table_(side_table) {
  attributes_ = {"traceparent"};
  connect();
  run_all(database()->ddl(false));
}

OutboxTable::OutboxTable(const std::string& ddl, config::OutboxColumns columns)
    : side_table_(false), columns_(std::move(columns)) {
  connect();
  run_all(ddl);
}

void OutboxTable::connect() {
  static std::atomic<int> tables = 0;
  name_ = "outbox_" + std::to_string(++tables);
  for (int attempt = 0; attempt < 200 && !connection_; ++attempt) {
    auto opened = queue::outbox::postgres::connect({.config = {.url = postgres()->url()}}, "",
                                                   Deadline::after(SystemClock(), std::chrono::seconds(20)));
    if (opened) {
      connection_ = std::move(*opened);
    }
  }
  if (!connection_) {
    throw std::runtime_error("the test's PostgreSQL lets nobody in");
  }
}

// The extended protocol takes one statement at a time.
void OutboxTable::run_all(const std::string& statements) {
  std::string statement;
  bool quoted = false;
  for (std::size_t i = 0; i < statements.size(); ++i) {
    quoted = statements.compare(i, 2, "$$") == 0 ? !quoted : quoted;
    statement += statements[i];
    if (statements[i] == ';' && !quoted) {
      sql(std::exchange(statement, {}));
    }
  }
}

Settings OutboxTable::settings() const {
  Settings settings{.name = "orders", .config = {.url = postgres()->url(), .side_table = side_table_}};
  settings.config.table = name_;
  settings.config.columns = columns_;
  settings.config.attributes = attributes_;
  return settings;
}

std::unique_ptr<queue::outbox::Database> OutboxTable::database() const {
  return queue::outbox::make_postgres_database(settings(), clock_, random_);
}

std::vector<std::string> OutboxTable::sql(std::string text) {
  for (std::size_t at = text.find("@T"); at != std::string::npos; at = text.find("@T", at)) {
    text.replace(at, 2, name_);
  }
  const auto answer = connection_->run(text, Deadline::after(SystemClock(), std::chrono::seconds(60)));
  if (!answer) {
    throw std::runtime_error(text + ": " + answer.error().message());
  }
  std::vector<std::string> first;
  first.reserve(answer->rows.size());
  for (const auto& row : answer->rows) {
    first.push_back(row.empty() ? "" : row[0].value_or(""));
  }
  return first;
}

void OutboxTable::insert(const std::vector<std::string>& groups, std::int64_t first) {
  std::string values;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string id = std::to_string(first + static_cast<std::int64_t>(i));
    values += (i == 0 ? "(" : ",(") + id + ",'orders','" + groups[i] + "','created','{\"n\": " + id + "}')";
  }
  sql("INSERT INTO @T (id, aggregate_type, aggregate_id, event, payload) VALUES " + values);
}

std::int64_t OutboxTable::count(const std::string& where) {
  return std::stoll(sql("SELECT count(*) FROM @T WHERE " + where).at(0));
}

SourceRig::SourceRig(OutboxTable& table, const queue::Selection& selection, Duration lease, std::uint32_t buckets,
                     const std::string& schema, const std::string& producer) {
  queue::outbox::OutboxOptions options{.settings = table.settings()};
  options.settings.config.producer = producer;
  options.settings.config.lease = lease;
  options.settings.config.buckets = buckets;
  options.settings.config.schema = schema;
  options.report = [this](const std::string& text) {
    const MutexLock lock(mutex);
    warnings.push_back(text);
  };
  database = queue::outbox::make_postgres_database(options.settings, clock, random);
  source = *queue::outbox::make_outbox_source(std::move(options), selection, *database, clock, random);
  source->start({.on_ready =
                     [this] {
                       const MutexLock lock(mutex);
                       ready = true;
                       changed.notify_all();
                     },
                 .lost =
                     [this](std::span<const queue::Receipt> receipts) {
                       const MutexLock lock(mutex);
                       for (const queue::Receipt& receipt : receipts) {
                         lost_ids.push_back(receipt.id);
                       }
                       changed.notify_all();
                     }});
}

std::vector<queue::Delivery> SourceRig::claim_now() {
  auto claimed = source->claim({.max = 1000}, deadline());
  return claimed ? std::move(claimed->deliveries) : std::vector<queue::Delivery>();
}

std::vector<queue::Delivery> SourceRig::claim(std::size_t max, Duration within) {
  const SteadyTime until = clock.steady_now() + within;
  while (clock.steady_now() < until) {
    {
      const MutexLock lock(mutex);
      ready = false;
    }
    auto claimed = source->claim({.max = max}, Deadline::at(until));
    if (claimed && !claimed->deliveries.empty()) {
      return std::move(claimed->deliveries);
    }
    const MutexLock lock(mutex);
    // An error is asked again after a while, for nobody tells of its end.
    changed.wait_until(mutex, std::min(until, clock.steady_now() + std::chrono::milliseconds(50)),
                       [this]() SLUICE_NO_TSA { return ready; });
  }
  return {};
}

queue::SettleStatus SourceRig::settle(const queue::Delivery& delivery, queue::CompletionAction action, Duration delay,
                                      const std::string& error) {
  queue::Completion completion{.receipt = delivery.receipt, .action = action, .delay = delay};
  if (action != queue::CompletionAction::remove) {
    completion.failure.error = error;
  }
  return source->settle(std::vector{completion}, deadline()).at(0).status;
}

std::vector<std::int64_t> SourceRig::drain(std::size_t count) {
  std::vector<std::int64_t> ids;
  while (ids.size() < count) {
    const auto deliveries = claim();
    if (deliveries.empty()) {
      return ids;
    }
    std::vector<queue::Completion> completions;
    for (const queue::Delivery& delivery : deliveries) {
      ids.push_back(std::stoll(delivery.message.id));
      completions.push_back({.receipt = delivery.receipt});
    }
    source->settle(completions, deadline());
  }
  return ids;
}

std::vector<std::string> SourceRig::lost() {
  const MutexLock lock(mutex);
  return lost_ids;
}

}  // namespace sluice::test
