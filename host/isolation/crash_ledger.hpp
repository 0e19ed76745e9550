#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "host/queue/message.hpp"
#include "host/queue/source.hpp"

/// What this process holds and runs, in a file that outlives it.
namespace sluice::isolation {

/// One message that a job holds: its place in the ledger's file. 0: it has none (there is no file yet, or no room in
/// it).
using HeldSlot = std::uint32_t;

/// Whether the statements of a message, which its handler has staged and this process runs, are being committed, and in
/// what company.
enum class Committing : std::uint8_t { no, together, alone };

/// A job's part of the crash ledger. All methods are noexcept, make no system call and take at most 100 ns together for
/// one message; a null JobLedger pointer is how "no ledger" is spelled.
///
/// `hold`, `renew`, `committing` and `drop` are called under the job's lock; `started` and `ended` by the worker that
/// runs the message.
class JobLedger {
 public:
  JobLedger() = default;
  JobLedger(const JobLedger&) = delete;
  JobLedger& operator=(const JobLedger&) = delete;
  virtual ~JobLedger() = default;

  /// Claimed: ours from now on. `attempt` as Message::attempt.
  virtual HeldSlot hold(const queue::Delivery& delivery) noexcept = 0;
  /// An extension has changed the receipt.
  virtual void renew(HeldSlot slot, const queue::Receipt& receipt) noexcept = 0;
  /// The handler begins on the calling thread with the message of this id, which a crash is then blamed on. The id
  /// lives until `ended`.
  virtual void started(HeldSlot slot, std::string_view id) noexcept = 0;
  /// It has come back. `finished`: all that is left is to remove the message, with nothing committed beside it; whoever
  /// finds this ledger then does that.
  virtual void ended(HeldSlot slot, bool finished) noexcept = 0;
  /// After `ended`: what ends the process from now on may be what is committed.
  virtual void committing(HeldSlot slot, Committing how) noexcept = 0;
  /// Settled or lost: not ours any more. The slot is void. Called once for each `hold`, also where that gave 0.
  virtual void drop(HeldSlot slot) noexcept = 0;
};

}  // namespace sluice::isolation
