#include "host/stores/sqlite/line.hpp"

#include <algorithm>

namespace sluice::queue::sqlite {

namespace {

Line::Link read(const Statement& row, std::int64_t seq) {
  return {{row.integer(0), seq}, row.integer(1) != 0, row.optional_integer(2), row.optional_integer(3)};
}

}  // namespace

Line::Line(Connection& connection)
    : asking_(connection, "sluice_asking_line"),
      following_(connection, "sluice_following"),
      link_all_(
          connection,
          "SELECT l.sent_at, l.suspected, l.before, l.next, l.seq FROM sluice_asking_line AS a CROSS JOIN chains AS l "
          "ON l.seq = a.hash"),
      link_(connection, "SELECT sent_at, suspected, before, next FROM chains WHERE seq = ?1"),
      link_insert_(connection, "INSERT OR REPLACE INTO chains VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
      link_delete_(connection, "DELETE FROM chains WHERE seq = ?1"),
      link_next_(connection, "UPDATE chains SET next = ?2 WHERE seq = ?1"),
      // They are there all of them. An UPDATE ... FROM would first put what it has to write into a table of its own.
      follow_all_(connection,
                  "INSERT OR FAIL INTO chains SELECT hash, 0, 0, 0, NULL, seq FROM sluice_following WHERE true "
                  "ON CONFLICT (seq) DO UPDATE SET next = excluded.next"),
      link_before_(connection, "UPDATE chains SET before = ?2 WHERE seq = ?1") {}

void Line::begin() {
  followed_.clear();
  ahead_.clear();
}

void Line::follow(std::int64_t before, std::int64_t next) {
  forget_ahead();
  followed_.push_back({before, next});
}

std::optional<Line::Link> Line::link(std::int64_t seq) {
  if (const auto ahead = ahead_.find(seq); ahead != ahead_.end()) {
    return ahead->second;
  }
  link_.bind(seq);
  std::optional<Link> found;
  if (link_.row()) {
    found = read(link_, seq);
  }
  link_.reset();
  return found;
}

// Mostly at one of the ends; otherwise it is looked for from the youngest on.
void Line::insert(std::int64_t half, Ends& ends, const Place& place, bool suspected) {
  forget_ahead();
  std::optional<std::int64_t> before = ends.last;
  std::optional<std::int64_t> next;
  if (ends.last && place < Place{ends.last_sent, *ends.last}) {
    const auto first = link(*ends.first);
    if (first && place < first->place) {
      before.reset();
      next = ends.first;
    } else {
      for (auto at = link(*ends.last); at && place < at->place; at = before ? link(*before) : std::nullopt) {
        next = at->place.second;
        before = at->before;
      }
    }
  }
  put(half, ends, {place, suspected, before, next});
}

void Line::insert_first(std::int64_t half, Ends& ends, const Place& place, bool suspected) {
  forget_ahead();
  Link one{place, suspected, std::nullopt, ends.first};
  for (auto at = ends.first ? link(*ends.first) : std::nullopt; at && at->place < place;
       at = one.next ? link(*one.next) : std::nullopt) {
    one.before = at->place.second;
    one.next = at->next;
  }
  put(half, ends, one);
}

void Line::put(std::int64_t half, Ends& ends, const Link& one) {
  const auto& [sent_at, seq] = one.place;
  link_insert_.bind(seq, half, sent_at, std::int64_t{one.suspected ? 1 : 0}, one.before, one.next).run();
  if (one.before) {
    link_next_.bind(*one.before, std::optional(seq)).run();
  } else {
    ends.first = seq;
  }
  if (one.next) {
    link_before_.bind(*one.next, std::optional(seq)).run();
  } else {
    ends.last = seq;
    ends.last_sent = sent_at;
  }
}

void Line::remove(Ends& ends, std::int64_t seq) {
  const auto gone = link(seq);
  if (!gone) {
    return;
  }
  forget_ahead();
  link_delete_.bind(seq).run();
  const auto before = ends.first == seq ? std::nullopt : gone->before;
  if (before) {
    link_next_.bind(*before, gone->next).run();
  } else {
    ends.first = gone->next;
  }
  if (gone->next) {
    link_before_.bind(*gone->next, before).run();
    return;
  }
  ends.last = before;
  if (before) {
    const auto last = link(*before);
    ends.last_sent = last ? last->place.first : 0;
  }
}

std::optional<Line::Link> Line::pop(Ends& ends) {
  const auto first = ends.first ? link(*ends.first) : std::nullopt;
  if (first) {
    ends.first = first->next;
    if (!ends.first) {
      ends.last.reset();
    }
  }
  return first;
}

void Line::gather(std::span<const std::int64_t> firsts) {
  forget_ahead();
  asking_.each(firsts, link_all_,
               [this](const Statement& row) { ahead_.emplace(row.integer(4), read(row, row.integer(4))); });
}

void Line::flush() {
  forget_ahead();
  if (!followed_.empty()) {
    // In the table, neighbours lie on one page.
    std::sort(followed_.begin(), followed_.end(), [](const IdEntry& a, const IdEntry& b) { return a.hash < b.hash; });
    following_.put_down(followed_, follow_all_);
    followed_.clear();
  }
}

}  // namespace sluice::queue::sqlite
