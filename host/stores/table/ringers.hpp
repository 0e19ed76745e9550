#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/queue/wake/ringer.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::table {

/// Who rings for what is put into the tables of a store: a Ringer for each table. Thread-safe. A resource.
class Ringers {
 public:
  /// How the tables of one layout tell whom to ring. Both are called from any thread.
  struct Layout {
    /// What hosts announce in that table.
    std::function<Result<std::vector<wake::Announcement>>(const QueueTable&, Deadline)> read;
    /// The bell of that half of the queue.
    std::function<std::string(const QueueTable&, Half)> bell;
  };

  /// Without options nobody rings. `clock` is the tables'; it and `random` outlive it, as what the layout refers to.
  Ringers(Layout layout, std::optional<wake::RingerOptions> options, const Clock& clock, Random& random);

  /// Something that is durable by now was put there. Returns at once.
  void rang(const QueueTable& place, Half half);
  /// The table's, which is there for as long as these are; null where nobody rings.
  wake::Ringer* of(const QueueTable& place);

 private:
  const Layout layout_;
  const std::optional<wake::RingerOptions> options_;
  const Clock& clock_;
  Random& random_;

  Mutex mutex_;
  std::map<std::string, std::unique_ptr<wake::Ringer>> by_table_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::table
