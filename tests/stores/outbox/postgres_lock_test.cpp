// Marks that meet the locks of an application's transactions, on a real PostgreSQL. Rows of the outbox itself are never
// waited for; a trigger of the table's that writes elsewhere is how a mark can come to wait.

#include <gmock/gmock.h>

#include <array>
#include <thread>

#include "host/stores/outbox/postgres/postgres_database.hpp"
#include "tests/stores/outbox/postgres_rig.hpp"

namespace sluice::queue::outbox {
namespace {

using test::OutboxTable;
using testing::ElementsAre;
using testing::HasSubstr;

class PostgresMarks : public testing::Test {
 protected:
  void SetUp() override {
    SLUICE_NEEDS_POSTGRES();
    table_ = std::make_unique<OutboxTable>();
    table_->sql("CREATE TABLE @T_count (id int PRIMARY KEY, n int)");
    table_->sql("INSERT INTO @T_count VALUES (1, 0)");
    table_->sql(
        "CREATE FUNCTION @T_counts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE @T_count SET n = n + 1 "
        "WHERE id = 1; RETURN NEW; END $$");
    table_->sql(
        "CREATE TRIGGER counts BEFORE UPDATE ON @T FOR EACH ROW WHEN (NEW.event <> 'by hand') EXECUTE FUNCTION "
        "@T_counts()");
    table_->insert({"a", "b"});
    database_ = make_postgres_database(table_->settings(), clock_, random_);
    session_ = *database_->open_locks(soon());
  }
  Deadline soon() const { return Deadline::after(clock_, std::chrono::minutes(2)); }
  /// The application has what the trigger wants.
  void hold() {
    table_->sql("SET deadlock_timeout = '1min'");  // whoever waits for less finds the deadlock, and gives way
    table_->sql("BEGIN");
    table_->sql("UPDATE @T_count SET n = n WHERE id = 1");
  }
  /// Marks row 1, and does `meanwhile` once the mark waits for a lock.
  Result<std::vector<MarkStatus>> mark_while(const std::function<void()>& meanwhile) {
    Result<std::vector<MarkStatus>> marked = Error(ErrorCode::internal, "not yet");
    std::jthread marker([&] { marked = session_->mark(std::vector{sent_mark({1})}, soon()); });
    while (table_->sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == std::vector<std::string>{"0"}) {
    }
    meanwhile();
    marker.join();
    return marked;
  }

  SystemClock clock_;
  SeededRandom random_;
  std::unique_ptr<OutboxTable> table_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<LockSession> session_;
};

TEST_F(PostgresMarks, ADeadlockIsNamedAndTheNextTryWrites) {
  hold();
  const auto marked = mark_while([&] { table_->sql("UPDATE @T SET event = 'by hand' WHERE id = 1"); });
  ASSERT_FALSE(marked);
  EXPECT_EQ(marked.error().code(), ErrorCode::throttled) << "tried again";
  EXPECT_THAT(marked.error().message(), HasSubstr("deadlock detected (SQLSTATE 40P01)"));
  EXPECT_THAT(marked.error().message(), HasSubstr("a deadlock with another transaction; it is tried again"));
  table_->sql("COMMIT");
  EXPECT_THAT(*session_->mark(std::vector{sent_mark({1})}, soon()), ElementsAre(MarkStatus::written));
}

TEST_F(PostgresMarks, ALockThatSomebodyHoldsForTooLongIsNamedAndTheNextTryWrites) {
  hold();
  const auto marked = mark_while([] {});
  ASSERT_FALSE(marked);
  EXPECT_EQ(marked.error().code(), ErrorCode::throttled) << "tried again";
  EXPECT_THAT(marked.error().message(), HasSubstr("another transaction holds a lock; it is tried again"));
  table_->sql("COMMIT");
  EXPECT_THAT(*session_->mark(std::vector{sent_mark({1})}, soon()), ElementsAre(MarkStatus::written));
}

// Whoever waited for the session until his own time was nearly over would end it with his request.
TEST_F(PostgresMarks, ALockThatSomebodyHoldsForTooLongCostsASourceNothingThatItHas) {
  test::SourceRig rig(*table_);
  const auto claimed = rig.claim();
  ASSERT_EQ(claimed.size(), 2U);
  hold();
  const Deadline deadline = Deadline::after(clock_, std::chrono::seconds(10));
  std::array<SettleStatus, 2> statuses{};
  {
    std::array<std::jthread, 2> settlers;
    for (std::size_t i = 0; i < 2; ++i) {
      settlers[i] = std::jthread([&, i] {
        statuses[i] = rig.source->settle(std::vector{Completion{.receipt = claimed[i].receipt}}, deadline)[0].status;
      });
    }
  }
  table_->sql("COMMIT");
  EXPECT_THAT(statuses, ElementsAre(SettleStatus::failed, SettleStatus::failed));
  EXPECT_THAT(rig.lost(), testing::IsEmpty());
  EXPECT_EQ(rig.settle(claimed[0], CompletionAction::remove), SettleStatus::applied);
}

TEST_F(PostgresMarks, ARowThatTheApplicationHasIsNotWaitedForAndTheOthersAreWritten) {
  table_->sql("BEGIN");
  table_->sql("SELECT 1 FROM @T WHERE id = 1 FOR UPDATE");
  EXPECT_THAT(*session_->mark(std::vector{sent_mark({1}), sent_mark({2})}, soon()),
              ElementsAre(MarkStatus::locked, MarkStatus::written));
  table_->sql("COMMIT");
}

TEST_F(PostgresMarks, WritesManyOfEveryKindInOneGo) {
  table_->insert({"c", "d", "e"}, 3);
  table_->sql("UPDATE @T SET last_error = 'before'");
  const std::vector<RowEdit> marks{sent_mark({1}), retry_mark({2}, 3, std::chrono::seconds(1000), "no 'topic'"),
                                   retry_mark({3}, 1, std::chrono::seconds(10)), dead_mark({4}, 10, "rejected"),
                                   sent_mark({5})};
  EXPECT_THAT(*session_->mark(marks, soon()), ElementsAre(MarkStatus::written, MarkStatus::written, MarkStatus::written,
                                                          MarkStatus::written, MarkStatus::written));
  EXPECT_THAT(
      table_->sql("SELECT concat_ws('|', id, sent_at IS NOT NULL, retry_count, round(extract(epoch FROM retry_at "
                  "- now()) / 10), last_error) FROM @T ORDER BY id"),
      ElementsAre("1|t", "2|f|3|100|no 'topic'", "3|f|1|1", "4|f|10|rejected", "5|t"));
}

// 10 MB and an id that no floating-point number holds.
TEST_F(PostgresMarks, LargePayloadsAndLargeIdsAreWhatTheyAre) {
  table_->sql(
      "INSERT INTO @T (id, aggregate_type, aggregate_id, event, payload) VALUES (9007199254740993, 'orders', "
      "'c', 'created', to_json(repeat('x', 10000000)))");
  test::SourceRig source(*table_);
  std::size_t size = 0;
  for (int rows = 0; rows < 3;) {
    for (const Delivery& delivery : source.claim()) {
      size = delivery.message.id == "9007199254740993" ? delivery.message.body.size() : size;
      EXPECT_EQ(source.settle(delivery, CompletionAction::remove), SettleStatus::applied);
      ++rows;
    }
  }
  EXPECT_EQ(size, 10'000'002U);
  EXPECT_EQ(table_->count("id = 9007199254740993 AND sent_at IS NOT NULL"), 1);
}

}  // namespace
}  // namespace sluice::queue::outbox
