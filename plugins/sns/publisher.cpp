#include "publisher.hpp"

#include <utility>

namespace sns {
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
  Waiter waiter;
  std::unique_lock lock(state_->mutex);
  const PublishQueue::Ticket ticket = state_->queue.add(topic, std::move(entry), clock_.steady_now());
  state_->waiters[ticket] = &waiter;
  ++state_->changes;
  state_->changed.notify_one();
  while (!waiter.finished.wait_for(lock, kTick, [&] { return waiter.done; })) {
    lock.unlock();
    const bool stops = context.stop_requested();
    const bool over = stops && context.time_left() <= std::chrono::nanoseconds::zero();
    lock.lock();
    if (waiter.done) {
      break;
    }
    if (over) {
      state_->queue.abandon(ticket);
      state_->waiters.erase(ticket);
      return {Delivery::End::timed_out};
    }
    // What has not failed yet goes out within moments; what has is not tried again in an ending host.
    if (auto failure = stops ? state_->queue.give_up(ticket) : std::nullopt) {
      state_->waiters.erase(ticket);
      return {Delivery::End::failed, std::move(*failure)};
    }
  }
  return waiter.failure ? Delivery{Delivery::End::failed, std::move(*waiter.failure)} : Delivery{};
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
                  finish(*state, state->queue.answered(batch, answer, clock.steady_now(), random.unit()));
                  ++state->changes;
                  state->changed.notify_one();
                });
}

void Publisher::finish(State& state, const std::vector<PublishQueue::Finished>& finished) {
  for (const PublishQueue::Finished& end : finished) {
    const auto found = state.waiters.find(end.ticket);
    if (found != state.waiters.end()) {
      Waiter& waiter = *found->second;
      state.waiters.erase(found);
      waiter.failure = end.failure;
      waiter.done = true;
      waiter.finished.notify_one();
    }
  }
}

}  // namespace sns
