#include "host/stores/dynamomq/candidate_buffer.hpp"

#include <algorithm>

namespace sluice::queue::dynamomq {

bool CandidateBuffer::add(Candidate candidate, SteadyTime now) {
  const bool suspect = candidate.suspect();
  if (candidates_.size() >= kCapacity || (suspect && suspects_ >= kMostSuspects)) {
    return false;
  }
  Place place(candidate.sent_at, candidate.id);
  if (!ids_.emplace(candidate.id, place.first).second) {
    return false;
  }
  filled_at_ = now;
  suspects_ += suspect ? 1 : 0;
  candidates_.emplace(std::move(place), std::move(candidate));
  return true;
}

CandidateBuffer::Candidates::iterator CandidateBuffer::remove(Candidates::iterator place) {
  suspects_ -= place->second.suspect() ? 1 : 0;
  ids_.erase(place->first.second);
  return candidates_.erase(place);
}

void CandidateBuffer::erase(const std::string& id) {
  if (const auto found = ids_.find(id); found != ids_.end()) {
    remove(candidates_.find({found->second, id}));
  }
}

void CandidateBuffer::clear() {
  candidates_.clear();
  ids_.clear();
  suspects_ = 0;
}

std::vector<Candidate> CandidateBuffer::take_if(std::size_t count, const std::function<bool(const Candidate&)>& wanted,
                                                std::size_t skip) {
  std::vector<Candidate> taken;
  auto next = candidates_.begin();
  std::advance(next, static_cast<std::ptrdiff_t>(std::min(skip, candidates_.size())));
  while (next != candidates_.end() && taken.size() < count) {
    if (wanted(next->second)) {
      taken.push_back(next->second);
      next = remove(next);
    } else {
      ++next;
    }
  }
  return taken;
}

std::vector<Candidate> CandidateBuffer::take_last_if(std::size_t count,
                                                     const std::function<bool(const Candidate&)>& wanted) {
  std::vector<Candidate> taken;
  for (auto next = candidates_.end(); next != candidates_.begin() && taken.size() < count;) {
    --next;
    if (wanted(next->second)) {
      taken.push_back(next->second);
      next = remove(next);
    }
  }
  return taken;
}

std::size_t CandidateBuffer::remove_if(const std::function<bool(const Candidate&)>& unwanted) {
  std::size_t removed = 0;
  for (auto next = candidates_.begin(); next != candidates_.end();) {
    if (!unwanted(next->second)) {
      ++next;
      continue;
    }
    next = remove(next);
    ++removed;
  }
  return removed;
}

std::vector<std::string> CandidateBuffer::drop_stale(SteadyTime time) {
  std::vector<std::string> dropped;
  if (candidates_.empty() || filled_at_ >= time) {
    return dropped;
  }
  dropped.reserve(candidates_.size());
  for (const auto& [place, candidate] : candidates_) {
    dropped.push_back(candidate.sort_key);
  }
  clear();
  return dropped;
}

}  // namespace sluice::queue::dynamomq
