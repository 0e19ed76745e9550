// coordination = "table" on a real PostgreSQL.

#include "host/stores/outbox/postgres/postgres_database.hpp"
#include "tests/stores/outbox/postgres_rig.hpp"
#include "tests/stores/outbox_leases/lease_contract.hpp"

namespace sluice::queue::outbox {
namespace {

class PostgresLeaseRig final : public test::LeaseRig {
 public:
  PostgresLeaseRig() : table_(true) {}
  std::unique_ptr<Database> database(const Clock& clock, Random& random) override {
    Settings settings = table_.settings();
    settings.config.lease = kLease;
    return make_postgres_database(settings, clock, random);
  }
  void insert(std::int64_t id) override { table_.insert({"a"}, id); }
  std::int64_t count_sent() override { return table_.count("sent_at IS NOT NULL"); }

  void lock_bucket_rows() override {
    table_.sql("BEGIN");
    table_.sql("SELECT 1 FROM @T_sluice WHERE kind = 1 FOR UPDATE");
  }
  void unlock_bucket_rows() override { table_.sql("COMMIT"); }

 private:
  test::OutboxTable table_;
};

class PostgresLeaseContract : public testing::TestWithParam<test::LeaseCase> {};

TEST_P(PostgresLeaseContract, Holds) {
  SLUICE_NEEDS_POSTGRES();
  PostgresLeaseRig rig;
  GetParam().check(rig);
}
INSTANTIATE_TEST_SUITE_P(All, PostgresLeaseContract, testing::ValuesIn(test::kLeaseCases), test::name_of_case);

TEST(PostgresLeases, ASourceSharesAndDrains) {
  SLUICE_NEEDS_POSTGRES();
  test::OutboxTable table(true);
  std::vector<std::string> groups;
  groups.reserve(200);
  for (int i = 0; i < 200; ++i) {
    groups.push_back("g" + std::to_string(i % 20));
  }
  table.insert(groups);
  test::SourceRig source(table);
  EXPECT_EQ(source.drain(200).size(), 200U);
  EXPECT_EQ(table.count("sent_at IS NOT NULL"), 200);
}

TEST(PostgresLeases, ASideTableThatIsMissingOrClosedIsNamed) {
  SLUICE_NEEDS_POSTGRES();
  test::OutboxTable table(true);
  SystemClock clock;
  SeededRandom random;
  const auto inspected = [&](const Settings& settings) {
    const auto database = make_postgres_database(settings, clock, random);
    const Deadline soon = Deadline::after(clock, std::chrono::minutes(1));
    const auto findings = (*database->open_admin(soon))->inspect(soon);
    return findings->empty() ? std::string() : findings->front().text;
  };
  EXPECT_EQ(inspected(table.settings()), "");
  table.sql("CREATE ROLE @T_user LOGIN PASSWORD 'secret'");
  table.sql("GRANT SELECT, UPDATE ON @T TO @T_user");
  table.sql("GRANT SELECT ON @T_sluice TO @T_user");
  Settings other = table.settings();
  other.config.username = other.config.table + "_user";
  EXPECT_EQ(inspected(other),
            "user " + other.config.username + " lacks a right to table \"" + other.config.table +
                "_sluice\", which coordination = \"table\" needs; GRANT INSERT, UPDATE, DELETE ON \"" +
                other.config.table + "_sluice\" to it");
  table.sql("DROP TABLE @T_sluice");
  EXPECT_EQ(inspected(table.settings()), "there is no table \"" + table.settings().config.table +
                                             "_sluice\" (as user sluice sees it), which coordination = \"table\" "
                                             "needs; make it with what `sluice outbox ddl` prints");
}

}  // namespace
}  // namespace sluice::queue::outbox
