#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::work {

/// Where a claimed message has gone in the end. Every claim ends in exactly one of these.
enum class Ending { done, retried, snoozed, rejected, discarded, released, lost };
inline constexpr std::size_t kEndings = 7;

/// The counts behind the drain certificate. A value; counts of several jobs add up.
struct LedgerSnapshot {
  std::uint64_t claimed = 0;
  std::uint64_t done = 0;
  std::uint64_t retried = 0;    ///< visible again later, the attempt counted; messages that a policy keeps too
  std::uint64_t snoozed = 0;    ///< visible again later, the attempt given back
  std::uint64_t rejected = 0;   ///< in the DLQ: rejected, attempts used up, or exhausted at claim time
  std::uint64_t discarded = 0;  ///< removed without having been done
  std::uint64_t released = 0;   ///< put back at once, the attempt given back
  std::uint64_t lost = 0;  ///< the receipt was no longer ours, or the lease ran out before the settlement was through
  std::uint64_t stranded = 0;  ///< left behind when the job ended: others get it when its lease runs out

  std::uint64_t ended() const;
  /// What the job holds at this moment: waiting, running or being settled. Zero once the job has ended.
  std::uint64_t in_flight() const { return claimed - ended() - stranded; }

  LedgerSnapshot& operator+=(const LedgerSnapshot& other);
  friend bool operator==(const LedgerSnapshot&, const LedgerSnapshot&) = default;
};

/// An ending's name, in the drain certificate, the log and metrics, and its count.
struct EndingCount {
  std::string_view name;
  std::uint64_t LedgerSnapshot::*count;
};
/// In the order of Ending.
inline constexpr std::array<EndingCount, kEndings> kEndingCounts{{{"done", &LedgerSnapshot::done},
                                                                  {"retried", &LedgerSnapshot::retried},
                                                                  {"snoozed", &LedgerSnapshot::snoozed},
                                                                  {"rejected", &LedgerSnapshot::rejected},
                                                                  {"discarded", &LedgerSnapshot::discarded},
                                                                  {"released", &LedgerSnapshot::released},
                                                                  {"lost", &LedgerSnapshot::lost}}};

/// Counts where the messages of one job have gone. Not thread-safe: its owner's lock guards it.
class Account {
 public:
  void claimed(std::uint64_t count) { claimed_ += count; }
  void ended(Ending ending) { ++endings_[static_cast<std::size_t>(ending)]; }
  /// Ends the book: whatever has not ended by now is stranded.
  void close();

  std::uint64_t open() const;
  LedgerSnapshot snapshot() const;

 private:
  std::uint64_t claimed_ = 0;
  std::array<std::uint64_t, kEndings> endings_{};
  std::uint64_t stranded_ = 0;
};

}  // namespace sluice::work
