#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/idempotency.hpp"
#include "host/queue/source.hpp"

namespace sluice::test {

/// The idempotency keys of one queue in memory. Thread-safe; moves only with its clock.
class SimKeyTable {
 public:
  explicit SimKeyTable(const Clock& clock) : clock_(clock) {}

  queue::KeyAnswer begin(const queue::KeyClaim& claim);
  /// What a claim says of a message's own id.
  queue::OwnIdFound own_id(const std::string& job, const std::string& id) const;
  void release(const queue::KeyClaim& claim);
  queue::KeyPage list(const std::string& job, std::size_t limit, const std::string& cursor) const;
  std::optional<queue::StoredKey> get(const std::string& job, const std::string& key) const;
  bool forget(const std::string& job, const std::string& key);
  /// False: another message has the key, in progress or done.
  bool may_record(const queue::KeyRecord& record, const std::string& owner) const;
  void record(const queue::KeyRecord& record, const std::string& owner);

 private:
  struct Entry {
    queue::StoredKey key;
    std::int64_t fence = 0;
  };
  using Name = std::pair<std::string, std::string>;  // job and key

  const Entry* find(const Name& name) const SLUICE_REQUIRES(mutex_);

  const Clock& clock_;
  mutable Mutex mutex_;
  std::map<Name, Entry> entries_ SLUICE_GUARDED_BY(mutex_);
};

/// The role over such a table, which outlives it.
class SimKeys final : public queue::IdempotencyKeys {
 public:
  explicit SimKeys(SimKeyTable& table) : table_(table) {}

  std::vector<queue::KeyAnswer> begin(std::span<const queue::KeyClaim> claims, Deadline deadline) override;
  Result<void> release(std::span<const queue::KeyClaim> claims, Deadline deadline) override;
  Result<queue::KeyPage> list(const std::string& job, std::size_t limit, const std::string& cursor,
                              Deadline deadline) override;
  Result<std::optional<queue::StoredKey>> get(const std::string& job, const std::string& key,
                                              Deadline deadline) override;
  Result<bool> forget(const std::string& job, const std::string& key, Deadline deadline) override;

 private:
  SimKeyTable& table_;
};

}  // namespace sluice::test
