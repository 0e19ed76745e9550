#include "host/work/key_call.hpp"

#include <algorithm>
#include <utility>

namespace sluice::work {

namespace {

/// The claims that go to the keys of one queue, and where they stood among all.
struct Share {
  std::vector<queue::KeyClaim> claims;
  std::vector<std::size_t> places;
};

Share share_of(std::size_t part, const std::vector<KeyMark>& marks) {
  Share share;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i].part == part) {
      share.claims.push_back(marks[i].claim);
      share.places.push_back(i);
    }
  }
  return share;
}

}  // namespace

std::optional<Error> KeyCall::release(const std::vector<KeyMark>& marks, Deadline deadline) {
  std::optional<Error> failure;
  for (std::size_t part = 0; part < keys_.size(); ++part) {
    const Share share = share_of(part, marks);
    if (share.claims.empty()) {
      continue;
    }
    if (auto released = keys_[part]->release(share.claims, deadline); !released) {
      failure = released.error();
    }
  }
  return failure;
}

std::vector<queue::KeyAnswer> KeyCall::claim(std::vector<KeyMark> marks, Deadline deadline) {
  if (keys_.size() == 1) {
    std::vector<queue::KeyClaim> claims;
    claims.reserve(marks.size());
    for (KeyMark& mark : marks) {
      claims.push_back(std::move(mark.claim));
    }
    auto told = keys_.front()->begin(claims, deadline);
    told.resize(claims.size(), {.state = queue::KeyState::failed});
    return told;
  }
  std::vector<queue::KeyAnswer> answers(marks.size(), {.state = queue::KeyState::failed});
  for (std::size_t part = 0; part < keys_.size(); ++part) {
    const Share share = share_of(part, marks);
    if (share.claims.empty()) {
      continue;
    }
    auto told = keys_[part]->begin(share.claims, deadline);
    told.resize(share.claims.size(), {.state = queue::KeyState::failed});
    for (std::size_t i = 0; i < told.size(); ++i) {
      answers[share.places[i]] = std::move(told[i]);
    }
  }
  return answers;
}

IdempotencyGate::Answers KeyCall::make(const Order& order) {
  IdempotencyGate::Answers answers;
  const Deadline deadline = Deadline::at(order.deadline);
  if (!order.releases.empty()) {
    answers.failure = release(order.releases, deadline);
  }
  std::vector<KeyMark> claims = order.renewals;
  std::vector<std::size_t> asked;
  answers.asks.reserve(order.asks.size());
  asked.reserve(order.asks.size());
  claims.reserve(claims.size() + order.asks.size());
  for (const IdempotencyGate::Ask& ask : order.asks) {
    IdempotencyGate::Answer& answer = answers.asks.emplace_back();
    if (key_.own_id()) {
      // Nothing is marked, so that nobody has to know whose it is.
      asked.push_back(answers.asks.size() - 1);
      claims.push_back({{job_, ask.task->message.id, {}, order.hold_for, ask.fence}, ask.task->part});
      continue;
    }
    answer.found = key_.of(ask.task->message);
    if (answer.found.missing.empty()) {
      asked.push_back(answers.asks.size() - 1);
      claims.push_back({{job_, answer.found.key, ask.task->message.id, order.hold_for, ask.fence}, ask.task->part});
    }
  }
  if (claims.empty()) {
    return answers;
  }
  std::vector<queue::KeyAnswer> told = claim(std::move(claims), deadline);
  const WallTime now = clock_.wall_now();
  for (std::size_t i = 0; i < order.renewals.size(); ++i) {
    if (told[i].state == queue::KeyState::failed) {
      answers.failure = told[i].error;
    }
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    IdempotencyGate::Answer& answer = answers.asks[asked[i]];
    answer.key = std::move(told[order.renewals.size() + i]);
    answer.left = std::max(Duration::zero(), Duration(answer.key.until - now));
  }
  return answers;
}

}  // namespace sluice::work
