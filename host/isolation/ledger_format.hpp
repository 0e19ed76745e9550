#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "host/isolation/crash_handler.hpp"

/// The crash ledger's file: a head, a crash record, the jobs, and a slot for each message. Native byte order and
/// layout: a ledger is read on the machine that wrote it. A change of any of it is another kVersion; what is added to
/// the end of the head reads as zero in older files.
namespace sluice::isolation::format {

inline constexpr std::uint64_t kMagic = 0x3152474c65756c73;  // "slueLGR1"
inline constexpr std::uint32_t kVersion = 1;

inline constexpr std::size_t kJobs = 256;
inline constexpr std::uint32_t kSlotsAtFirst = 1024;
inline constexpr std::uint32_t kSlotsAtMost = 128 * 1024;
inline constexpr std::size_t kIdLimit = 100;

/// What became of the messages that a dead host held.
struct SettledCounts {
  std::uint32_t counted = 0;   ///< blamed: the attempt counts
  std::uint32_t suspects = 0;  ///< released, and to be run where they can hurt nobody
  std::uint32_t released = 0;
  std::uint32_t gone = 0;       ///< not that host's any more
  std::uint32_t finished = 0;   ///< removed: their handlers had come back with success
  std::uint32_t unsettled = 0;  ///< could not be told to their store; their leases run out
};

/// The same, written by who settled it.
struct Settled {
  std::int64_t time = 0;  ///< nanoseconds of the wall clock; 0: nobody has yet
  SettledCounts counts;
  FixedText<128> by;
};

struct Head {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t size;                ///< of everything before the slots
  std::atomic<std::uint32_t> slots;  ///< how many there are
  std::int32_t process;
  std::int64_t started;  ///< nanoseconds of the wall clock
  FixedText<256> host;
  FixedText<1024> config;
  Settled settled;
  // Later additions: zero in files that know nothing of them.
  FixedText<256> incarnation;             ///< as an owner of parts of queues
  std::atomic<std::uint32_t> unrecorded;  ///< how many messages are held that no slot tells of
};

struct JobEntry {
  std::atomic<std::uint32_t> used;
  std::uint32_t dlq;  ///< 1: its queue's other half
  FixedText<160> name;
  FixedText<160> queue;
};

enum SlotState : std::uint32_t {
  kFree = 0,
  kHeld = 1,
  kRunning = 2,
  kGone = 3,  ///< runs, and is not ours any more
  kCommitting = 4,
  kCommittingAlone = 5,
  kFinished = 6,  ///< its handler has come back, and it is to be removed
};

/// Two cache lines, so that a write of power loss never tears one.
struct alignas(64) Slot {
  std::atomic<std::uint32_t> state;
  std::uint16_t job;
  std::uint8_t id_size;
  std::uint8_t suspect;
  std::int64_t version;
  std::int64_t locator;
  std::uint32_t attempt;
  std::array<char, kIdLimit> id;
};
static_assert(sizeof(Slot) == 128);

inline constexpr std::size_t kPage = 4096;
constexpr std::size_t whole_pages(std::size_t size) { return (size + kPage - 1) / kPage * kPage; }

inline constexpr std::size_t kCrashAt = kPage;
inline constexpr std::size_t kJobsAt = kCrashAt + whole_pages(sizeof(CrashRecord));
inline constexpr std::size_t kSlotsAt = kJobsAt + whole_pages(kJobs * sizeof(JobEntry));
static_assert(sizeof(Head) <= kPage);

constexpr std::size_t file_size(std::uint32_t slots) { return kSlotsAt + std::size_t{slots} * sizeof(Slot); }

}  // namespace sluice::isolation::format
