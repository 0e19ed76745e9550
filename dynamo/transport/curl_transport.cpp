#include "dynamo/transport/curl_transport.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/assert.hpp"
#include "base/mutex.hpp"
#include "base/signal_block.hpp"
#include "dynamo/transport/curl_exchange.hpp"

namespace sluice::dynamo {
namespace {

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
  Loop(const Clock& clock, CurlTransportOptions options);
  ~Loop();

  void start();
  void stop();
  void send(PendingRequest pending);

 private:
  enum class Phase { fresh, running, stopped };

  void run(const std::stop_token& stop);
  void admit();
  void begin(PendingRequest pending);
  void collect();
  void expire();
  void cancel_all();
  int poll_timeout_ms() const;
  CurlExchange* free_exchange();

  // Fixed after construction.
  const Clock& clock_;
  const CurlTransportOptions options_;
  const std::string no_proxy_;
  CURLM* const multi_;

  // Guarded by mutex_.
  Mutex mutex_;
  Phase phase_ SLUICE_GUARDED_BY(mutex_) = Phase::fresh;
  std::deque<PendingRequest> inbox_ SLUICE_GUARDED_BY(mutex_);
  std::size_t waiting_count_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< in the inbox or in waiting_

  // Touched only by the I/O thread.
  std::deque<PendingRequest> waiting_;
  SteadyTime next_expiry_ = SteadyTime::max();  ///< no later than the first deadline in waiting_
  std::vector<std::unique_ptr<CurlExchange>> exchanges_;
  std::vector<CurlExchange*> free_;

  Mutex thread_mutex_;  // held while the thread is started or joined
  std::jthread thread_ SLUICE_GUARDED_BY(thread_mutex_);
};

CurlTransport::Loop::Loop(const Clock& clock, CurlTransportOptions options)
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

CurlTransport::Loop::~Loop() {
  stop();
  exchanges_.clear();
  curl_multi_cleanup(multi_);
}

void CurlTransport::Loop::start() {
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

void CurlTransport::Loop::stop() {
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

void CurlTransport::Loop::send(PendingRequest pending) {
  Error refusal;
  {
    MutexLock lock(mutex_);
    if (phase_ == Phase::running && waiting_count_ < options_.max_waiting) {
      const bool asleep = inbox_.empty();
      ++waiting_count_;
      inbox_.push_back(std::move(pending));
      lock.unlock();
      // Whoever finds the inbox empty wakes the thread; the others ride along.
      if (asleep) {
        curl_multi_wakeup(multi_);
      }
      return;
    }
    refusal =
        phase_ == Phase::running
            ? Error(ErrorKind::transport, "more than " + std::to_string(options_.max_waiting) + " requests wait for " +
                                              origin_of(pending.request.url) + "; it answers too slowly")
            : Error(ErrorKind::cancelled,
                    "the request to " + origin_of(pending.request.url) + " was not sent: the transport is not running");
  }
  pending.done(std::move(refusal));
}

void CurlTransport::Loop::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    admit();
    int running = 0;
    curl_multi_perform(multi_, &running);
    collect();
    expire();
    curl_multi_poll(multi_, nullptr, 0, poll_timeout_ms(), nullptr);
  }
  cancel_all();
}

void CurlTransport::Loop::admit() {
  std::deque<PendingRequest> arrived;
  {
    const MutexLock lock(mutex_);
    arrived.swap(inbox_);
  }
  for (auto& pending : arrived) {
    next_expiry_ = std::min(next_expiry_, pending.deadline.time());
    waiting_.push_back(std::move(pending));
  }
  std::size_t begun = 0;
  while (!waiting_.empty() && (!free_.empty() || exchanges_.size() < options_.max_connections)) {
    PendingRequest next = std::move(waiting_.front());
    waiting_.pop_front();
    ++begun;
    begin(std::move(next));
  }
  if (begun > 0) {
    const MutexLock lock(mutex_);
    waiting_count_ -= begun;
  }
}

CurlExchange* CurlTransport::Loop::free_exchange() {
  if (free_.empty()) {
    exchanges_.push_back(std::make_unique<CurlExchange>(options_, no_proxy_));
    return exchanges_.back().get();
  }
  CurlExchange* exchange = free_.back();
  free_.pop_back();
  return exchange;
}

void CurlTransport::Loop::begin(PendingRequest pending) {
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

void CurlTransport::Loop::collect() {
  int left = 0;
  bool freed = false;
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
    freed = true;
    done(std::move(result));
  }
  if (freed && !waiting_.empty()) {
    curl_multi_wakeup(multi_);  // so that the next poll does not wait with connections free
  }
}

void CurlTransport::Loop::expire() {
  const SteadyTime now = clock_.steady_now();
  if (now < next_expiry_) {
    return;
  }
  std::vector<PendingRequest> expired;
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
  if (!expired.empty()) {
    const MutexLock lock(mutex_);
    waiting_count_ -= expired.size();
  }
  for (auto& pending : expired) {
    pending.done(Error(ErrorKind::timeout, "no connection to " + origin_of(pending.request.url) +
                                               " became free in time; all " + std::to_string(options_.max_connections) +
                                               " are busy"));
  }
}

int CurlTransport::Loop::poll_timeout_ms() const {
  const Duration left = waiting_.empty() ? kLongestPoll : Deadline::at(next_expiry_).left(clock_.steady_now());
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(std::min(left, kLongestPoll)).count());
}

void CurlTransport::Loop::cancel_all() {
  std::vector<std::pair<HttpTransport::Callback, HttpResult>> ended;
  for (const auto& exchange : exchanges_) {
    if (std::find(free_.begin(), free_.end(), exchange.get()) == free_.end()) {
      curl_multi_remove_handle(multi_, exchange->handle());
      HttpResult result = exchange->cancel();
      ended.emplace_back(exchange->take_callback(), std::move(result));
    }
  }
  std::deque<PendingRequest> arrived;
  {
    const MutexLock lock(mutex_);
    arrived.swap(inbox_);
  }
  waiting_.insert(waiting_.end(), std::make_move_iterator(arrived.begin()), std::make_move_iterator(arrived.end()));
  for (auto& pending : waiting_) {
    ended.emplace_back(std::move(pending.done),
                       Error(ErrorKind::cancelled, "the request to " + origin_of(pending.request.url) +
                                                       " was not sent: the transport has stopped"));
  }
  waiting_.clear();
  for (auto& [done, result] : ended) {
    done(std::move(result));
  }
}

CurlTransport::CurlTransport(const Clock& clock, CurlTransportOptions options)
    : loop_(std::make_unique<Loop>(clock, std::move(options))) {}

CurlTransport::~CurlTransport() = default;

void CurlTransport::start() { loop_->start(); }

void CurlTransport::stop() { loop_->stop(); }

void CurlTransport::send(HttpRequest request, Deadline deadline, Callback done) {
  loop_->send({std::move(request), deadline, std::move(done)});
}

}  // namespace sluice::dynamo
