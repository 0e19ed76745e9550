#include "dynamo/client.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <stop_token>
#include <utility>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/ranges.hpp"
#include "base/uuid.hpp"
#include "dynamo/codec/requests.hpp"
#include "dynamo/codec/responses.hpp"
#include "dynamo/endpoints/endpoint_rules.hpp"
#include "dynamo/retry.hpp"
#include "dynamo/signing/signer.hpp"

namespace sluice::dynamo {
namespace {

/// One operation on its way: what is asked, and how far it has come. Touched only by the thread that makes the call.
struct Call {
  // What is asked.
  std::string operation;
  std::string table;  ///< for the observer
  std::string body;
  bool write = false;
  bool repeatable = false;  ///< a write that may be repeated though its outcome is unknown: it has a token
  /// Reads the answer's body into wherever the caller wants it, and tells what capacity it took; called once for each
  /// answer with status 200.
  std::function<Result<Capacity>(std::string_view)> decode{};

  // How far it has come.
  enum class Phase { due, in_flight, done };
  Phase phase = Phase::due;
  std::optional<Error> error{};  ///< once done: why it failed, or nothing
  bool unknown = false;          ///< an attempt that failed may have taken effect all the same
  std::string last_answer{};     ///< why the last attempt failed that did not end by time; empty: none did
  std::string invocation_id{};
  RetryState retry{};
  SteadyTime next_at = SteadyTime::min();
  SteadyTime sent_at{};
  WallTime signed_at{};
  Credentials credentials{};  ///< that the last attempt was signed with
  bool credentials_replaced = false;
  bool skew_corrected = false;
};

constexpr const char* kUserAgent = "sluice/" SLUICE_VERSION;
constexpr const char* kTargetPrefix = "DynamoDB_20120810.";

Error stopped_error() { return {ErrorKind::cancelled, "the DynamoDB client has been stopped"}; }

/// The region that signatures name, which is the same for every account. Not always the one configured: AWS's rules
/// sign for "local" as for another one.
std::string signing_region(const ClientOptions& options) {
  const auto endpoint = resolve_endpoint(options);
  return endpoint && !endpoint->signing_region.empty() ? endpoint->signing_region : options.region;
}

/// An earlier attempt of the same transaction is still at work.
bool in_progress(const Error& error) { return error.exception_name == "TransactionInProgressException"; }

/// The first name in double quotes, which in PartiQL is the table's; empty when there is none.
std::string_view table_of(std::string_view statement) {
  const auto open = statement.find('"');
  const auto close = open == std::string_view::npos ? open : statement.find('"', open + 1);
  return close == std::string_view::npos ? std::string_view() : statement.substr(open + 1, close - open - 1);
}

/// The table that all statements name; empty when they differ.
std::string table_of(const std::vector<Statement>& statements) {
  const std::string_view first = statements.empty() ? std::string_view() : table_of(statements.front().text);
  const bool same = std::all_of(statements.begin(), statements.end(),
                                [&](const Statement& statement) { return table_of(statement.text) == first; });
  return same ? std::string(first) : std::string();
}

Call reading_call(std::string operation, std::string table, std::string body) {
  return {.operation = std::move(operation), .table = std::move(table), .body = std::move(body)};
}

Call writing_call(std::string operation, std::string table, std::string body) {
  Call call = reading_call(std::move(operation), std::move(table), std::move(body));
  call.write = true;
  return call;
}

Call call_of(const ItemWrite& write) {
  const char* operation = write.kind == ItemWrite::Kind::put      ? "PutItem"
                          : write.kind == ItemWrite::Kind::update ? "UpdateItem"
                                                                  : "DeleteItem";
  return writing_call(operation, write.table, encode(write));
}

// Decoders of calls that may be several side by side are told which of them it is.

Result<ItemOutput> decode_written(std::string_view body, std::size_t) { return decode_item_output(body, Usage::write); }

}  // namespace

/// Makes calls: endpoint, credentials, signature, attempts. Thread-safe; every thread drives its own calls.
class Client::Core {
 public:
  Core(ClientOptions options, HttpTransport& transport, CredentialsProvider& credentials, const Clock& clock,
       Random& random)
      : options_(std::move(options)),
        policy_(RetryOptions{.max_attempts = options_.max_attempts}),
        signer_(SigningOptions{.region = signing_region(options_)}),
        transport_(transport),
        credentials_(credentials),
        clock_(clock),
        random_(random) {}

  /// Makes all of them side by side and returns when each is done.
  void run(std::span<Call> calls, Deadline deadline) {
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

  /// Makes one of them, or several side by side, and gives what they came to; `decode` reads an answer's body.
  template <typename Output, typename Decode>
  Result<Output> ask(Call call, Decode decode, Deadline deadline) {
    const auto decode_only = [&decode](std::string_view body, std::size_t) { return decode(body); };
    return std::move(ask_each<Output>({&call, 1}, decode_only, deadline).front());
  }
  template <typename Output, typename Decode>
  std::vector<Result<Output>> ask_each(std::span<Call> calls, Decode decode, Deadline deadline) {
    std::vector<Output> outputs(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      calls[i].decode = [&output = outputs[i], &decode, i](std::string_view body) -> Result<Capacity> {
        SLUICE_TRY(decoded, decode(body, i));
        output = std::move(*decoded);
        if constexpr (requires { output.capacity; }) {
          return output.capacity;
        }
        return Capacity();
      };
    }
    run(calls, deadline);
    std::vector<Result<Output>> results;
    results.reserve(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      results.push_back(calls[i].error ? Result<Output>(std::move(*calls[i].error))
                                       : Result<Output>(std::move(outputs[i])));
    }
    return results;
  }

  Result<std::string> endpoint_url(Deadline deadline) {
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

  Result<Target> target_for(const std::string& account_id) {
    const MutexLock lock(mutex_);
    if (target_ && target_->account_id == account_id) {
      return *target_;
    }
    if (options_.region.empty()) {
      return Error(ErrorKind::validation, "no AWS region is named; set region in [dynamodb] or AWS_REGION");
    }
    SLUICE_TRY(endpoint, resolve_endpoint(options_, account_id.empty() ? std::nullopt : std::optional(account_id)));
    target_ = Target{account_id, std::move(endpoint->url)};
    return *target_;
  }

  /// Sends one attempt; an Error when not even that can be done.
  std::optional<Error> start(Call& call, const std::shared_ptr<Inbox>& inbox, Deadline deadline) {
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

  Result<HttpRequest> signed_request(Call& call, const Target& target) const {
    HttpRequest request;
    request.url = target.url;
    request.headers.reserve(12);
    request.headers = {{"Content-Type", "application/x-amz-json-1.0"},
                       {"X-Amz-Target", kTargetPrefix + call.operation}};
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
  std::vector<Arrival> await(Inbox& inbox, SteadyTime wake) const {
    std::vector<Arrival> out;
    const MutexLock lock(inbox.mutex);
    inbox.arrived.wait_until(inbox.mutex, stop_.get_token(), clock_.machine_time(wake),
                             [&]() SLUICE_NO_TSA { return !inbox.arrivals.empty(); });
    out.swap(inbox.arrivals);
    return out;
  }
  void settle(Call& call, const HttpResult& result, Deadline deadline) {
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
  static void fail(Call& call, Error error) {
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
  std::optional<Error> examine(Call& call, const HttpResult& result) const {
    CallRecord record;
    std::optional<Error> error;
    if (!result) {
      error = result.error();
    } else if (auto damaged = check_crc32(result->headers, result->body)) {
      error = std::move(damaged);
    } else if (result->status != 200) {
      error = decode_error(result->status, result->headers, result->body);
    } else if (const auto capacity = call.decode(result->body)) {
      record.capacity = *capacity;
    } else {
      error = capacity.error();
    }
    if (error && !call.write) {
      error->outcome_unknown = false;  // a read changes nothing
    }
    if (options_.observer) {
      record.operation = call.operation;
      record.table = call.table;
      if (error) {
        record.error = error->kind;
      }
      options_.observer(record);
    }
    return error;
  }

  /// Whether the refusal had a cause that has been put right, so that the call is worth making again at once. Each
  /// cause once a call, besides what the policy allows: AWS did nothing with such a request.
  bool mended(Call& call, const Error& error, const HttpResult& result) {
    if (!result || stop_.stop_requested()) {
      return false;
    }
    if (!call.credentials_replaced && says_expired(error.exception_name)) {
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

  // Answers of DynamoDB itself tell its time: what it did, or why it refused. Any other may be of a proxy's.
  void learn_time(const Call& call, const HttpResult& result) {
    if (!result || (result->status != 200 && result->status != 400)) {
      return;
    }
    const std::string* date = result->header("date");
    const SteadyTime now = clock_.steady_now();
    server_time_.learn(date == nullptr ? std::nullopt : parse_http_date(*date), clock_.wall_now(), now,
                       now - call.sent_at);
  }
  /// Ends a call that is not done because of the stop.
  void cancel(Call& call) const {
    if (call.phase == Call::Phase::done) {
      return;
    }
    call.error = stopped_error();
    call.error->outcome_unknown = call.unknown || (call.write && call.phase == Call::Phase::in_flight);
    call.phase = Call::Phase::done;
  }

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

Client::Client(ClientOptions options, HttpTransport& transport, CredentialsProvider& credentials, const Clock& clock,
               Random& random)
    : core_(std::make_unique<Core>(std::move(options), transport, credentials, clock, random)) {}

Client::~Client() = default;

std::optional<ClockReading> Client::clock_reading() const { return core_->clock_reading(); }

void Client::stop() { core_->stop(); }

Result<std::string> Client::endpoint(Deadline deadline) { return core_->endpoint_url(deadline); }

Result<ItemOutput> Client::get_item(const GetItemRequest& request, Deadline deadline) {
  const auto decode = [](std::string_view body) { return decode_item_output(body, Usage::read); };
  return core_->ask<ItemOutput>(reading_call("GetItem", request.table, encode(request)), decode, deadline);
}

Result<ItemOutput> Client::write(const ItemWrite& write, Deadline deadline) {
  return std::move(write_each({&write, 1}, deadline).front());
}

std::vector<Result<ItemOutput>> Client::write_each(std::span<const ItemWrite> writes, Deadline deadline) {
  auto calls = mapped(writes, &call_of);
  return core_->ask_each<ItemOutput>(calls, decode_written, deadline);
}

Result<ItemOutput> Client::transact(const TransactWriteRequest& request, Deadline deadline) {
  return std::move(transact_each({&request, 1}, deadline).front());
}

std::vector<Result<ItemOutput>> Client::transact_each(std::span<const TransactWriteRequest> requests,
                                                      Deadline deadline) {
  auto calls = mapped(requests, [](const TransactWriteRequest& request) {
    const std::string table = request.actions.empty() ? std::string() : request.actions.front().table;
    Call call = writing_call("TransactWriteItems", table, encode(request));
    call.repeatable = !request.token.empty();
    return call;
  });
  return core_->ask_each<ItemOutput>(calls, decode_written, deadline);
}

Result<Page> Client::query(const QueryRequest& request, Deadline deadline) {
  return std::move(query_each({&request, 1}, deadline).front());
}

std::vector<Result<Page>> Client::query_each(std::span<const QueryRequest> requests, Deadline deadline) {
  auto calls = mapped(
      requests, [](const QueryRequest& request) { return reading_call("Query", request.table, encode(request)); });
  const auto decode = [](std::string_view body, std::size_t) { return decode_page(body); };
  return core_->ask_each<Page>(calls, decode, deadline);
}

Result<Page> Client::scan(const ScanRequest& request, Deadline deadline) {
  return core_->ask<Page>(reading_call("Scan", request.table, encode(request)), decode_page, deadline);
}

std::vector<Result<BatchStatementOutput>> Client::batch_execute(std::span<const std::vector<Statement>> batches,
                                                                Deadline deadline) {
  auto calls = mapped(batches, [](const std::vector<Statement>& batch) {
    return writing_call("BatchExecuteStatement", table_of(batch), encode_batch_execute(batch));
  });
  const auto decode = [&](std::string_view body, std::size_t i) {
    return decode_batch_execute(body, batches[i].size());
  };
  return core_->ask_each<BatchStatementOutput>(calls, decode, deadline);
}

Result<std::vector<Item>> Client::batch_get(const std::string& table, std::span<const Item> keys, Deadline deadline) {
  std::vector<Item> read;
  std::vector<Item> left(keys.begin(), keys.end());
  while (!left.empty()) {
    const auto decode = [&left](std::string_view body) {
      auto output = decode_batch_get(body);
      // That some are left is no sign of trouble: 16 MB an answer is a limit of DynamoDB's.
      return output && output->unread.size() >= left.size()
                 ? Error(ErrorKind::throttled, "DynamoDB left all of " + std::to_string(left.size()) +
                                                   " keys unread; it asks for fewer requests")
                 : std::move(output);
    };
    SLUICE_TRY(output, core_->ask<BatchGetOutput>(reading_call("BatchGetItem", table, encode_batch_get(table, left)),
                                                  decode, deadline));
    std::move(output->items.begin(), output->items.end(), std::back_inserter(read));
    left = std::move(output->unread);
  }
  return read;
}

Result<TableDescription> Client::create_table(const CreateTableRequest& request, Deadline deadline) {
  return core_->ask<TableDescription>(writing_call("CreateTable", request.name, encode(request)), decode_table,
                                      deadline);
}

Result<TableDescription> Client::describe_table(const std::string& table, Deadline deadline) {
  return core_->ask<TableDescription>(reading_call("DescribeTable", table, encode_describe_table(table)), decode_table,
                                      deadline);
}

Result<TimeToLive> Client::describe_time_to_live(const std::string& table, Deadline deadline) {
  return core_->ask<TimeToLive>(reading_call("DescribeTimeToLive", table, encode_describe_table(table)),
                                decode_time_to_live, deadline);
}

Result<void> Client::enable_time_to_live(const std::string& table, const std::string& attribute, Deadline deadline) {
  Call call = writing_call("UpdateTimeToLive", table, encode_enable_time_to_live(table, attribute));
  SLUICE_PASS_ON(core_->ask<TimeToLive>(std::move(call), decode_time_to_live, deadline));
  return {};
}

}  // namespace sluice::dynamo
