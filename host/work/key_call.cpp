#include "host/work/key_call.hpp"

#include <algorithm>

namespace sluice::work {

Doorkeeper::Answers KeyCall::make(const Order& order) {
  Doorkeeper::Answers answers;
  const Deadline deadline = Deadline::at(order.deadline);
  if (!order.releases.empty()) {
    if (auto released = keys_.release(order.releases, deadline); !released) {
      answers.failure = released.error();
    }
  }
  std::vector<queue::KeyClaim> claims = order.renewals;
  std::vector<std::size_t> asked;
  answers.asks.reserve(order.asks.size());
  asked.reserve(order.asks.size());
  claims.reserve(claims.size() + order.asks.size());
  for (const Doorkeeper::Ask& ask : order.asks) {
    Doorkeeper::Answer& answer = answers.asks.emplace_back();
    if (key_.own_id()) {
      // Nothing is marked, so that nobody has to know whose it is.
      asked.push_back(answers.asks.size() - 1);
      claims.push_back({job_, ask.task->message.id, {}, order.hold_for, ask.fence});
      continue;
    }
    answer.found = key_.of(ask.task->message);
    if (answer.found.missing.empty()) {
      asked.push_back(answers.asks.size() - 1);
      claims.push_back({job_, answer.found.key, ask.task->message.id, order.hold_for, ask.fence});
    }
  }
  if (claims.empty()) {
    return answers;
  }
  std::vector<queue::KeyAnswer> told = keys_.begin(claims, deadline);
  const WallTime now = clock_.wall_now();
  told.resize(claims.size(), {.state = queue::KeyState::failed});
  for (std::size_t i = 0; i < order.renewals.size(); ++i) {
    if (told[i].state == queue::KeyState::failed) {
      answers.failure = told[i].error;
    }
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    Doorkeeper::Answer& answer = answers.asks[asked[i]];
    answer.key = std::move(told[order.renewals.size() + i]);
    answer.left = std::max(Duration::zero(), Duration(answer.key.until - now));
  }
  return answers;
}

}  // namespace sluice::work
