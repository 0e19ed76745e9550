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
  return !now.failure.empty() && (before.failure.empty() || now.failure.failed_at != before.failure.failed_at ||
                                  now.failure.attempts != before.failure.attempts);
}

bool claimed_since(const Sighting& before, const Sighting& now) {
  return now.state == MessageState::in_flight &&
         (before.state != MessageState::in_flight || now.received_at != before.received_at ||
          now.attempt != before.attempt);
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
    if (now.half == Half::dlq) {
      tell(EventKind::dead_lettered, now);
    } else {
      tell(EventKind::arrived, now);
      if (!now.failure.empty() && now.state != MessageState::in_flight) {
        tell(EventKind::retrying, now);
      }
    }
    claim(now);
  }

  void moved(const Sighting& now) {
    tell(now.half == Half::dlq ? EventKind::dead_lettered : EventKind::redriven, now);
    claim(now);
  }

  void stayed(const Sighting& before, const Sighting& now) {
    if (claimed_since(before, now)) {
      tell(EventKind::claimed, now);
    } else if (now.version == before.version) {
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
bool reaches(const Snapshot& look, const Sighting& record) {
  const auto& horizon = horizon_of(look, record.half);
  return !horizon || (record.half == Half::dlq ? record.sent_at > *horizon : record.sent_at < *horizon);
}

/// A look that does not reach the end also shows old messages for the first time: those that moved up.
bool is_new(const Sighting& found, const Snapshot& before) {
  return reaches(before, found) || found.sent_at >= before.taken_at;
}

/// Younger dead letters have taken its place in the look; nothing has happened to it.
bool pushed_out(const Sighting& last, const Snapshot& now) { return last.half == Half::dlq && !reaches(now, last); }

/// What left the one half may lie in the other, beyond its horizon.
bool is_gone(const Sighting& last, const Snapshot& now) {
  const Half other = last.half == Half::dlq ? Half::standard : Half::dlq;
  return reaches(now, last) && !horizon_of(now, other);
}

}  // namespace

std::string_view to_string(EventKind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

Sighting Sighting::of(const queue::StoredMessage& record, WallTime now) {
  return {.id = record.message.id,
          .half = record.half,
          .state = record.state(now),
          .version = record.version,
          .attempt = record.message.attempt,
          .sent_at = record.message.sent_at,
          .received_at = record.received_at,
          .invisible_until = record.invisible_until,
          .failure = record.failure,
          .wanted = true};
}

std::vector<Event> Watcher::step(Snapshot now) {
  std::vector<Event> events;
  if (before_) {
    Story story(events, now.taken_at);
    for (const auto& [id, found] : now.records) {
      const auto last = before_->records.find(id);
      if (last == before_->records.end()) {
        if (is_new(found, *before_)) {
          story.entered(found);
        }
      } else if (last->second.half != found.half) {
        story.moved(found);
      } else {
        story.stayed(last->second, found);
      }
    }
    for (const auto& [id, last] : before_->records) {
      if (!now.records.contains(id) && !pushed_out(last, now)) {
        story.tell(is_gone(last, now) ? EventKind::gone : EventKind::out_of_view, last);
      }
    }
    std::stable_sort(events.begin(), events.end(), [](const Event& left, const Event& right) {
      return std::tie(left.message.sent_at, left.message.id) < std::tie(right.message.sent_at, right.message.id);
    });
  }
  before_ = std::move(now);
  return events;
}

Result<Snapshot> take_look(queue::Operator& queue, const LookRequest& request, const Clock& clock, Deadline deadline) {
  Snapshot look;
  look.taken_at = clock.wall_now();
  for (const Half half : request.halves) {
    // What arrives in the dead-letter half is behind all that lies there; in the other one the head is where things
    // happen.
    const bool newest = half == Half::dlq;
    queue::ListRequest list{.half = half, .limit = 0, .cursor = {}, .content = request.content, .native = false};
    list.newest_first = newest;
    std::size_t left = request.limit;
    WallTime edge{};
    do {
      list.limit = std::min(left, kPageSize);
      SLUICE_TRY(page, queue.list(list, deadline));
      for (const queue::StoredMessage& record : page->messages) {
        Sighting sighting = Sighting::of(record, look.taken_at);
        sighting.wanted = !request.wanted || request.wanted(record);
        edge = sighting.sent_at;
        look.records.insert_or_assign(record.message.id, std::move(sighting));
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
