#include "broker.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// How late a stop may be noticed.
constexpr milliseconds kTick(50);
/// A connection tells of its changes by itself; this is for what the library forgets.
constexpr std::chrono::minutes kLookAgain(1);
constexpr int kFurtherTries = 2;  // where no stream takes the subject

LinkEvents& make_events(sluice::Host host) {
  // The library may call into them after the connection was destroyed, and does not say when it will not any more. They
  // are few: one for each time that a job is made.
  static std::mutex mutex;
  static auto* const all = new std::vector<std::unique_ptr<LinkEvents>>();
  const std::lock_guard lock(mutex);
  return *all->emplace_back(std::make_unique<LinkEvents>(host));
}

/// Until then or until the attempt is over.
std::chrono::steady_clock::time_point earlier(std::chrono::steady_clock::time_point time,
                                              const sluice::Context& context) {
  return std::min(time, context.deadline());
}

}  // namespace

Broker::Broker(const Settings& settings, sluice::Host host)
    : settings_(settings), events_(make_events(host)), options_(settings, events_), random_(std::random_device()()) {
  if (host.shows_health()) {
    keeper_ = std::jthread([this](const std::stop_token& stop) { keep(stop); });
  }
}

Broker::~Broker() {
  events_.end();
  if (keeper_.joinable()) {
    keeper_.request_stop();
    events_.changed();
    keeper_.join();
  }
  link_.reset();
}

Answer Broker::publish(const Publication& publication, const sluice::Context& context) {
  Answer answer = publish_over_links(publication, context);
  if (answer.end == Answer::End::stored || answer.end == Answer::End::timed_out) {
    events_.acknowledges(answer.end == Answer::End::stored);
  }
  return answer;
}

Answer Broker::publish_over_links(const Publication& publication, const sluice::Context& context) {
  const Time ends = std::chrono::steady_clock::now() + settings_.timeout;
  int without_stream = 0;
  for (;;) {
    Answer answer;
    const std::shared_ptr<Link> link = connected_link(ends, context, answer);
    if (!link) {
      return answer;
    }
    if (const auto limit = link->max_payload(); limit && publication.size() > *limit) {
      return {Answer::End::too_large, 0,
              "it has " + std::to_string(publication.size()) + " bytes with its headers, and the server takes " +
                  std::to_string(*limit) + " (max_payload)"};
    }
    answer = send(*link, publication, ends, context);
    if (answer.end == Answer::End::no_stream && without_stream++ < kFurtherTries) {
      // A stream that changes its leader is away for a moment.
      if (context.wait_for_stop(settings_.no_stream_wait)) {
        return {Answer::End::stopped};
      }
      continue;
    }
    if (answer.end == Answer::End::no_stream) {
      answer.text = link->why_no_stream(publication.subject);
    }
    if (answer.end != Answer::End::lost || std::chrono::steady_clock::now() >= earlier(ends, context)) {
      return answer;
    }
  }
}

Answer Broker::send(Link& link, const Publication& publication, Time ends, const sluice::Context& context) const {
  Acknowledgements::Waiter waiter(publication.subject);
  const void* message = nullptr;
  if (auto failure = link.send(publication, waiter, &message)) {
    return std::move(*failure);
  }
  // It is on its way, so a stop waits for what comes of it, as long as there is time.
  while (!waiter.wait_for(kTick)) {
    // The library tells a time-out by itself; this is for what it forgets.
    const bool over = std::chrono::steady_clock::now() >= earlier(ends + settings_.timeout, context);
    if (over) {
      events_.acknowledgements.forget(message, waiter);
      return waiter.wait_for(nanoseconds::zero()) ? waiter.take() : Answer{Answer::End::timed_out};
    }
  }
  return waiter.take();
}

std::shared_ptr<Link> Broker::connected_link(Time ends, const sluice::Context& context, Answer& failure) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const std::uint64_t seen = events_.changes();
    renew(lock);
    if (link_ && link_->connected()) {
      return link_;
    }
    const Time now = std::chrono::steady_clock::now();
    if (context.stop_requested()) {
      failure = {Answer::End::stopped};
      return nullptr;
    }
    if (now >= earlier(ends, context)) {
      failure = {Answer::End::unreachable, 0, link_ ? link_->last_error() : last_error_};
      return nullptr;
    }
    lock.unlock();
    events_.wait_for_change(seen, kTick);
    lock.lock();
  }
}

void Broker::renew(std::unique_lock<std::mutex>& lock) {
  if (link_ && link_->closed()) {
    last_error_ = link_->last_error();
    link_.reset();
    next_attempt_ = std::chrono::steady_clock::now() + reconnect_pause();
  }
  if (!link_ && !connecting_ && std::chrono::steady_clock::now() >= next_attempt_) {
    connect_once(lock);
  }
}

void Broker::keep(const std::stop_token& stop) {
  std::optional<std::pair<bool, std::string>> shown;
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const std::uint64_t seen = events_.changes();
    renew(lock);
    const auto now_so = health();
    const nanoseconds span = link_ ? nanoseconds(kLookAgain) : next_attempt_ - std::chrono::steady_clock::now();
    lock.unlock();
    if (shown != now_so) {
      events_.show(now_so.first, now_so.second);
      shown = now_so;
    }
    if (!stop.stop_requested()) {
      events_.wait_for_change(seen, std::max(span, nanoseconds(kTick)));
    }
    lock.lock();
  }
}

std::pair<bool, std::string> Broker::health() const {
  if (!link_) {
    return {false, "no server of NATS is connected: " + (last_error_.empty() ? "none answers" : last_error_)};
  }
  if (!link_->connected()) {
    const std::string why = link_->last_error();
    return {false, "the connection is lost: " + (why.empty() ? "it ended" : why) + "; trying again for ever"};
  }
  if (events_.silent()) {
    return {false, "connected to " + link_->url() + ", which acknowledges nothing"};
  }
  return {true, "connected to " + link_->url()};
}

void Broker::connect_once(std::unique_lock<std::mutex>& lock) {
  connecting_ = true;
  lock.unlock();
  auto connected = Link::connect(settings_, options_, events_);
  lock.lock();
  connecting_ = false;
  if (auto* made = std::get_if<std::unique_ptr<Link>>(&connected)) {
    link_ = std::move(*made);
    return;
  }
  last_error_ = std::get<std::string>(std::move(connected));
  next_attempt_ = std::chrono::steady_clock::now() + reconnect_pause();
}

std::chrono::milliseconds Broker::reconnect_pause() {
  const milliseconds most = settings_.tls ? settings_.reconnect_jitter_tls : settings_.reconnect_jitter;
  return settings_.reconnect_wait + milliseconds(std::uniform_int_distribution<std::int64_t>(0, most.count())(random_));
}
