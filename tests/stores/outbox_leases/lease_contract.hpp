#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "host/stores/outbox/database.hpp"
#include "tests/support/ahead_clock.hpp"

namespace sluice::test {

/// A database whose outbox is shared by a side table, and what its tests do to it.
class LeaseRig {
 public:
  static constexpr Duration kLease = std::chrono::hours(1);

  LeaseRig() = default;
  LeaseRig(const LeaseRig&) = delete;
  LeaseRig& operator=(const LeaseRig&) = delete;
  virtual ~LeaseRig() = default;

  /// A database whose sessions go by this clock, with `kLease`.
  virtual std::unique_ptr<queue::outbox::Database> database(const Clock& clock, Random& random) = 0;
  virtual void insert(std::int64_t id) = 0;
  virtual std::int64_t count_sent() = 0;
  /// Has a session of nobody's lock the rows of all buckets, and let them go.
  virtual void lock_bucket_rows() = 0;
  virtual void unlock_bucket_rows() = 0;
};

/// One host's session, with a clock of its own.
class LeaseHost {
 public:
  LeaseHost(LeaseRig& rig, const std::string& space, std::uint32_t buckets = 8);

  /// How many live, as it sees it.
  std::uint32_t beat();
  std::vector<std::uint32_t> lock(const std::vector<std::uint32_t>& buckets);
  bool unlock(const std::vector<std::uint32_t>& buckets);
  Result<std::vector<queue::outbox::MarkStatus>> mark_sent(std::int64_t id);
  Deadline soon() const { return Deadline::after(clock, std::chrono::minutes(5)); }

  AheadClock clock;
  SeededRandom random;
  std::unique_ptr<queue::outbox::Database> database;
  std::unique_ptr<queue::outbox::LockSession> session;
  queue::outbox::Members joined;
};

/// What holds for every side table.
struct LeaseCase {
  const char* name;
  void (*check)(LeaseRig& rig);
};
extern const std::array<LeaseCase, 9> kLeaseCases;
inline std::string name_of_case(const testing::TestParamInfo<LeaseCase>& one) { return one.param.name; }

}  // namespace sluice::test
