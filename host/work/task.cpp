#include "host/work/task.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/assert.hpp"
#include "host/queue/effects.hpp"

namespace sluice::work {

void Task::go(TaskStage from, TaskStage to) {
  SLUICE_ASSERT(stage_ == from);
  stage_ = to;
}

bool Task::commits_statements() const {
  const auto& effects = disposition.effects;
  return effects && std::any_of(effects->writes.begin(), effects->writes.end(), [](const queue::EffectWrite& write) {
           return std::holds_alternative<queue::SqlWrite>(write.write);
         });
}

void Task::deal(std::uint32_t to_seat) {
  SLUICE_ASSERT(!in_hand_);
  go(TaskStage::queued, TaskStage::dealt);
  in_hand_ = true;
  seat = to_seat;
}

void Task::recall() {
  SLUICE_ASSERT(in_hand_);
  go(TaskStage::dealt, TaskStage::queued);
  in_hand_ = false;
}

void Task::leave_hand() {
  SLUICE_ASSERT(in_hand_);
  in_hand_ = false;
}

void Task::dispose(Disposition&& what, SteadyTime now) {
  SLUICE_ASSERT(stage_ == TaskStage::queued || stage_ == TaskStage::dealt);
  stage_ = TaskStage::disposed;
  disposition = std::move(what);
  finished_at = now;
}

void Task::park() {
  SLUICE_ASSERT(receipt_state_ == ReceiptState::extending);
  go(TaskStage::disposed, TaskStage::parked);
}

void Task::unpark() {
  SLUICE_ASSERT(receipt_state_ == ReceiptState::ours);
  go(TaskStage::parked, TaskStage::disposed);
}

void Task::begin_settling() {
  SLUICE_ASSERT(receipt_state_ != ReceiptState::extending);
  go(TaskStage::disposed, TaskStage::settling);
}

void Task::settling_failed(bool may_have_happened) {
  go(TaskStage::settling, TaskStage::disposed);
  ++tries;
  receipt_state_ = may_have_happened ? ReceiptState::unsure : ReceiptState::ours;
}

void Task::begin_extending() {
  SLUICE_ASSERT(stage_ == TaskStage::dealt || stage_ == TaskStage::disposed);
  SLUICE_ASSERT(receipt_state_ == ReceiptState::ours);
  receipt_state_ = ReceiptState::extending;
}

void Task::end_extending() {
  SLUICE_ASSERT(receipt_state_ == ReceiptState::extending);
  receipt_state_ = ReceiptState::ours;
}

void Task::go_on() {
  SLUICE_ASSERT(open() && receipt_state_ != ReceiptState::extending);
  if (stage_ == TaskStage::settling) {
    stage_ = TaskStage::disposed;
  }
  receipt_state_ = ReceiptState::ours;
}

void Task::end() {
  SLUICE_ASSERT(stage_ != TaskStage::ended);
  stage_ = TaskStage::ended;
}

void Task::end_lost() {
  runs_on_ = stage_ == TaskStage::dealt && in_hand_;
  end();
}

void Task::take_up() {
  SLUICE_ASSERT(runs_on() && receipt_state_ == ReceiptState::ours);
  go(TaskStage::ended, TaskStage::dealt);
  runs_on_ = false;
}

}  // namespace sluice::work
