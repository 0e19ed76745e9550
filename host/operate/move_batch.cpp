#include "host/operate/move_batch.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace sluice::operate {

namespace {

constexpr Duration kAway = std::chrono::hours(24) * 36'525;
// 2150: what is hidden longer is set aside for good, and has no time that would have to be kept.
constexpr WallTime kForGood{std::chrono::seconds(5'680'281'600)};
/// A change of visibility is told a span, so that the time it makes is off by as much as a clock and a request are.
constexpr Duration kSlack = std::chrono::seconds(5);

/// FNV-1a: must never change, because a later run recognises by it what an earlier one has left.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t value = 0xCBF29CE484222325ULL;
  for (const char c : text) {
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return value;
}

/// Sent for later, and hidden for nothing else: it holds up nobody in its group.
bool sent_for_later(const queue::StoredMessage& record) {
  return !record.received_at && record.invisible_until && *record.invisible_until == record.message.sent_at;
}

using queue::Change;
using queue::ChangeAction;
using queue::ChangeResult;
using queue::ChangeStatus;
using queue::StoredMessage;

Change removal(const std::string& id, std::int64_t version) {
  return {.id = id, .action = ChangeAction::remove, .version = version};
}

bool is_unknown(const Error& error) { return error.code() == ErrorCode::unknown_outcome; }

/// The same message, whatever was edited of it.
bool same_message(const StoredMessage& a, const StoredMessage& b) {
  return same_millisecond(a.created_at, b.created_at) && a.half == b.half;
}

/// An error of the store outweighs one of a single message.
void keep_worst(Result<void>& worst, const Error& error) {
  if (!worst.has_error() || is_unknown(worst.error())) {
    worst = error;
  }
}

}  // namespace

WallTime MovePair::stamp() const {
  constexpr std::uint64_t kNanoseconds = (std::uint64_t{1} << 62U) - 1;
  const std::string text = from_place + '\n' + from + '\n' + to_place + '\n' + to;
  return WallTime(Duration(static_cast<std::int64_t>(hash_of(text) & kNanoseconds)));
}

bool is_copy_of(const queue::StoredMessage& record, const MovePair& pair) {
  return is_moving(record) && same_millisecond(record.updated_at, pair.stamp());
}

bool same_millisecond(WallTime one, WallTime other) {
  return std::chrono::floor<std::chrono::milliseconds>(one) == std::chrono::floor<std::chrono::milliseconds>(other);
}

WallTime moving_until(const queue::StoredMessage& found, WallTime now) {
  const WallTime due = std::max(found.invisible_until.value_or(now), now);
  return std::min(due, kForGood) + kAway;
}

queue::StoredMessage before_it_was_taken(const queue::StoredMessage& taken, WallTime now) {
  queue::StoredMessage before = taken;
  const WallTime sent_at = taken.message.sent_at;
  WallTime due = *taken.invisible_until - kAway;
  if (due + kSlack >= kForGood) {
    due = kForGood;
  } else if (!taken.received_at && due - sent_at <= kSlack && sent_at - due <= kSlack) {
    due = sent_at;
  }
  before.invisible_until = due > now ? std::optional(due) : std::nullopt;
  return before;
}

queue::Change showing(const queue::StoredMessage& as_it_was, std::int64_t version, WallTime now) {
  queue::Change change{.id = as_it_was.message.id, .action = queue::ChangeAction::set_visibility, .version = version};
  if (!as_it_was.invisible_until || *as_it_was.invisible_until <= now) {
    return change;
  }
  if (*as_it_was.invisible_until >= kForGood) {
    change.after = Duration::max();
    return change;
  }
  change.after = *as_it_was.invisible_until - now;
  if (sent_for_later(as_it_was)) {
    change.action = queue::ChangeAction::delay;
  }
  return change;
}

void MoveBatch::add(StoredMessage record, bool taken) {
  Parcel& parcel = parcels_.emplace_back();
  parcel.outcome.id = record.message.id;
  parcel.outcome.group = record.message.group;
  parcel.outcome.half = record.half;
  if (taken) {
    parcel.stage = Stage::unsure;
    parcel.taken = record.version;
    record = before_it_was_taken(record, ends_.from_board.now());
    record.version -= 1;
  } else if (!record.invisible_until && record.message.sent_at > ends_.from_board.now()) {
    // A leased table has what was sent for later under the time at which it is due, and says no more of it.
    record.invisible_until = record.message.sent_at;
  }
  parcel.record = std::move(record);
}

std::vector<MoveBatch::Parcel*> MoveBatch::at(Stage stage) {
  std::vector<Parcel*> found;
  for (Parcel& parcel : parcels_) {
    if (parcel.stage == stage) {
      found.push_back(&parcel);
    }
  }
  return found;
}

Result<bool> MoveBatch::step(Deadline deadline) {
  using Work = Result<void> (MoveBatch::*)(Deadline);
  // Whatever is nearest to its beginning goes first, so that the batch stays together: nothing is shown before all that
  // lies before it is.
  constexpr std::array<std::pair<Stage, Work>, 7> kSteps{{{Stage::withdrawn, &MoveBatch::withdraw},
                                                          {Stage::returned, &MoveBatch::give_back},
                                                          {Stage::unsure, &MoveBatch::confirm},
                                                          {Stage::found, &MoveBatch::take},
                                                          {Stage::taken, &MoveBatch::put},
                                                          {Stage::put, &MoveBatch::remove},
                                                          {Stage::removed, &MoveBatch::show}}};
  for (const auto& [stage, work] : kSteps) {
    if (!at(stage).empty()) {
      SLUICE_PASS_ON((this->*work)(deadline));
      break;
    }
  }
  return std::all_of(parcels_.begin(), parcels_.end(),
                     [](const Parcel& parcel) { return parcel.stage == Stage::ended; });
}

std::vector<MoveBatch::Outcome> MoveBatch::take_outcomes() {
  std::vector<Outcome> outcomes;
  for (Parcel& parcel : parcels_) {
    if (parcel.stage == Stage::ended) {
      outcomes.push_back(std::move(parcel.outcome));
    }
  }
  std::erase_if(parcels_, [](const Parcel& parcel) { return parcel.stage == Stage::ended; });
  return outcomes;
}

/// The index that listed it may lag behind: whether it really is taken, and no other than was listed, only the record
/// itself can say.
Result<void> MoveBatch::confirm(Deadline deadline) {
  for (Parcel* const parcel : at(Stage::unsure)) {
    const auto found = ends_.from.get(parcel->outcome.id, deadline);
    if (!found && found.error().code() != ErrorCode::not_found) {
      return found.error();
    }
    if (found && is_moving(*found) && found->version == parcel->taken && same_message(*found, parcel->record)) {
      parcel->stage = Stage::taken;
    } else {
      leave(*parcel);
    }
  }
  return {};
}

// Where hosts own what they hand out, those that lie in what has been handed over. The others are looked at again.
std::vector<MoveBatch::Parcel*> MoveBatch::may_be_taken() {
  auto parcels = at(Stage::found);
  if (ends_.ownership != nullptr) {
    std::erase_if(parcels, [this](Parcel* parcel) {
      const bool may = ends_.ownership->may_take(parcel->outcome.id);
      if (!may) {
        leave(*parcel);
      }
      return !may;
    });
  }
  return parcels;
}

Result<void> MoveBatch::take(Deadline whole_deadline) {
  const auto parcels = may_be_taken();
  const Deadline deadline = ends_.ownership == nullptr
                                ? whole_deadline
                                : whole_deadline.earlier(Deadline::at(ends_.ownership->relied_until()));
  const WallTime now = ends_.from_board.now();
  std::vector<Change> changes;
  changes.reserve(parcels.size());
  for (const Parcel* const parcel : parcels) {
    changes.push_back({.id = parcel->outcome.id,
                       .action = ChangeAction::set_visibility,
                       .version = parcel->record.version,
                       .after = moving_until(parcel->record, now) - now});
  }
  const auto results = ends_.from.change(changes, deadline);
  if (ends_.ownership != nullptr) {
    ends_.ownership->taken();
  }
  Result<void> worst;
  bool any = parcels.empty();
  for (std::size_t index = 0; index < parcels.size(); ++index) {
    Parcel& parcel = *parcels[index];
    const ChangeResult& result = results[index];
    if (result.status == ChangeStatus::applied) {
      parcel.stage = Stage::taken;
      parcel.taken = result.version;
      any = true;
    } else if (result.status == ChangeStatus::failed && result.error.code() == ErrorCode::invalid) {
      parcel.stage = Stage::ended;
      parcel.outcome.fate = Fate::refused;
      parcel.outcome.error = result.error;
      any = true;
    } else {
      // Whether it is taken after all, the next look at it tells.
      parcel.outcome.doubtful = result.status == ChangeStatus::failed;
      leave(parcel);
      any = any || result.status != ChangeStatus::failed;
      if (result.status == ChangeStatus::failed) {
        keep_worst(worst, result.error);
      }
    }
  }
  for (const Parcel& parcel : parcels_) {
    if (parcel.stage == Stage::ended) {
      keep_order(parcel);
    }
  }
  return any ? Result<void>() : worst;
}

StoredMessage MoveBatch::copy_of(const Parcel& parcel) const {
  StoredMessage copy = parcel.record;
  copy.version = std::max<std::int64_t>(1, copy.version);
  copy.invisible_until = moving_until(parcel.record, ends_.from_board.now());
  copy.updated_at = pair_.stamp();
  return copy;
}

Result<void> MoveBatch::put(Deadline deadline) {
  const auto parcels = at(Stage::taken);
  std::vector<StoredMessage> copies;
  copies.reserve(parcels.size());
  for (const Parcel* const parcel : parcels) {
    copies.push_back(copy_of(*parcel));
  }
  const auto results = ends_.to.put(copies, queue::PutMode::insert, deadline);
  Result<void> worst;
  for (std::size_t index = 0; index < parcels.size(); ++index) {
    Parcel& parcel = *parcels[index];
    const queue::PutResult& result = results[index];
    if (result.status == queue::PutStatus::written) {
      parcel.stage = Stage::put;
      parcel.made_here = true;
      parcel.copied = copies[index].version;
    } else if (result.status == queue::PutStatus::exists) {
      if (auto met = meet(parcel, deadline); !met) {
        keep_worst(worst, met.error());
      }
    } else if (result.error.code() == ErrorCode::invalid) {
      refuse(parcel, result.error);
    } else {
      parcel.put_doubt = true;
      keep_worst(worst, result.error);
    }
  }
  for (const Parcel* const parcel : parcels) {
    if (parcel->outcome.fate == Fate::refused) {
      keep_order(*parcel);
    }
  }
  return worst;
}

/// The target has a message of that id: the copy that an earlier try has left, or another one.
Result<void> MoveBatch::meet(Parcel& parcel, Deadline deadline) {
  const auto there = ends_.to.get(parcel.outcome.id, deadline);
  if (!there) {
    // Gone already: the next step puts it again.
    return there.error().code() == ErrorCode::not_found ? Result<void>() : there.error();
  }
  const bool ours = is_copy_of(*there, pair_) && same_message(*there, parcel.record);
  if (!ours) {
    refuse(parcel, Error(ErrorCode::conflict, "queue " + pair_.to + " has another message of that id"));
    return {};
  }
  if (there->version == std::max<std::int64_t>(1, parcel.record.version)) {
    parcel.stage = Stage::put;
    parcel.made_here = parcel.put_doubt;
    parcel.copied = there->version;
    return {};
  }
  // Of what the message was before somebody changed it in the source.
  const Change stale = removal(parcel.outcome.id, there->version);
  const auto removed = ends_.to.change(std::span(&stale, 1), deadline);
  return removed.front().status == ChangeStatus::failed ? Result<void>(removed.front().error) : Result<void>();
}

Result<void> MoveBatch::remove(Deadline deadline) {
  const auto parcels = at(Stage::put);
  std::vector<Change> changes;
  changes.reserve(parcels.size());
  for (const Parcel* const parcel : parcels) {
    changes.push_back(removal(parcel->outcome.id, parcel->taken));
  }
  const auto results = ends_.from.change(changes, deadline);
  Result<void> worst;
  for (std::size_t index = 0; index < parcels.size(); ++index) {
    Parcel& parcel = *parcels[index];
    switch (results[index].status) {
      case ChangeStatus::applied:
        parcel.stage = Stage::removed;
        break;
      case ChangeStatus::not_found:
        // By an earlier try of ours, or of whoever left the copy. Otherwise somebody wanted the message gone.
        parcel.stage = parcel.gone_doubt || !parcel.made_here ? Stage::removed : Stage::withdrawn;
        break;
      case ChangeStatus::conflict:
        parcel.stage = Stage::withdrawn;
        break;
      case ChangeStatus::failed:
        parcel.gone_doubt = true;
        keep_worst(worst, results[index].error);
        break;
    }
  }
  return worst;
}

Result<void> MoveBatch::change_each(Stage stage, queue::Operator& end, const ChangeOf& change_of, const Went& went,
                                    Deadline deadline) {
  const auto parcels = at(stage);
  std::vector<Change> changes;
  changes.reserve(parcels.size());
  for (const Parcel* const parcel : parcels) {
    changes.push_back(change_of(*parcel));
  }
  const auto results = end.change(changes, deadline);
  Result<void> worst;
  for (std::size_t index = 0; index < parcels.size(); ++index) {
    if (results[index].status == ChangeStatus::failed) {
      keep_worst(worst, results[index].error);
    } else {
      went(*parcels[index]);
    }
  }
  return worst;
}

/// One of another version, or gone, has been shown already, and is at work or done.
Result<void> MoveBatch::show(Deadline deadline) {
  const WallTime now = ends_.to_board.now();
  return change_each(
      Stage::removed, ends_.to, [now](const Parcel& parcel) { return showing(parcel.record, parcel.copied, now); },
      [](Parcel& parcel) { parcel.stage = Stage::ended; }, deadline);
}

/// The source has the message no more as it was taken: its copy must not be seen.
Result<void> MoveBatch::withdraw(Deadline deadline) {
  return change_each(
      Stage::withdrawn, ends_.to, [](const Parcel& parcel) { return removal(parcel.outcome.id, parcel.copied); },
      [](Parcel& parcel) {
        if (parcel.held_back) {
          parcel.stage = Stage::returned;
        } else {
          leave(parcel);
        }
      },
      deadline);
}

Result<void> MoveBatch::give_back(Deadline deadline) {
  const WallTime now = ends_.from_board.now();
  return change_each(
      Stage::returned, ends_.from, [now](const Parcel& parcel) { return showing(parcel.record, parcel.taken, now); },
      [](Parcel& parcel) { parcel.stage = Stage::ended; }, deadline);
}

void MoveBatch::refuse(Parcel& parcel, Error error) {
  parcel.stage = Stage::returned;
  parcel.outcome.fate = Fate::refused;
  parcel.outcome.error = std::move(error);
}

void MoveBatch::leave(Parcel& parcel) {
  parcel.stage = Stage::ended;
  parcel.outcome.fate = Fate::left;
}

/// What stays in the source holds back those behind it in its group, as far as they can still be held back.
void MoveBatch::keep_order(const Parcel& stays) {
  if (stays.outcome.group.empty()) {
    return;
  }
  const auto place =
      std::find_if(parcels_.begin(), parcels_.end(), [&stays](const Parcel& parcel) { return &parcel == &stays; });
  for (auto next = std::next(place); next != parcels_.end(); ++next) {
    const bool behind = next->outcome.group == stays.outcome.group && next->outcome.half == stays.outcome.half;
    if (behind && (next->stage == Stage::taken || next->stage == Stage::put)) {
      next->stage = next->stage == Stage::put ? Stage::withdrawn : Stage::returned;
      next->held_back = true;
      next->outcome.fate = Fate::left;
    }
  }
}

Change MoveBatch::showing_copy(const StoredMessage& copy, WallTime now) {
  return showing(before_it_was_taken(copy, now), copy.version, now);
}

}  // namespace sluice::operate
