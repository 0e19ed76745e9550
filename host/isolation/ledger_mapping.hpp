#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "host/isolation/crash_handler.hpp"
#include "host/isolation/host_ledger.hpp"
#include "host/isolation/ledger_format.hpp"

namespace sluice::isolation {

/// The ledger's file in memory, and which of its slots belong to a job. Addresses stay what they are as it grows.
/// Thread-safe. A resource.
class LedgerMapping {
 public:
  /// Slots are handed to jobs in blocks.
  static constexpr std::uint32_t kBlock = 64;

  static Result<std::unique_ptr<LedgerMapping>> create(const std::string& folder, const LedgerOwner& owner,
                                                       const Clock& clock, LedgerStart start);
  /// Removes the file unless something is held in it.
  ~LedgerMapping();
  LedgerMapping(const LedgerMapping&) = delete;
  LedgerMapping& operator=(const LedgerMapping&) = delete;

  format::Head& head() { return *reinterpret_cast<format::Head*>(base_); }
  CrashRecord& crash() { return *reinterpret_cast<CrashRecord*>(base_ + format::kCrashAt); }
  format::JobEntry& job(std::size_t index) {
    return reinterpret_cast<format::JobEntry*>(base_ + format::kJobsAt)[index];
  }
  format::Slot& slot(std::uint32_t index) { return reinterpret_cast<format::Slot*>(base_ + format::kSlotsAt)[index]; }

  /// Whether the file is still where the next host looks for it, and as long as it was.
  bool is_whole() const;

  /// The index of an entry that nobody uses; kJobs when there is none.
  std::size_t take_job();
  void give_back_job(std::size_t index);
  /// The first of kBlock slots that nobody uses, growing the file when it must; kSlotsAtMost when there are none.
  std::uint32_t take_block();
  void give_back_block(std::uint32_t first);

 private:
  LedgerMapping(int descriptor, char* base, std::string file);
  bool is_at_its_path() const;
  bool grow() SLUICE_REQUIRES(mutex_);

  // Fixed after construction.
  const int descriptor_;
  char* const base_;
  const std::string file_;
  FileMemory memory_;  ///< synchronises itself
  // Guarded by mutex_.
  Mutex mutex_;
  std::vector<std::uint32_t> free_blocks_ SLUICE_GUARDED_BY(mutex_);
  std::uint32_t handed_out_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< slots below have been in a block
};

}  // namespace sluice::isolation
