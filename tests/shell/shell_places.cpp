#include "tests/shell/shell_places.hpp"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "tests/stores/dynamomq/emulated_tables.hpp"

namespace sluice::test {

namespace {

class SqlitePlace final : public ShellPlace {
 public:
  SqlitePlace() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-shell-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    std::ofstream(folder_ / "host.toml") << "[store]\nkind = \"sqlite\"\npath = \"sluice.db\"\n[queues.orders]\n";
  }
  ~SqlitePlace() override { std::filesystem::remove_all(folder_); }

  cli::Arguments arguments() const override {
    return cli::Arguments::of({{"config", folder_ / "host.toml"}, {"queue", "orders"}});
  }
  bool is_table() const override { return false; }

 private:
  std::filesystem::path folder_;
};

class TablePlace final : public ShellPlace {
 public:
  explicit TablePlace(bool exists) : table_(fresh_table_name("shell")) {
    ::setenv("AWS_ACCESS_KEY_ID", "test", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "test", 1);
    ::setenv("AWS_REGION", "eu-west-1", 1);
    if (exists) {
      const SystemClock clock;
      EmulatedHost host(clock, "shell", 1);
      make_table(host.client(), table_, clock);
    }
  }

  cli::Arguments arguments() const override {
    return cli::Arguments::of({{"table", table_}, {"endpoint", shared_emulator()->endpoint()}});
  }
  bool is_table() const override { return true; }

 private:
  std::string table_;
};

std::unique_ptr<ShellPlace> table(bool exists) {
  return shared_emulator() == nullptr ? nullptr : std::make_unique<TablePlace>(exists);
}

}  // namespace

ShellPlaceKind sqlite_place() {
  return {.name = "Sqlite", .make = [] { return std::make_unique<SqlitePlace>(); }};
}

ShellPlaceKind dynamo_place() {
  return {.name = "DynamoMq", .make = [] { return table(true); }};
}

ShellPlaceKind missing_table_place() {
  return {.name = "MissingTable", .make = [] { return table(false); }};
}

}  // namespace sluice::test
