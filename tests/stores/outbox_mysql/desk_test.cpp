#include <gmock/gmock.h>

#include "tests/stores/outbox_mysql/outbox_table.hpp"

namespace sluice::queue::outbox::mysql {
namespace {

using testing::ElementsAre;

class MysqlAdmin : public OutboxTable {
 protected:
  void SetUp() override {
    OutboxTable::SetUp();
    if (IsSkipped()) {
      return;
    }
    for (int id = 1; id <= 5; ++id) {
      insert(id, id < 4 ? "t" : "u", "a", "{\"n\":" + std::to_string(id) + "}");
    }
    sql("UPDATE outbox SET sent_at=UTC_TIMESTAMP()-INTERVAL 10 DAY WHERE id=1");
    sql("UPDATE outbox SET retry_count=10,last_error='rejected' WHERE id=2");
    sql("UPDATE outbox SET retry_count=2,retry_at=UTC_TIMESTAMP()+INTERVAL 1 HOUR,last_error='later' WHERE id=3");
    desk_ = desk();
  }
  std::vector<std::int64_t> ids(const ListRows& request) {
    std::vector<std::int64_t> list;
    for (const StoredRow& stored : desk_->list(request, soon()).value()) {
      list.push_back(stored.row.id);
    }
    return list;
  }
  std::string sent() { return value("SELECT GROUP_CONCAT(id ORDER BY id) FROM outbox WHERE sent_at IS NOT NULL"); }
  ChangeStatus change(const Change& change) {
    const RowEdit edit = edit_of(row_key_of(change.id).value(), change, 10);
    return desk_->change(std::span(&edit, 1), soon()).value().front();
  }

  std::unique_ptr<AdminSession> desk_;
};

TEST_F(MysqlAdmin, ListsEachPart) {
  EXPECT_THAT(ids({.half = Half::standard}), ElementsAre(3, 4, 5));
  EXPECT_THAT(ids({.half = Half::standard, .newest_first = true, .limit = 2}), ElementsAre(5, 4));
  EXPECT_THAT(ids({.half = Half::standard, .beyond = RowKey{4}, .newest_first = true}), ElementsAre(3));
  EXPECT_THAT(ids({.half = Half::standard, .beyond = RowKey{3}}), ElementsAre(4, 5));
  EXPECT_THAT(ids({.half = Half::dlq}), ElementsAre(2));
}

TEST_F(MysqlAdmin, ShowsARow) {
  const auto row = desk_->get({3}, soon());
  ASSERT_TRUE(row) << row.error().message();
  EXPECT_EQ(row->row.payload, "{\"n\":3}");
  EXPECT_EQ(row->row.retries, 2U);
  EXPECT_EQ(row->last_error, "later");
  EXPECT_TRUE(row->retry_at);
  EXPECT_FALSE(row->sent_at);
  EXPECT_EQ(desk_->get({99}, soon()).error().code(), ErrorCode::not_found);
}

TEST_F(MysqlAdmin, Counts) {
  const auto counts = desk_->count({.sent = true, .details = true}, soon());
  ASSERT_TRUE(counts) << counts.error().message();
  EXPECT_EQ(counts->ready, 2U);
  EXPECT_EQ(counts->waiting, 1U);
  EXPECT_EQ(counts->dead, 1U);
  EXPECT_EQ(counts->sent, 1U);
  EXPECT_EQ(counts->oldest_id, 3);
  EXPECT_TRUE(counts->oldest);
  EXPECT_THAT(counts->by_type, ElementsAre(testing::Pair("t", 1), testing::Pair("u", 2)));
  EXPECT_THAT(counts->by_error, ElementsAre(testing::Pair("later", 1), testing::Pair("rejected", 1)));
  const auto apart = desk_->count({.details = true, .jobs = {{.types = {"u"}, .skip_events = {"x"}}}}, soon());
  ASSERT_TRUE(apart) << apart.error().message();
  EXPECT_EQ(apart->ready, 2U);
  EXPECT_EQ(apart->waiting, 0U);
  EXPECT_EQ(apart->excluded, 1U);
  EXPECT_EQ(apart->dead, 1U);
  EXPECT_EQ(apart->oldest_id, 4);
  EXPECT_THAT(apart->by_type, ElementsAre(testing::Pair("u", 2)));
  sql("DELETE FROM outbox");
  const auto none = desk_->count({}, soon());
  ASSERT_TRUE(none) << none.error().message();
  EXPECT_EQ(none->ready + none->waiting + none->dead, 0U);
  EXPECT_FALSE(none->oldest_id);
}

TEST_F(MysqlAdmin, CountsTypesThatAreBytes) {
  sql("ALTER TABLE outbox MODIFY aggregate_type VARBINARY(4) NOT NULL");
  sql("UPDATE outbox SET aggregate_type=x'00ff80c3' WHERE aggregate_type='u'");
  const auto counts = desk()->count({.details = true}, soon());
  ASSERT_TRUE(counts) << counts.error().message();
  EXPECT_THAT(counts->by_type, ElementsAre(testing::Pair(std::string("\0\xff\x80\xc3", 4), 2), testing::Pair("t", 1)));
}

TEST_F(MysqlAdmin, ChangesRowsInTheStateThatAChangeIsFor) {
  EXPECT_EQ(change({.id = "4", .action = ChangeAction::redrive}), ChangeStatus::conflict) << "no dead letter";
  EXPECT_EQ(change({.id = "2", .action = ChangeAction::redrive}), ChangeStatus::applied);
  EXPECT_EQ(change({.id = "99", .action = ChangeAction::redrive}), ChangeStatus::not_found);
  EXPECT_EQ(change({.id = "3", .action = ChangeAction::reset, .version = 2}), ChangeStatus::conflict);
  EXPECT_EQ(change({.id = "3", .action = ChangeAction::reset, .version = 3}), ChangeStatus::applied);
  EXPECT_EQ(change({.id = "1", .action = ChangeAction::delay, .after = std::chrono::minutes(1)}),
            ChangeStatus::conflict);
  EXPECT_EQ(change({.id = "4", .action = ChangeAction::delay, .after = std::chrono::minutes(10)}),
            ChangeStatus::applied);
  EXPECT_EQ(value("SELECT retry_at>UTC_TIMESTAMP()+INTERVAL 9 MINUTE FROM outbox WHERE id=4"), "1");
  EXPECT_EQ(change({.id = "5", .action = ChangeAction::dead_letter, .failure = {.error = "by hand"}}),
            ChangeStatus::applied);
  EXPECT_THAT(ids({.half = Half::dlq}), ElementsAre(5));
  EXPECT_EQ(desk_->get({5}, soon())->last_error, "by hand");
  EXPECT_EQ(change({.id = "2", .action = ChangeAction::remove}), ChangeStatus::applied);
  EXPECT_EQ(sent(), "1,2") << "it is marked, and not deleted";
}

TEST_F(MysqlAdmin, NamesALockThatSomebodyHoldsForTooLong) {
  sql("START TRANSACTION");
  sql("UPDATE outbox SET event='changed' WHERE id=4");
  const auto changed = desk_->change(std::vector{edit_of(RowKey{4}, {.action = ChangeAction::remove}, 10)}, soon());
  sql("COMMIT");
  ASSERT_TRUE(changed.has_error());
  EXPECT_EQ(changed.error().code(), ErrorCode::throttled);
  EXPECT_THAT(changed.error().message(), testing::HasSubstr("lock"));
  EXPECT_EQ(change({.id = "4", .action = ChangeAction::remove}), ChangeStatus::applied) << "the session is as it was";
}

TEST_F(MysqlAdmin, PrunesWhatWasSentLongAgo) {
  sql("UPDATE outbox SET sent_at=UTC_TIMESTAMP() WHERE id=4");
  EXPECT_EQ(desk_->prune({.sent_before = std::chrono::hours(24), .dry_run = true}, soon()).value(), 1U);
  EXPECT_EQ(desk_->prune({.sent_before = std::chrono::hours(24)}, soon()).value(), 1U);
  EXPECT_EQ(sent(), "4");
}

TEST_F(MysqlAdmin, HasNothingToSayOfTheTableThatItsOwnSqlMakes) {
  const auto findings = desk_->inspect(soon());
  ASSERT_TRUE(findings) << findings.error().message();
  EXPECT_THAT(*findings, testing::IsEmpty()) << findings->front().text;
}

}  // namespace
}  // namespace sluice::queue::outbox::mysql
