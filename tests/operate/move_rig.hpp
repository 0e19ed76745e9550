#pragma once

#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/process_mark.hpp"
#include "host/operate/mover.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/forwarding_operator.hpp"

namespace sluice::test {

/// What a mover's process that is killed throws, in the middle of whatever it did.
struct Killed {};

/// How many single writes a process lives to make, in whichever queue: the one that kills it takes effect as far as it
/// reaches, and nobody learns of it.
class LifeSpan {
 public:
  void set(std::size_t writes) { left_ = writes; }
  std::size_t made() const { return made_; }
  /// Of so many that are about to be made, how many are.
  std::size_t spend(std::size_t wanted) {
    const std::size_t given = std::min(wanted, left_);
    left_ -= given;
    made_ += given;
    return given;
  }

 private:
  std::size_t left_ = std::numeric_limits<std::size_t>::max();
  std::size_t made_ = 0;
};

/// An operator of a process that may be killed between any two writes, and right behind the last one.
class MortalOperator final : public ForwardingOperator {
 public:
  MortalOperator(queue::Operator& beneath, LifeSpan& life, std::function<void()> between)
      : ForwardingOperator(beneath), life_(life), between_(std::move(between)) {}

  std::vector<queue::ChangeResult> change(std::span<const queue::Change> changes, Deadline deadline) override {
    const std::size_t given = life_.spend(changes.size());
    if (given < changes.size()) {
      if (given > 0) {
        beneath().change(changes.first(given), deadline);
      }
      throw Killed();
    }
    auto results = beneath().change(changes, deadline);
    between_();
    return results;
  }
  std::vector<queue::PutResult> put(std::span<const queue::StoredMessage> records, queue::PutMode mode,
                                    Deadline deadline) override {
    const std::size_t given = life_.spend(records.size());
    if (given < records.size()) {
      if (given > 0) {
        beneath().put(records.first(given), mode, deadline);
      }
      throw Killed();
    }
    auto results = beneath().put(records, mode, deadline);
    between_();
    return results;
  }

 private:
  LifeSpan& life_;
  const std::function<void()> between_;
};

/// Two queues, consumers of both, and movers between them that may be killed.
class MoveRig {
 public:
  /// The desks outlive it.
  MoveRig(FakeClock& clock, Desk& from, Desk& to) : clock_(clock), from_(from), to_(to) {
    from_board_ = *from.queues().open_board("orders");
    to_board_ = *to.queues().open_board("orders2");
    plan.pair = {"orders", from_board_->traits().place, "orders2", to_board_->traits().place};
    plan.page = 5;
    plan.batch = 3;
  }

  /// Every message that can be had, in both queues, is worked off.
  void consume() {
    consume(from_, "orders");
    consume(to_, "orders2");
  }
  void consume(Desk& desk, const std::string& queue) {
    for (bool more = true; more;) {
      const auto claimed = desk.claim({queue}, 10, std::chrono::seconds(30), deadline());
      more = claimed && !claimed->empty();
      for (std::size_t i = 0; more && i < claimed->size(); ++i) {
        ++handled[claimed->at(i).message.id];
        order.push_back(claimed->at(i).message.id);
        const queue::Completion done{.receipt = claimed->at(i).receipt};
        desk.settle({queue}, std::span(&done, 1), deadline());
      }
    }
  }

  /// One process from its begin to its end or to its death; what it was at when it ended by itself. `between` happens
  /// after each write.
  operate::Mover::Step run(
      std::size_t life, const std::function<void()>& between = [] {}) {
    LifeSpan span;
    span.set(life);
    MortalOperator from(from_.oper("orders"), span, between);
    MortalOperator to(to_.oper("orders2"), span, between);
    // Known to have ended: another process has its id.
    operate::MoveNotice notice(*from_board_, clock_, plan.pair, {"here", ++process_, process_mark(::getpid()) + "0"});
    operate::Mover::Step last;
    try {
      const auto entry = notice.enter(deadline());
      if (!entry) {
        last.state = operate::Mover::Step::State::failed;
        last.error = entry.error();
        return last;
      }
      operate::MovePlan made = plan;
      made.resumed = plan.resumed || entry->found;
      operate::Mover mover({from, to, *from_board_, *to_board_}, clock_, &notice, made);
      last = finish(mover);
      count = mover.count();
      static_cast<void>(notice.leave(mover.nothing_taken(), deadline()));
    } catch (const Killed&) {
      last.state = operate::Mover::Step::State::more;
    }
    writes += span.made();
    return last;
  }

  operate::Mover::Step finish(operate::Mover& mover) {
    for (int steps = 0; steps < 10'000; ++steps) {
      auto step = mover.step();
      for (auto& refusal : step.refusals) {
        refusals[refusal.id] = refusal.error.message();
      }
      if (step.state == operate::Mover::Step::State::wait) {
        clock_.advance(std::max<Duration>(step.until - clock_.steady_now(), Duration(1)));
        on_wait();
      } else if (step.state != operate::Mover::Step::State::more) {
        return step;
      }
    }
    return {.state = operate::Mover::Step::State::failed,
            .until = {},
            .error = Error(ErrorCode::internal, "the move does not end"),
            .refusals = {}};
  }

  Deadline deadline() const { return Deadline::after(clock_, std::chrono::seconds(60)); }
  queue::NoticeBoard& from_board() { return *from_board_; }
  queue::NoticeBoard& to_board() { return *to_board_; }

  operate::MovePlan plan;
  operate::MoveCount count;
  std::map<std::string, int> handled;
  std::vector<std::string> order;  ///< in which messages were handled
  std::map<std::string, std::string> refusals;
  std::function<void()> on_wait = [] {};
  std::size_t writes = 0;

 private:
  FakeClock& clock_;
  Desk& from_;
  Desk& to_;
  std::unique_ptr<queue::NoticeBoard> from_board_;
  std::unique_ptr<queue::NoticeBoard> to_board_;
  std::int64_t process_ = 0;
};

}  // namespace sluice::test
