#pragma once

#include <memory>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/queue/delivery.hpp"
#include "host/queue/message.hpp"

namespace sluice::queue {

/// What a source does with a message once its handler has come to an end.
enum class CompletionAction {
  remove,       ///< done or discarded: delete it
  retry,        ///< visible again after `delay`; the attempt counts
  release,      ///< visible again after `delay`; the attempt is given back (receive count - 1)
  dead_letter,  ///< move it to the DLQ with its failure; in the DLQ itself it becomes visible there again
};

struct Effects;  // host/queue/effects.hpp

/// What is to become of one delivery, committed as one. A value; it grows by what is to be committed with it.
struct Completion {
  Receipt receipt;
  CompletionAction action = CompletionAction::remove;
  Duration delay{};  ///< for retry and release; never negative
  Failure failure;   ///< for retry and dead_letter; empty: what the record says stays
  /// For retry and release: the next delivery is to be a suspect again, because this message ended its process, or is
  /// still under that suspicion. Otherwise the suspicion ends here.
  bool suspect = false;
  /// What is committed together with it, or not at all; null: nothing else. For a source that has transactions.
  std::shared_ptr<const Effects> effects{};
  /// For dead_letter: the message's group stays where it is until an operator has dealt with this message.
  bool hold_group = false;
};

/// The fate of one completion or extension.
enum class SettleStatus {
  applied,
  lost,  ///< the receipt is no longer ours: somebody else claimed, changed or removed the message. Final
  /// Nothing was committed, because one of its effects cannot be: `error` names it, and says why. The delivery is as it
  /// was; the same completion would be refused again.
  refused,
  failed,  ///< see `error`; nothing is known to have been written unless its code is unknown_outcome
};

struct SettleResult {
  SettleStatus status = SettleStatus::applied;
  Error error;
  bool reject = false;  ///< refused, by an effect whose message is to be rejected then (OnRefusal)
  /// failed, because others of the call took its time: it was not tried, and may be asked for again at once.
  bool left = false;
};

struct ExtendResult {
  SettleStatus status = SettleStatus::applied;
  Receipt receipt;            ///< when applied: the one to use from now on
  SteadyTime leased_until{};  ///< when applied: as Delivery's
  Error error;
};

}  // namespace sluice::queue
