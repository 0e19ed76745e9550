#pragma once

#include <functional>
#include <future>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/signal_block.hpp"

namespace sluice {

/// Makes calls that heed no deadline, each on a thread of its own, which is left behind where the call hangs; however
/// many wait for one of a name, there is one. Thread-safe. Its threads may outlive everything else: it is not to be
/// destroyed.
template <typename Value>
class HangingCalls {
 public:
  /// `name` is unique, and said in errors: "the look-up of ...".
  Result<Value> make(const std::string& name, std::function<Result<Value>()> call, const Clock& clock,
                     Deadline deadline) {
    forget_ended();
    SLUICE_TRY(answer, begin(name, std::move(call)));
    const bool in_time = answer->wait_until(clock.machine_time(deadline.time())) == std::future_status::ready;
    forget_ended();
    return in_time ? answer->get() : Error(ErrorCode::timeout, name + " did not end in time");
  }

 private:
  using Answer = std::shared_future<Result<Value>>;
  struct Call {
    Answer answer;
    std::jthread thread;
  };

  /// The one that is under way, or a new one.
  Result<Answer> begin(const std::string& name, std::function<Result<Value>()> what) {
    const MutexLock lock(mutex_);
    Call& call = calls_[name];
    if (!call.answer.valid()) {
      std::packaged_task<Result<Value>()> task(std::move(what));
      call.answer = task.get_future().share();
      const SignalBlock quiet;
      try {
        call.thread = std::jthread(std::move(task));
      } catch (const std::system_error& error) {
        calls_.erase(name);
        return Error(ErrorCode::unavailable, "no thread for " + name + ": " + error.code().message());
      }
    }
    return call.answer;
  }

  void forget_ended() {
    const MutexLock lock(mutex_);
    std::erase_if(calls_, [](const auto& one) {
      return one.second.answer.wait_for(Duration::zero()) == std::future_status::ready;
    });
  }

  Mutex mutex_;
  std::map<std::string, Call> calls_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice
