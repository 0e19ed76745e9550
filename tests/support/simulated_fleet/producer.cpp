#include "tests/support/simulated_fleet/producer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace sluice::test::sim {

Producer::Producer(const Site& site, const std::string& name, std::uint64_t seed, const Habit& habit)
    : Process(site, name, seed),
      habit_(habit),
      arrivals_(seed * 1000 + site.scene.seed),
      sender_(*queues().open_sender(site.scene.queues.front())) {}

void Producer::send(std::size_t count) {
  std::vector<queue::NewMessage> messages(count);
  for (queue::NewMessage& message : messages) {
    message.body.assign(site().scene.bytes, 'x');
  }
  for (const auto& result : sender_->send(messages, soon())) {
    if (result.status == queue::SendStatus::sent) {
      site().sightings.sent(result.id, time());
    }
  }
}

Duration Producer::pause() {
  const double mean = 1e9 * static_cast<double>(habit_.batch) / habit_.rate;
  const double span = habit_.batch > 1 ? mean : -std::log(1 - arrivals_.unit()) * mean;
  return Duration(static_cast<std::int64_t>(span));
}

void Producer::start(SteadyTime first, std::function<void()> after) {
  after_ = std::move(after);
  if (habit_.rate > 0) {
    when(first, [this] { go_on(); });
  }
}

void Producer::go_on() {
  const SteadyTime next = site().timeline.now() + pause();
  const std::size_t count = std::min(habit_.batch, habit_.left);
  habit_.left -= count;
  send(count);
  after_();
  if (habit_.left > 0) {
    when(std::max(next, time()), [this] { go_on(); });
  }
}

}  // namespace sluice::test::sim
