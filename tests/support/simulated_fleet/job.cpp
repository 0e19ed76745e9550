#include "tests/support/simulated_fleet/job.hpp"

#include <algorithm>
#include <utility>

#include "host/work/dispatcher.hpp"
#include "host/work/settler.hpp"

namespace sluice::test::sim {

using namespace std::chrono_literals;
using queue::Completion;
using queue::Delivery;
using queue::SettleStatus;

namespace {

constexpr Duration kVisibility = 60s;
constexpr Duration kRetryDelay = 10s;
constexpr Duration kSettleAgain = 10ms;

}  // namespace

Job::Job(Process& process, const std::string& queue)
    : process_(process),
      scene_(process.site().scene),
      source_(*process.queues().open_source({queue, queue::Half::standard})),
      place_(*process.queues().open_wake_place(queue)),
      claimer_({}, process.random(), process.time()) {}

void Job::start() {
  source_->start({.on_ready =
                      [this] {
                        work::StepEffects effects;
                        claimer_.wake(effects);
                        call_poller(process_.time());
                      },
                  .lost = [this](std::span<const queue::Receipt> receipts) { lost(receipts); }});
  call_poller(process_.time());
}

bool Job::idle() const { return !claiming_ && !settling_ && waiting_.empty() && busy_ == 0 && ended_.empty(); }

void Job::call_poller(SteadyTime time) {
  if (!poll_at_ || time < *poll_at_) {
    poll_at_ = time;
    process_.when(time, [this] { poll(); });
  }
}

work::Claimer::Room Job::room() const {
  const std::size_t held = waiting_.size() + busy_ + ended_.size();
  const work::ClaimSizer::Pool pool{
      .free = scene_.workers - busy_, .active = scene_.workers, .queued = waiting_.size()};
  return {.messages = held < work::kMaxHeld ? std::min(sizer_.room(pool), work::kMaxHeld - held) : 0,
          .suspects = suspects_ == 0};
}

void Job::poll() {
  if (!poll_at_ || *poll_at_ > process_.site().timeline.now()) {
    return;  // called for another time since
  }
  poll_at_.reset();
  if (leaving_ || claiming_) {
    return;
  }
  const auto order = claimer_.next(room(), process_.time());
  if (order.count > 0) {
    claim(order);
  } else if (order.wake != SteadyTime::max()) {
    call_poller(order.wake);
  }
}

// The call takes as long as it takes, and the job goes on meanwhile.
void Job::claim(const work::Claimer::Order& order) {
  claiming_ = true;
  const queue::ClaimRequest request{.max = order.count, .visibility = kVisibility, .suspects = order.suspects};
  auto claimed = source_->claim(request, process_.soon());
  process_.when(process_.time(), [this, answer = std::move(claimed)]() mutable {
    claiming_ = false;
    work::StepEffects effects;
    if (answer) {
      claimer_.claimed(answer->deliveries.size(), answer->next_due, process_.time(), effects);
      arrived(std::move(answer->deliveries));
    } else {
      claimer_.failed(answer.error(), process_.time(), effects);
    }
    call_poller(process_.time());
  });
}

void Job::arrived(std::vector<Delivery> deliveries) {
  std::size_t bytes = 0;
  for (Delivery& delivery : deliveries) {
    bytes += delivery.message.body.size();
    waiting_.push_back(std::move(delivery));
  }
  sizer_.received(bytes, deliveries.size());
  hand_out();
}

void Job::lost(std::span<const queue::Receipt> receipts) {
  std::erase_if(waiting_, [receipts](const Delivery& delivery) {
    return std::any_of(receipts.begin(), receipts.end(), [&delivery](const queue::Receipt& receipt) {
      return receipt.locator == delivery.receipt.locator && receipt.id == delivery.receipt.id;
    });
  });
}

void Job::hand_out() {
  while (!waiting_.empty() && busy_ < scene_.workers) {
    ++busy_;
    suspects_ += waiting_.front().suspect ? 1 : 0;
    process_.site().sightings.began(waiting_.front().message.id, process_.time());
    process_.when(process_.time() + scene_.handler,
                  [this, delivery = std::move(waiting_.front())] { ended(delivery); });
    waiting_.pop_front();
  }
}

void Job::ended(const Delivery& delivery) {
  --busy_;
  work::StepEffects effects;
  if (delivery.suspect && --suspects_ == 0) {
    claimer_.quarantine_free(effects);
  }
  sizer_.handled(scene_.handler, 1);
  Completion completion{.receipt = delivery.receipt};
  if (scene_.failures > 0 && process_.random().unit() < scene_.failures) {
    completion.action = queue::CompletionAction::retry;
    completion.delay = kRetryDelay;
  }
  ended_.push_back(std::move(completion));
  hand_out();
  call_settler(process_.time() + (busy_ > 0 ? work::kSettleLinger : Duration::zero()));
  if (claimer_.waits_for_room() && room().messages > 0) {
    claimer_.room_made(effects);
    effects.poller = true;
  }
  if (effects.poller) {
    call_poller(process_.time());
  }
}

void Job::call_settler(SteadyTime time) {
  if (!settle_at_ && !settling_) {
    settle_at_ = time;
    process_.when(time, [this] { settle(); });
  }
}

void Job::settle() {
  settle_at_.reset();
  std::vector<Completion> batch = std::exchange(ended_, {});
  if (batch.empty()) {
    return;
  }
  settling_ = true;
  const auto results = source_->settle(batch, process_.soon());
  std::vector<Completion> again;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const bool retried = batch[i].action == queue::CompletionAction::retry;
    if (results[i].status == SettleStatus::failed) {
      again.push_back(std::move(batch[i]));
    } else if (results[i].status == SettleStatus::applied && retried) {
      process_.site().sightings.failed(batch[i].receipt.id);
    } else if (results[i].status == SettleStatus::applied) {
      process_.site().sightings.done();
    }
  }
  process_.when(process_.time(), [this, again = std::move(again)] {
    settling_ = false;
    ended_.insert(ended_.begin(), again.begin(), again.end());
    if (!ended_.empty()) {
      call_settler(process_.time() + (again.empty() ? Duration::zero() : kSettleAgain));
    }
  });
}

}  // namespace sluice::test::sim
