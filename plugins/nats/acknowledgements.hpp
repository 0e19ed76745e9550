#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

/// What came of one message that was sent to the server. A value.
struct Answer {
  enum class End : std::uint8_t {
    stored,         ///< JetStream has it, now or since an earlier try
    no_stream,      ///< nobody takes the subject
    refused,        ///< JetStream said no; `code` and `text` say why
    not_permitted,  ///< the user may not publish there
    too_large,      ///< larger than the server takes; nothing was sent
    timed_out,      ///< no acknowledgement came; it may be stored all the same
    lost,           ///< the connection broke before the acknowledgement
    unreachable,    ///< no server answers; nothing was sent
    stopped,        ///< the handler was asked to finish; nothing was sent
  };
  End end = End::timed_out;
  int code = 0;
  std::string text{};
};

/// Who waits for which acknowledgement. Messages are known by their address. Thread-safe.
class Acknowledgements {
 public:
  /// One thread's wait for one message.
  class Waiter {
   public:
    explicit Waiter(std::string_view subject) : subject_(subject) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    /// Waits until the answer is there, at most this long; returns whether it is.
    bool wait_for(std::chrono::nanoseconds span);
    /// Once it is there.
    Answer take() { return std::move(answer_); }

   private:
    friend class Acknowledgements;
    void set(Answer answer);

    const std::string_view subject_;
    std::mutex mutex_;
    std::condition_variable answered_;
    bool done_ = false;
    Answer answer_;
  };

  /// From now on the message's answer goes to this waiter, which lives until it is answered or forgotten.
  void expect(const void* message, Waiter& waiter);
  /// No answer is wanted any more. Where one is on its way already, waits for it, which takes no time.
  void forget(const void* message, Waiter& waiter);
  void answer(const void* message, Answer answer);
  void answer_all(const Answer& answer);
  /// Answers those whose subject stands in quotes in this text of the server's.
  void answer_quoted(std::string_view text, const Answer& answer);
  std::size_t waiting() const;

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::unordered_map<const void*, Waiter*> waiters_;
};
