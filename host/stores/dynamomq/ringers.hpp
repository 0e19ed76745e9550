#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/queue/wake/ringer.hpp"
#include "host/stores/dynamomq/store_parts.hpp"

namespace sluice::queue::dynamomq {

/// Who rings for what is put into the tables of a store: a Ringer for each table. Thread-safe. A resource.
class Ringers {
 public:
  /// Without options nobody rings. What `parts` refer to, and `random`, outlive it.
  Ringers(const StoreParts& parts, std::optional<wake::RingerOptions> options, Random& random);

  /// Something that is durable by now was put there. Returns at once.
  void rang(const QueueTable& place, Half half);
  /// The table's, which is there for as long as these are; null where nobody rings.
  wake::Ringer* of(const QueueTable& place);

 private:
  const StoreParts parts_;
  const std::optional<wake::RingerOptions> options_;
  Random& random_;

  Mutex mutex_;
  std::map<std::string, std::unique_ptr<wake::Ringer>> by_table_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::dynamomq
