#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/operate/filter.hpp"
#include "host/queue/operator.hpp"

/// What happens in a queue, told from looks at it.
namespace sluice::operate {

/// One record as a look found it. A value.
struct Sighting {
  queue::StoredMessage record;  ///< without its content
  queue::MessageState state = queue::MessageState::ready;
  bool wanted = true;  ///< what happens to it is told

  /// When it may be claimed next.
  WallTime due_at() const { return std::max(record.message.sent_at, record.invisible_until.value_or(WallTime{})); }
};

/// A look: the oldest records of the standard half, where things happen, and the youngest of the dead-letter half.
struct Snapshot {
  WallTime taken_at{};
  std::unordered_map<std::string, Sighting> records;
  /// By half, where there are more records than the look takes: when the last of those that it shows was sent.
  std::array<std::optional<WallTime>, 2> horizon{};

  /// True when the look shows everything.
  bool whole() const { return !horizon.front() && !horizon.back(); }
};

enum class EventKind {
  arrived,        ///< a message nobody had seen
  claimed,        ///< a handler works on it
  retrying,       ///< an attempt failed; it waits for the next one
  released,       ///< given back without a failure
  expired,        ///< its lease ran out
  dead_lettered,  ///< given up, or put into the DLQ by hand
  redriven,       ///< back from the DLQ
  edited,         ///< changed by somebody who does not work on it
  gone,           ///< done, discarded, or removed; where a look does not reach the end also put off behind it
  out_of_view,    ///< gone, or moved to where the look does not reach
};

/// The name in JSON: "arrived", "dead_lettered".
std::string_view to_string(EventKind kind);

/// One thing that happened to one message between two looks. A value.
struct Event {
  EventKind kind = EventKind::arrived;
  WallTime seen_at{};  ///< of the look that showed it
  Sighting message;    ///< as that look found it; for gone and out_of_view as the one before did
};

/// What has happened between two looks, in the order of the messages' ages, the events of a message in the order in
/// which they must have happened. What came and went between them is not told, nor are several claims of one message.
std::vector<Event> events_between(const Snapshot& before, const Snapshot& now);

struct LookRequest {
  std::vector<queue::Half> halves;
  std::size_t limit = 1000;  ///< most records of each half
  Filter filter{};           ///< of what is told
};

/// Takes a look. A record that moves between the halves meanwhile is kept as it was seen last.
Result<Snapshot> take_look(queue::Operator& queue, const LookRequest& request, const Clock& clock, Deadline deadline);

}  // namespace sluice::operate
