#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/idempotency.hpp"
#include "host/queue/message.hpp"

namespace sluice::queue {

/// The fencing token of a delivery: whatever is written with it takes effect only while nobody else has claimed or
/// changed the message since. A value.
struct Receipt {
  std::string id;
  std::int64_t version = 0;
  std::int64_t locator = 0;  ///< the source's own short cut to the record; 0 where it needs none
  std::uint16_t part = 0;    ///< of a source that is made of several: which of them it is of

  friend bool operator==(const Receipt&, const Receipt&) = default;
};

/// What a claim found of the record of a message's own id (ClaimRequest::own_ids_of). A value.
struct OwnIdFound {
  bool asked = false;  ///< false: the source has not looked, who wants to know asks the keys
  std::shared_ptr<const KeyAnswer> done = nullptr;  ///< the record; null: there is none
};

/// A message that this host may work on. A value.
struct Delivery {
  Message message;
  Receipt receipt;
  /// Until when nobody else is given the message, on this process's monotonic clock: counted from before the write that
  /// granted it, however late that was recognised, so that it never ends later here than in the store.
  /// SteadyTime::max() where the source itself holds the lease.
  SteadyTime leased_until{};
  WallTime invisible_until{};  ///< what the record says of it; for people, never compared with a clock here
  /// Whoever had the message before ended without an outcome, and nobody knows why: it may be what ended him. To be run
  /// where it can hurt nobody but itself.
  bool suspect = false;
  OwnIdFound own_id{};
};

/// What one claim brought.
struct Claimed {
  std::vector<Delivery> deliveries;
  /// With fewer deliveries than were asked for: how long until the next message comes due by itself (a delay, a retry,
  /// a lease that runs out), where the source knows it. Nothing: not known, or nothing waits.
  std::optional<Duration> next_due;
};

}  // namespace sluice::queue
