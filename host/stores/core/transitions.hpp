#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/queue/message.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/source.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/core/message_state.hpp"

/// The life of a message, once for all stores. Each function says what shall be true of a record after a claim, an end,
/// an extension or an operator's change. A store writes that under the condition that nobody has changed the record
/// since, and knows no rule of its own. Pure functions; docs/understand/job_lifecycle.md is the same as a table.
namespace sluice::queue::core {

/// What shall be true of a record afterwards. What is not named stays as it is. With every change the version grows by
/// one and the record is marked as updated now. A value.
struct StateChange {
  bool removes = false;  ///< the record goes; nothing else is named then
  std::optional<Half> half{};
  std::optional<WallTime> sent_at{};  ///< its place in the order of its half
  std::optional<std::optional<WallTime>> hidden_until{};
  std::optional<std::optional<WallTime>> received_at{};
  std::optional<std::uint32_t> receives{};
  std::optional<Marks> marks{};      ///< all of them
  std::optional<Failure> failure{};  ///< empty: it has none any more
  std::optional<WallTime> created_at{};
};

/// Makes the change, in memory. The record is not to be removed.
void apply(const StateChange& change, WallTime now, StoredMessage& record);

// Claims.

struct ClaimTerms {
  WallTime now{};
  WallTime until{};     ///< when the lease ends
  bool counts = false;  ///< as ClaimRequest::counts
};
/// How often the message counts as received once it is claimed. A claim of which nobody knows the end is counted
/// already, though perhaps no handler has seen the message: its first claim as a suspect takes that claim's place.
std::uint32_t receives_when_claimed(const MessageState& before, bool counts);
StateChange claim(const MessageState& before, const ClaimTerms& terms);
StateChange extension(WallTime until);

// Ends.

/// `attempt` is the receive count with this delivery in it.
StateChange end(const Completion& completion, std::uint32_t attempt, WallTime now);
/// What a record keeps of a failure: with those before it, as many as a message remembers.
Failure with_earlier(Failure latest, const Failure& before);

// What operators do.

/// What a change asks of the record beside its version; writes that were preceded by no look put it as a condition.
struct Requirement {
  std::optional<Half> half{};
  bool not_in_flight = false;
};
Requirement requirement(ChangeAction action);

enum class Verdict : std::uint8_t {
  apply,
  unchanged,  ///< it is so already: applied, and nothing is written
  not_in_dlq,
  in_flight,
};
Verdict judge(ChangeAction action, const MessageState& before, WallTime now);
/// For those two that refuse.
Error refusal(Verdict verdict, const std::string& queue, const std::string& id);

/// `place`: where the store puts the message; of `move_to_front` before all others of its half, of `redrive` where a
/// dead letter lay that its group waits for. Otherwise nothing.
StateChange change(const Change& change, WallTime now, std::optional<WallTime> place = {});

}  // namespace sluice::queue::core
