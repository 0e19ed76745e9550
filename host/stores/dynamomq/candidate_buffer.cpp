#include "host/stores/dynamomq/candidate_buffer.hpp"

#include <algorithm>

namespace sluice::queue::dynamomq {

bool CandidateBuffer::add(Candidate candidate, SteadyTime now) {
  Place place(candidate.sent_at, candidate.id);
  if (candidates_.size() >= kCapacity || !ids_.emplace(candidate.id, place.first).second) {
    return false;
  }
  filled_at_ = now;
  candidates_.emplace(std::move(place), std::move(candidate));
  return true;
}

void CandidateBuffer::erase(const std::string& id) {
  if (const auto found = ids_.find(id); found != ids_.end()) {
    candidates_.erase({found->second, id});
    ids_.erase(found);
  }
}

void CandidateBuffer::clear() {
  candidates_.clear();
  ids_.clear();
}

std::vector<Candidate> CandidateBuffer::take(std::size_t count, std::size_t skip) {
  std::vector<Candidate> taken;
  auto next = candidates_.begin();
  std::advance(next, static_cast<std::ptrdiff_t>(std::min(skip, candidates_.size())));
  while (next != candidates_.end() && taken.size() < count) {
    ids_.erase(next->second.id);
    taken.push_back(std::move(next->second));
    next = candidates_.erase(next);
  }
  return taken;
}

std::vector<Candidate> CandidateBuffer::take_if(std::size_t count,
                                                const std::function<bool(const Candidate&)>& wanted) {
  std::vector<Candidate> taken;
  for (auto next = candidates_.begin(); next != candidates_.end() && taken.size() < count;) {
    if (!wanted(next->second)) {
      ++next;
      continue;
    }
    ids_.erase(next->second.id);
    taken.push_back(std::move(next->second));
    next = candidates_.erase(next);
  }
  return taken;
}

std::vector<Candidate> CandidateBuffer::take_last(std::size_t count) {
  return take(count, size() - std::min(count, size()));
}

std::size_t CandidateBuffer::remove_if(const std::function<bool(const Candidate&)>& unwanted) {
  std::size_t removed = 0;
  for (auto next = candidates_.begin(); next != candidates_.end();) {
    if (!unwanted(next->second)) {
      ++next;
      continue;
    }
    ids_.erase(next->second.id);
    next = candidates_.erase(next);
    ++removed;
  }
  return removed;
}

std::optional<std::string> CandidateBuffer::drop_stale(SteadyTime time) {
  if (candidates_.empty() || filled_at_ >= time) {
    return std::nullopt;
  }
  std::string first = candidates_.begin()->second.sort_key;
  for (const auto& [place, candidate] : candidates_) {
    first = std::min(first, candidate.sort_key);
  }
  clear();
  return first;
}

}  // namespace sluice::queue::dynamomq
