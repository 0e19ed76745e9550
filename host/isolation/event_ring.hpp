#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "host/isolation/runner_control.hpp"

namespace sluice::isolation {

/// One event as it travels. A value; `text` borrows when it is sent.
struct EventHead {
  std::uint32_t size;  ///< of the text
  RunnerEvent kind;
  std::int16_t level;
  std::int64_t number;
};

/// The most text that an event has.
inline constexpr std::uint32_t kEventTextLimit = 64 * 1024;

/// The Runner's end. One thread at a time.
class EventWriter {
 public:
  explicit EventWriter(RunnerControl& control) : control_(control) {}

  /// False when there is no room; nothing is written then.
  bool write(RunnerEvent kind, std::int16_t level, std::int64_t number, std::string_view text) noexcept;
  /// Waits until there may be room, for moments.
  void wait_for_room() noexcept;

 private:
  RunnerControl& control_;
};

/// The host's end. One thread. Whatever the other end writes: what makes no sense is told, and never read beyond.
class EventReader {
 public:
  enum class Found { nothing, event, nonsense };
  explicit EventReader(RunnerControl& control) : control_(control) {}

  /// The next event. `text` keeps its memory from call to call.
  Found read(EventHead& head, std::string& text);

 private:
  RunnerControl& control_;
};

}  // namespace sluice::isolation
