#include "host/operate/audited_operator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/operate/bulk_run.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/forwarding_queues.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::operate {
namespace {

using fleet::AuditEntry;
using fleet::DeedState;
using queue::ChangeAction;
using queue::ChangeStatus;
using test::StoreCall;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kQueue = "orders";

class AuditedOperatorTest : public ::testing::Test {
 protected:
  AuditedOperatorTest() : oper_(*AuditedOperator::open(sim_, kQueue, "ann@ops", random_)) {
    for (const std::string id : {"a", "b", "c"}) {
      queue::NewMessage message;
      message.id = id;
      message.body = "{}";
      message.content_type = queue::kJson;
      EXPECT_EQ(desk_.send(kQueue, std::span(&message, 1), Deadline::never()).front().status, queue::SendStatus::sent);
    }
  }

  std::vector<AuditEntry> audit() {
    const auto board = *sim_.open_board(kQueue);
    return fleet::merge_audits(fleet::read_deeds(*board, {}, Deadline::never())->deeds);
  }
  ChangeStatus change(const std::string& id, ChangeAction action = ChangeAction::remove) {
    const queue::Change change{.id = id, .action = action};
    last_ = oper_->change({&change, 1}, Deadline::never()).front();
    return last_.status;
  }

  test::FakeClock clock_;
  SeededRandom random_{1};
  test::SimQueues sim_{clock_, random_};
  test::Desk desk_{sim_};
  std::unique_ptr<AuditedOperator> oper_;
  queue::ChangeResult last_;
};

TEST_F(AuditedOperatorTest, AnyChangeOutsideAPlanIsADeedByItself) {
  EXPECT_EQ(change("a"), ChangeStatus::applied);
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(change("gone", ChangeAction::redrive), ChangeStatus::not_found);
  clock_.advance(std::chrono::seconds(1));
  const queue::ContentEdit edit{.path = {std::string("data")}, .json = "{\"n\":1}"};
  EXPECT_TRUE(oper_->edit("b", oper_->get("b", Deadline::never())->version, {&edit, 1}, Deadline::never()));
  clock_.advance(std::chrono::seconds(1));
  queue::StoredMessage record = *oper_->get("c", Deadline::never());
  EXPECT_EQ(oper_->put({&record, 1}, queue::PutMode::insert, Deadline::never()).front().status,
            queue::PutStatus::exists);
  const auto deeds = audit();
  ASSERT_THAT(deeds, SizeIs(4));
  EXPECT_EQ(deeds[3].what, "remove message a of queue orders");
  EXPECT_EQ(deeds[3].who, "ann@ops");
  EXPECT_EQ(deeds[3].changed, 1U);
  EXPECT_EQ(deeds[3].state, DeedState::done);
  EXPECT_EQ(deeds[2].what, "redrive message gone of queue orders");
  EXPECT_EQ(deeds[2].skipped, 1U);
  EXPECT_EQ(deeds[1].what, "edit message b of queue orders");
  EXPECT_EQ(deeds[1].changed, 1U);
  EXPECT_EQ(deeds[0].what, "put message c of queue orders");
  EXPECT_EQ(deeds[0].skipped, 1U);
}

TEST_F(AuditedOperatorTest, APlanIsBegunBeforeItsFirstChangeAndIsOneDeed) {
  oper_->begin({.what = "purge queue orders", .filter = "--older-than 3d", .reason = "wrong feed"});
  EXPECT_THAT(audit(), IsEmpty()) << "nothing has been changed yet";
  EXPECT_EQ(change("a"), ChangeStatus::applied);
  ASSERT_THAT(audit(), SizeIs(1));
  EXPECT_EQ(audit().front().state, DeedState::begun) << "as somebody finds it whose process was killed here";
  EXPECT_EQ(change("b"), ChangeStatus::applied);
  clock_.advance(std::chrono::seconds(3));
  ASSERT_TRUE(oper_->finish({.changed = 2, .skipped = 1}, "interrupted", Deadline::never()));
  ASSERT_THAT(audit(), SizeIs(1));
  const AuditEntry deed = audit().front();
  EXPECT_EQ(deed.state, DeedState::stopped);
  EXPECT_EQ(deed.changed, 2U);
  EXPECT_EQ(deed.skipped, 1U);
  EXPECT_EQ(deed.stopped_by, "interrupted");
  EXPECT_EQ(deed.filter, "--older-than 3d");
  EXPECT_EQ(deed.reason, "wrong feed");
  EXPECT_EQ(*deed.ended_at - deed.at, std::chrono::seconds(3));
}

TEST_F(AuditedOperatorTest, APlanThatChangesNothingLeavesNoLine) {
  oper_->begin({.what = "purge queue orders"});
  EXPECT_TRUE(oper_->get("a", Deadline::never()));
  EXPECT_TRUE(oper_->finish({}, {}, Deadline::never()));
  EXPECT_THAT(audit(), IsEmpty());
}

TEST_F(AuditedOperatorTest, NothingIsChangedWithoutItsLine) {
  sim_.fail_next(StoreCall::board, 1, Error(ErrorCode::denied, "not allowed"));
  EXPECT_EQ(change("a"), ChangeStatus::failed);
  EXPECT_EQ(last_.error.code(), ErrorCode::denied);
  EXPECT_THAT(last_.error.message(), HasSubstr("nothing was changed, for the audit could not be written: not allowed"));
  EXPECT_TRUE(oper_->get("a", Deadline::never()));
  EXPECT_EQ(change("a"), ChangeStatus::applied) << "the next one is tried anew";
}

TEST_F(AuditedOperatorTest, WhatTheAuditSaysIsNotTakenForWhatTheMessageSays) {
  sim_.fail_next(StoreCall::board, 1, Error(ErrorCode::not_found, "no such notice"));
  EXPECT_EQ(change("a"), ChangeStatus::failed);
  EXPECT_EQ(last_.error.code(), ErrorCode::unavailable) << "the message is there";
  EXPECT_THAT(last_.error.message(), HasSubstr("nothing was changed, for the audit"));
}

TEST_F(AuditedOperatorTest, ALineWhoseAnswerWasLostDoesNotStayBegun) {
  sim_.fail_next(StoreCall::board, 1, Error(ErrorCode::timeout, "too late"));
  EXPECT_EQ(change("a"), ChangeStatus::failed);
  EXPECT_TRUE(oper_->get("a", Deadline::never()));
  ASSERT_THAT(audit(), SizeIs(1));
  EXPECT_EQ(audit().front().state, DeedState::stopped);
  EXPECT_EQ(audit().front().changed, 0U);
}

TEST_F(AuditedOperatorTest, ABulkRunIsOneDeed) {
  oper_->begin({.what = "purge queue orders"});
  BulkRun run(*oper_, clock_, BulkPlan::removal_of_all(queue::Half::standard));
  for (auto step = run.step(); step.state != BulkRun::Step::State::finished; step = run.step()) {
    ASSERT_EQ(step.state, BulkRun::Step::State::more) << step.error.message();
  }
  ASSERT_TRUE(oper_->finish({.changed = run.count().done}, {}, Deadline::never()));
  ASSERT_THAT(audit(), SizeIs(1));
  EXPECT_EQ(audit().front().changed, 3U);
}

/// Queues of which one lies in another store.
class TwoStores final : public test::ForwardingQueues {
 public:
  TwoStores(queue::Queues& here, queue::Queues& there) : ForwardingQueues(here), there_(there) {}
  Result<std::unique_ptr<queue::NoticeBoard>> open_board(const std::string& queue) override {
    return queue == kQueue ? ForwardingQueues::open_board(queue) : there_.open_board(queue);
  }

 private:
  queue::Queues& there_;
};

TEST_F(AuditedOperatorTest, EachDeedIsToldOnItsOwnBoards) {
  test::SimQueues there(clock_, random_);
  TwoStores stores(sim_, there);
  oper_ = *AuditedOperator::open(stores, kQueue, "ann@ops", random_);
  EXPECT_EQ(change("a"), ChangeStatus::applied);
  oper_->begin({.what = "move queue orders", .to = "archive"});
  EXPECT_EQ(change("b"), ChangeStatus::applied);
  ASSERT_TRUE(oper_->finish({.changed = 1}, {}, Deadline::never()));
  EXPECT_EQ(change("c"), ChangeStatus::applied);
  EXPECT_THAT(audit(), SizeIs(3));
  const auto told_there = fleet::read_deeds(**there.open_board("archive"), {}, Deadline::never())->deeds;
  ASSERT_THAT(told_there, SizeIs(1));
  EXPECT_EQ(told_there.front().what, "move queue orders");
}

}  // namespace
}  // namespace sluice::operate
