#pragma once

#include <array>
#include <atomic>
#include <boost/json.hpp>
#include <ctime>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "dynamo/transport/http_transport.hpp"

namespace sluice::test {

/// What goes wrong with one request.
enum class HttpFault {
  none,
  refuse,                  ///< never sent: connection refused
  error_500,               ///< never sent, answered with HTTP 500: no effect, though nobody can know
  commit_then_500,         ///< takes effect, answered with HTTP 500
  commit_then_reset,       ///< takes effect, the connection breaks before the answer
  commit_then_cut,         ///< takes effect, half of the answer arrives
  throttle_odd,            ///< of a batch only every other statement is executed; the others are throttled
  throttle_all,            ///< the whole request is throttled
  reset_then_commit,       ///< the connection breaks, and the request takes effect only when a test lets it
  leave_keys_unprocessed,  ///< of a BatchGetItem only the first key is read
  answer_without_items,    ///< takes effect, and the answer leaves out what was asked to be returned
  deny,                    ///< never executed: the role may not do it
  deny_locked,             ///< the same, in AWS's words about a table named "locked"
  unknown_operation,       ///< never executed: the endpoint knows no such operation
};

/// A transport that passes requests on, but for those that a test wants broken. Thread-safe.
class FaultyTransport final : public dynamo::HttpTransport {
 public:
  /// Decides about one request, by its operation ("BatchExecuteStatement") and body.
  using Chooser = std::function<HttpFault(const std::string& operation, const std::string& body)>;

  explicit FaultyTransport(dynamo::HttpTransport& inner) : inner_(inner) {}

  void choose(Chooser chooser) {
    const MutexLock lock(mutex_);
    chooser_ = std::move(chooser);
  }
  /// Breaks the next `times` requests whose body contains `needle`.
  void break_next(HttpFault fault, const std::string& needle, int times = 1) {
    auto left = std::make_shared<std::atomic<int>>(times);
    choose([fault, needle, left](const std::string&, const std::string& body) {
      return body.find(needle) != std::string::npos && left->fetch_sub(1) > 0 ? fault : HttpFault::none;
    });
  }

  /// From now on answers tell that clock's time; null, as at first: they tell none. It must outlive the transport's
  /// use.
  void tell_time(const Clock* clock) {
    const MutexLock lock(mutex_);
    clock_ = clock;
  }

  /// Lets the requests of `reset_then_commit` take effect, and waits until they have.
  void commit_held() {
    std::vector<std::pair<dynamo::HttpRequest, Deadline>> held;
    {
      const MutexLock lock(mutex_);
      held.swap(held_);
    }
    for (auto& [request, deadline] : held) {
      std::promise<void> done;
      inner_.send(std::move(request), deadline, [&done](const dynamo::HttpResult&) { done.set_value(); });
      done.get_future().wait();
    }
  }

  void send(dynamo::HttpRequest request, Deadline deadline, Callback answered) override {
    Callback done = [this, answered = std::move(answered)](dynamo::HttpResult result) {
      date(result);
      answered(std::move(result));
    };
    const HttpFault fault = fault_of(request);
    switch (fault) {
      case HttpFault::none:
        return inner_.send(std::move(request), deadline, std::move(done));
      case HttpFault::refuse:
        return done(dynamo::Error(dynamo::ErrorKind::transport, "connection refused (injected)"));
      case HttpFault::error_500:
        return done(server_error());
      case HttpFault::throttle_all:
        return done(
            answer(400, R"({"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"slow down"})"));
      case HttpFault::deny:
        return done(answer(400, R"({"__type":"AccessDeniedException","Message":"not authorized, injected"})"));
      case HttpFault::unknown_operation:
        return done(answer(
            400, R"({"__type":"com.amazon.coral.service#UnknownOperationException","message":"not here, injected"})"));
      case HttpFault::deny_locked:
        return done(answer(
            400,
            R"({"__type":"AccessDeniedException","Message":"User: arn:aws:iam::1:user/u is not authorized to perform: dynamodb:PutItem on resource: arn:aws:dynamodb:eu-west-1:1:table/locked because no policy allows it"})"));
      case HttpFault::answer_without_items:
        return send_for_nothing(std::move(request), deadline, done);
      case HttpFault::reset_then_commit: {
        {
          const MutexLock lock(mutex_);
          held_.emplace_back(std::move(request), deadline);
        }
        return done(reset());
      }
      case HttpFault::throttle_odd:
        return send_part(std::move(request), "Statements", deadline, done);
      case HttpFault::leave_keys_unprocessed:
        return send_first_key(std::move(request), deadline, done);
      default:
        break;
    }
    inner_.send(std::move(request), deadline, [fault, done](dynamo::HttpResult result) {
      done(fault == HttpFault::commit_then_500     ? dynamo::HttpResult(server_error())
           : fault == HttpFault::commit_then_reset ? reset()
                                                   : cut(std::move(result)));
    });
  }

 private:
  static dynamo::HttpResponse answer(int status, std::string body) { return {status, {}, std::move(body)}; }
  static dynamo::HttpResponse server_error() {
    return answer(500, R"({"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"injected"})");
  }
  static dynamo::HttpResult reset() {
    dynamo::Error error(dynamo::ErrorKind::transport, "connection reset after sending (injected)");
    error.outcome_unknown = true;
    return error;
  }
  static dynamo::HttpResult cut(dynamo::HttpResult result) {
    if (result) {
      result->body.resize(result->body.size() / 2);
    }
    return result;
  }

  // The emulator's Date is the machine's, and the hosts live by clocks of tests.
  void date(dynamo::HttpResult& result) {
    if (!result) {
      return;
    }
    std::erase_if(result->headers, [](const auto& header) { return header.first == "date"; });
    const Clock* clock = nullptr;
    {
      const MutexLock lock(mutex_);
      clock = clock_;
    }
    if (clock != nullptr) {
      result->headers.emplace_back("date", http_date(clock->wall_now()));
    }
  }

  static std::string http_date(WallTime time) {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(
        std::chrono::floor<std::chrono::system_clock::duration>(std::chrono::floor<std::chrono::seconds>(time)));
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    std::array<char, 64> text{};
    return {text.data(), std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
  }

  HttpFault fault_of(const dynamo::HttpRequest& request) {
    std::string operation;
    for (const auto& [name, value] : request.headers) {
      if (name == "X-Amz-Target") {
        operation = value.substr(value.find('.') + 1);
      }
    }
    Chooser chooser;
    {
      const MutexLock lock(mutex_);
      chooser = chooser_;
    }
    return chooser ? chooser(operation, request.body) : HttpFault::none;
  }

  // Sends the even statements on, and puts throttles in the places of the odd ones.
  void send_part(dynamo::HttpRequest request, const char* member, Deadline deadline, const Callback& done) {
    auto body = boost::json::parse(request.body).as_object();
    const auto statements = body.at(member).as_array();
    boost::json::array even;
    for (std::size_t i = 0; i < statements.size(); i += 2) {
      even.push_back(statements[i]);
    }
    body[member] = even;
    request.body = boost::json::serialize(body);
    inner_.send(std::move(request), deadline, [done, count = statements.size()](dynamo::HttpResult result) {
      if (!result || result->status != 200) {
        return done(std::move(result));
      }
      auto answered = boost::json::parse(result->body).as_object();
      const auto got = answered.at("Responses").as_array();
      boost::json::array all;
      for (std::size_t i = 0; i < count; ++i) {
        all.push_back(i % 2 == 0
                          ? got[i / 2]
                          : boost::json::value{{"Error", {{"Code", "ThrottlingError"}, {"Message", "injected"}}}});
      }
      answered["Responses"] = all;
      done(answer(200, boost::json::serialize(answered)));
    });
  }

  void send_for_nothing(dynamo::HttpRequest request, Deadline deadline, const Callback& done) {
    inner_.send(std::move(request), deadline, [done](dynamo::HttpResult result) {
      if (!result || result->status != 200) {
        return done(std::move(result));
      }
      auto answered = boost::json::parse(result->body).as_object();
      answered.erase("Attributes");
      if (auto* responses = answered.if_contains("Responses")) {
        for (auto& response : responses->as_array()) {
          response.as_object().erase("Item");
        }
      }
      done(answer(200, boost::json::serialize(answered)));
    });
  }

  void send_first_key(dynamo::HttpRequest request, Deadline deadline, const Callback& done) {
    auto body = boost::json::parse(request.body).as_object();
    auto& [table, wanted] = *[&] { return body.at("RequestItems").as_object().begin(); }();
    auto& keys = wanted.as_object().at("Keys").as_array();
    boost::json::object left = wanted.as_object();
    boost::json::array rest(keys.begin() + 1, keys.end());
    left["Keys"] = rest;
    keys.erase(keys.begin() + 1, keys.end());
    request.body = boost::json::serialize(body);
    inner_.send(std::move(request), deadline,
                [done, left, any = !rest.empty(), name = std::string(table)](dynamo::HttpResult result) {
                  if (!result || result->status != 200) {
                    return done(std::move(result));
                  }
                  auto answered = boost::json::parse(result->body).as_object();
                  if (any) {
                    answered["UnprocessedKeys"] = boost::json::object{{name, left}};
                  }
                  done(answer(200, boost::json::serialize(answered)));
                });
  }

  dynamo::HttpTransport& inner_;
  Mutex mutex_;
  Chooser chooser_ SLUICE_GUARDED_BY(mutex_);
  const Clock* clock_ SLUICE_GUARDED_BY(mutex_) = nullptr;
  std::vector<std::pair<dynamo::HttpRequest, Deadline>> held_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::test
