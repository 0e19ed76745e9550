#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <sluice/testing.hpp>
#include <string>
#include <utility>
#include <vector>

namespace sluice::shipped {

using testing::HandlerTest;
using testing::OptionMap;
using testing::Result;
using testing::TestMessage;

/// The handler out of build/plugins/<name>.so, loaded as the host loads it.
const sluice_handler& handler_of(const std::string& name);

using List = std::vector<std::string>;

/// Options of `exec` that run a script, and others beside.
inline OptionMap shell(const std::string& script, OptionMap more = {}) {
  more.emplace("command", List{script});
  more.emplace("shell", true);
  return more;
}

/// How one attempt is being stopped; may be set from another thread meanwhile.
struct Stop {
  std::atomic<bool> requested{false};
  std::atomic<bool> timed_out{false};  ///< by the job's timeout
  std::atomic<bool> lost{false};       ///< others may have the message
  std::atomic<std::int64_t> drain{
      60'000};                           ///< milliseconds that the drain lasts, from the first question after the stop
  std::atomic<int> after_questions{-1};  ///< becomes requested after so many times of being asked
};

/// As HandlerTest, but on real time, from many threads at once, and with a stop that comes in the middle.
class LiveHost {
 public:
  explicit LiveHost(const std::string& plugin, const OptionMap& options = {});
  ~LiveHost();
  LiveHost(const LiveHost&) = delete;
  LiveHost& operator=(const LiveHost&) = delete;

  Result handle(const TestMessage& message, Stop& stop);
  Result handle(const TestMessage& message) {
    Stop never;
    return handle(message, never);
  }

  std::vector<std::string> log() const;
  bool logged(const std::string& text) const;
  /// Waits until a line contains the text; false after ten seconds.
  bool wait_for_line(const std::string& text);
  /// Waits until the handler says that its broker works, or does not; in its words, or empty after a minute.
  std::string wait_for_broker(bool works);

 private:
  friend struct LiveAttempt;
  void write(std::string text);

  const sluice_handler& handler_;
  sluice_host host_{};
  std::optional<detail::TestInstance> instance_;
  mutable std::mutex mutex_;
  std::condition_variable written_;
  std::vector<std::string> lines_;
  std::pair<bool, std::string> broker_;
};

/// The one error that keeps the plugin from being created with these options; empty when nothing does.
std::string creation_error(const std::string& plugin, const OptionMap& options);

}  // namespace sluice::shipped
