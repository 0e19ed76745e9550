#pragma once

/// Progress that is stored with a message while its handler works: <sluice/context.hpp> offers it.
///
///     for (std::size_t at = start_of(context.last_checkpoint()); at < rows.size(); ++at) {
///       context.sql("INSERT INTO copied VALUES (?1)", rows[at]);
///       context.checkpoint_with_effects(std::to_string(at + 1));
///     }
///     return sluice::done();
///
/// Whatever becomes of an attempt, the next one goes on from the last checkpoint; and what was committed with it is
/// committed exactly once.

#include <optional>
#include <stdexcept>
#include <string_view>

#include "sluice/checkpoint.h"
#include "sluice/message.hpp"

namespace sluice {

/// A checkpoint that is not stored: why, and what to do about it. It is too long, the message is no longer ours, the
/// store keeps none or did not answer, or one of its effects was refused. Out of `handle` it is a fault.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {

/// `found`: what the host answered; null where it is older than checkpoints.
inline void store_checkpoint(const sluice_checkpoint* found, std::string_view bytes, bool with_effects) {
  if (found == nullptr) {
    throw CheckpointError("this host has no sluice.checkpoint/1, so no progress can be stored: update the host");
  }
  if (const char* why = found->store(found, borrow(bytes), with_effects ? 1 : 0)) {
    throw CheckpointError(why);
  }
}

inline std::optional<std::string_view> last_checkpoint(const sluice_checkpoint* found) {
  sluice_string bytes{};
  return found != nullptr && found->last(found, &bytes) != 0 ? std::optional(view(bytes)) : std::nullopt;
}

}  // namespace detail

}  // namespace sluice
