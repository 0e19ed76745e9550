#include "host/work/account.hpp"

#include <numeric>

namespace sluice::work {

LedgerSnapshot& LedgerSnapshot::operator+=(const LedgerSnapshot& other) {
  claimed += other.claimed;
  stranded += other.stranded;
  for (const EndingCount& ending : kEndingCounts) {
    this->*ending.count += other.*ending.count;
  }
  return *this;
}

std::uint64_t LedgerSnapshot::ended() const {
  return std::accumulate(kEndingCounts.begin(), kEndingCounts.end(), std::uint64_t{0},
                         [this](std::uint64_t sum, const EndingCount& ending) { return sum + this->*ending.count; });
}

std::uint64_t Account::open() const {
  return claimed_ - stranded_ - std::accumulate(endings_.begin(), endings_.end(), std::uint64_t{0});
}

void Account::close() { stranded_ += open(); }

LedgerSnapshot Account::snapshot() const {
  LedgerSnapshot snapshot{.claimed = claimed_, .stranded = stranded_};
  for (std::size_t i = 0; i < kEndings; ++i) {
    snapshot.*kEndingCounts[i].count = endings_[i];
  }
  return snapshot;
}

}  // namespace sluice::work
