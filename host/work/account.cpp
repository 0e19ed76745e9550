#include "host/work/account.hpp"

#include <numeric>

namespace sluice::work {

LedgerSnapshot& LedgerSnapshot::operator+=(const LedgerSnapshot& other) {
  claimed += other.claimed;
  done += other.done;
  retried += other.retried;
  snoozed += other.snoozed;
  rejected += other.rejected;
  discarded += other.discarded;
  released += other.released;
  lost += other.lost;
  stranded += other.stranded;
  return *this;
}

std::uint64_t Account::open() const {
  return claimed_ - stranded_ - std::accumulate(endings_.begin(), endings_.end(), std::uint64_t{0});
}

void Account::close() { stranded_ += open(); }

LedgerSnapshot Account::snapshot() const {
  return {.claimed = claimed_,
          .done = count(Ending::done),
          .retried = count(Ending::retried),
          .snoozed = count(Ending::snoozed),
          .rejected = count(Ending::rejected),
          .discarded = count(Ending::discarded),
          .released = count(Ending::released),
          .lost = count(Ending::lost),
          .stranded = stranded_};
}

}  // namespace sluice::work
