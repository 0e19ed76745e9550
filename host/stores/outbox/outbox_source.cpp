#include "host/stores/outbox/outbox_source.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace sluice::queue::outbox {
namespace {

// A row that another transaction holds is looked at again after this.
constexpr Duration kLockedWait = std::chrono::seconds(1);
// One that the database refuses to have marked.
constexpr Duration kRefusedWait = std::chrono::seconds(30);
constexpr std::size_t kMostRemembered = 4096;
constexpr Duration kPutAsideTime = std::chrono::seconds(10);

RowScheduler::Settings line_settings(const OutboxOptions& options, const Selection& selection) {
  return {.filter = selection,
          .fetch_limit = options.fetch_limit,
          .poll_interval = options.poll_interval,
          .resend_sent = options.settings.table.resend_sent};
}

/// What becomes of the row in memory once its mark is written.
Fate fate_of(const Completion& completion) {
  switch (completion.action) {
    case CompletionAction::remove:
      return {Fate::Kind::sent};
    case CompletionAction::dead_letter:
      return {.kind = Fate::Kind::dead, .stored = true};
    case CompletionAction::retry:
    case CompletionAction::release:
      break;
  }
  return {Fate::Kind::put_back, completion.delay, completion.action == CompletionAction::retry};
}

// The database will not have it, and would not have it again: not a matter of the session.
bool concerns_the_rows(const Error& error) {
  return error.code() == ErrorCode::invalid || error.code() == ErrorCode::conflict ||
         error.code() == ErrorCode::internal || error.code() == ErrorCode::denied;
}

}  // namespace

OutboxSource::OutboxSource(OutboxOptions options, const Selection& selection, Database& database, const Clock& clock,
                           Random& random)
    : options_(std::move(options)),
      database_(database),
      clock_(clock),
      reader_(line_settings(options_, selection), database, clock, random, row_events()),
      holder_({.space = {selection.job, options_.settings.table.buckets}, .lease = options_.settings.connect.lease},
              database, clock, random, reader_, [this] { lost_all(); }) {}

OutboxSource::~OutboxSource() { stop(); }

RowReader::Events OutboxSource::row_events() {
  return {.ready =
              [this] {
                if (const auto gate = events()) {
                  gate->ready();
                }
              },
          .named = [this](const SourceId& source) { named(source); },
          .put_aside = [this](const std::vector<Row>& rows) { put_aside(rows); },
          .crowded =
              [this] {
                warn("more than " + std::to_string(RowScheduler::Settings().closed_groups) +
                     " groups wait, for a retry or behind a dead letter; others go on, and what is beyond that number "
                     "is read again with each poll until fewer wait");
              }};
}

std::shared_ptr<owned::EventGate> OutboxSource::events() const {
  const MutexLock lock(mutex_);
  return events_;
}

void OutboxSource::start(SourceEvents events) {
  {
    const MutexLock lock(mutex_);
    SLUICE_ASSERT(!events_);
    events_ = std::make_shared<owned::EventGate>(std::move(events));
  }
  holder_.start();
  reader_.start();
}

void OutboxSource::stop() {
  std::shared_ptr<owned::EventGate> gate;
  {
    const MutexLock lock(mutex_);
    if (!events_ || std::exchange(stopped_, true)) {
      return;
    }
    gate = events_;
  }
  reader_.stop();
  holder_.stop();
  gate->close();
  bool nothing_out = false;
  {
    const MutexLock lock(mutex_);
    nothing_out = held_.empty();
  }
  if (nothing_out) {
    holder_.close();
  }
}

void OutboxSource::warn(const std::string& text) const {
  if (options_.report) {
    options_.report("outbox " + options_.settings.name + ": " + text);
  }
}

void OutboxSource::named(const SourceId& source) {
  bool fresh = false;
  {
    const MutexLock lock(mutex_);
    origin_ = origin_of(options_.producer, source);
    fresh = std::exchange(doubt_, source.doubt) != source.doubt;
  }
  if (fresh && !source.doubt.empty()) {
    warn(source.doubt);
  }
}

void OutboxSource::lost_all() {
  reader_.run([](RowScheduler& rows) { return rows.lose_all(); });
  std::vector<Receipt> receipts;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, held] : held_) {
      receipts.push_back({.id = to_string(id), .version = held.tries, .locator = held.number});
      remember(id, held.sent_at);
    }
    held_.clear();
    ++losses_;
  }
  if (const auto gate = events(); gate && !receipts.empty()) {
    gate->lost(receipts);
  }
}

void OutboxSource::remember(const RowKey& id, WallTime fetched_at) {
  if (seen_at_.emplace(id, fetched_at).second) {
    seen_.push_back(id);
  }
  while (seen_.size() > kMostRemembered) {
    seen_at_.erase(seen_.front());
    seen_.pop_front();
  }
}

Delivery OutboxSource::deliver(Row&& row, WallTime now) {
  const RowKey id = row.key();
  const std::int64_t tries = row.retries;
  std::string type = row.group.type;
  Delivery delivery;
  {
    const MutexLock lock(mutex_);
    const auto seen = seen_at_.find(id);
    delivery.message = message_of(std::move(row), origin_, seen == seen_at_.end() ? now : seen->second);
    held_[id] = {.number = ++handed_out_, .tries = tries, .sent_at = delivery.message.sent_at, .type = std::move(type)};
    delivery.receipt = {.id = delivery.message.id, .version = tries, .locator = handed_out_};
  }
  delivery.leased_until = SteadyTime::max();
  return delivery;
}

std::vector<Delivery> OutboxSource::take(const ClaimRequest& request) {
  std::uint64_t losses = 0;
  {
    const MutexLock lock(mutex_);
    losses = losses_;
  }
  std::vector<Delivery> taken;
  const WallTime now = clock_.wall_now();
  for (Row& row : reader_.take(request.max, request.bytes)) {
    taken.push_back(deliver(std::move(row), now));
  }
  const MutexLock lock(mutex_);
  if (losses != losses_) {
    // The locks went between: these rows are another session's.
    for (const Delivery& delivery : taken) {
      held_.erase(row_key_of(delivery.receipt.id).value_or(RowKey()));
    }
    taken.clear();
  }
  return taken;
}

Result<Claimed> OutboxSource::claim(const ClaimRequest& request, Deadline deadline) {
  {
    const MutexLock lock(mutex_);
    if (!events_) {
      return Error(ErrorCode::invalid, "rows of an outbox are handed out to a host's job only");
    }
  }
  reader_.wait_for_first(clock_.machine_time(deadline.time()));
  Claimed claimed;
  if (holder_.usable()) {
    claimed.deliveries = take(request);
  }
  if (claimed.deliveries.empty()) {
    if (auto trouble = reader_.trouble()) {
      return *std::move(trouble);
    }
  }
  return claimed;
}

bool OutboxSource::is_ours(const Receipt& receipt, const RowKey& id) const {
  const auto held = held_.find(id);
  return held != held_.end() && held->second.number == receipt.locator;
}

void OutboxSource::end(const RowKey& id, Fate fate) {
  {
    const MutexLock lock(mutex_);
    if (const auto held = held_.find(id); held != held_.end()) {
      if (fate.kind != Fate::Kind::sent) {
        remember(id, held->second.sent_at);
      }
      held_.erase(held);
    }
  }
  reader_.run([&](RowScheduler& rows) { return rows.settled(id, fate, clock_.steady_now()), true; });
}

std::vector<SettleResult> OutboxSource::settle(std::span<const Completion> completions, Deadline deadline) {
  std::vector<SettleResult> results(completions.size(), {SettleStatus::lost, {}});
  std::vector<Step> steps;
  std::vector<Step> released;
  bool started = false;
  {
    const MutexLock lock(mutex_);
    started = events_ != nullptr;
    for (std::size_t i = 0; started && i < completions.size(); ++i) {
      const auto id = row_key_of(completions[i].receipt.id);
      if (!id || !is_ours(completions[i].receipt, *id)) {
        continue;
      }
      const auto mark = mark_of(completions[i], *id, options_.settings.table.retry_limit);
      (mark ? steps : released).push_back({i, mark.value_or(Mark{.id = id->id, .part = id->part})});
    }
  }
  if (!started) {
    return settle_for_others(completions, deadline);
  }
  for (const Step& step : released) {
    results[step.place].status = SettleStatus::applied;
    end(step.mark.key(), fate_of(completions[step.place]));
  }
  write(steps, completions, results, deadline);
  return results;
}

void OutboxSource::write(std::span<const Step> steps, std::span<const Completion> completions,
                         std::vector<SettleResult>& results, Deadline deadline) {
  if (steps.empty()) {
    return;
  }
  std::vector<Mark> marks;
  std::transform(steps.begin(), steps.end(), std::back_inserter(marks), [](const Step& step) { return step.mark; });
  const auto on_session = [&](std::span<const Mark> some) { return holder_.mark(some, deadline); };
  const auto written = steps.size() > 1 ? on_session(marks) : mark_anyhow(marks, on_session);
  if (written) {
    if (options_.observer) {
      options_.observer->marked(steps.size());
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      written_one(steps[i], (*written)[i], completions, results);
    }
  } else if (concerns_the_rows(written.error()) && steps.size() > 1) {
    // One of them is to blame, and the others are not to wait for it.
    write(steps.first(steps.size() / 2), completions, results, deadline);
    write(steps.subspan(steps.size() / 2), completions, results, deadline);
  } else if (concerns_the_rows(written.error())) {
    warn("row " + to_string(steps[0].mark.key()) + " cannot be marked, its group waits: " + written.error().message());
    results[steps[0].place] = {SettleStatus::lost, written.error()};
    end(steps[0].mark.key(), {Fate::Kind::put_back, kRefusedWait});
  } else if (written.error().code() == ErrorCode::throttled) {
    for (const Step& step : steps) {
      results[step.place] = {SettleStatus::failed, written.error()};
    }
  }
  // Otherwise the session is gone, and with it all that was out.
}

// A row's end is worth more than its reason, which may be what the database refuses.
Result<std::vector<MarkStatus>> OutboxSource::mark_anyhow(std::vector<Mark> marks, const WriteMarks& write) const {
  auto written = write(marks);
  const bool reasons = std::any_of(marks.begin(), marks.end(), [](const Mark& mark) { return !mark.error.empty(); });
  if (written || !reasons || !concerns_the_rows(written.error())) {
    return written;
  }
  for (Mark& mark : marks) {
    mark.error.clear();
  }
  auto bare = write(marks);
  if (bare) {
    warn("row " + to_string(marks[0].key()) +
         " is marked without its reason, which the database refuses: " + written.error().message());
  }
  return bare;
}

void OutboxSource::observe(const Mark& mark) {
  if (!options_.observer) {
    return;
  }
  Held held;
  {
    const MutexLock lock(mutex_);
    const auto found = held_.find(mark.key());
    if (found == held_.end()) {
      return;
    }
    held = found->second;
  }
  if (mark.kind == MarkKind::sent) {
    options_.observer->published(held.type, std::max(clock_.wall_now() - held.sent_at, Duration::zero()));
  } else {
    options_.observer->failed(held.type, mark.error);
  }
}

void OutboxSource::written_one(const Step& step, MarkStatus status, std::span<const Completion> completions,
                               std::vector<SettleResult>& results) {
  switch (status) {
    case MarkStatus::written:
      results[step.place].status = SettleStatus::applied;
      observe(step.mark);
      end(step.mark.key(), fate_of(completions[step.place]));
      break;
    case MarkStatus::gone:
      end(step.mark.key(), {Fate::Kind::changed});
      break;
    case MarkStatus::locked:
      // The engine knows what its handler has made of the row, and marks it when it comes back.
      warn("row " + to_string(step.mark.key()) + " is locked by a transaction of the application; its mark waits");
      end(step.mark.key(), {Fate::Kind::put_back, kLockedWait});
      break;
  }
}

std::vector<SettleResult> OutboxSource::settle_for_others(std::span<const Completion> completions, Deadline deadline) {
  std::vector<SettleResult> results(completions.size(), {SettleStatus::applied, {}});
  std::vector<Step> steps;
  std::vector<Mark> marks;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    const auto id = row_key_of(completions[i].receipt.id);
    auto mark = id ? mark_of(completions[i], *id, options_.settings.table.retry_limit) : std::nullopt;
    if (mark) {
      mark->only_if = static_cast<std::uint32_t>(completions[i].receipt.version);
      marks.push_back(*mark);
      steps.push_back({i, *std::move(mark)});
    }
  }
  if (steps.empty()) {
    return results;
  }
  auto session = database_.open_locks(deadline);
  const auto on_session = [&](std::span<const Mark> some) { return (*session)->mark(some, deadline); };
  const auto written =
      session ? mark_anyhow(std::move(marks), on_session) : Result<std::vector<MarkStatus>>(session.error());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    SettleResult& result = results[steps[i].place];
    if (!written) {
      result = {SettleStatus::failed, written.error()};
    } else if ((*written)[i] == MarkStatus::locked) {
      result = {SettleStatus::failed, Error(ErrorCode::conflict, "a transaction of the application has the row")};
    } else if ((*written)[i] == MarkStatus::gone) {
      result.status = SettleStatus::lost;
    }
  }
  return results;
}

std::vector<ExtendResult> OutboxSource::extend(std::span<const Receipt> receipts, Duration /*visibility*/,
                                               Deadline /*deadline*/) {
  std::vector<ExtendResult> results(receipts.size(), {SettleStatus::lost, {}, {}, {}});
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    const auto id = row_key_of(receipts[i].id);
    if (id && is_ours(receipts[i], *id)) {
      results[i] = {SettleStatus::applied, receipts[i], SteadyTime::max(), {}};
    }
  }
  return results;
}

void OutboxSource::put_aside(const std::vector<Row>& rows) {
  std::vector<Mark> marks;
  for (const Row& row : rows) {
    warn("row " + to_string(row.key()) + " cannot be handed out, it becomes a dead letter: " + row.unreadable);
    marks.push_back({.id = row.id,
                     .part = row.part,
                     .kind = MarkKind::dead,
                     .retries = options_.settings.table.retry_limit,
                     .error = row.unreadable});
  }
  const auto marked = mark_anyhow(std::move(marks), [this](std::span<const Mark> some) {
    return holder_.mark(some, Deadline::after(clock_, kPutAsideTime));
  });
  if (!marked) {
    warn("rows that cannot be handed out could not be put aside, and are tried again: " + marked.error().message());
  }
}

}  // namespace sluice::queue::outbox
