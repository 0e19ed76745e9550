#pragma once

// Private to the client: how calls are made, whatever they say.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "dynamo/client.hpp"
#include "dynamo/endpoints/endpoint_rules.hpp"
#include "dynamo/retry.hpp"
#include "dynamo/server_time.hpp"
#include "dynamo/signing/signer.hpp"

namespace sluice::dynamo {

/// What an answer reports, besides what it is for.
struct AnswerReport {
  Capacity capacity;
  std::vector<std::string> throttling_reasons;  ///< of single statements of a batch
};

/// One operation on its way: what is asked, and how far it has come. Touched only by the thread that makes the call.
struct Call {
  // What is asked.
  std::string operation;
  std::string table;  ///< for the observer
  std::string body;
  bool write = false;
  bool repeatable = false;  ///< a write that may be repeated though its outcome is unknown: it has a token
  /// Reads the answer's body into wherever the caller wants it; called once for each answer with status 200.
  std::function<Result<AnswerReport>(std::string_view)> decode;
  /// Given the body of each answer with another status; empty: nobody wants to know more than the error tells.
  std::function<void(std::string_view)> refused{};

  // How far it has come.
  enum class Phase { due, in_flight, done };
  Phase phase = Phase::due;
  std::optional<Error> error;  ///< once done: why it failed, or nothing
  bool unknown = false;        ///< an attempt that failed may have taken effect all the same
  std::string last_answer;     ///< why the last attempt failed that did not end by time; empty: none did
  std::string invocation_id;
  RetryState retry;
  SteadyTime next_at = SteadyTime::min();
  SteadyTime sent_at{};
  WallTime signed_at{};
  Credentials credentials;  ///< that the last attempt was signed with
  bool credentials_replaced = false;
  bool skew_corrected = false;
};

/// Makes calls: endpoint, credentials, signature, attempts. Thread-safe; every thread drives its own calls.
class Client::Core {
 public:
  Core(ClientOptions options, HttpTransport& transport, CredentialsProvider& credentials, const Clock& clock,
       Random& random);

  /// Makes all of them side by side and returns when each is done.
  void run(std::span<Call> calls, Deadline deadline);
  /// Makes one of them, or several side by side, and gives what they came to; `decode` reads an answer's body.
  template <typename Output, typename Decode>
  Result<Output> ask(Call call, Decode decode, Deadline deadline) {
    return std::move(ask_each<Output>({&call, 1}, decode, deadline).front());
  }
  template <typename Output, typename Decode>
  std::vector<Result<Output>> ask_each(std::span<Call> calls, Decode decode, Deadline deadline);
  template <typename Output>
  static std::vector<Result<Output>> results_of(std::span<Call> calls, std::span<Output> outputs);

  /// Waits, as between two attempts, when the policy wants another try; nothing then, else what to return.
  std::optional<Error> pause_before_retry(const Error& error, RetryState& state, Deadline deadline);
  Result<std::string> endpoint_url(Deadline deadline);
  std::optional<ClockReading> clock_reading() const {
    return server_time_.reading(clock_.wall_now(), clock_.steady_now());
  }
  void stop() { stop_.request_stop(); }

 private:
  /// Where requests go for one account.
  struct Target {
    std::string account_id;
    std::string url;
  };
  struct Arrival {
    Call* call;
    HttpResult result;
  };
  /// Where answers arrive. Shared with the transport's callbacks, which may outlast the call after a stop.
  struct Inbox {
    Mutex mutex;
    Condition arrived;
    std::vector<Arrival> arrivals SLUICE_GUARDED_BY(mutex);
  };

  Result<Target> target_for(const std::string& account_id);
  std::optional<Error> start(Call& call, const std::shared_ptr<Inbox>& inbox, Deadline deadline);
  Result<HttpRequest> signed_request(Call& call, const Target& target) const;
  std::vector<Arrival> await(Inbox& inbox, SteadyTime wake) const;
  void settle(Call& call, const HttpResult& result, Deadline deadline);
  static void fail(Call& call, Error error);
  std::optional<Error> examine(Call& call, const HttpResult& result) const;
  bool mended(Call& call, const Error& error, const HttpResult& result);
  void learn_time(const Call& call, const HttpResult& result);
  void cancel(Call& call) const;

  // Fixed after construction.
  const ClientOptions options_;
  const RetryPolicy policy_;
  const Signer signer_;

  // Synchronise themselves.
  HttpTransport& transport_;
  CredentialsProvider& credentials_;
  const Clock& clock_;
  Random& random_;
  RetryQuota quota_;
  ClockSkew skew_;
  ServerTime server_time_;
  std::stop_source stop_;

  Mutex mutex_;
  // Guarded by mutex_.
  std::optional<Target> target_ SLUICE_GUARDED_BY(mutex_);
};

template <typename Output>
std::vector<Result<Output>> Client::Core::results_of(std::span<Call> calls, std::span<Output> outputs) {
  std::vector<Result<Output>> results;
  results.reserve(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    results.push_back(calls[i].error ? Result<Output>(std::move(*calls[i].error))
                                     : Result<Output>(std::move(outputs[i])));
  }
  return results;
}

template <typename Output, typename Decode>
std::vector<Result<Output>> Client::Core::ask_each(std::span<Call> calls, Decode decode, Deadline deadline) {
  std::vector<Output> outputs(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i].decode = [&output = outputs[i], decode](std::string_view body) -> Result<AnswerReport> {
      SLUICE_TRY(decoded, decode(body));
      output = std::move(*decoded);
      AnswerReport report;
      if constexpr (requires { output.capacity; }) {
        report.capacity = output.capacity;
      }
      return report;
    };
  }
  run(calls, deadline);
  return results_of(calls, std::span(outputs));
}

}  // namespace sluice::dynamo
