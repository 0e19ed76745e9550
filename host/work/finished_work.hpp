#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>

#include "host/queue/message.hpp"
#include "host/work/disposition.hpp"
#include "host/work/task.hpp"

namespace sluice::work {

/// The most messages whose end is remembered although it could not be written.
inline constexpr std::size_t kMaxRemembered = 4096;
/// Bodies of finished messages that are kept until their end is written, in bytes; beyond it only a fingerprint is.
inline constexpr std::size_t kKeptBytes = 16U << 20U;

/// Whether nobody has changed the message since it became this task's, or sent another one under its id.
bool is_unchanged(const Task& task, const queue::Message& message);

/// What handlers have finished here for good, until it is written. What another holder took away meanwhile is
/// remembered, so that it is not run a second time when it comes back to this host as it was. Not thread-safe.
class FinishedWork {
 public:
  /// Its handler has come to an end.
  void keep(Task& task);
  /// What becomes of it is something else now.
  void changed(Task& task);
  /// It could not be written; its body is not needed any more.
  void not_written(Task& task);
  /// It is written, or its receipt is no longer ours. `lost`: it may come back.
  void leave(Task& task, bool lost);
  /// A handler has come to an end when its message was no longer its own.
  void remember(const Task& task, Disposition&& disposition);
  /// What this host has made of the message, unless anybody has changed it since. Forgets it.
  std::optional<Disposition> recognise(const queue::Message& message);

 private:
  struct Remembered {
    WallTime sent_at{};
    std::uint32_t attempt = 0;
    std::uint64_t fingerprint = 0;
    Disposition disposition;
  };

  std::size_t kept_bytes_ = 0;
  std::unordered_map<std::string, Remembered> remembered_;
  std::deque<std::string> order_;  ///< of remembering, oldest first
};

}  // namespace sluice::work
