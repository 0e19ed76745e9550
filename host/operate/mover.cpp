#include "host/operate/mover.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/fnv1a.hpp"
#include "base/process_mark.hpp"
#include "base/ranges.hpp"
#include "host/fleet/notice_json.hpp"

namespace sluice::operate {

namespace {

constexpr Duration kAway = std::chrono::hours(24) * 36'525;
// 2150: what is hidden longer is set aside for good, and has no time that would have to be kept.
constexpr WallTime kForGood{std::chrono::seconds(5'680'281'600)};
/// A change of visibility is told a span, so that the time it makes is off by as much as a clock and a request are.
constexpr Duration kSlack = std::chrono::seconds(5);

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

/// A message that a move has taken, with the time at which it would be seen by itself in the place of the one by which
/// it is hidden; nothing where that is over.
StoredMessage before_it_was_taken(const StoredMessage& taken, WallTime now) {
  StoredMessage before = taken;
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

/// The change that makes it seen again as it was, at its own time.
Change showing(const StoredMessage& as_it_was, std::int64_t version, WallTime now) {
  Change change{.id = as_it_was.message.id, .action = ChangeAction::set_visibility, .version = version};
  if (!as_it_was.invisible_until || *as_it_was.invisible_until <= now) {
    return change;
  }
  if (*as_it_was.invisible_until >= kForGood) {
    change.after = Duration::max();
    return change;
  }
  change.after = *as_it_was.invisible_until - now;
  if (sent_for_later(as_it_was)) {
    change.action = ChangeAction::delay;
  }
  return change;
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

constexpr auto kTopic = queue::Topic::schedules;

using queue::Half;
using State = Mover::Step::State;

constexpr Duration kFirstPoll = std::chrono::milliseconds(200);
constexpr Duration kLongestPoll = std::chrono::seconds(2);
/// How long an index may show what has been removed.
constexpr Duration kIndexDelay = std::chrono::seconds(3);
constexpr std::size_t kMostRefused = 10'000;
constexpr std::size_t kLeftBatch = 25;

std::string group_key(Half half, const std::string& group) { return std::string(queue::to_string(half)) + '/' + group; }
std::string group_key(const StoredMessage& record) { return group_key(record.half, record.message.group); }

Mover::Step failed(const Error& error) { return {.state = State::failed, .until = {}, .error = error, .refusals = {}}; }

}  // namespace

// Must never change, because a later run recognises by it what an earlier one has left.
WallTime MovePair::stamp() const {
  constexpr std::uint64_t kNanoseconds = (std::uint64_t{1} << 62U) - 1;
  const std::string text = from_place + '\n' + from + '\n' + to_place + '\n' + to;
  return WallTime(Duration(static_cast<std::int64_t>(fnv1a(text) & kNanoseconds)));
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

// Where hosts own what they hand out: none where what has been handed over may be theirs again before long.
std::vector<MoveBatch::Parcel*> MoveBatch::may_be_taken() {
  auto parcels = at(Stage::found);
  if (ends_.ownership != nullptr && !ends_.ownership->begin_taking()) {
    for (Parcel* const parcel : std::exchange(parcels, {})) {
      leave(*parcel);
    }
  }
  return parcels;
}

Result<void> MoveBatch::take(Deadline whole_deadline) {
  const auto parcels = may_be_taken();
  const Deadline deadline = ends_.ownership == nullptr
                                ? whole_deadline
                                : whole_deadline.earlier(Deadline::at(ends_.ownership->relied_until()));
  const WallTime now = ends_.from_board.now();
  bool any = parcels.empty();
  const auto worst = change_each(
      parcels, ends_.from,
      [now](const Parcel& parcel) {
        return Change{.id = parcel.outcome.id,
                      .action = ChangeAction::set_visibility,
                      .version = parcel.record.version,
                      .after = moving_until(parcel.record, now) - now};
      },
      [&any](Parcel& parcel, const ChangeResult& result) {
        const bool failed = result.status == ChangeStatus::failed;
        if (result.status == ChangeStatus::applied) {
          parcel.stage = Stage::taken;
          parcel.taken = result.version;
        } else if (failed && result.error.code() == ErrorCode::invalid) {
          parcel.stage = Stage::ended;
          parcel.outcome.fate = Fate::refused;
          parcel.outcome.error = result.error;
        } else {
          // Whether it is taken after all, the next look at it tells.
          parcel.outcome.doubtful = failed;
          leave(parcel);
        }
        any = any || !parcel.outcome.doubtful;
      },
      deadline);
  if (ends_.ownership != nullptr) {
    ends_.ownership->end_taking();
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
  const auto copies = mapped(parcels, [this](const Parcel* parcel) { return copy_of(*parcel); });
  auto results = ends_.to.put(copies, queue::PutMode::insert, deadline);
  queue::fill_up(results, copies.size());
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
  auto removed = ends_.to.change(std::span(&stale, 1), deadline);
  queue::fill_up(removed, 1);
  return removed.front().status == ChangeStatus::failed ? Result<void>(removed.front().error) : Result<void>();
}

Result<void> MoveBatch::remove(Deadline deadline) {
  return change_each(
      at(Stage::put), ends_.from, [](const Parcel& parcel) { return removal(parcel.outcome.id, parcel.taken); },
      [](Parcel& parcel, const ChangeResult& result) {
        if (result.status == ChangeStatus::failed) {
          parcel.gone_doubt = true;
        } else if (result.status == ChangeStatus::conflict) {
          parcel.stage = Stage::withdrawn;
        } else {
          // Gone by an earlier try of ours, or of whoever left the copy. Otherwise somebody wanted the message gone.
          const bool ours = result.status == ChangeStatus::applied || parcel.gone_doubt || !parcel.made_here;
          parcel.stage = ours ? Stage::removed : Stage::withdrawn;
        }
      },
      deadline);
}

Result<void> MoveBatch::change_each(const std::vector<Parcel*>& parcels, queue::Operator& end,
                                    const ChangeOf& change_of, const Went& went, Deadline deadline) {
  const auto changes = mapped(parcels, [&change_of](const Parcel* parcel) { return change_of(*parcel); });
  auto results = end.change(changes, deadline);
  queue::fill_up(results, changes.size());
  Result<void> worst;
  for (std::size_t index = 0; index < parcels.size(); ++index) {
    if (results[index].status == ChangeStatus::failed) {
      keep_worst(worst, results[index].error);
    }
    went(*parcels[index], results[index]);
  }
  return worst;
}

/// What a change that did not fail makes of a parcel; one that failed stays where it is.
MoveBatch::Went MoveBatch::unless_failed(void (*went)(Parcel& parcel)) {
  return [went](Parcel& parcel, const ChangeResult& result) {
    if (result.status != ChangeStatus::failed) {
      went(parcel);
    }
  };
}

/// One of another version, or gone, has been shown already, and is at work or done.
Result<void> MoveBatch::show(Deadline deadline) {
  const WallTime now = ends_.to_board.now();
  return change_each(
      at(Stage::removed), ends_.to, [now](const Parcel& parcel) { return showing(parcel.record, parcel.copied, now); },
      unless_failed([](Parcel& parcel) { parcel.stage = Stage::ended; }), deadline);
}

/// The source has the message no more as it was taken: its copy must not be seen.
Result<void> MoveBatch::withdraw(Deadline deadline) {
  return change_each(
      at(Stage::withdrawn), ends_.to, [](const Parcel& parcel) { return removal(parcel.outcome.id, parcel.copied); },
      unless_failed([](Parcel& parcel) {
        if (parcel.held_back) {
          parcel.stage = Stage::returned;
        } else {
          leave(parcel);
        }
      }),
      deadline);
}

Result<void> MoveBatch::give_back(Deadline deadline) {
  const WallTime now = ends_.from_board.now();
  return change_each(
      at(Stage::returned), ends_.from,
      [now](const Parcel& parcel) { return showing(parcel.record, parcel.taken, now); },
      unless_failed([](Parcel& parcel) { parcel.stage = Stage::ended; }), deadline);
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

/// What the notice says.
struct MoveNotice::Text {
  std::string to;
  std::string to_place;
  MoverName mover;
  bool at_work = false;

  template <typename Record, typename Visit>
  requires std::same_as<std::remove_const_t<Record>, Text>
  friend void describe(Record& text, Visit visit) {
    visit("to", text.to);
    visit("to_place", text.to_place);
    visit("machine", text.mover.machine);
    visit("pid", text.mover.pid);
    visit("process", text.mover.process);
    visit("at_work", text.at_work);
  }
};

MoveNotice::MoveNotice(queue::NoticeBoard& board, const Clock& clock, MovePair pair, MoverName self)
    : board_(board), clock_(clock), pair_(std::move(pair)), self_(std::move(self)) {}

Result<MoveNotice::Entry> MoveNotice::enter(Deadline deadline) {
  SLUICE_TRY(notice, board_.read(kTopic, key(), deadline));
  version_ = notice->version;
  if (version_ != 0) {
    SLUICE_TRY(said, fleet::read_described<Text>(notice->text, "the notice of a move"));
    if (said->to != pair_.to || said->to_place != pair_.to_place) {
      return Error(ErrorCode::conflict, "queue " + pair_.from + " is being moved to " + said->to + " in " +
                                            said->to_place + "; run that move again until it ends, then this one");
    }
    if (said->at_work && life_of(said->mover.pid, said->mover.process) != ProcessLife::gone) {
      const SteadyTime now = clock_.steady_now();
      if (seen_version_ && *seen_version_ != version_) {
        return Error(ErrorCode::conflict, "process " + std::to_string(said->mover.pid) + " on " + said->mover.machine +
                                              " is at this move; wait for it, or end it and run this again");
      }
      seen_since_ = seen_version_ ? seen_since_ : now;
      seen_version_ = version_;
      if (now - seen_since_ < kSilent) {
        return Entry{.ours = false, .found = true, .again = now + std::chrono::seconds(1)};
      }
    }
  }
  const bool found = version_ != 0;
  if (auto posted = post(true, deadline); !posted) {
    if (posted.error().code() == ErrorCode::conflict) {
      // Somebody was in between, or what was read was old: the next look tells.
      seen_version_.reset();
      return Entry{.ours = false, .found = found, .again = clock_.steady_now() + std::chrono::seconds(1)};
    }
    return posted.error();
  }
  return Entry{.ours = true, .found = found, .again = {}};
}

Result<void> MoveNotice::post(bool at_work, Deadline deadline) {
  const SteadyTime began = clock_.steady_now();
  const Text text{.to = pair_.to, .to_place = pair_.to_place, .mover = self_, .at_work = at_work};
  queue::Notice notice{.key = key(), .text = fleet::write_described(text), .version = version_};
  auto posted = board_.post(kTopic, notice, deadline);
  if (!posted && posted.error().code() != ErrorCode::denied) {
    // The answer may have been lost: then the notice says so.
    const auto there = board_.read(kTopic, key(), deadline);
    if (there && there->version == version_ + 1 && there->text == notice.text) {
      posted = there->version;
    }
  }
  if (!posted) {
    return posted.error().code() == ErrorCode::conflict
               ? Error(ErrorCode::conflict,
                       "somebody else has begun to move queue " + pair_.from + " meanwhile; leave it to one of the two")
               : posted.error();
  }
  version_ = *posted;
  told_at_ = began;
  return {};
}

Result<void> MoveNotice::keep(Deadline deadline) {
  const Duration since = clock_.steady_now() - told_at_;
  if (since < kEvery) {
    return {};
  }
  auto told = post(true, deadline);
  // Not to have been heard for once is no reason to stop.
  if (!told && told.error().code() != ErrorCode::conflict && clock_.steady_now() - told_at_ < kRely) {
    return {};
  }
  return told;
}

Result<void> MoveNotice::leave(bool nothing_taken, Deadline deadline) {
  return nothing_taken ? board_.take_down(kTopic, key(), version_, deadline) : post(false, deadline);
}

Mover::Mover(MoveEnds ends, const Clock& clock, MoveNotice* notice, MovePlan plan)
    : ends_(ends),
      clock_(clock),
      notice_(notice),
      plan_(std::move(plan)),
      began_(ends.from_board.now()),
      looked_halves_(plan_.resumed ? std::vector<Half>{Half::standard, Half::dlq} : plan_.halves),
      pace_(plan_.rate),
      move_batch_(ends, plan_.pair),
      resumed_unseen_(plan_.resumed),
      recover_half_(plan_.resumed ? 0 : 2),
      quiet_since_(clock.steady_now()),
      poll_(kFirstPoll) {
  begin_pass(false);
}

/// A write must have come to its end before anybody else may begin to move.
Deadline Mover::deadline() const {
  const Deadline own = Deadline::after(clock_, std::chrono::seconds(30));
  return notice_ == nullptr ? own : own.earlier(Deadline::at(notice_->relied_until()));
}

Mover::Step Mover::step() {
  if (ends_.ownership != nullptr) {
    ends_.ownership->tend(deadline());
  }
  if (notice_ != nullptr) {
    if (auto kept = notice_->keep(Deadline::after(clock_, MoveNotice::kRely)); !kept) {
      return failed(kept.error());
    }
  }
  if (recovering()) {
    return left_.empty() ? recover(deadline()) : show_left(deadline());
  }
  if (!move_batch_.empty()) {
    return carry(deadline());
  }
  if (!found_.empty()) {
    if (pace_.next() > clock_.steady_now()) {
      return waiting(pace_.next());
    }
    fill_carriage();
    return {};
  }
  return half_ < looked_halves_.size() ? look(deadline()) : end_of_pass();
}

/// What an earlier run has put and not shown lies in the target, hidden, with the mark of this move.
Mover::Step Mover::recover(Deadline deadline) {
  const auto page = ends_.to.list({.half = recover_half_ == 0 ? Half::standard : Half::dlq,
                                   .limit = plan_.page,
                                   .cursor = recover_cursor_,
                                   .content = false,
                                   .consistent = true},
                                  deadline);
  if (!page) {
    return failed(page.error());
  }
  for (const StoredMessage& record : page->messages) {
    if (is_copy_of(record, plan_.pair)) {
      left_.push_back(record);
    }
  }
  recover_cursor_ = page->next;
  if (recover_cursor_.empty()) {
    ++recover_half_;
  }
  return {};
}

/// Those that the source has no more are shown. The others are met again when the source is looked at.
Mover::Step Mover::show_left(Deadline deadline) {
  std::vector<queue::Change> changes;
  const std::size_t count = std::min(left_.size(), kLeftBatch);
  std::size_t shown = 0;
  std::size_t dead = 0;
  const WallTime now = ends_.to_board.now();
  for (std::size_t index = 0; index < count; ++index) {
    const StoredMessage& copy = left_[index];
    const auto there = ends_.from.get(copy.message.id, deadline);
    if (!there && there.error().code() != ErrorCode::not_found) {
      return failed(there.error());
    }
    if (!there || !same_millisecond(there->created_at, copy.created_at)) {
      changes.push_back(showing(before_it_was_taken(copy, now), copy.version, now));
      ++shown;
      dead += copy.half == Half::dlq ? 1 : 0;
    } else if (!is_moving(*there)) {
      // Somebody has brought it back into the source, which has it then.
      changes.push_back(removal(copy.message.id, copy.version));
    }
  }
  if (!changes.empty()) {
    auto results = ends_.to.change(changes, deadline);
    queue::fill_up(results, changes.size());
    for (const ChangeResult& result : results) {
      if (result.status == queue::ChangeStatus::failed) {
        return failed(result.error);
      }
    }
  }
  count_.carried += shown;
  count_.resumed += shown;
  count_.dead_letters += dead;
  left_.erase(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(count));
  return {};
}

void Mover::begin_pass(bool consistent) {
  half_ = 0;
  cursor_.clear();
  consistent_ = consistent;
  any_carried_ = false;
  held_groups_.clear();
  left_behind_ = {};
  std::uint64_t elsewhere = 0;
  custody_began_ = custody_changes(elsewhere);
}

Mover::Step Mover::look(Deadline deadline) {
  auto page = ends_.from.list({.half = looked_halves_[half_],
                               .limit = plan_.page,
                               .cursor = cursor_,
                               .content = true,
                               .native = true,
                               .consistent = consistent_},
                              deadline);
  if (!page) {
    return failed(page.error());
  }
  Step step;
  const WallTime now = ends_.from_board.now();
  for (StoredMessage& record : page->messages) {
    const bool taken = is_moving(record);
    if (taken && !plan_.resumed && !doubtful_.contains(record.message.id)) {
      look_closer(record, step);
    } else if (is_next(record, taken, now, step)) {
      if (plan_.dry_run) {
        plan_only(record);
      } else {
        found_.emplace_back(std::move(record), taken);
      }
    } else {
      hold_group(record.half, record.message.group, refused_.contains(record.message.id));
    }
  }
  cursor_ = page->next;
  if (cursor_.empty()) {
    ++half_;
  }
  if (refused_.size() > kMostRefused) {
    return failed(Error(ErrorCode::invalid, "queue " + plan_.pair.to + " does not take more than " +
                                                std::to_string(kMostRefused) +
                                                " of the messages; the output says why"));
  }
  return step;
}

bool Mover::is_next(const StoredMessage& record, bool taken, WallTime now, Step& step) {
  const std::string& id = record.message.id;
  if (refused_.contains(id) || is_recent(id)) {
    return false;
  }
  if (taken) {
    return true;
  }
  doubtful_.erase(id);
  if (!contains(plan_.halves, record.half)) {
    return false;
  }
  if (!plan_.follow && record.created_at > began_) {
    ++left_behind_.later;
    return false;
  }
  if (record.state(now) == queue::MessageState::in_flight) {
    ++left_behind_.in_flight;
    return false;
  }
  if (!record.message.group.empty() && plan_.leave_groups) {
    ++left_behind_.grouped;
    return false;
  }
  if (!record.message.group.empty() && stuck_groups_.contains(group_key(record))) {
    ++left_behind_.behind;
    return false;
  }
  if (!record.message.group.empty() && held_groups_.contains(group_key(record))) {
    ++left_behind_.waiting;
    return false;
  }
  if (record.message.priority != queue::Priority::normal && !plan_.target_has_priorities && !plan_.drop_priorities) {
    refuse(id,
           Error(ErrorCode::invalid, "has the priority " + std::string(queue::to_string(record.message.priority)) +
                                         ", and queue " + plan_.pair.to + " knows none"),
           step);
    return false;
  }
  return true;
}

void Mover::look_closer(const StoredMessage& record, Step& step) {
  if (refused_.contains(record.message.id) || is_recent(record.message.id)) {
    return;
  }
  const auto there = ends_.from.get(record.message.id, deadline());
  if (there && is_moving(*there)) {
    refuse(record.message.id, Error(ErrorCode::conflict, "was taken by a move whose notice is lost"), step);
  }
}

bool Mover::is_recent(const std::string& id) const {
  const auto found = recent_.find(id);
  return found != recent_.end() && clock_.steady_now() - found->second <= kIndexDelay && !consistent_;
}

void Mover::refuse(const std::string& id, Error why, Step& step) {
  refused_.insert(id);
  ++count_.refused;
  step.refusals.push_back({id, std::move(why)});
}

void Mover::plan_only(const StoredMessage& record) {
  ++count_.carried;
  count_.dead_letters += record.half == Half::dlq ? 1 : 0;
  planned_ += plan_.from_tariff.carry_out(record);
  planned_ += plan_.from_tariff.hold(record);
  planned_ += plan_.to_tariff.carry_in(record);
}

void Mover::fill_carriage() {
  std::size_t room = pace_.batch(plan_.batch);
  for (; room > 0 && !found_.empty(); --room) {
    auto& [record, taken] = found_.front();
    if (!plan_.target_has_priorities) {
      record.message.priority = queue::Priority::normal;
    }
    // What this run has taken itself, without an answer, nobody has left on the way.
    count_.resumed += taken && !doubtful_.contains(record.message.id) ? 1 : 0;
    move_batch_.add(std::move(record), taken);
    found_.pop_front();
  }
  pace_.took(move_batch_.size(), clock_.steady_now());
}

Mover::Step Mover::carry(Deadline deadline) {
  Step step;
  const auto ended = move_batch_.step(deadline);
  put_down(step);
  if (!ended) {
    step.state = State::failed;
    step.error = ended.error();
  }
  return step;
}

void Mover::put_down(Step& step) {
  const SteadyTime now = clock_.steady_now();
  if (now > forgets_next_) {
    std::erase_if(recent_, [now](const auto& entry) { return now - entry.second > kIndexDelay; });
    forgets_next_ = now + kIndexDelay;
  }
  for (MoveBatch::Outcome& outcome : move_batch_.take_outcomes()) {
    doubtful_.erase(outcome.id);
    switch (outcome.fate) {
      case MoveBatch::Fate::carried:
        ++count_.carried;
        count_.dead_letters += outcome.half == Half::dlq ? 1 : 0;
        any_carried_ = true;
        recent_[outcome.id] = now;
        quiet_since_ = now;
        poll_ = kFirstPoll;
        continue;
      case MoveBatch::Fate::left:
        // It is looked at again.
        any_carried_ = any_carried_ || outcome.doubtful;
        ++left_behind_.waiting;
        if (outcome.doubtful) {
          doubtful_.insert(outcome.id);
        }
        break;
      case MoveBatch::Fate::refused:
        refuse(outcome.id, std::move(outcome.error), step);
        break;
    }
    hold_group(outcome.half, outcome.group, outcome.fate == MoveBatch::Fate::refused);
    std::erase_if(found_, [this](const auto& next) { return held_groups_.contains(group_key(next.first)); });
  }
}

/// Those behind it in its group are not carried before it.
void Mover::hold_group(Half half, const std::string& group, bool for_good) {
  if (group.empty()) {
    return;
  }
  held_groups_.insert(group_key(half, group));
  if (for_good) {
    stuck_groups_.insert(group_key(half, group));
  }
}

/// Never so long that others take the mover for dead.
Mover::Step Mover::waiting(SteadyTime until) const {
  return {.state = State::wait,
          .until = notice_ == nullptr ? until : std::min(until, notice_->tells_next()),
          .error = {},
          .refusals = {}};
}

std::uint64_t Mover::custody_changes(std::uint64_t& elsewhere) const {
  std::uint64_t changes = 0;
  for (const Half half : looked_halves_) {
    if (ends_.ownership != nullptr) {
      const auto standing = ends_.ownership->standing(half);
      changes += standing.changes;
      elsewhere += standing.all == 0 ? 1 : standing.all - standing.held;
    }
  }
  return changes;
}

Mover::Step Mover::end_of_pass() {
  const bool consistent = consistent_;
  // What was not handed over when it was to be looked at has not been looked at.
  const bool whole = custody_changes(left_behind_.elsewhere) == custody_began_ && left_behind_.elsewhere == 0;
  const bool worth_another = any_carried_;
  const bool waits = left_behind_.in_flight > 0 || left_behind_.waiting > 0 || !whole;
  count_.left = left_behind_;
  const SteadyTime now = clock_.steady_now();
  if (plan_.dry_run) {
    return {.state = State::finished};
  }
  quiet_since_ = whole ? quiet_since_ : now;
  if (consistent && !worth_another && whole) {
    resumed_unseen_ = false;
    doubtful_.clear();
  }
  const bool follows = plan_.follow && (!plan_.until_empty || now - quiet_since_ < plan_.quiet);
  if (!worth_another && !waits && !follows && consistent) {
    return {.state = State::finished};  // and `step` says so again, however often it is called
  }
  begin_pass(!worth_another && !waits && !follows);
  if (worth_another || consistent_) {
    return {};
  }
  const SteadyTime next = now + poll_;
  poll_ = std::min(poll_ * 2, kLongestPoll);
  return waiting(next);
}

}  // namespace sluice::operate
