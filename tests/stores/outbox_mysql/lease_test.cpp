// coordination = "table" on a real MariaDB.

#include "tests/stores/outbox_leases/lease_contract.hpp"
#include "tests/stores/outbox_mysql/outbox_table.hpp"

namespace sluice::queue::outbox::mysql {
namespace {

class MysqlLeases : public OutboxTable, public testing::WithParamInterface<test::LeaseCase>, public test::LeaseRig {
 protected:
  void SetUp() override {
    OutboxTable::SetUp();
    if (!IsSkipped()) {
      make_table(side_by_side());
    }
  }
  Settings side_by_side() const {
    Settings with = settings();
    with.config.side_table = true;
    with.config.lease = kLease;
    return with;
  }
  using OutboxTable::database;
  std::unique_ptr<Database> database(const Clock& clock, Random& random) override {
    return make_mysql_database(side_by_side(), clock, random);
  }
  using OutboxTable::insert;
  void insert(std::int64_t id) override { insert(id, "t", "a"); }
  std::int64_t count_sent() override {
    return std::stoll(value("SELECT count(*) FROM outbox WHERE sent_at IS NOT NULL"));
  }
  void lock_bucket_rows() override {
    sql("START TRANSACTION");
    sql("SELECT 1 FROM outbox_sluice WHERE kind = 1 FOR UPDATE");
  }
  void unlock_bucket_rows() override { sql("COMMIT"); }
};

TEST_P(MysqlLeases, Holds) { GetParam().check(*this); }
INSTANTIATE_TEST_SUITE_P(All, MysqlLeases, testing::ValuesIn(test::kLeaseCases), test::name_of_case);

class MysqlLeaseTable : public OutboxTable {};

TEST_F(MysqlLeaseTable, HasNothingToBeSaidOf) {
  Settings with = settings();
  with.config.side_table = true;
  sql("DROP TABLE outbox");
  make_table(with);
  const auto findings = database(with)->open_admin(soon()).value()->inspect(soon());
  ASSERT_TRUE(findings) << findings.error().message();
  EXPECT_TRUE(findings->empty()) << findings->front().text;
}

}  // namespace
}  // namespace sluice::queue::outbox::mysql
