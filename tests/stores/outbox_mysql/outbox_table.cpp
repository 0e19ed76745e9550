#include "tests/stores/outbox_mysql/outbox_table.hpp"

#include <atomic>
#include <stdexcept>

namespace sluice::queue::outbox::mysql {

std::unique_ptr<test::MariaDbServer> OutboxTable::server_;

std::vector<std::string>& OutboxTable::server_options() {
  static std::vector<std::string> options;
  return options;
}

void OutboxTable::SetUpTestSuite() { server_ = test::MariaDbServer::start(server_options()); }

void OutboxTable::TearDownTestSuite() { server_.reset(); }

void OutboxTable::SetUp() {
  if (server_ == nullptr) {
    GTEST_SKIP() << test::MariaDbServer::absence();
  }
  static std::atomic<int> count{0};
  name_ = "t" + std::to_string(++count);
  const Settings connect{.config = {.url = server_->url("mysql")}};
  auto root = mysql::connect(connect, clock_, soon());
  ASSERT_TRUE(root) << root.error().message();
  root_ = std::move(*root);
  sql("SET SESSION wait_timeout = 28800");
  sql("CREATE DATABASE " + name_);
  sql("USE " + name_);
  for (std::uint32_t bucket = 0; bucket < settings().config.buckets; ++bucket) {
    all_buckets_.push_back(bucket);
  }
  make_table(settings());
}

Settings OutboxTable::settings() const {
  Settings settings;
  settings.name = "orders";
  settings.config.url = server_->url(name_);
  settings.config.columns.created_at = "created_at";
  settings.config.columns.last_error = "last_error";
  settings.config.attributes = {"traceparent"};
  return settings;
}

std::shared_ptr<Database> OutboxTable::database(const Settings& settings) const {
  databases_.push_back(make_mysql_database(settings, clock_, random_));
  return databases_.back();
}

std::vector<Cells> OutboxTable::sql(const std::string& statement) {
  auto answer = root_->run(statement, soon());
  if (answer.has_error()) {
    throw std::runtime_error(statement + ": " + answer.error().message());
  }
  return std::move(answer->rows);
}

std::string OutboxTable::value(const std::string& statement) {
  const auto rows = sql(statement);
  return rows.empty() ? "no row" : rows.front()[0].value_or("NULL");
}

void OutboxTable::make_table(const Settings& settings) {
  std::string ddl = database(settings)->ddl(false);
  for (std::size_t end = 0; (end = ddl.find(";\n")) != std::string::npos; ddl.erase(0, end + 2)) {
    sql(ddl.substr(0, end));
  }
}

void OutboxTable::insert(std::int64_t id, const std::string& type, const std::string& aggregate,
                         const std::string& payload) {
  sql("INSERT INTO outbox (id, aggregate_type, aggregate_id, event, payload) VALUES (" + std::to_string(id) + ",'" +
      type + "','" + aggregate + "','created','" + payload + "')");
}

std::unique_ptr<LockSession> OutboxTable::locks() { return database()->open_locks(soon()).value(); }
std::unique_ptr<ReadSession> OutboxTable::reader() { return database()->open_reader(soon()).value(); }
std::unique_ptr<AdminSession> OutboxTable::desk() { return database()->open_admin(soon()).value(); }

std::vector<std::int64_t> OutboxTable::pending(ReadSession& reader, FetchRequest request) {
  if (request.buckets.empty()) {
    request.buckets = all_buckets_;
  }
  if (request.filter == nullptr) {
    request.filter = &everything_;
  }
  const auto page = reader.fetch(request, soon());
  std::vector<std::int64_t> ids;
  EXPECT_TRUE(page) << page.error().message();
  for (const Row& row : page ? page->rows : std::vector<Row>()) {
    ids.push_back(row.id);
  }
  return ids;
}

}  // namespace sluice::queue::outbox::mysql
