#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "host/isolation/crash_record.hpp"

namespace sluice::isolation {

/// What the host asks of a Runner.
enum class RunnerOrder : std::uint32_t { none, start, message, end };

/// What a Runner tells. The names of the members below say which of them each carries.
enum class RunnerEvent : std::uint16_t {
  ready = 1,
  refused,      ///< text: why the handler could not be made
  attempt_log,  ///< level, text: a line about the message
  host_log,     ///< level, text: a line about none
  extended,     ///< number: the time-out is now + that many nanoseconds
  effects,      ///< number: how many bytes there are in all; text: the next of them. Before the outcome they go with
  outcome,      ///< level: the status; number: the delay, or -1; text: the reason
  health,       ///< level: 1 where the part works; number: the length of its name; text: the name, then how it fares
};

/// The first piece of memory that a host and a Runner share. The second one holds what an order is about. Each word has
/// one writer; a word that somebody sleeps on lies in a cache line of its own.
struct RunnerControl {
  static constexpr std::uint32_t kRoom = 256 * 1024;  ///< of events; a power of two
  static constexpr std::uint32_t kStop = 1;
  static constexpr std::uint32_t kLost = 2;
  static constexpr std::uint32_t kNews = 4;  ///< added with each change, so that no two look alike to who sleeps

  // Written by the host.
  alignas(64) std::atomic<std::uint32_t> orders;  ///< how many were given; the Runner sleeps on it
  RunnerOrder order;
  std::uint64_t parcel_size;
  std::uint64_t parcel_room;                    ///< of the second piece
  std::int64_t deadline;                        ///< of the attempt, on the machine's monotonic clock
  alignas(64) std::atomic<std::uint32_t> stop;  ///< kStop, kLost, and how often it changed; the Runner's second thread
                                                ///< sleeps on it
  std::atomic<std::int64_t> stop_end;           ///< until when the handler has, on the same clock
  alignas(64) std::atomic<std::uint32_t> consumed;  ///< bytes of events that were read
  std::atomic<std::uint32_t> host_sleeps;
  std::atomic<std::uint32_t> ended;  ///< the process is gone

  // Written by the Runner.
  alignas(64) std::atomic<std::uint32_t> events;    ///< how many there were; the host sleeps on it
  alignas(64) std::atomic<std::uint32_t> produced;  ///< bytes of events that were written
  std::atomic<std::uint32_t> runner_sleeps;
  std::atomic<std::uint32_t> room_wanted;  ///< somebody sleeps on `consumed`
  alignas(64) CrashRecord crash;
  std::array<char, kRoom> room;
};

}  // namespace sluice::isolation
