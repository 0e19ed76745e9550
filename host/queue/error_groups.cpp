#include "host/queue/error_groups.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "host/queue/fingerprint.hpp"

namespace sluice::queue {

namespace {

// Where every failure names another one, such as hosts that come and go; the rest is counted under no name.
constexpr std::size_t kMostNames = 100;

void count(std::map<std::string, std::uint64_t>& names, const std::string& name) {
  if (!name.empty() && (names.size() < kMostNames || names.contains(name))) {
    ++names[name];
  }
}

}  // namespace

void ErrorGroups::add(const std::string& id, const Failure& failure) {
  if (failure.empty()) {
    return;
  }
  std::string pattern = folded_error(failure.error);
  auto found = groups_.find(pattern);
  if (found == groups_.end()) {
    if (groups_.size() >= kMost) {
      ++beyond_;
      return;
    }
    ErrorGroup group;
    group.pattern = pattern;
    found = groups_.emplace(std::move(pattern), std::move(group)).first;
  }
  ErrorGroup& group = found->second;
  // Whatever order a store reads in, the example is the same.
  if (group.count == 0 || std::tie(failure.failed_at, id) > std::tie(group.last_failed_at, group.example)) {
    group.example = id;
    group.error = failure.error;
    group.last_failed_at = failure.failed_at;
  }
  if (group.count == 0 || failure.failed_at < group.first_failed_at) {
    group.first_failed_at = failure.failed_at;
  }
  ++group.count;
  count(group.handlers, failure.handler);
  count(group.hosts, failure.host);
  const auto ago = std::chrono::duration_cast<std::chrono::hours>(std::max(now_ - failure.failed_at, Duration::zero()));
  if (const auto hour = static_cast<std::size_t>(ago.count()); hour < group.per_hour.size()) {
    ++group.per_hour[hour];
  }
}

std::vector<ErrorGroup> ErrorGroups::finish(std::size_t limit, std::uint64_t& unlisted) && {
  std::vector<ErrorGroup> sorted;
  sorted.reserve(groups_.size());
  for (auto& [pattern, group] : groups_) {
    sorted.push_back(std::move(group));
  }
  std::sort(sorted.begin(), sorted.end(), [](const ErrorGroup& a, const ErrorGroup& b) {
    return std::tie(b.count, b.last_failed_at, a.pattern) < std::tie(a.count, a.last_failed_at, b.pattern);
  });
  unlisted = beyond_;
  for (std::size_t index = limit; index < sorted.size(); ++index) {
    unlisted += sorted[index].count;
  }
  sorted.resize(std::min(sorted.size(), limit));
  for (ErrorGroup& group : sorted) {
    group.fingerprint = fingerprint_of(group.pattern);
  }
  return sorted;
}

}  // namespace sluice::queue
