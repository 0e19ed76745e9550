#include "host/stores/outbox/lease_locks.hpp"

#include <utility>

#include "base/ranges.hpp"
#include "host/stores/owned/membership.hpp"

namespace sluice::queue::outbox {
namespace {

constexpr int kLeasesUntilBuried = 20;
constexpr Duration kPatienceAtTheEnd = std::chrono::seconds(1);

// A name for a session that nobody else has: 52 bits, never zero.
std::int64_t fresh_name(Random& random) { return static_cast<std::int64_t>(random.next() >> 12U) | 1; }

std::string host_of(std::int64_t member) { return std::to_string(member); }

class LeaseLocks final : public LockSession {
 public:
  LeaseLocks(std::unique_ptr<LeaseBook> book, const Settings& settings, Duration beat_every, const Clock& clock,
             Random& random)
      : book_(std::move(book)),
        outbox_(settings.name),
        beat_every_(beat_every),
        clock_(clock),
        self_{.name = fresh_name(random), .lease = settings.config.lease},
        lease_(self_.lease, clock),
        members_(self_.lease) {}
  /// Leaves, so that the others' shares grow at once.
  ~LeaseLocks() override {
    if (self_.counter != 0) {
      const Deadline soon = Deadline::after(clock_, kPatienceAtTheEnd);
      // First what tells the others most, for little time is left: in SQL, buckets of nobody are free.
      book_->bury(std::span(&self_, 1), soon);  // otherwise the others do
      if (!held_.empty()) {
        (void)book_->change_hands(held_, 0, soon);  // otherwise they go with the lease
      }
    }
  }

  Duration beat_every(Duration /*lease*/) const override { return beat_every_; }
  bool frees_at_once() const override { return false; }
  Result<Members> join(const LockSpace& space, Deadline deadline) override {
    book_->open(space);
    self_.buckets = space.buckets;
    self_.counter = 1;
    const SteadyTime began = lease_.now();
    SLUICE_PASS_ON(book_->announce(self_, deadline));
    (void)lease_.renewed(began);  // the first one: there is nothing that could have been lost
    return look(deadline);
  }
  Result<Members> beat(Deadline deadline) override {
    const SteadyTime began = lease_.now();
    ++self_.counter;
    SLUICE_PASS_ON(book_->announce(self_, deadline));
    if (!lease_.renewed(began)) {
      lease_.gone();
      return ended();
    }
    return look(deadline);
  }
  Result<std::vector<std::uint32_t>> lock(std::span<const std::uint32_t> buckets, Deadline deadline) override {
    const auto leases = book_->buckets(deadline);
    if (!leases && !ends_session(leases.error().code())) {
      return std::vector<std::uint32_t>();  // nothing is locked, and the next heartbeat tries again
    }
    SLUICE_PASS_ON(leases);
    const SteadyTime now = clock_.steady_now();
    BucketLeases free;
    for (const std::uint32_t bucket : buckets) {
      const auto found = leases->find(bucket);
      const BucketLease before = found == leases->end() ? BucketLease{} : found->second;
      if (before.owner != 0) {
        members_.met(host_of(before.owner), now);
      }
      if (before.owner == 0 || !members_.alive(host_of(before.owner), now)) {
        free.emplace(bucket, before);
      }
    }
    std::vector<std::uint32_t> got;
    if (!free.empty()) {
      SLUICE_TRY(changed, book_->change_hands(free, self_.name, deadline));
      got = *std::move(changed);
    }
    for (const std::uint32_t bucket : got) {
      held_[bucket] = {self_.name, free.at(bucket).epoch + 1};
    }
    SLUICE_PASS_ON(still_ours());
    return got;
  }
  Result<void> unlock(std::span<const std::uint32_t> buckets, Deadline deadline) override {
    BucketLeases given;
    for (const std::uint32_t bucket : buckets) {
      given.insert(held_.extract(bucket));
    }
    if (given.empty()) {
      return {};
    }
    SLUICE_PASS_ON(book_->change_hands(given, 0, deadline));
    return {};
  }
  Result<std::vector<MarkStatus>> mark(std::span<const RowEdit> marks, Deadline deadline) override {
    if (self_.counter == 0) {
      return book_->mark(marks, nullptr, deadline);
    }
    SLUICE_PASS_ON(still_ours());
    const SteadyTime began = lease_.now();
    const bool beats = book_->marks_are_heartbeats();
    self_.counter += beats ? 1 : 0;
    auto marked = book_->mark(marks, &self_, deadline);
    if (marked && beats && !lease_.renewed(began)) {
      // What is written is written, for nobody had taken this member's name away; the next call ends the session.
      lease_.gone();
    }
    return marked;
  }

 private:
  Result<Members> look(Deadline deadline) {
    SLUICE_TRY(listed, book_->members(deadline));
    const SteadyTime now = clock_.steady_now();
    members_.saw(mapped(*listed,
                        [](const LeaseMember& member) {
                          return owned::Heartbeat{
                              .host = host_of(member.name), .counter = member.counter, .lease = member.lease};
                        }),
                 now);
    Members members{.count = 0};
    std::vector<LeaseMember> long_dead;  // whose heartbeats would stay for ever
    for (const LeaseMember& member : *listed) {
      if (members_.alive(host_of(member.name), now)) {
        ++members.count;
        members.other_buckets = member.buckets == self_.buckets ? members.other_buckets : member.buckets;
      } else if (member.name != self_.name &&
                 members_.dead_since(host_of(member.name), now - kLeasesUntilBuried * self_.lease)) {
        long_dead.push_back(member);
      }
    }
    if (!long_dead.empty()) {
      book_->bury(long_dead, deadline);
    }
    return members;
  }
  Result<void> still_ours() { return lease_.holds() ? Result<void>() : Result<void>(ended()); }
  Error ended() const {
    return {ErrorCode::unavailable,
            "outbox '" + outbox_ + "': the lease ended before it could be renewed; what it held is free for others"};
  }

  const std::unique_ptr<LeaseBook> book_;
  const std::string outbox_;  ///< for messages
  const Duration beat_every_;
  const Clock& clock_;
  LeaseMember self_;
  owned::OwnLease lease_;
  owned::Membership members_;
  BucketLeases held_;
};

}  // namespace

Error name_is_gone() {
  return {ErrorCode::unavailable, "others have taken this session for dead, for its lease ended without a heartbeat"};
}

std::unique_ptr<LockSession> make_lease_locks(std::unique_ptr<LeaseBook> book, const Settings& settings,
                                              Duration beat_every, const Clock& clock, Random& random) {
  return std::make_unique<LeaseLocks>(std::move(book), settings, beat_every, clock, random);
}

}  // namespace sluice::queue::outbox
