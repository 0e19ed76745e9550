#include "dynamo/transport/curl_transport.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <boost/core/noncopyable.hpp>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/assert.hpp"
#include "base/mutex.hpp"
#include "base/signal_block.hpp"
#include "dynamo/text.hpp"

namespace sluice::dynamo {

namespace {

constexpr long kKeepAliveIdleSeconds = 30;
constexpr std::size_t kMostReserved = 1024 * 1024;  // a length is only a claim until the bytes arrive

long milliseconds_up(Duration span) {
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(span).count();
  constexpr long kMaxMs = 24L * 60 * 60 * 1000;
  return std::clamp<long>(static_cast<long>(rounded), 1, kMaxMs);
}

std::string seconds_text(Duration span) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

/// A header that would break out of its line is refused: whoever built it has mixed data into it.
bool is_clean(const std::string& text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos;
}

std::string os_reason(CURL* handle) {
  long number = 0;
  curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &number);
  return number == 0 ? std::string() : lower_case(std::generic_category().message(static_cast<int>(number)));
}

/// "https://host:port" of a URL: what messages name.
std::string origin_of(std::string_view url) {
  const auto scheme = url.find("://");
  const auto path = url.find_first_of("/?#", scheme == std::string_view::npos ? 0 : scheme + 3);
  return std::string(url.substr(0, path));
}

/// A request that waits for its turn.
struct PendingRequest {
  HttpRequest request;
  Deadline deadline;
  HttpTransport::Callback done;
};

/// One easy handle with the request it carries. Reused for one request after another. Touched only by the I/O thread.
class CurlExchange : boost::noncopyable {
 public:
  /// `options` must outlive the exchange; `no_proxy` is a comma-separated list of hosts.
  CurlExchange(const CurlTransportOptions& options, const std::string& no_proxy)
      : options_(options), handle_(curl_easy_init()) {
    if (handle_ == nullptr) {
      throw std::runtime_error("libcurl cannot make a handle");
    }
    set_up(no_proxy);
  }
  ~CurlExchange() {
    release();
    curl_easy_cleanup(handle_);
  }

  CURL* handle() const { return handle_; }
  static CurlExchange& of(CURL* handle) {
    char* self = nullptr;
    curl_easy_getinfo(handle, CURLINFO_PRIVATE, &self);
    return *reinterpret_cast<CurlExchange*>(self);
  }

  /// Takes a request on. An Error when libcurl refuses it (nothing was sent then).
  Result<void> begin(PendingRequest pending, SteadyTime now) {
    pending_ = std::move(pending);
    response_ = {};
    header_bytes_ = 0;
    sending_ = false;
    sent_before_ = 0;
    too_large_ = false;
    error_text_[0] = '\0';
    return apply(now);
  }

  /// What the transfer came to; the exchange is free for the next request afterwards.
  HttpResult finish(CURLcode code, SteadyTime now) {
    if (code != CURLE_OK) {
      Error error = describe(code, now);
      release();
      return error;
    }
    long status = 0;
    curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
    response_.status = static_cast<int>(status);
    HttpResponse response = std::move(response_);
    release();
    return response;
  }

  /// What a stop makes of it.
  HttpResult cancel() {
    Error error(ErrorKind::cancelled,
                "the request to " + origin_of(last_url_) + " was ended by the stop of the transport");
    error.outcome_unknown = may_have_been_sent();
    release();
    return error;
  }
  HttpTransport::Callback take_callback() { return std::move(pending_.done); }

 private:
  void set_up(const std::string& no_proxy) {
    const auto set = [this](CURLoption option, auto value) { curl_easy_setopt(handle_, option, value); };
    set(CURLOPT_PRIVATE, this);
    set(CURLOPT_ERRORBUFFER, error_text_.data());
    set(CURLOPT_NOSIGNAL, 1L);
    // Without it a time-out during name resolution would block the I/O thread until the resolver gives up.
    set(CURLOPT_QUICK_EXIT, 1L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_HTTP_VERSION,
        static_cast<long>(options_.http2 ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : CURL_HTTP_VERSION_1_1));
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    if (!options_.ca_file.empty()) {
      set(CURLOPT_CAINFO, options_.ca_file.c_str());
    }
    set(CURLOPT_NOPROXY, no_proxy.c_str());
    set(CURLOPT_TCP_NODELAY, 1L);
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    set(CURLOPT_TCP_KEEPIDLE, kKeepAliveIdleSeconds);
    set(CURLOPT_TCP_KEEPINTVL, kKeepAliveIdleSeconds);
    set(CURLOPT_MAXAGE_CONN,
        static_cast<long>(std::chrono::duration_cast<std::chrono::seconds>(options_.max_idle).count()));
    set(CURLOPT_HEADERFUNCTION, &on_header);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, &on_body);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_PREREQFUNCTION, &on_send);
    set(CURLOPT_PREREQDATA, this);
  }

  Result<void> apply(SteadyTime now) {
    const HttpRequest& request = pending_.request;
    const auto refused = [&](const std::string& why) {
      return Error(ErrorKind::transport, "cannot send a request to " + origin_of(request.url) + ": " + why);
    };
    if (request.url != last_url_) {
      last_url_ = request.url;
      if (curl_easy_setopt(handle_, CURLOPT_URL, last_url_.c_str()) != CURLE_OK) {
        return refused("the URL is not one that can be used");
      }
    }
    // libcurl 7.88, which is Debian 12's, cannot send a second request over an HTTP/2 connection without TLS: it sets
    // HTTP/2 up on it once more (curl's pull request 10643). Over TLS connections are kept.
    const long single = options_.http2 && request.url.starts_with("http://") ? 1 : 0;
    curl_easy_setopt(handle_, CURLOPT_FRESH_CONNECT, single);
    curl_easy_setopt(handle_, CURLOPT_FORBID_REUSE, single);
    // An empty "Expect:" keeps libcurl from waiting for "100 Continue" before a large body.
    curl_slist* list = curl_slist_append(nullptr, "Expect:");
    for (const auto& [name, value] : request.headers) {
      if (!is_clean(name) || !is_clean(value)) {
        curl_slist_free_all(list);
        return refused("the header " + lower_case(name.substr(0, name.find_first_of("\r\n"))) +
                       " contains a line break");
      }
      list = curl_slist_append(list, value.empty() ? (name + ";").c_str() : (name + ": " + value).c_str());
    }
    headers_ = list;
    curl_easy_setopt(handle_, CURLOPT_HTTPHEADER, headers_);
    if (request.method == "GET") {
      curl_easy_setopt(handle_, CURLOPT_CUSTOMREQUEST, nullptr);
      curl_easy_setopt(handle_, CURLOPT_HTTPGET, 1L);
    } else {
      curl_easy_setopt(handle_, CURLOPT_POST, 1L);
      curl_easy_setopt(handle_, CURLOPT_CUSTOMREQUEST, request.method == "POST" ? nullptr : request.method.c_str());
      curl_easy_setopt(handle_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      curl_easy_setopt(handle_, CURLOPT_POSTFIELDS, request.body.data());
    }
    time_allowed_ = pending_.deadline.left(now);
    curl_easy_setopt(handle_, CURLOPT_CONNECTTIMEOUT_MS, milliseconds_up(request.connect_timeout));
    curl_easy_setopt(handle_, CURLOPT_TIMEOUT_MS, pending_.deadline.is_never() ? 0L : milliseconds_up(time_allowed_));
    return {};
  }

  void release() {
    curl_slist_free_all(headers_);
    headers_ = nullptr;
    pending_.request = {};
    response_ = {};
  }
  bool may_have_been_sent() const { return sending_ && bytes_sent() > sent_before_; }
  Error describe(CURLcode code, SteadyTime now) const {
    const std::string origin = origin_of(last_url_);
    Error error(ErrorKind::transport, "");
    error.outcome_unknown = may_have_been_sent();
    if (too_large_) {
      error.kind = ErrorKind::malformed_response;
      error.message = origin + " sent an answer larger than " + std::to_string(options_.max_body_bytes) + " bytes";
    } else if (code == CURLE_OPERATION_TIMEDOUT && (sending_ || pending_.deadline.passed(now))) {
      error.kind = ErrorKind::timeout;
      error.message = "no answer from " + origin + " within " + seconds_text(time_allowed_);
    } else if (!sending_ || code == CURLE_COULDNT_CONNECT) {
      // The second case: a kept connection was found dead before anything went out, and a fresh one was refused.
      error.message = connect_failure(code);
    } else if (code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_UNSUPPORTED_PROTOCOL ||
               code == CURLE_BAD_CONTENT_ENCODING || code == CURLE_HTTP2) {
      error.kind = ErrorKind::malformed_response;
      error.message = origin + " does not answer in HTTP; is the endpoint right?";
    } else if (header_bytes_ == 0) {
      const std::string reason = os_reason(handle_);
      error.message =
          origin + " closed the connection before it answered" + (reason.empty() ? "" : " (" + reason + ")");
    } else {
      error.message = origin + " broke off in the middle of its answer";
    }
    return error;
  }

  std::string connect_failure(CURLcode code) const {
    const std::string origin = origin_of(last_url_);
    switch (code) {
      case CURLE_COULDNT_RESOLVE_HOST:
        return "cannot find the host of " + origin + "; are the region and endpoint right, and is there a network?";
      case CURLE_COULDNT_RESOLVE_PROXY:
        return "cannot find the proxy's host on the way to " + origin + "; is the proxy in the environment right?";
      case CURLE_OPERATION_TIMEDOUT:
        return "cannot connect to " + origin + ": no connection within " +
               seconds_text(pending_.request.connect_timeout) + "; is it reachable from here?";
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
      case CURLE_SSL_CONNECT_ERROR: {
        std::string text(error_text_.data());
        std::replace(text.begin(), text.end(), '\n', ' ');
        return "cannot trust " + origin + ": " + (text.empty() ? curl_easy_strerror(code) : text) +
               "; is the endpoint right, and are the CA certificates installed?";
      }
      case CURLE_URL_MALFORMAT:
      case CURLE_UNSUPPORTED_PROTOCOL:
        return "cannot use the endpoint " + origin + ": it is not an http or https URL";
      default: {
        const std::string reason = os_reason(handle_);
        return "cannot connect to " + origin + ": " + (reason.empty() ? lower_case(curl_easy_strerror(code)) : reason) +
               "; is the endpoint right and running?";
      }
    }
  }

  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) {
    return static_cast<CurlExchange*>(self)->add_header(std::string_view(data, size * count));
  }
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self) {
    auto& exchange = *static_cast<CurlExchange*>(self);
    const std::size_t bytes = size * count;
    if (exchange.response_.body.size() + bytes > exchange.options_.max_body_bytes) {
      exchange.too_large_ = true;
      return 0;
    }
    exchange.response_.body.append(data, bytes);
    return bytes;
  }

  static int on_send(void* self, char*, char*, int, int) {
    auto& exchange = *static_cast<CurlExchange*>(self);
    const long sent = exchange.bytes_sent();
    if (exchange.sending_ && sent > exchange.sent_before_) {
      // A kept-alive connection died under the request and libcurl is about to repeat it on a fresh one. The server may
      // have acted on the first copy, so whether to repeat is not libcurl's to decide.
      return CURL_PREREQFUNC_ABORT;
    }
    exchange.sending_ = true;
    exchange.sent_before_ = sent;
    return CURL_PREREQFUNC_OK;
  }

  std::size_t add_header(std::string_view line) {
    header_bytes_ += line.size();
    if (header_bytes_ > options_.max_header_bytes) {
      too_large_ = true;
      return 0;
    }
    if (line.starts_with("HTTP/")) {
      response_.headers.clear();  // what an interim answer (1xx) said is not the answer's
      return line.size();
    }
    const auto colon = line.find(':');
    if (colon != std::string_view::npos) {
      response_.headers.emplace_back(lower_case(trim(line.substr(0, colon))), trim(line.substr(colon + 1)));
      const auto& [name, value] = response_.headers.back();
      if (name == "content-length" && response_.body.empty()) {
        std::size_t length = 0;
        std::from_chars(value.data(), value.data() + value.size(), length);
        response_.body.reserve(std::min({length, kMostReserved, options_.max_body_bytes}));
      }
    }
    return line.size();
  }

  long bytes_sent() const {
    long bytes = 0;
    curl_easy_getinfo(handle_, CURLINFO_REQUEST_SIZE, &bytes);
    return bytes;
  }

  const CurlTransportOptions& options_;
  CURL* handle_;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
  std::string last_url_;

  PendingRequest pending_{{}, Deadline::never(), {}};
  curl_slist* headers_ = nullptr;
  HttpResponse response_;
  std::size_t header_bytes_ = 0;
  Duration time_allowed_{};
  long sent_before_ = 0;  ///< bytes that went to a proxy before the request itself
  bool sending_ = false;  ///< a connection is up and the request is about to go out, or has gone
  bool too_large_ = false;
};

constexpr Duration kLongestPoll = std::chrono::seconds(60);

void initialise_curl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (code != CURLE_OK) {
    throw std::runtime_error(std::string("libcurl cannot start: ") + curl_easy_strerror(code));
  }
}

/// What the environment exempts from its proxies, and the metadata services, which no proxy can reach for us.
std::string no_proxy_list() {
  constexpr const char* kMetadata = "169.254.169.254,169.254.170.2,169.254.170.23,fd00:ec2::254,fd00:ec2::23";
  const char* named = std::getenv("no_proxy");
  if (named == nullptr) {
    named = std::getenv("NO_PROXY");
  }
  const std::string from_environment = named == nullptr ? "" : named;
  if (from_environment.empty() || from_environment == "*") {
    return from_environment.empty() ? kMetadata : from_environment;
  }
  return from_environment + "," + kMetadata;
}

}  // namespace

/// The I/O thread and what it works on.
class CurlTransport::Loop {
 public:
  Loop(const Clock& clock, CurlTransportOptions options)
      : clock_(clock),
        options_(std::move(options)),
        no_proxy_(no_proxy_list()),
        multi_((initialise_curl(), curl_multi_init())) {
    if (multi_ == nullptr) {
      throw std::runtime_error("libcurl cannot make a multi handle");
    }
    SLUICE_ASSERT(options_.max_connections > 0);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options_.max_connections));
  }
  ~Loop() {
    stop();
    exchanges_.clear();
    curl_multi_cleanup(multi_);
  }

  void start() {
    const MutexLock thread_lock(thread_mutex_);
    {
      const MutexLock lock(mutex_);
      if (phase_ != Phase::fresh) {
        return;
      }
      phase_ = Phase::running;
    }
    const SignalBlock quiet;
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  void stop() {
    const MutexLock thread_lock(thread_mutex_);
    {
      const MutexLock lock(mutex_);
      phase_ = Phase::stopped;
    }
    if (thread_.joinable()) {
      thread_.request_stop();
      curl_multi_wakeup(multi_);
      thread_.join();
    }
  }

  void send(PendingRequest pending) {
    Error refusal;
    {
      MutexLock lock(mutex_);
      if (phase_ == Phase::running && waiting_.size() < options_.max_waiting) {
        // The first that waits wakes the thread, and whoever is out of time earlier than it expects.
        const bool wakes = waiting_.empty() || pending.deadline.time() < next_expiry_;
        next_expiry_ = std::min(next_expiry_, pending.deadline.time());
        waiting_.push_back(std::move(pending));
        lock.unlock();
        if (wakes) {
          curl_multi_wakeup(multi_);
        }
        return;
      }
      refusal = phase_ == Phase::running
                    ? Error(ErrorKind::transport, "more than " + std::to_string(options_.max_waiting) +
                                                      " requests wait for " + origin_of(pending.request.url) +
                                                      "; it answers too slowly")
                    : Error(ErrorKind::cancelled, "the request to " + origin_of(pending.request.url) +
                                                      " was not sent: the transport is not running");
    }
    pending.done(std::move(refusal));
  }

 private:
  enum class Phase { fresh, running, stopped };

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      admit();
      int running = 0;
      curl_multi_perform(multi_, &running);
      collect();
      admit();  // over the connections that have become free
      expire();
      curl_multi_poll(multi_, nullptr, 0, poll_timeout_ms(), nullptr);
    }
    cancel_all();
  }

  /// Begins with those that wait, as long as there is a connection for them.
  void admit() {
    while (!free_.empty() || exchanges_.size() < options_.max_connections) {
      MutexLock lock(mutex_);
      if (waiting_.empty()) {
        return;
      }
      PendingRequest next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      begin(std::move(next));
    }
  }

  void begin(PendingRequest pending) {
    const SteadyTime now = clock_.steady_now();
    if (pending.deadline.passed(now)) {
      pending.done(Error(ErrorKind::timeout, "the time for a request to " + origin_of(pending.request.url) +
                                                 " passed before it could be sent"));
      return;
    }
    CurlExchange* exchange = free_exchange();
    const auto begun = exchange->begin(std::move(pending), now);
    if (begun && curl_multi_add_handle(multi_, exchange->handle()) == CURLM_OK) {
      return;
    }
    const auto done = exchange->take_callback();
    HttpResult result = begun ? exchange->finish(CURLE_FAILED_INIT, now) : HttpResult(begun.error());
    free_.push_back(exchange);
    done(std::move(result));
  }

  void collect() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) {
        continue;
      }
      const CURLcode code = message->data.result;  // the message dies with the removal
      CurlExchange& exchange = CurlExchange::of(message->easy_handle);
      curl_multi_remove_handle(multi_, exchange.handle());
      HttpResult result = exchange.finish(code, clock_.steady_now());
      const auto done = exchange.take_callback();
      free_.push_back(&exchange);
      done(std::move(result));
    }
  }

  void expire() {
    std::vector<PendingRequest> expired;
    {
      const MutexLock lock(mutex_);
      const SteadyTime now = clock_.steady_now();
      if (now < next_expiry_) {
        return;
      }
      next_expiry_ = SteadyTime::max();
      for (auto it = waiting_.begin(); it != waiting_.end();) {
        if (it->deadline.passed(now)) {
          expired.push_back(std::move(*it));
          it = waiting_.erase(it);
        } else {
          next_expiry_ = std::min(next_expiry_, it->deadline.time());
          ++it;
        }
      }
    }
    for (auto& pending : expired) {
      pending.done(Error(ErrorKind::timeout, "no connection to " + origin_of(pending.request.url) +
                                                 " became free in time; all " +
                                                 std::to_string(options_.max_connections) + " are busy"));
    }
  }

  void cancel_all() {
    std::vector<std::pair<HttpTransport::Callback, HttpResult>> ended;
    for (const auto& exchange : exchanges_) {
      if (std::find(free_.begin(), free_.end(), exchange.get()) == free_.end()) {
        curl_multi_remove_handle(multi_, exchange->handle());
        HttpResult result = exchange->cancel();
        ended.emplace_back(exchange->take_callback(), std::move(result));
      }
    }
    std::deque<PendingRequest> unsent;
    {
      const MutexLock lock(mutex_);
      unsent.swap(waiting_);
    }
    for (auto& pending : unsent) {
      ended.emplace_back(std::move(pending.done),
                         Error(ErrorKind::cancelled, "the request to " + origin_of(pending.request.url) +
                                                         " was not sent: the transport has stopped"));
    }
    for (auto& [done, result] : ended) {
      done(std::move(result));
    }
  }

  int poll_timeout_ms() {
    const MutexLock lock(mutex_);
    const Duration left = waiting_.empty() ? kLongestPoll : Deadline::at(next_expiry_).left(clock_.steady_now());
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(std::min(left, kLongestPoll)).count());
  }
  CurlExchange* free_exchange() {
    if (free_.empty()) {
      exchanges_.push_back(std::make_unique<CurlExchange>(options_, no_proxy_));
      return exchanges_.back().get();
    }
    CurlExchange* exchange = free_.back();
    free_.pop_back();
    return exchange;
  }

  // Fixed after construction.
  const Clock& clock_;
  const CurlTransportOptions options_;
  const std::string no_proxy_;
  CURLM* const multi_;

  // Guarded by mutex_.
  Mutex mutex_;
  Phase phase_ SLUICE_GUARDED_BY(mutex_) = Phase::fresh;
  std::deque<PendingRequest> waiting_ SLUICE_GUARDED_BY(mutex_);
  SteadyTime next_expiry_ SLUICE_GUARDED_BY(mutex_) = SteadyTime::max();  ///< no later than a deadline in waiting_

  // Touched only by the I/O thread.
  std::vector<std::unique_ptr<CurlExchange>> exchanges_;
  std::vector<CurlExchange*> free_;

  Mutex thread_mutex_;  // held while the thread is started or joined
  std::jthread thread_ SLUICE_GUARDED_BY(thread_mutex_);
};

CurlTransport::CurlTransport(const Clock& clock, CurlTransportOptions options)
    : loop_(std::make_unique<Loop>(clock, std::move(options))) {}

CurlTransport::~CurlTransport() = default;

void CurlTransport::start() { loop_->start(); }

void CurlTransport::stop() { loop_->stop(); }

void CurlTransport::send(HttpRequest request, Deadline deadline, Callback done) {
  loop_->send({std::move(request), deadline, std::move(done)});
}

}  // namespace sluice::dynamo
