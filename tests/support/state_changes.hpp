#pragma once

#include "host/queue/stored_message.hpp"
#include "host/stores/core/transitions.hpp"

namespace sluice::test {

/// Makes a change of host/stores/core in a record that is in memory.
inline void apply(const queue::core::StateChange& change, WallTime now, queue::StoredMessage& record) {
  auto state = queue::core::MessageState::of(record);
  queue::core::apply(change, state);
  state.put_into(record);
  record.created_at = change.created_at.value_or(record.created_at);
  record.updated_at = now;
}

}  // namespace sluice::test
