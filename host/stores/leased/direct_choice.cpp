#include "host/stores/leased/direct_choice.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "host/queue/message.hpp"

namespace sluice::queue::leased {
namespace {

// In which order messages of one line go: as they were sent.
bool later(const DirectCandidate* a, const DirectCandidate* b) {
  const auto position = [](const DirectCandidate& one) {
    return std::tuple(one.candidate.due, one.candidate.place.sort, one.shard);
  };
  return position(*a) > position(*b);
}

}  // namespace

// Empty: it has its turn by itself.
std::string DirectChoice::line_of(const DirectCandidate& one, const Asked& asked) const {
  const ClaimRules& rules = asked.request.rules;
  if (rules.order == Order::queue) {
    return "queue";
  }
  const bool by_group = rules.order == Order::group || rules.fair || asked.ordered;
  return by_group && !one.candidate.group.empty() ? "group " + one.candidate.group : std::string();
}

void DirectChoice::offer(DirectCandidate& one, WallTime at) {
  if (offered_.emplace(one.spot(), &one).second) {
    turns_.add(one.candidate.priority, {at, one.spot()});
  }
}

// The next one of a line that is due. Where the order is kept, it is the first one or none.
void DirectChoice::offer_next(const std::string& name, Line& line, const Asked& asked) {
  const bool strict = asked.request.rules.order != Order::none || asked.ordered;
  if (strict && (line.busy || line.waiting.empty() || !line.waiting.back()->candidate.is_due(asked.now))) {
    return;
  }
  while (!line.waiting.empty() && !line.waiting.back()->candidate.is_due(asked.now)) {
    line.waiting.pop_back();
  }
  if (line.waiting.empty()) {
    return;
  }
  DirectCandidate& next = *line.waiting.back();
  line.waiting.pop_back();
  const auto served = served_.find(name);
  offer(next, served == served_.end() ? next.candidate.due : served->second);
  line.busy = strict;
}

DirectChoice::Choice DirectChoice::choose(std::vector<DirectCandidate>& found, const Asked& asked) {
  turns_.clear();
  offered_.clear();
  last_served_ = std::max(last_served_, asked.now);
  Choice choice;
  std::map<std::string, Line> lines;
  for (DirectCandidate& one : found) {
    const Candidate& candidate = one.candidate;
    if (!candidate.is_due(asked.now)) {
      const Duration wait = candidate.due_at() - asked.now + Duration(1);
      choice.next_due = std::min(choice.next_due.value_or(Duration::max()), wait);
    }
    const std::string name = line_of(one, asked);
    if (name.empty()) {
      if (candidate.is_due(asked.now)) {
        offer(one, candidate.due);
      }
      continue;
    }
    Line& line = lines[name];
    line.busy = line.busy || one.state().is_in_flight(asked.now) || asked.held.contains(candidate.group);
    if (candidate.due <= asked.now && !one.state().is_in_flight(asked.now)) {
      line.waiting.push_back(&one);
    }
  }
  for (auto& [name, line] : lines) {
    std::sort(line.waiting.begin(), line.waiting.end(), later);
    offer_next(name, line, asked);
  }
  std::size_t bytes = 0;
  const ClaimRequest& request = asked.request;
  while (choice.chosen.size() < request.max && (choice.chosen.empty() || bytes < request.bytes)) {
    const auto turn = turns_.next(request.rules.weights, [&](const owned::Spot& spot) {
      return !offered_.at(spot)->state().is_suspect() || (request.suspects && choice.chosen.empty());
    });
    if (!turn) {
      break;
    }
    DirectCandidate& one = *offered_.at(turn->spot);
    turns_.remove(one.candidate.priority, *turn);
    choice.chosen.push_back(&one);
    bytes += table::item_bytes(one.item);
    if (const std::string name = line_of(one, asked); !name.empty()) {
      last_served_ += Duration(1);
      if (served_.insert_or_assign(name, last_served_).second) {
        served_order_.push_back(name);
      }
      offer_next(name, lines[name], asked);
    }
    if (one.state().is_suspect()) {
      break;
    }
  }
  while (served_order_.size() > kGroupsRemembered) {
    served_.erase(served_order_.front());
    served_order_.pop_front();
  }
  return choice;
}

}  // namespace sluice::queue::leased
