#include "dynamo/client_core.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/uuid.hpp"
#include "dynamo/codec/error_response.hpp"
#include "dynamo/codec/responses.hpp"

namespace sluice::dynamo {
namespace {

constexpr const char* kUserAgent = "sluice/" SLUICE_VERSION;
constexpr const char* kTargetPrefix = "DynamoDB_20120810.";

Error stopped_error() { return {ErrorKind::cancelled, "the DynamoDB client has been stopped"}; }

/// AWS's names for credentials that it knew once, or that were replaced.
bool says_expired(const Error& error) {
  constexpr std::array<std::string_view, 4> kNames = {"ExpiredTokenException", "ExpiredToken",
                                                      "UnrecognizedClientException", "InvalidClientTokenId"};
  return std::find(kNames.begin(), kNames.end(), error.exception_name) != kNames.end();
}

EndpointParameters endpoint_parameters(const ClientOptions& options) {
  EndpointParameters parameters;
  parameters.region = options.region;
  parameters.use_fips = options.use_fips;
  parameters.use_dual_stack = options.use_dual_stack;
  parameters.endpoint = options.endpoint;
  return parameters;
}

/// The region that signatures name, which is the same for every account. Not always the one configured: AWS's rules
/// sign for "local" as for another one.
std::string signing_region(const ClientOptions& options) {
  const auto endpoint = resolve_endpoint(endpoint_parameters(options));
  return endpoint && !endpoint->signing_region.empty() ? endpoint->signing_region : options.region;
}

/// An earlier attempt of the same transaction is still at work.
bool in_progress(const Error& error) { return error.exception_name == "TransactionInProgressException"; }

}  // namespace

Client::Core::Core(ClientOptions options, HttpTransport& transport, CredentialsProvider& credentials,
                   const Clock& clock, Random& random)
    : options_(std::move(options)),
      policy_(RetryOptions{.max_attempts = options_.max_attempts}),
      signer_(SigningOptions{.region = signing_region(options_)}),
      transport_(transport),
      credentials_(credentials),
      clock_(clock),
      random_(random) {}

void Client::Core::run(std::span<Call> calls, Deadline deadline) {
  const auto inbox = std::make_shared<Inbox>();
  SteadyTime waited_until = SteadyTime::min();
  for (;;) {
    SteadyTime wake = SteadyTime::max();
    bool busy = false;
    for (Call& call : calls) {
      if (call.phase == Call::Phase::due && stop_.stop_requested()) {
        cancel(call);
      } else if (call.phase == Call::Phase::due && call.next_at <= std::max(waited_until, clock_.steady_now())) {
        if (auto failure = start(call, inbox, deadline)) {
          fail(call, std::move(*failure));
        }
      }
      if (call.phase == Call::Phase::due) {
        wake = std::min(wake, call.next_at);
      }
      busy = busy || call.phase != Call::Phase::done;
    }
    if (!busy) {
      return;
    }
    auto arrivals = await(*inbox, wake);
    if (arrivals.empty()) {
      waited_until = wake;
    }
    for (Arrival& arrival : arrivals) {
      settle(*arrival.call, arrival.result, deadline);
    }
    if (stop_.stop_requested()) {
      for (Call& call : calls) {
        cancel(call);
      }
    }
  }
}

/// Sends one attempt; an Error when not even that can be done.
std::optional<Error> Client::Core::start(Call& call, const std::shared_ptr<Inbox>& inbox, Deadline deadline) {
  if (deadline.passed(clock_.steady_now())) {
    return Error(ErrorKind::timeout, call.operation + ": the time allowed had passed before the request was sent");
  }
  SLUICE_TRY(credentials, credentials_.get(deadline));
  call.credentials = std::move(*credentials);
  SLUICE_TRY(target, target_for(call.credentials.account_id));
  if (call.invocation_id.empty()) {
    call.invocation_id = make_uuid(random_);
  }
  SLUICE_TRY(request, signed_request(call, *target));
  ++call.retry.attempts;
  call.phase = Call::Phase::in_flight;
  call.sent_at = clock_.steady_now();
  const Deadline attempt = deadline.earlier(Deadline::at(call.sent_at + options_.attempt_timeout));
  transport_.send(std::move(*request), attempt, [inbox, &call](HttpResult result) {
    // After a stop the call may be gone: its address is carried, not followed.
    const MutexLock lock(inbox->mutex);
    inbox->arrivals.push_back({&call, std::move(result)});
    inbox->arrived.notify_one();
  });
  return std::nullopt;
}

Result<HttpRequest> Client::Core::signed_request(Call& call, const Target& target) const {
  HttpRequest request;
  request.url = target.url;
  request.headers.reserve(12);
  request.headers = {{"Content-Type", "application/x-amz-json-1.0"}, {"X-Amz-Target", kTargetPrefix + call.operation}};
  request.body = call.body;
  call.signed_at = skew_.corrected(clock_.wall_now());
  if (auto failure = signer_.sign(request, call.credentials, call.signed_at)) {
    return std::move(*failure);
  }
  // These are not signed: proxies may change them, and AWS's own clients leave them out too.
  request.headers.emplace_back("User-Agent", kUserAgent);
  request.headers.emplace_back("amz-sdk-invocation-id", call.invocation_id);
  request.headers.emplace_back("amz-sdk-request", "attempt=" + std::to_string(call.retry.attempts + 1) +
                                                      "; max=" + std::to_string(options_.max_attempts));
  return request;
}

/// Waits until an answer is there, it is time to wake, or the client is stopped.
std::vector<Client::Core::Arrival> Client::Core::await(Inbox& inbox, SteadyTime wake) const {
  std::vector<Arrival> out;
  const MutexLock lock(inbox.mutex);
  inbox.arrived.wait_until(inbox.mutex, stop_.get_token(), clock_.machine_time(wake),
                           [&]() SLUICE_NO_TSA { return !inbox.arrivals.empty(); });
  out.swap(inbox.arrivals);
  return out;
}

// Answers of DynamoDB itself tell its time: what it did, or why it refused. Any other may be of a proxy's.
void Client::Core::learn_time(const Call& call, const HttpResult& result) {
  if (!result || (result->status != 200 && result->status != 400)) {
    return;
  }
  const std::string* date = result->header("date");
  const SteadyTime now = clock_.steady_now();
  server_time_.learn(date == nullptr ? std::nullopt : parse_http_date(*date), clock_.wall_now(), now,
                     now - call.sent_at);
}

void Client::Core::settle(Call& call, const HttpResult& result, Deadline deadline) {
  learn_time(call, result);
  std::optional<Error> error = examine(call, result);
  if (!error) {
    RetryPolicy::succeeded(call.retry, quota_);
    call.error.reset();
    call.phase = Call::Phase::done;
    return;
  }
  call.error = std::move(error);
  const SteadyTime now = clock_.steady_now();
  if (mended(call, *call.error, result)) {
    call.next_at = now;
    call.phase = Call::Phase::due;
    return;
  }
  if (call.repeatable) {
    call.unknown = call.unknown || call.error->outcome_unknown || in_progress(*call.error);
    call.error->outcome_unknown = false;
  }
  const auto delay = policy_.next_delay(*call.error, call.retry, quota_, random_.unit(), deadline.left(now));
  if (!delay) {
    fail(call, std::move(*call.error));
    return;
  }
  if (call.error->kind != ErrorKind::timeout) {
    call.last_answer = call.error->message;
  }
  call.phase = Call::Phase::due;
  call.next_at = now + *delay;
}

/// Ends a call. That time ran out says little; what the attempts before it met says why.
void Client::Core::fail(Call& call, Error error) {
  if (error.kind == ErrorKind::timeout && !call.last_answer.empty()) {
    error.message += "; an attempt before it: " + call.last_answer;
  }
  // What DynamoDB says of the transaction itself is true of all attempts.
  const bool verdict = error.kind == ErrorKind::conditional_check_failed || error.kind == ErrorKind::validation;
  error.outcome_unknown = error.outcome_unknown || (call.unknown && !verdict);
  call.error = std::move(error);
  call.phase = Call::Phase::done;
}

/// What an attempt came to, told to the observer; nothing when it succeeded.
std::optional<Error> Client::Core::examine(Call& call, const HttpResult& result) const {
  CallRecord record;
  std::optional<Error> error;
  if (!result) {
    error = result.error();
  } else if (auto damaged = check_crc32(result->headers, result->body)) {
    error = std::move(damaged);
  } else if (result->status != 200) {
    error = decode_error(result->status, result->headers, result->body);
    if (call.refused) {
      call.refused(result->body);
    }
  } else if (auto report = call.decode(result->body)) {
    record.capacity = report->capacity;
    record.throttling_reasons = std::move(report->throttling_reasons);
  } else {
    error = report.error();
  }
  if (error && !call.write) {
    error->outcome_unknown = false;  // a read changes nothing
  }
  if (options_.observer) {
    record.operation = call.operation;
    record.table = call.table;
    record.latency = clock_.steady_now() - call.sent_at;
    record.attempt = call.retry.attempts;
    if (error) {
      record.error = error->kind;
      record.throttling_reasons = error->throttling_reasons;
    }
    options_.observer(record);
  }
  return error;
}

/// Whether the refusal had a cause that has been put right, so that the call is worth making again at once. Each cause
/// once a call, besides what the policy allows: AWS did nothing with such a request.
bool Client::Core::mended(Call& call, const Error& error, const HttpResult& result) {
  if (!result || stop_.stop_requested()) {
    return false;
  }
  if (!call.credentials_replaced && says_expired(error)) {
    call.credentials_replaced = true;
    credentials_.refused(call.credentials);
    return true;
  }
  const std::string* date = result->header("date");
  if (!call.skew_corrected && date != nullptr && skew_.learn(error, *date, clock_.wall_now(), call.signed_at)) {
    call.skew_corrected = true;
    return true;
  }
  return false;
}

/// Ends a call that is not done because of the stop.
void Client::Core::cancel(Call& call) const {
  if (call.phase == Call::Phase::done) {
    return;
  }
  call.error = stopped_error();
  call.error->outcome_unknown = call.write && call.phase == Call::Phase::in_flight;
  call.phase = Call::Phase::done;
}

std::optional<Error> Client::Core::pause_before_retry(const Error& error, RetryState& state, Deadline deadline) {
  const SteadyTime now = clock_.steady_now();
  ++state.attempts;
  const auto delay = policy_.next_delay(error, state, quota_, random_.unit(), deadline.left(now));
  if (!delay) {
    return error;
  }
  Inbox nobody;
  await(nobody, now + *delay);
  return stop_.stop_requested() ? std::optional(stopped_error()) : std::nullopt;
}

Result<Client::Core::Target> Client::Core::target_for(const std::string& account_id) {
  const MutexLock lock(mutex_);
  if (target_ && target_->account_id == account_id) {
    return *target_;
  }
  EndpointParameters parameters = endpoint_parameters(options_);
  parameters.account_id_endpoint_mode = options_.account_id_endpoint_mode;
  if (!account_id.empty()) {
    parameters.account_id = account_id;
  }
  if (options_.region.empty()) {
    return Error(ErrorKind::validation, "no AWS region is named; set region in [dynamodb] or AWS_REGION");
  }
  SLUICE_TRY(endpoint, resolve_endpoint(parameters));
  target_ = Target{account_id, std::move(endpoint->url)};
  return *target_;
}

Result<std::string> Client::Core::endpoint_url(Deadline deadline) {
  std::string account_id;
  if (options_.endpoint.empty()) {
    // Without credentials the regional endpoint is still a true answer to where requests would go.
    if (const auto credentials = credentials_.get(deadline)) {
      account_id = credentials->account_id;
    }
  }
  SLUICE_TRY(target, target_for(account_id));
  return std::move(target->url);
}

}  // namespace sluice::dynamo
