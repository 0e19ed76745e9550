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

#include <stdexcept>

#include "sluice/checkpoint.h"

namespace sluice {

/// A checkpoint that is not stored: why, and what to do about it. It is too long, the message is no longer ours, the
/// store keeps none or did not answer, or one of its effects was refused. Out of `handle` it is a fault.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace sluice
