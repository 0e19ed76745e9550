#include "host/stores/sqlite/group_order.hpp"

#include <algorithm>

#include "base/guard.hpp"
#include "host/stores/sqlite/message_record.hpp"

namespace sluice::queue::sqlite {

namespace {

bool same_for_group(const core::MessageState& before, const core::MessageState& after) {
  return before.half == after.half && before.group == after.group && before.sent_at == after.sent_at &&
         before.hidden_until.has_value() == after.hidden_until.has_value() &&
         before.is_suspect() == after.is_suspect() && before.holds_up_its_group() == after.holds_up_its_group();
}

}  // namespace

Kept kept_for(const ClaimRules& rules) {
  const Kept without_order = rules.fair ? Kept::fair : Kept::none;
  return rules.order == Order::queue ? Kept::queue : rules.order == Order::group ? Kept::group : without_order;
}

void GroupOrder::begin() {
  known_.clear();
  offered_.clear();
}

std::int64_t GroupOrder::bits_of(std::int64_t half) {
  const std::int64_t queue = half / 2;
  for (const auto& [id, bits] : known_) {
    if (id == queue) {
      return bits;
    }
  }
  const std::int64_t bits = bits_.bind(queue).only().value_or(0);
  known_.emplace_back(queue, bits);
  return bits;
}

std::int64_t GroupOrder::group_of(std::int64_t half, std::string_view name) {
  const Kept kept = this->kept(half);
  if (kept == Kept::none || (name.empty() && kept != Kept::queue)) {
    return 0;
  }
  return group_id(half, kept == Kept::queue ? std::string_view() : name);
}

std::int64_t GroupOrder::range_of(const MessageRecord& record) {
  const std::int64_t half = record.half();
  if (record.state.is_suspect()) {
    return suspect_half(half);
  }
  return kept(half) == Kept::none ? ready_half(half, record.state.priority) : half;
}

GroupOrder::Group GroupOrder::load(std::int64_t half, std::int64_t id) {
  const auto read = [&] {
    return Group{.number = load_.integer(0),
                 .id = id,
                 .half = half,
                 .head = load_.optional_integer(1),
                 .head_sent = load_.integer(2),
                 .turn = load_.integer(3),
                 .others = load_.integer(4),
                 .last_sent = load_.integer(5)};
  };
  return load_.bind(id).only(read).value_or(Group{.id = id, .half = half, .head = {}});
}

void GroupOrder::store(const Group& before, Group& after) {
  if (before == after) {
    return;
  }
  if (!after.head && after.others == 0) {
    drop_.bind(after.number).run();
    return;
  }
  number(after);
  update_.bind(after.number, after.head, after.head_sent, after.turn, after.others, after.last_sent).run();
}

// In the order in which they come, so that those whose turns follow each other lie together.
void GroupOrder::number(Group& group) {
  if (group.number == 0) {
    insert_.bind(group.id, group.half).run();
    group.number = connection_.last_row();
  }
}

void GroupOrder::wait(Group& group, const Place& place, bool suspected) {
  number(group);
  wait_.bind(group.number, place.first, place.second, std::int64_t{suspected ? 1 : 0}).run();
  group.last_sent = std::max(group.last_sent, place.first);
}

void GroupOrder::leave(const Group& group, const Place& place) {
  leave_.bind(group.number, place.first, place.second).run();
}

void GroupOrder::take(Group& group, const MessageRecord& record) {
  const bool visible = !record.state.hidden_until;
  if (group.head == record.seq) {
    if (visible) {
      ready_index_.take(range(group.half, record.state.is_suspect()), {group.turn, record.seq});
    }
    group.head.reset();
  } else if (visible) {
    leave(group, record.place());
  } else if (record.state.holds_up_its_group() && kept(group.half) != Kept::fair) {
    group.hold_one_less();
  }
}

void GroupOrder::give(Group& group, const MessageRecord& record) {
  if (!record.state.hidden_until) {
    wait(group, record.place(), record.state.is_suspect());
  } else if (record.state.holds_up_its_group() && kept(group.half) != Kept::fair) {
    if (group.head || group.others > 0) {
      ++group.others;
    } else {
      group.head = record.seq;
      group.head_sent = stored(record.state.sent_at);
    }
  }
}

void GroupOrder::offer(Group& group) {
  const auto first = first_.bind(group.number).only([this] {
    return std::pair(Place(first_.integer(0), first_.integer(1)), first_.integer(2) != 0);
  });
  if (!first) {
    return;
  }
  const auto& [place, suspected] = *first;
  leave(group, place);
  group.head = place.second;
  group.head_sent = place.first;
  group.turn = stored(now_);
  ready_index_.put(range(group.half, suspected), {group.turn, *group.head});
  if (std::find(offered_.begin(), offered_.end(), group.half) == offered_.end()) {
    offered_.push_back(group.half);
  }
}

void GroupOrder::withdraw(Group& group) {
  const auto touched = head_state_.bind(*group.head).only([this] {
    return std::pair(head_state_.integer(0) != 0, head_state_.integer(1) != 0);
  });
  const auto [out, suspected] = touched.value_or(std::pair(false, false));
  if (!out) {
    ready_index_.take(range(group.half, suspected), {group.turn, *group.head});
    wait(group, {group.head_sent, *group.head}, suspected);
    group.head.reset();
  }
}

void GroupOrder::balance(Group& group, const std::optional<Place>& came) {
  const bool older = group.head && came && *came < Place{group.head_sent, *group.head};
  if (older || (group.head && group.others > 0)) {
    withdraw(group);
  }
  if (!group.head && group.others == 0) {
    offer(group);
  }
}

template <typename Change>
void GroupOrder::update(std::int64_t half, std::int64_t id, const std::optional<Place>& came, Change change) {
  const Group old = load(half, id);
  Group now = old;
  change(now);
  balance(now, came);
  store(old, now);
}

void GroupOrder::change(const MessageRecord* before, const MessageRecord* after) {
  if (before != nullptr && after != nullptr && same_for_group(before->state, after->state)) {
    return;
  }
  const std::int64_t from = before == nullptr ? 0 : group_of(*before);
  const std::int64_t to = after == nullptr ? 0 : group_of(*after);
  const auto came = after != nullptr && !after->state.hidden_until ? std::optional(after->place()) : std::nullopt;
  if (from != 0) {
    update(before->half(), from, to == from ? came : std::nullopt, [&](Group& group) {
      take(group, *before);
      if (to == from) {
        give(group, *after);
      }
    });
  }
  if (to != 0 && to != from) {
    update(after->half(), to, came, [&](Group& group) { give(group, *after); });
  }
}

void GroupOrder::gone(std::int64_t half, std::int64_t group, std::int64_t seq) {
  update(half, group, {}, [seq](Group& now) {
    if (now.head == seq) {
      now.head.reset();
    } else {
      now.hold_one_less();
    }
  });
}

std::int64_t GroupOrder::arrive(std::int64_t half, std::int64_t group, const Place& place) {
  const Group old = load(half, group);
  Group now = old;
  auto [sent_at, seq] = place;
  const std::int64_t latest = std::max(old.last_sent, old.head ? old.head_sent : sent_at);
  sent_at = stored(core::place_behind(loaded(latest), loaded(sent_at)));
  if (old.head || old.others > 0) {
    wait(now, {sent_at, seq}, false);
  } else {
    now.head = seq;
    now.head_sent = sent_at;
    now.turn = sent_at;
    now.last_sent = sent_at;
    ready_index_.put(half, {sent_at, seq});
  }
  store(old, now);
  return sent_at;
}

void GroupOrder::hold(const MessageRecord& head) {
  const std::int64_t half = head.half();
  const std::int64_t group = group_of(head);
  if (group == 0 || kept(half) == Kept::fair || !SLUICE_GUARD(sqlite_groups_hold)) {
    return;
  }
  hold_.bind(head.seq, half, group, stored(head.state.sent_at)).run();
  update(half, group, {}, [](Group& now) { ++now.others; });
}

void GroupOrder::let_go(std::int64_t seq) {
  const auto held =
      held_place_.bind(seq).only([this] { return std::pair(held_place_.integer(1), held_place_.integer(2)); });
  if (!held) {
    return;
  }
  let_go_.bind(seq).run();
  update(held->first, held->second, {}, [](Group& now) { now.hold_one_less(); });
}

std::optional<WallTime> GroupOrder::held_place(std::int64_t seq) { return loaded(held_place_.bind(seq).only()); }

void GroupOrder::begin_order(std::int64_t half, Kept kept) {
  const std::int64_t bits =
      (bits_of(half) & ~(kMask << shift_of(half))) | (static_cast<std::int64_t>(kept) << shift_of(half));
  Statement(connection_, "UPDATE sluice_queues SET kept = ?2 WHERE id = ?1").bind(half / 2, bits).run();
  known_.clear();
  Statement(connection_,
            "DELETE FROM sluice_ready WHERE half IN (SELECT half FROM (" + in_each_range("SELECT % AS half") + "))")
      .bind(half)
      .run();
  Statement(connection_,
            "DELETE FROM sluice_waiting WHERE group_number IN (SELECT number FROM sluice_groups WHERE half = ?1)")
      .bind(half)
      .run();
  Statement(connection_, "DELETE FROM sluice_groups WHERE half = ?1").bind(half).run();
}

// Dead letters that hold their group hold it under its new number.
void GroupOrder::end_order(std::int64_t half) {
  if (kept(half) == Kept::none || kept(half) == Kept::fair) {
    return;
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> holds;
  Statement held(connection_,
                 "SELECT h.seq, m.message_group FROM sluice_holds AS h JOIN sluice_messages AS m ON m.seq = h.seq "
                 "WHERE h.half = ?1 AND m.half = ?1 + 1");
  held.bind(half).each([&] { holds.emplace_back(held.integer(0), group_of(half, held.bytes(1))); });
  Statement again(connection_, "UPDATE sluice_holds SET group_id = ?2 WHERE seq = ?1");
  for (const auto& [seq, id] : holds) {
    if (id != 0) {
      again.bind(seq, id).run();
      update(half, id, {}, [](Group& now) { ++now.others; });
    }
  }
}

}  // namespace sluice::queue::sqlite
