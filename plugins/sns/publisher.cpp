#include "publisher.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "protocol.hpp"
#include "publishing/publishing.hpp"

namespace sns {

namespace {

using sluice::Duration;
using sluice::SteadyTime;

/// Codes that one entry can bring upon its whole batch.
bool may_be_one_entry(const std::string& code) {
  constexpr std::array<std::string_view, 3> kCodes{"InvalidParameter*", "ParameterValueInvalid", "Validation*"};
  return publishing::matches_any(kCodes, code);
}

Duration pause_after(const Failure& failure, int attempts, double chance) {
  constexpr Duration kBase = std::chrono::milliseconds(50);
  constexpr Duration kThrottleBase = std::chrono::milliseconds(500);
  constexpr Duration kLongest = std::chrono::seconds(5);
  const Duration base = failure.code.find("hrottl") == std::string::npos ? kBase : kThrottleBase;
  const Duration whole = std::min(kLongest, base * (1 << std::min(attempts - 1, 10)));
  return std::chrono::duration_cast<Duration>(whole * (0.5 + 0.5 * chance));
}

/// How late a stop may be noticed.
constexpr std::chrono::milliseconds kTick(50);

}  // namespace

PublishQueue::Ticket PublishQueue::add(const Topic& topic, Entry entry, SteadyTime now) {
  auto ticket = std::make_shared<Pending>(Pending{.entry = std::move(entry), .arn = topic.arn, .since = now});
  Lane& lane = lanes_[topic.arn];
  lane.topic = topic;
  lane.last_arrival = now;
  lane.waiting.push_back(ticket);
  return ticket;
}

std::optional<PublishQueue::Batch> PublishQueue::next(SteadyTime now) {
  for (auto& [arn, lane] : lanes_) {
    if (auto batch = due(lane, now)) {
      return batch;
    }
  }
  return std::nullopt;
}

std::optional<PublishQueue::Batch> PublishQueue::due(Lane& lane, SteadyTime now) {
  std::vector<Ticket> chosen;
  std::size_t bytes = 0;
  bool full = false;
  for (const Ticket& ticket : lane.waiting) {
    if (ticket->since > now) {
      continue;
    }
    if (ticket->alone) {
      return take(lane, {ticket});
    }
    full = chosen.size() == kMaxEntries || bytes + ticket->entry.size() > kMaxBytes;
    if (full) {
      break;
    }
    chosen.push_back(ticket);
    bytes += ticket->entry.size();
  }
  if (chosen.empty()) {
    return std::nullopt;
  }
  const Pending& first = *chosen.front();
  // One that was tried before has waited already.
  const bool quiet = lane.under_way == 0 && (first.failure || now >= lane.last_arrival + limits_.linger);
  const bool old = now >= first.since + limits_.longest_wait;
  return full || chosen.size() == kMaxEntries || quiet || old ? std::optional(take(lane, std::move(chosen)))
                                                              : std::nullopt;
}

PublishQueue::Batch PublishQueue::take(Lane& lane, std::vector<Ticket> tickets) {
  std::vector<const Entry*> entries;
  entries.reserve(tickets.size());
  for (const Ticket& ticket : tickets) {
    ticket->failure.reset();
    entries.push_back(&ticket->entry);
    lane.waiting.erase(std::find(lane.waiting.begin(), lane.waiting.end(), ticket));
  }
  ++lane.under_way;
  std::string form = publish_batch_form(lane.topic.arn, entries);
  return {lane.topic, std::move(tickets), std::move(form)};
}

SteadyTime PublishQueue::wake(SteadyTime now) const {
  SteadyTime wake = SteadyTime::max();
  for (const auto& [arn, lane] : lanes_) {
    for (const Ticket& ticket : lane.waiting) {
      if (ticket->since > now) {
        wake = std::min(wake, ticket->since);
        continue;
      }
      wake = std::min(wake, ticket->since + limits_.longest_wait);
      if (lane.under_way == 0) {
        wake = std::min(wake, ticket->failure ? now : lane.last_arrival + limits_.linger);
      }
    }
  }
  return wake;
}

std::vector<PublishQueue::Ticket> PublishQueue::answered(const Batch& batch, const BatchAnswer& answer, SteadyTime now,
                                                         double chance) {
  std::vector<Ticket> ended;
  std::vector<Ticket> kept;
  Lane& lane = lanes_.at(batch.topic.arn);
  --lane.under_way;
  for (std::size_t i = 0; i < batch.tickets.size(); ++i) {
    Pending& pending = *batch.tickets[i];
    pending.failure = answer.results[i];
    if (!pending.abandoned) {
      (keep(pending, answer.whole && batch.tickets.size() > 1, now, chance) ? kept : ended).push_back(batch.tickets[i]);
    }
  }
  // Before those that came later.
  lane.waiting.insert(lane.waiting.begin(), kept.begin(), kept.end());
  drop_if_idle(batch.topic.arn);
  return ended;
}

bool PublishQueue::keep(Pending& pending, bool may_be_another, SteadyTime now, double chance) const {
  if (!pending.failure) {
    return false;
  }
  const Failure& failure = *pending.failure;
  if (!failure.temporary && may_be_another && may_be_one_entry(failure.code)) {
    pending.alone = true;
    pending.since = now;
    return true;
  }
  if (!failure.temporary || ++pending.attempts >= limits_.attempts) {
    return false;
  }
  pending.since = now + pause_after(failure, pending.attempts, chance);
  return true;
}

bool PublishQueue::give_up(const Ticket& ticket) {
  const bool waits = ticket->failure && !ticket->alone;
  if (waits) {
    abandon(ticket);
  }
  return waits;
}

void PublishQueue::abandon(const Ticket& ticket) {
  ticket->abandoned = true;
  if (const auto lane = lanes_.find(ticket->arn); lane != lanes_.end()) {
    std::erase(lane->second.waiting, ticket);
    drop_if_idle(ticket->arn);
  }
}

void PublishQueue::drop_if_idle(const std::string& arn) {
  const auto lane = lanes_.find(arn);
  if (lane->second.waiting.empty() && lane->second.under_way == 0) {
    lanes_.erase(lane);
  }
}

Publisher::Publisher(Service& service, QueueLimits limits, sluice::Duration timeout, const sluice::Clock& clock,
                     sluice::Random& random)
    : service_(service),
      timeout_(timeout),
      clock_(clock),
      random_(random),
      queue_(limits),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

std::optional<Failure> Publisher::publish(const Topic& topic, Entry entry, const sluice::Context& context) {
  PublishQueue::Ticket ticket;
  {
    const std::lock_guard lock(mutex_);
    ticket = queue_.add(topic, std::move(entry), clock_.steady_now());
    ++changes_;
    changed_.notify_one();
  }
  const std::future<void> ended = ticket->ended.get_future();
  while (ended.wait_for(kTick) != std::future_status::ready) {
    const bool stops = context.stop_requested();
    const bool over = stops && context.time_left() <= std::chrono::nanoseconds::zero();
    const std::lock_guard lock(mutex_);
    if (ended.wait_for(Duration::zero()) == std::future_status::ready) {
      break;
    }
    if (over) {
      queue_.abandon(ticket);
      return Failure{"Timeout", "no answer within the job's timeout", true};
    }
    // What has not failed yet goes out within moments; what has is not tried again in an ending host.
    if (stops && queue_.give_up(ticket)) {
      break;
    }
  }
  return ticket->failure;
}

void Publisher::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    while (auto batch = queue_.next(clock_.steady_now())) {
      lock.unlock();
      send(std::move(*batch));
      lock.lock();
    }
    const sluice::SteadyTime wake = queue_.wake(clock_.steady_now());
    const auto due = [this, seen = changes_] { return changes_ != seen; };
    if (wake == sluice::SteadyTime::max()) {
      changed_.wait(lock, stop, due);
    } else {
      changed_.wait_until(lock, stop, wake, due);
    }
  }
}

void Publisher::send(PublishQueue::Batch batch) {
  const std::string region = batch.topic.region;
  std::string form = std::move(batch.form);
  service_.send(region, std::move(form), sluice::Deadline::after(clock_, timeout_),
                [this, batch = std::move(batch)](const sluice::dynamo::HttpResult& result, bool mended) {
                  BatchAnswer answer = read_batch_answer(result, batch.tickets.size());
                  for (auto& failure : answer.results) {
                    if (failure && mended) {
                      failure->temporary = true;
                    }
                  }
                  const std::lock_guard lock(mutex_);
                  for (const auto& ticket : queue_.answered(batch, answer, clock_.steady_now(), random_.unit())) {
                    ticket->ended.set_value();
                  }
                  ++changes_;
                  changed_.notify_one();
                });
}

}  // namespace sns
