#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "dynamo/transport/http_transport.hpp"

namespace sluice::test {

/// A transport without a network: it records what it is sent and answers by script, then by a handler. Thread-safe.
class FakeTransport final : public dynamo::HttpTransport {
 public:
  using Handler = std::function<dynamo::HttpResult(const dynamo::HttpRequest&)>;

  /// Without a handler, a request beyond the script fails as a refused connection would.
  FakeTransport() = default;
  explicit FakeTransport(Handler handler) : handler_(std::move(handler)) {}

  static dynamo::HttpResponse response(int status, std::string body, dynamo::Headers headers = {}) {
    return {status, std::move(headers), std::move(body)};
  }

  /// Adds an answer to the script.
  void answer(dynamo::HttpResult result) {
    const MutexLock lock(mutex_);
    script_.push_back(std::move(result));
  }
  void answer(int status, std::string body, dynamo::Headers headers = {}) {
    answer(dynamo::HttpResult(response(status, std::move(body), std::move(headers))));
  }

  void send(dynamo::HttpRequest request, Deadline deadline, Callback done) override {
    MutexLock lock(mutex_);
    requests_.push_back(request);
    deadlines_.push_back(deadline);
    changed_.notify_all();
    if (holding_) {
      held_.push_back(std::move(done));
      return;
    }
    dynamo::HttpResult result = dynamo::Error(dynamo::ErrorKind::transport, "no answer is scripted for " + request.url);
    if (!script_.empty()) {
      result = std::move(script_.front());
      script_.pop_front();
      lock.unlock();
    } else if (handler_) {
      lock.unlock();
      result = handler_(request);
    } else {
      lock.unlock();
    }
    done(std::move(result));
  }

  /// From now on requests wait for release().
  void hold() {
    const MutexLock lock(mutex_);
    holding_ = true;
  }
  /// Answers the oldest held request; false when there is none.
  bool release(dynamo::HttpResult result) {
    Callback done;
    {
      const MutexLock lock(mutex_);
      if (held_.empty()) {
        return false;
      }
      done = std::move(held_.front());
      held_.pop_front();
    }
    done(std::move(result));
    return true;
  }
  /// Waits until that many requests have come in all.
  void wait_for_requests(std::size_t count) {
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, SteadyTime::max(), [&]() SLUICE_NO_TSA { return requests_.size() >= count; });
  }

  std::vector<dynamo::HttpRequest> requests() const {
    const MutexLock lock(mutex_);
    return requests_;
  }
  std::vector<Deadline> deadlines() const {
    const MutexLock lock(mutex_);
    return deadlines_;
  }

 private:
  // Fixed after construction.
  const Handler handler_;

  mutable Mutex mutex_;
  Condition changed_;
  // Guarded by mutex_.
  std::deque<dynamo::HttpResult> script_ SLUICE_GUARDED_BY(mutex_);
  std::vector<dynamo::HttpRequest> requests_ SLUICE_GUARDED_BY(mutex_);
  std::vector<Deadline> deadlines_ SLUICE_GUARDED_BY(mutex_);
  std::deque<Callback> held_ SLUICE_GUARDED_BY(mutex_);
  bool holding_ SLUICE_GUARDED_BY(mutex_) = false;
};

/// The value of a request's header, its name in any case; empty when it has none.
inline std::string header_of(const dynamo::HttpRequest& request, std::string_view name) {
  const auto lower = [](std::string_view text) {
    std::string out(text);
    for (char& c : out) {
      c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return out;
  };
  for (const auto& [key, value] : request.headers) {
    if (lower(key) == lower(name)) {
      return value;
    }
  }
  return {};
}

}  // namespace sluice::test
