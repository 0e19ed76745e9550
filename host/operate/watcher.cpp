#include "host/operate/watcher.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace sluice::operate {

namespace {

using queue::Half;
using queue::MessageState;

constexpr std::size_t kPageSize = 250;
constexpr std::array<std::string_view, 10> kNames{"arrived",       "claimed",  "retrying", "released", "expired",
                                                  "dead_lettered", "redriven", "edited",   "gone",     "out_of_view"};

bool failed_since(const Sighting& before, const Sighting& now) {
  const queue::Failure& was = before.record.failure;
  const queue::Failure& is = now.record.failure;
  return !is.empty() && (was.empty() || is.failed_at != was.failed_at || is.attempts != was.attempts);
}

bool claimed_since(const Sighting& before, const Sighting& now) {
  return now.state == MessageState::in_flight &&
         (before.state != MessageState::in_flight || now.record.received_at != before.record.received_at ||
          now.record.message.attempt != before.record.message.attempt);
}

/// Collects what happened to one message.
class Story {
 public:
  Story(std::vector<Event>& events, WallTime seen_at) : events_(events), seen_at_(seen_at) {}

  void tell(EventKind kind, const Sighting& message) {
    if (message.wanted) {
      events_.push_back({kind, seen_at_, message});
    }
  }

  void entered(const Sighting& now) {
    if (now.record.half == Half::dlq) {
      tell(EventKind::dead_lettered, now);
    } else {
      tell(EventKind::arrived, now);
      if (!now.record.failure.empty() && now.state != MessageState::in_flight) {
        tell(EventKind::retrying, now);
      }
    }
    claim(now);
  }

  void moved(const Sighting& now) {
    tell(now.record.half == Half::dlq ? EventKind::dead_lettered : EventKind::redriven, now);
    claim(now);
  }

  void stayed(const Sighting& before, const Sighting& now) {
    if (claimed_since(before, now)) {
      tell(EventKind::claimed, now);
    } else if (now.record.version == before.record.version) {
      if (before.state == MessageState::in_flight && now.state == MessageState::ready) {
        tell(EventKind::expired, now);
      }
    } else if (now.state == MessageState::in_flight) {
      return;  // the lease was extended
    } else if (failed_since(before, now)) {
      tell(EventKind::retrying, now);
    } else {
      tell(before.state == MessageState::in_flight ? EventKind::released : EventKind::edited, now);
    }
  }

 private:
  void claim(const Sighting& now) {
    if (now.state == MessageState::in_flight) {
      tell(EventKind::claimed, now);
    }
  }

  std::vector<Event>& events_;
  const WallTime seen_at_;
};

const std::optional<WallTime>& horizon_of(const Snapshot& look, Half half) {
  return look.horizon.at(half == Half::dlq ? 1 : 0);
}

/// True when the look would show a record of this place in the queue.
bool reaches(const Snapshot& look, const queue::StoredMessage& record) {
  const auto& horizon = horizon_of(look, record.half);
  const WallTime sent_at = record.message.sent_at;
  return !horizon || (record.half == Half::dlq ? sent_at > *horizon : sent_at < *horizon);
}

/// A look that does not reach the end also shows old messages for the first time: those that moved up.
bool is_new(const Sighting& found, const Snapshot& before) {
  return reaches(before, found.record) || found.record.message.sent_at >= before.taken_at;
}

/// Younger dead letters have taken its place in the look; nothing has happened to it.
bool pushed_out(const Sighting& last, const Snapshot& now) {
  return last.record.half == Half::dlq && !reaches(now, last.record);
}

/// What left the one half may lie in the other, beyond its horizon.
bool is_gone(const Sighting& last, const Snapshot& now) {
  const Half other = last.record.half == Half::dlq ? Half::standard : Half::dlq;
  return reaches(now, last.record) && !horizon_of(now, other);
}

}  // namespace

std::string_view to_string(EventKind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

std::vector<Event> events_between(const Snapshot& before, const Snapshot& now) {
  std::vector<Event> events;
  Story story(events, now.taken_at);
  for (const auto& [id, found] : now.records) {
    const auto last = before.records.find(id);
    if (last == before.records.end()) {
      if (is_new(found, before)) {
        story.entered(found);
      }
    } else if (last->second.record.half != found.record.half) {
      story.moved(found);
    } else {
      story.stayed(last->second, found);
    }
  }
  for (const auto& [id, last] : before.records) {
    if (!now.records.contains(id) && !pushed_out(last, now)) {
      story.tell(is_gone(last, now) ? EventKind::gone : EventKind::out_of_view, last);
    }
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& left, const Event& right) {
    const auto order = [](const queue::Message& message) { return std::tie(message.sent_at, message.id); };
    return order(left.message.record.message) < order(right.message.record.message);
  });
  return events;
}

Result<Snapshot> take_look(queue::Operator& queue, const LookRequest& request, const Clock& clock, Deadline deadline) {
  Snapshot look;
  look.taken_at = clock.wall_now();
  for (const Half half : request.halves) {
    // What arrives in the dead-letter half is behind all that lies there; in the other one the head is where things
    // happen.
    const bool newest = half == Half::dlq;
    queue::ListRequest list{.half = half, .content = request.filter.reads_content(), .newest_first = newest};
    std::size_t left = request.limit;
    WallTime edge{};
    do {
      list.limit = std::min(left, kPageSize);
      SLUICE_TRY(page, queue.list(list, deadline));
      for (queue::StoredMessage& record : page->messages) {
        const bool wanted = request.filter.matches(record, look.taken_at);
        const queue::MessageState state = record.state(look.taken_at);
        std::string().swap(record.message.body);  // an assignment would keep its memory
        std::string().swap(record.message.checkpoint);
        record.message.attributes.clear();
        edge = record.message.sent_at;
        const std::string id = record.message.id;
        look.records.insert_or_assign(id, Sighting{std::move(record), state, wanted});
      }
      left -= std::min(left, page->messages.size());
      list.cursor = page->next;
    } while (left > 0 && !list.cursor.empty());
    if (!list.cursor.empty()) {
      look.horizon.at(half == Half::dlq ? 1 : 0) = edge;
    }
  }
  return look;
}

}  // namespace sluice::operate
