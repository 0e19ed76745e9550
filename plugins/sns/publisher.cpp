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

}  // namespace

PublishQueue::Ticket PublishQueue::add(const Topic& topic, Entry entry, SteadyTime now) {
  const Ticket ticket = ++last_;
  pending_[ticket] = {std::move(entry), topic.arn, now};
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
  for (const Ticket ticket : lane.waiting) {
    const Pending& pending = pending_.at(ticket);
    if (pending.since > now) {
      continue;
    }
    if (pending.alone) {
      return take(lane, {ticket});
    }
    full = chosen.size() == kMaxEntries || bytes + pending.entry.size() > kMaxBytes;
    if (full) {
      break;
    }
    chosen.push_back(ticket);
    bytes += pending.entry.size();
  }
  if (chosen.empty()) {
    return std::nullopt;
  }
  const Pending& first = pending_.at(chosen.front());
  // One that was tried before has waited already.
  const bool quiet = lane.under_way == 0 && (first.failure || now >= lane.last_arrival + limits_.linger);
  const bool old = now >= first.since + limits_.longest_wait;
  return full || chosen.size() == kMaxEntries || quiet || old ? std::optional(take(lane, chosen)) : std::nullopt;
}

PublishQueue::Batch PublishQueue::take(Lane& lane, const std::vector<Ticket>& tickets) {
  std::vector<const Entry*> entries;
  entries.reserve(tickets.size());
  for (const Ticket ticket : tickets) {
    Pending& pending = pending_.at(ticket);
    pending.under_way = true;
    entries.push_back(&pending.entry);
    lane.waiting.erase(std::find(lane.waiting.begin(), lane.waiting.end(), ticket));
  }
  ++lane.under_way;
  return {lane.topic, tickets, publish_batch_form(lane.topic.arn, entries)};
}

SteadyTime PublishQueue::wake(SteadyTime now) const {
  SteadyTime wake = SteadyTime::max();
  for (const auto& [arn, lane] : lanes_) {
    for (const Ticket ticket : lane.waiting) {
      const Pending& pending = pending_.at(ticket);
      const SteadyTime since = pending.since;
      if (since > now) {
        wake = std::min(wake, since);
        continue;
      }
      wake = std::min(wake, since + limits_.longest_wait);
      if (lane.under_way == 0) {
        wake = std::min(wake, pending.failure ? now : lane.last_arrival + limits_.linger);
      }
    }
  }
  return wake;
}

std::vector<PublishQueue::Finished> PublishQueue::answered(const Batch& batch, const BatchAnswer& answer,
                                                           SteadyTime now, double chance) {
  std::vector<Finished> finished;
  Lane& lane = lanes_.at(batch.topic.arn);
  --lane.under_way;
  std::vector<Ticket> kept;
  for (std::size_t i = 0; i < batch.tickets.size(); ++i) {
    const auto found = pending_.find(batch.tickets[i]);
    if (found == pending_.end()) {
      continue;
    }
    const std::optional<Failure>& failure = answer.results[i];
    const bool may_be_another = answer.whole && batch.tickets.size() > 1;
    if (failure && keep(found->second, *failure, may_be_another, now, chance)) {
      kept.push_back(found->first);
      continue;
    }
    finished.push_back({found->first, failure});
    pending_.erase(found);
  }
  // Before those that came later.
  lane.waiting.insert(lane.waiting.begin(), kept.begin(), kept.end());
  drop_if_idle(batch.topic.arn);
  return finished;
}

bool PublishQueue::keep(Pending& pending, const Failure& failure, bool may_be_another, SteadyTime now,
                        double chance) const {
  pending.under_way = false;
  pending.failure = failure;
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

std::optional<Failure> PublishQueue::give_up(Ticket ticket) {
  const auto found = pending_.find(ticket);
  if (found == pending_.end() || found->second.under_way || !found->second.failure || found->second.alone) {
    return std::nullopt;
  }
  std::optional<Failure> failure = found->second.failure;
  abandon(ticket);
  return failure;
}

void PublishQueue::abandon(Ticket ticket) {
  const auto found = pending_.find(ticket);
  if (found == pending_.end()) {
    return;
  }
  const std::string arn = found->second.arn;
  std::erase(lanes_.at(arn).waiting, ticket);
  pending_.erase(found);
  drop_if_idle(arn);
}

void PublishQueue::drop_if_idle(const std::string& arn) {
  const auto lane = lanes_.find(arn);
  if (lane->second.waiting.empty() && lane->second.under_way == 0) {
    lanes_.erase(lane);
  }
}

namespace {

/// How late a stop may be noticed.
constexpr std::chrono::milliseconds kTick(50);

}  // namespace

Publisher::Publisher(Service& service, QueueLimits limits, sluice::Duration timeout, const sluice::Clock& clock,
                     sluice::Random& random)
    : service_(service),
      timeout_(timeout),
      clock_(clock),
      random_(random),
      state_(std::make_shared<State>(limits)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Publisher::~Publisher() = default;

Delivery Publisher::publish(const Topic& topic, Entry entry, const sluice::Context& context) {
  PublishQueue::Ticket ticket = 0;
  std::future<std::optional<Failure>> end;
  {
    const std::lock_guard lock(state_->mutex);
    ticket = state_->queue.add(topic, std::move(entry), clock_.steady_now());
    end = state_->waiters[ticket].get_future();
    ++state_->changes;
    state_->changed.notify_one();
  }
  while (end.wait_for(kTick) != std::future_status::ready) {
    const bool stops = context.stop_requested();
    const bool over = stops && context.time_left() <= std::chrono::nanoseconds::zero();
    const std::lock_guard lock(state_->mutex);
    if (over && state_->waiters.erase(ticket) > 0) {
      state_->queue.abandon(ticket);
      return {Delivery::End::timed_out};
    }
    // What has not failed yet goes out within moments; what has is not tried again in an ending host.
    if (auto failure = stops ? state_->queue.give_up(ticket) : std::nullopt) {
      state_->waiters.erase(ticket);
      return {Delivery::End::failed, std::move(*failure)};
    }
  }
  auto failure = end.get();
  return failure ? Delivery{Delivery::End::failed, std::move(*failure)} : Delivery{};
}

void Publisher::run(const std::stop_token& stop) {
  std::unique_lock lock(state_->mutex);
  while (!stop.stop_requested()) {
    while (auto batch = state_->queue.next(clock_.steady_now())) {
      lock.unlock();
      send(std::move(*batch));
      lock.lock();
    }
    const sluice::SteadyTime wake = state_->queue.wake(clock_.steady_now());
    const auto due = [this, seen = state_->changes] { return state_->changes != seen; };
    if (wake == sluice::SteadyTime::max()) {
      state_->changed.wait(lock, stop, due);
    } else {
      state_->changed.wait_until(lock, stop, wake, due);
    }
  }
}

void Publisher::send(PublishQueue::Batch batch) {
  const std::string region = batch.topic.region;
  std::string form = std::move(batch.form);
  const sluice::Deadline deadline = sluice::Deadline::after(clock_, timeout_);
  service_.send(region, std::move(form), deadline,
                [state = state_, batch = std::move(batch), &clock = clock_, &random = random_](
                    const sluice::dynamo::HttpResult& result, bool mended) {
                  BatchAnswer answer = read_batch_answer(result, batch.tickets.size());
                  for (auto& failure : answer.results) {
                    if (failure && mended) {
                      failure->temporary = true;
                    }
                  }
                  const std::lock_guard lock(state->mutex);
                  for (const auto& end : state->queue.answered(batch, answer, clock.steady_now(), random.unit())) {
                    if (auto waiter = state->waiters.extract(end.ticket)) {
                      waiter.mapped().set_value(end.failure);
                    }
                  }
                  ++state->changes;
                  state->changed.notify_one();
                });
}

}  // namespace sns
