#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/stores/outbox_mysql/outbox_table.hpp"

namespace sluice::queue::outbox::mysql {
namespace {

using testing::ElementsAre;

RowEdit only_if(std::uint32_t retries, RowEdit mark) {
  mark.only_if = retries;
  return mark;
}

class MysqlMarks : public OutboxTable {
 protected:
  void SetUp() override {
    OutboxTable::SetUp();
    if (IsSkipped()) {
      return;
    }
    for (int id = 1; id <= 3; ++id) {
      insert(id, "t", "a");
    }
    session_ = locks();
  }
  std::vector<MarkStatus> mark(const std::vector<RowEdit>& marks) {
    const auto statuses = session_->mark(marks, soon());
    EXPECT_TRUE(statuses) << statuses.error().message();
    return statuses ? *statuses : std::vector<MarkStatus>();
  }

  std::unique_ptr<LockSession> session_;
};

TEST_F(MysqlMarks, WritesManyInOneGo) {
  sql("UPDATE outbox SET last_error='before'");
  EXPECT_THAT(mark({sent_mark({1}), retry_mark({2}, 3, std::chrono::seconds(1000), "no 'topic'"),
                    dead_mark({3}, 10, "rejected"), sent_mark({4})}),
              ElementsAre(MarkStatus::written, MarkStatus::written, MarkStatus::written, MarkStatus::gone));
  EXPECT_EQ(value("SELECT CONCAT(sent_at IS NOT NULL,'|',last_error IS NULL) FROM outbox WHERE id=1"), "1|1");
  EXPECT_EQ(value("SELECT CONCAT(retry_count,'|',last_error,'|',retry_at>UTC_TIMESTAMP()+INTERVAL 900 SECOND,'|',"
                  "retry_at<UTC_TIMESTAMP()+INTERVAL 1001 SECOND) FROM outbox WHERE id=2"),
            "3|no 'topic'|1|1");
  EXPECT_EQ(value("SELECT CONCAT(retry_count,'|',retry_at IS NULL,'|',last_error) FROM outbox WHERE id=3"),
            "10|1|rejected");
}

TEST_F(MysqlMarks, LeavesAloneWhatWasSentOrChangedMeanwhile) {
  sql("UPDATE outbox SET sent_at='2026-01-01' WHERE id=1");
  sql("UPDATE outbox SET retry_count=2 WHERE id=2");
  EXPECT_THAT(mark({retry_mark({1}, 1, {}), only_if(1, sent_mark({2})), only_if(0, sent_mark({3}))}),
              ElementsAre(MarkStatus::gone, MarkStatus::gone, MarkStatus::written));
  EXPECT_EQ(value("SELECT CONCAT(sent_at,'|',retry_count IS NULL) FROM outbox WHERE id=1"),
            "2026-01-01 00:00:00.000000|1");
  EXPECT_EQ(value("SELECT sent_at IS NULL FROM outbox WHERE id=2"), "1");
}

TEST_F(MysqlMarks, WaitsForNoTransactionOfTheApplication) {
  sql("START TRANSACTION");
  sql("UPDATE outbox SET event='changed' WHERE id=2");
  EXPECT_THAT(mark({sent_mark({1}), sent_mark({2})}), ElementsAre(MarkStatus::written, MarkStatus::locked));
  sql("COMMIT");
  EXPECT_THAT(mark({sent_mark({2})}), ElementsAre(MarkStatus::written));
  EXPECT_EQ(value("SELECT event FROM outbox WHERE id=2"), "changed");
}

TEST_F(MysqlMarks, TriesAgainAfterADeadlock) {
  // A trigger fails as a deadlock does; what it counts survives the end of the transaction.
  sql("CREATE TABLE hits (n INT) ENGINE=MyISAM");
  sql("CREATE TRIGGER fails BEFORE UPDATE ON outbox FOR EACH ROW BEGIN INSERT INTO hits VALUES (1); "
      "IF (SELECT COUNT(*) FROM hits) <= 2 THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO=1213, MESSAGE_TEXT='Deadlock "
      "found'; "
      "END IF; END");
  EXPECT_THAT(mark({sent_mark({1})}), ElementsAre(MarkStatus::written));
  EXPECT_EQ(value("SELECT COUNT(*) FROM hits"), "3");
  EXPECT_EQ(value("SELECT sent_at IS NOT NULL FROM outbox WHERE id=1"), "1");
}

TEST_F(MysqlMarks, GivesADeadlockThatDoesNotEndBackByName) {
  sql("CREATE TRIGGER fails BEFORE UPDATE ON outbox FOR EACH ROW "
      "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO=1213, MESSAGE_TEXT='Deadlock found'");
  const auto marked = session_->mark(std::vector{sent_mark({1})}, soon());
  ASSERT_TRUE(marked.has_error());
  EXPECT_EQ(marked.error().code(), ErrorCode::throttled);
  EXPECT_THAT(marked.error().message(), testing::HasSubstr("a deadlock"));
  sql("DROP TRIGGER fails");
  EXPECT_THAT(mark({sent_mark({1})}), ElementsAre(MarkStatus::written)) << "the session is as it was";
}

/// With a trigger that writes elsewhere, where the application has a lock: the one way for a mark to wait for it.
class MysqlMarksThatWait : public MysqlMarks {
 protected:
  void SetUp() override {
    MysqlMarks::SetUp();
    if (!IsSkipped()) {
      sql("CREATE TABLE counts (id INT PRIMARY KEY, n INT) ENGINE=InnoDB");
      sql("INSERT INTO counts SELECT seq, 0 FROM seq_1_to_500");
      sql("CREATE TRIGGER counting BEFORE UPDATE ON outbox FOR EACH ROW UPDATE counts SET n = n + 1 WHERE id = 1 AND "
          "NEW.event <> 'by hand'");
    }
  }
  /// Marks row 1, and does `meanwhile` once the mark waits for a lock.
  Result<std::vector<MarkStatus>> mark_while(const std::function<void()>& meanwhile) {
    Result<std::vector<MarkStatus>> marked = Error(ErrorCode::internal, "not yet");
    std::atomic<bool> ended = false;
    std::jthread marker([&] {
      marked = session_->mark(std::vector{sent_mark({1})}, soon());
      ended = true;
    });
    // InnoDB's own list of waits shows nothing new to whoever asks for it all the time.
    while (!ended && value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'Updating'") == "0") {
    }
    meanwhile();
    marker.join();
    return marked;
  }
};

// A real one: the mark has its row and wants the application's, the application has that and wants the row. Tried again
// it finds its row in the application's hands.
TEST_F(MysqlMarksThatWait, GiveWayInADeadlockAndAreWrittenWhenItIsOver) {
  const auto deadlocks = [this] { return sql("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'")[0][1].value_or(""); };
  const std::string before = deadlocks();
  sql("START TRANSACTION");
  sql("UPDATE counts SET n = n + 1");  // so much that the server ends the mark's transaction, not this one
  const auto marked = mark_while([this] { sql("UPDATE outbox SET event = 'by hand' WHERE id = 1"); });
  EXPECT_NE(deadlocks(), before) << "there was no deadlock: the test tests nothing";
  ASSERT_TRUE(marked) << marked.error().message();
  EXPECT_THAT(*marked, ElementsAre(MarkStatus::locked));
  sql("COMMIT");
  EXPECT_THAT(mark({sent_mark({1})}), ElementsAre(MarkStatus::written));
  EXPECT_EQ(value("SELECT n FROM counts WHERE id = 1"), "1") << "the server took back what the mark had written";
}

TEST_F(MysqlMarksThatWait, NameALockThatSomebodyHoldsForTooLong) {
  sql("START TRANSACTION");
  sql("UPDATE counts SET n = n + 1 WHERE id = 1");
  const auto marked = mark_while([] {});
  ASSERT_FALSE(marked);
  EXPECT_EQ(marked.error().code(), ErrorCode::throttled) << "tried again";
  EXPECT_THAT(marked.error().message(), testing::HasSubstr("somebody else holds a lock on the rows for too long"));
  sql("COMMIT");
  EXPECT_THAT(mark({sent_mark({1})}), ElementsAre(MarkStatus::written));
}

TEST_F(MysqlMarks, NamesATriggerThatRefusesThem) {
  sql("CREATE TRIGGER fails BEFORE UPDATE ON outbox FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT='not this "
      "one'");
  const auto marked = session_->mark(std::vector{sent_mark({1})}, soon());
  ASSERT_TRUE(marked.has_error());
  EXPECT_EQ(marked.error().code(), ErrorCode::conflict);
  EXPECT_THAT(marked.error().message(), testing::HasSubstr("not this one"));
}

TEST_F(MysqlMarks, CutsAReasonThatItsColumnCannotHold) {
  sql("ALTER TABLE outbox MODIFY last_error VARCHAR(5) NULL");
  EXPECT_THAT(mark({retry_mark({1}, 1, {}, "too long a text")}), ElementsAre(MarkStatus::written));
  EXPECT_EQ(value("SELECT last_error FROM outbox WHERE id=1"), "too l");
}

TEST_F(MysqlMarks, WritesWhateverBytesAReasonHas) {
  for (const std::string column :
       {"VARCHAR(5)", "TINYTEXT", "TEXT CHARACTER SET latin1", "TEXT CHARACTER SET utf8mb3"}) {
    sql("ALTER TABLE outbox MODIFY last_error " + column + " NULL");
    sql("UPDATE outbox SET retry_count=NULL");
    const auto failed = [](std::int64_t id, std::string reason) { return retry_mark({id}, 1, {}, std::move(reason)); };
    EXPECT_THAT(
        mark({failed(1, "\xff\xc3"), failed(2, std::string("a\0b \U0001F600", 8)), failed(3, std::string(4096, 'x'))}),
        ElementsAre(MarkStatus::written, MarkStatus::written, MarkStatus::written))
        << column;
    EXPECT_EQ(value("SELECT COUNT(*) FROM outbox WHERE retry_count=1"), "3") << column;
  }
}

TEST_F(MysqlMarks, CannotBeWrittenByASessionThatTheServerEnded) {
  ASSERT_TRUE(session_->join({"orders/relay", 64}, soon()));
  const std::vector<std::uint32_t> buckets{3};
  ASSERT_THAT(*session_->lock(buckets, soon()), ElementsAre(3));
  const auto other = locks();
  ASSERT_TRUE(other->join({"orders/relay", 64}, soon()));
  EXPECT_TRUE(other->lock(buckets, soon())->empty());
  sql("KILL " +
      value("SELECT MIN(id) FROM information_schema.processlist WHERE id<>CONNECTION_ID() AND db='" + name() + "'"));
  const auto marked = session_->mark(std::vector{sent_mark({1})}, soon());
  ASSERT_TRUE(marked.has_error());
  EXPECT_EQ(marked.error().code(), ErrorCode::unavailable);
  EXPECT_TRUE(session_->beat(soon()).has_error()) << "the session is over";
  EXPECT_EQ(value("SELECT sent_at IS NULL FROM outbox WHERE id=1"), "1");
  // Its locks are free, once the server has come to it.
  while (other->lock(buckets, soon()).value().empty()) {
  }
}

TEST_F(MysqlMarks, ThousandsAreOneTransaction) {
  sql("INSERT INTO outbox (id,aggregate_type,aggregate_id,event,payload) SELECT seq,'t','a','e','{}' FROM "
      "seq_10_to_3009");
  std::vector<RowEdit> marks;
  for (std::int64_t id = 10; id < 3010; ++id) {
    marks.push_back(id % 2 == 0 ? sent_mark({id}) : retry_mark({id}, 1, {}));
  }
  const auto statuses = mark(marks);
  EXPECT_EQ(std::count(statuses.begin(), statuses.end(), MarkStatus::written), 3000);
  EXPECT_EQ(value("SELECT COUNT(*) FROM outbox WHERE sent_at IS NOT NULL"), "1500");
  EXPECT_EQ(value("SELECT COUNT(*) FROM outbox WHERE retry_count=1"), "1500");
}

}  // namespace
}  // namespace sluice::queue::outbox::mysql
