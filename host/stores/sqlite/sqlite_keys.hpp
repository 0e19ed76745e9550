#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "host/queue/idempotency.hpp"
#include "host/stores/sqlite/shared_store.hpp"

namespace sluice::queue::sqlite {

/// The idempotency keys of one queue. Marks are committed and not flushed: a lost power supply may forget some, with
/// the claims of their messages.
class SqliteKeys final : public IdempotencyKeys {
 public:
  /// `store` outlives it.
  SqliteKeys(SharedStore& store, std::string queue) : store_(store), queue_(std::move(queue)) {}

  std::vector<KeyAnswer> begin(std::span<const KeyClaim> claims, Deadline deadline) override;
  Result<void> release(std::span<const KeyClaim> claims, Deadline deadline) override;
  Result<KeyPage> list(const std::string& job, std::size_t limit, const std::string& cursor,
                       Deadline deadline) override;
  Result<std::optional<StoredKey>> get(const std::string& job, const std::string& key, Deadline deadline) override;
  Result<bool> forget(const std::string& job, const std::string& key, Deadline deadline) override;

 private:
  SharedStore& store_;
  const std::string queue_;
};

}  // namespace sluice::queue::sqlite
