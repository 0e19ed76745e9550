#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "host/stores/outbox/mysql/mysql_database.hpp"
#include "tests/support/mariadb_server.hpp"
#include "tests/support/result_value.hpp"

namespace sluice::queue::outbox::mysql {

/// A test with a database of its own on the run's one server.
class OutboxTable : public testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  /// Options of the server, for a suite that needs some.
  static std::vector<std::string>& server_options();

  void SetUp() override;

  Settings settings() const;
  /// Lives until the test ends, as its sessions need it.
  std::shared_ptr<Database> database(const Settings& settings) const;
  std::shared_ptr<Database> database() const { return database(settings()); }
  Deadline soon() const { return Deadline::after(clock_, std::chrono::minutes(2)); }

  /// Runs a statement as root in the test's database; the rows that it answers with.
  std::vector<Cells> sql(const std::string& statement);
  /// The only value of the answer; "NULL" for none.
  std::string value(const std::string& statement);
  /// Makes the table as `ddl` says.
  void make_table(const Settings& settings);
  void insert(std::int64_t id, const std::string& type, const std::string& aggregate,
              const std::string& payload = "{}");

  std::unique_ptr<LockSession> locks();
  std::unique_ptr<ReadSession> reader();
  std::unique_ptr<AdminSession> desk();
  /// The ids of the pending rows of these buckets, all of them by default.
  std::vector<std::int64_t> pending(ReadSession& reader, FetchRequest request = {});

  static test::MariaDbServer& server() { return *server_; }
  const std::string& name() const { return name_; }

  SystemClock clock_;
  mutable SeededRandom random_;
  const Selection everything_{};
  std::vector<std::uint32_t> all_buckets_;

 private:
  static std::unique_ptr<test::MariaDbServer> server_;
  std::string name_;
  mutable std::vector<std::shared_ptr<Database>> databases_;
  std::unique_ptr<SqlConnection> root_;
};

}  // namespace sluice::queue::outbox::mysql
