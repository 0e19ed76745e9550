#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"
#include "host/queue/message.hpp"
#include "host/work/disposition.hpp"

namespace sluice::work {

/// The right to work on a message until a time, on this process's own monotonic clock: counted from before the call
/// that granted it, so that it never ends later here than in the store.
struct Lease {
  queue::Receipt receipt;
  SteadyTime ends_at{};
  SteadyTime extend_at{};
};

enum class TaskState {
  queued,    ///< claimed, waits for a worker
  dealt,     ///< with a worker: running, about to, or just finished
  finished,  ///< has a disposition that waits to be written, or is being written
};

/// One claimed message on its way through a job. Lives in a LeaseBook; belongs to the job's flow. Only `message` is
/// read by the worker that has it, and nobody writes that meanwhile.
struct Task {
  queue::Message message;
  Lease lease;
  TaskState state = TaskState::queued;
  Disposition disposition;

  bool open = true;        ///< its ending is not in the ledger yet
  bool abandoned = false;  ///< what the handler still running makes of it no longer counts
  bool stuck = false;      ///< its handler ignores its stop token: no more extensions
  bool extending = false;  ///< in an extend call; a settlement waits for the new receipt
  bool parked = false;     ///< waits for that receipt outside the settle queue
  bool settling = false;   ///< in a settle call
  bool unsure = false;     ///< a settle call may have taken effect: repeat it before anything else touches the receipt

  std::uint32_t hand = 0;   ///< the worker, while dealt
  std::uint32_t tries = 0;  ///< settle calls that failed
  SteadyTime finished_at{};
  SteadyTime not_before{};

  // How many places point here: a hand, the settle queue, a call under way. Reusable when none does and it is not open.
  std::uint32_t holds = 0;
  std::size_t place = 0;  ///< in the book
};

}  // namespace sluice::work
