#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/queue/message.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/source.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/core/message_state.hpp"

/// The life of a message, once for all stores. Each function says what shall be true of a record after a send, a claim,
/// an end, an extension or an operator's change. A store writes that under the condition that nobody has changed the
/// record since, and knows no rule of its own. Pure functions; docs/understand/job_lifecycle.md is the same as a table.
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
  std::optional<Marks> marks{};  ///< all of them
  std::optional<Priority> priority{};
  std::optional<std::string> group{};
  std::optional<Failure> failure{};  ///< empty: it has none any more
  std::optional<WallTime> created_at{};
  std::optional<std::string> checkpoint{};  ///< empty: it has none any more
  bool holds_group = false;  ///< its group, where it is in one, stays where it is until an operator has dealt with it
};

/// What a write makes of a record's version; behind the highest comes the first again.
constexpr std::int64_t next_version(std::int64_t version) {
  return version == std::numeric_limits<std::int64_t>::max() ? 1 : version + 1;
}

/// Makes the change, in memory. The record is not to be removed.
void apply(const StateChange& change, MessageState& state);

// Sends, and places in an order.

MessageState sent(const NewMessage& message, WallTime now);
/// The place of a message that is sent to a group behind the one that lies at `last`: nobody is sent earlier than who
/// was accepted before him, unless that one was not sent by the clock.
WallTime place_behind(WallTime last, WallTime now);
/// The place before all others of a half, whose first message lies at `first`; nothing: it is empty.
WallTime place_before(std::optional<WallTime> first, WallTime now);

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

/// `held`: with this delivery in its receive count. One that is kept has not ended.
StateChange end(const Completion& completion, const MessageState& held, WallTime now);

// What operators do.

/// What a change asks of the record beside its version; writes that were preceded by no look put it as a condition.
struct Requirement {
  std::optional<Half> half{};
  bool not_in_flight = false;
};
Requirement requirement(ChangeAction action);

/// What a change comes to for which nothing is written: it is refused, or it is so already. Nothing: it is to be made.
std::optional<ChangeResult> foregone(const Change& change, const MessageState& before, const std::string& queue,
                                     WallTime now);
/// `front`: for `move_to_front`, as `place_before` gives it; a store whose places are others leaves it out.
StateChange change(const Change& change, const MessageState& before, WallTime now, std::optional<WallTime> front = {});
/// After an edit the message is as it was but for its content.
StateChange edit(const Message& content);
/// Whether a dead letter that holds its group lets it go: it leaves its half, or that group. Null: it is removed.
bool lets_group_go(const MessageState& before, const MessageState* after);

}  // namespace sluice::queue::core
