#pragma once

#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "host/isolation/ledger_file.hpp"
#include "host/queue/message.hpp"
#include "host/queue/source.hpp"

namespace sluice::runtime {

/// Who a message that a dead host held is taken for.
enum class Suspicion {
  blamed,    ///< its handler ended the host, or what was committed of it alone: the attempt counts
  suspect,   ///< it was at work, and nobody knows what ended the host: to be run where it can hurt nobody
  finished,  ///< its handler had come back: it is removed, as the dead host was about to
  innocent,  ///< released, as if nobody had ever claimed it
};

/// What one source is to be told. A value; the two lists go together.
struct RecoveryStep {
  queue::QueueAddress address;
  std::vector<queue::Completion> completions;
  std::vector<Suspicion> suspicions;
};

/// Decides on everything that a dead host held. What a handler had finished is removed, not run again. Where a crash is
/// blamed on a message, that one alone counts, by its job's policy, and is a suspect from now on; otherwise whatever
/// ran or was being committed is suspect, and a suspect that was being committed counts, since no other place is left
/// to find out. All others get their attempt back. A job that is not among `jobs` any more is taken to have attempts
/// without end: whoever has it again decides.
std::vector<RecoveryStep> plan_recovery(const isolation::LedgerContents& ledger,
                                        const std::vector<config::JobConfig>& jobs, Random& random, WallTime now);

}  // namespace sluice::runtime
