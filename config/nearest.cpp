#include <algorithm>
#include <cstddef>

#include "config/config.hpp"

namespace sluice::config {

namespace {

char folded(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '_' ? '-' : c; }

/// Edit distance in which a swap of neighbours counts as one, and case, '-' and '_' do not count.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = folded(a[i - 1]) == folded(b[j - 1]) ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1])) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

/// How many edits still count as a slip of the hand.
std::size_t tolerance(const std::string& candidate) { return candidate.size() < 3 ? 0 : (candidate.size() + 3) / 4; }

}  // namespace

std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t allowed = tolerance(candidate);
    if (word.size() > candidate.size() + allowed || candidate.size() > word.size() + allowed) {
      continue;  // Also keeps a monstrous word from costing anything.
    }
    const std::size_t edits = distance(word, candidate);
    if (edits <= allowed && (!best || edits < best_distance)) {
      best = candidate;
      best_distance = edits;
    }
  }
  return best;
}

}  // namespace sluice::config
