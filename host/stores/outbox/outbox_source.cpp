#include <array>
#include <atomic>
#include <boost/core/noncopyable.hpp>
#include <stop_token>
#include <thread>

#include "base/assert.hpp"
#include "base/bell.hpp"
#include "base/mutex.hpp"
#include "base/ranges.hpp"
#include "base/signal_block.hpp"
#include "host/queue/event_gate.hpp"
#include "host/stores/outbox/network/tcp_connect.hpp"
#include "host/stores/outbox/outbox_queues.hpp"
#include "host/stores/outbox/row_scheduler.hpp"
#include "host/stores/owned/membership.hpp"

namespace sluice::queue::outbox {
namespace {

constexpr Duration kReadTime = std::chrono::seconds(30);
// A wait that nothing ends is begun anew, so that a connection which died unnoticed is found out.
constexpr Duration kLongestWait = std::chrono::seconds(30);
// While buckets change hands, and while rows come that somebody may have left behind.
constexpr Duration kQuickBeat = std::chrono::milliseconds(100);
constexpr Duration kUnsettled = std::chrono::seconds(10);
// A row that another transaction holds is looked at again after this.
constexpr Duration kLockedWait = std::chrono::seconds(1);
// One that the database refuses to have marked.
constexpr Duration kRefusedWait = std::chrono::seconds(30);
constexpr std::size_t kMostRemembered = 4096;
// Of a group in memory where several go out at once, half of them at most.
constexpr std::size_t kSideBySide = 256;
constexpr Duration kPutAsideTime = std::chrono::seconds(10);

RowScheduler::Settings line_settings(const OutboxOptions& options, const Selection& selection) {
  return {.filter = selection,
          .fetch_limit = options.settings.config.fetch_limit,
          .poll_interval = options.settings.config.poll_interval,
          .resend_sent = options.settings.config.compat,
          .per_group = selection.side_by_side ? kSideBySide : RowScheduler::Settings().per_group};
}

// The database will not have it, and would not have it again: not a matter of the session.
bool concerns_the_rows(const Error& error) {
  return error.code() == ErrorCode::invalid || error.code() == ErrorCode::conflict ||
         error.code() == ErrorCode::internal || error.code() == ErrorCode::denied;
}

/// A source's rows in memory, and which of them are out. A thread of its own reads what the RowScheduler asks for ahead
/// of who claims, and otherwise waits for news of the database; it connects again when its session has ended.
/// Thread-safe.
class SourceRows {
 public:
  /// Called without any lock: `ready` by whoever made rows ready after a claim had brought less than it asked for, the
  /// others on the reader's thread.
  struct Events {
    std::function<void()> ready;
    std::function<void(const std::vector<Row>& rows)> put_aside;  ///< these cannot be handed out
    std::function<void()> told;                                   ///< the database has told of new rows
    std::function<void(const std::string& text)> warn;
  };

  /// The references outlive it.
  SourceRows(const OutboxOptions& options, const Selection& selection, Database& database, const Clock& clock,
             Random& random, Events events)
      : producer_(options.settings.config.producer),
        text_ids_(has_text_ids(options.settings.config.columns)),
        database_(database),
        clock_(clock),
        random_(random),
        events_(std::move(events)),
        scheduler_(line_settings(options, selection)) {}
  ~SourceRows() { stop(); }

  /// False: there was no descriptor left.
  bool can_be_woken() const { return wake_.descriptor() >= 0; }

  /// Makes the thread. Called at most once.
  void start() {
    const SignalBlock quiet;
    thread_ = std::jthread([this](const std::stop_token& stop) { run_until(stop); });
  }
  /// Returns when the thread has ended.
  void stop() {
    thread_.request_stop();
    wake_.ring();
    thread_ = std::jthread();  // which waits for it
  }

  /// Does something with the rows; afterwards whoever waits for what came of it is woken.
  template <typename Action>
  void run(Action action) {
    bool tell = false;
    {
      const MutexLock lock(mutex_);
      action(scheduler_);
      tell = changed();
    }
    if (tell) {
      events_.ready();
    }
  }

  std::vector<Delivery> take(const ClaimRequest& request) {
    std::vector<Delivery> taken;
    const WallTime now = clock_.wall_now();
    const MutexLock lock(mutex_);
    for (Row& row : scheduler_.take(request.max, request.bytes)) {
      taken.push_back(deliver(std::move(row), now));
    }
    claimer_waits_ = !scheduler_.ready();
    if (!taken.empty() && std::exchange(reader_waits_, false)) {
      wake_.ring();
    }
    return taken;
  }
  /// The row that a receipt names; nothing: none.
  std::optional<RowKey> key_of(const Receipt& receipt) const { return row_key_of(receipt.id, text_ids_); }
  bool is_out(const Receipt& receipt) {
    const MutexLock lock(mutex_);
    return out_key(receipt).has_value();
  }
  /// Of that bucket, or of all.
  bool nothing_out(std::optional<std::uint32_t> bucket = {}) {
    const MutexLock lock(mutex_);
    const auto& out = scheduler_.out();
    return std::none_of(out.begin(), out.end(),
                        [bucket](const auto& row) { return row.second.bucket == bucket.value_or(row.second.bucket); });
  }
  /// What follows these rows in their groups may go.
  void handled(std::span<const Receipt> receipts) {
    run([&](RowScheduler& rows) SLUICE_REQUIRES(mutex_) {
      for (const Receipt& receipt : receipts) {
        if (const auto key = out_key(receipt)) {
          rows.handled(*key);
        }
      }
    });
  }
  SendOrder send_order(std::span<const Receipt> receipts) {
    const MutexLock lock(mutex_);
    const auto key = [this](const Receipt& receipt) SLUICE_REQUIRES(mutex_) { return out_key(receipt); };
    return scheduler_.send_order(mapped(receipts, key));
  }
  /// A row has come to its end; what it was, unless it had been lost.
  std::optional<RowScheduler::Out> end(const RowKey& key, const Fate& fate) {
    std::optional<RowScheduler::Out> ended;
    run([&](RowScheduler& rows) SLUICE_REQUIRES(mutex_) {
      ended = rows.settled(key, fate, clock_.steady_now());
      if (ended && fate.kind != Fate::Kind::sent) {
        remember(key, ended->sent_at);
      }
    });
    return ended;
  }
  /// Nothing is ours any more; what was out.
  std::vector<Receipt> lose_all() {
    std::vector<Receipt> receipts;
    const MutexLock lock(mutex_);
    for (const auto& [key, out] : scheduler_.lose_all()) {
      receipts.push_back({.id = to_string(key), .version = out.tries, .locator = out.number});
      remember(key, out.sent_at);
    }
    changed();
    return receipts;
  }

  /// Waits until rows are ready, the table has been read once, something is in the way, or the time.
  void wait_for_first(SteadyTime until) {
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, until, [this]() SLUICE_REQUIRES(mutex_) {
      return scheduler_.ready() || scheduler_.read_once() || locks_trouble_ || reader_trouble_;
    });
  }
  /// What keeps those that hold the locks from working; nothing: they work.
  void locks_trouble(std::optional<Error> error) {
    const MutexLock lock(mutex_);
    locks_are_back_ = locks_trouble_ && !error;
    locks_trouble_ = std::move(error);
    changed_.notify_all();
  }
  /// What keeps those or the reader from working.
  std::optional<Error> trouble() const {
    const MutexLock lock(mutex_);
    return locks_trouble_ ? locks_trouble_ : reader_trouble_;
  }

 private:
  void run_until(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      wake_.hush();
      if (stop.stop_requested()) {
        return;
      }
      auto done = session_ ? Result<void>() : connect();
      if (stop.stop_requested()) {
        return;  // a read would be waited for
      }
      done = done ? work() : done;
      if (!done && ends_session(done.error().code())) {
        session_.reset();
      }
      const MutexLock lock(mutex_);
      reader_trouble_ = done ? std::nullopt : std::optional(done.error());
      changed_.notify_all();
      if (done) {
        retry_.worked();
        continue;
      }
      const Duration pause = retry_.next(done.error().code(), random_);
      changed_.wait_until(mutex_, stop, clock_.machine_time(clock_.steady_now() + pause),
                          [this]() SLUICE_REQUIRES(mutex_) { return locks_are_back_; });
      locks_are_back_ = false;
    }
  }

  Result<void> connect() {
    SLUICE_TRY(opened, database_.open_reader(Deadline::after(clock_, kConnectTime)));
    SLUICE_TRY(source, (*opened)->source_id(Deadline::after(clock_, kConnectTime)));
    {
      const MutexLock lock(mutex_);
      origin_ = origin_of(producer_, *source);
    }
    if (std::exchange(doubt_, source->doubt) != source->doubt && !source->doubt.empty()) {
      events_.warn(source->doubt);
    }
    session_ = std::move(*opened);
    run([this](RowScheduler& rows) { rows.look_for_rows(session_->wants_looks()); });
    return {};
  }

  Result<void> work() {
    const ReadOrder order = next_read();
    const Deadline deadline = Deadline::after(clock_, kReadTime);
    switch (order.kind) {
      case ReadOrder::Kind::none:
        break;
      case ReadOrder::Kind::page:
        return take_up(order, session_->fetch(order.request, deadline), &RowScheduler::page_read);
      case ReadOrder::Kind::groups:
        return take_up(order, session_->fetch_groups(order.groups, order.request, deadline),
                       &RowScheduler::groups_read);
    }
    SLUICE_TRY(news, session_->news());
    switch (*news) {
      case ReadSession::News::none:
        return wait_until(std::min(order.wake, clock_.steady_now() + kLongestWait));
      case ReadSession::News::rows:
        run([this](RowScheduler& rows) { rows.rows_told(clock_.steady_now()); });
        events_.told();
        break;
      case ReadSession::News::changed:
        run([this](RowScheduler& rows) { rows.change_told(clock_.steady_now()); });
        break;
    }
    return {};
  }
  /// Or until the database may have news, or somebody rings.
  Result<void> wait_until(SteadyTime time) const {
    std::array<pollfd, 2> watched{{{wake_.descriptor(), POLLIN, 0}, {session_->news_descriptor(), POLLIN, 0}}};
    const auto ready = poll_until(watched, clock_, Deadline::at(time));
    return ready || ready.error().code() == ErrorCode::timeout ? Result<void>() : ready;
  }
  ReadOrder next_read() {
    const MutexLock lock(mutex_);
    ReadOrder order = scheduler_.next_read(clock_.steady_now());
    reader_waits_ = order.kind == ReadOrder::Kind::none;
    return order;
  }
  template <typename Read>
  Result<void> take_up(const ReadOrder& order, Result<Read> answer,
                       std::vector<Row> (RowScheduler::*taken_up)(const ReadOrder&, Read, SteadyTime)) {
    std::vector<Row> aside;
    bool crowded = false;
    run([&](RowScheduler& rows) {
      if (!answer) {
        rows.read_failed();
        return;
      }
      aside = (rows.*taken_up)(order, std::move(*answer), clock_.steady_now());
      crowded = rows.crowded();
    });
    SLUICE_PASS_ON(answer);
    if (!aside.empty()) {
      events_.put_aside(aside);
    }
    if (!std::exchange(crowded_, crowded) && crowded) {
      events_.warn("more than " + std::to_string(RowScheduler::Settings().closed_groups) +
                   " groups wait, for a retry or behind a dead letter; others go on, and what is beyond that number "
                   "is read again with each poll until fewer wait");
    }
    return {};
  }

  Delivery deliver(Row&& row, WallTime now) SLUICE_REQUIRES(mutex_) {
    RowScheduler::Out& out = scheduler_.out().at(row.key());
    const auto seen = seen_at_.find(row.key());
    Delivery delivery;
    delivery.message = message_of(std::move(row), origin_, seen == seen_at_.end() ? now : seen->second);
    delivery.receipt = {.id = delivery.message.id, .version = out.tries, .locator = out.number};
    delivery.leased_until = SteadyTime::max();
    out.sent_at = delivery.message.sent_at;
    return delivery;
  }
  /// The row that a receipt names, if it is out by that very delivery.
  std::optional<RowKey> out_key(const Receipt& receipt) SLUICE_REQUIRES(mutex_) {
    auto key = key_of(receipt);
    const auto found = key ? scheduler_.out().find(*key) : scheduler_.out().end();
    return found != scheduler_.out().end() && found->second.number == receipt.locator ? std::move(key) : std::nullopt;
  }
  void remember(const RowKey& key, WallTime fetched_at) SLUICE_REQUIRES(mutex_) {
    if (seen_at_.emplace(key, fetched_at).second) {
      seen_.push_back(key);
    }
    while (seen_.size() > kMostRemembered) {
      seen_at_.erase(seen_.front());
      seen_.pop_front();
    }
  }

  /// True: whoever claims is to be told.
  bool changed() SLUICE_REQUIRES(mutex_) {
    if (std::exchange(reader_waits_, false)) {
      wake_.ring();
    }
    changed_.notify_all();
    return scheduler_.ready() && std::exchange(claimer_waits_, false);
  }

  // Fixed after construction.
  const std::string producer_;
  const bool text_ids_;
  Database& database_;
  const Clock& clock_;
  Random& random_;
  const Events events_;
  const Bell wake_;  ///< rings when the reader should not wait any longer

  // Touched only by the reader's thread.
  std::unique_ptr<ReadSession> session_;
  RetryPause retry_;
  bool crowded_ = false;
  std::string doubt_;  ///< about the table's id, as it was told last

  mutable Mutex mutex_;
  Condition changed_;
  RowScheduler scheduler_ SLUICE_GUARDED_BY(mutex_);
  bool claimer_waits_ SLUICE_GUARDED_BY(mutex_) = false;
  bool reader_waits_ SLUICE_GUARDED_BY(mutex_) = false;
  std::optional<Error> locks_trouble_ SLUICE_GUARDED_BY(mutex_);
  std::optional<Error> reader_trouble_ SLUICE_GUARDED_BY(mutex_);
  bool locks_are_back_ SLUICE_GUARDED_BY(mutex_) = false;  ///< the database can be reached again
  Origin origin_ SLUICE_GUARDED_BY(mutex_);                ///< known before the first row is
  /// When rows that were lost had been fetched first, so that they are known again when they come back.
  std::unordered_map<RowKey, WallTime, RowKeyHash> seen_at_ SLUICE_GUARDED_BY(mutex_);
  std::deque<RowKey> seen_ SLUICE_GUARDED_BY(mutex_);
  std::jthread thread_;
};

/// Keeps the session that holds a source's buckets: joins, lets it be known that this member lives, takes and gives
/// back buckets as their number asks for, connects again when the session has ended, and lends the session for marks.
/// Thread-safe.
class LockHolder {
 public:
  /// `rows` is told which buckets are ours, and what is in the way. `lost` is called without any lock, from the
  /// holder's thread or one that marks. The references outlive it.
  LockHolder(LockSpace space, Duration lease, Database& database, const Clock& clock, Random& random, SourceRows& rows,
             std::function<void()> lost)
      : space_(std::move(space)),
        lease_length_(lease),
        database_(database),
        clock_(clock),
        random_(random),
        rows_(rows),
        lost_(std::move(lost)),
        next_(static_cast<std::uint32_t>(random.below(space_.buckets))),
        lease_(lease, clock) {}
  ~LockHolder() { stop(); }

  /// Makes the thread. Called at most once.
  void start() {
    const SignalBlock quiet;
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  /// Returns when the thread has ended. What is held stays so, for marks, until `close`.
  void stop() {
    if (thread_.joinable()) {
      thread_.request_stop();
      thread_.join();
    }
  }
  /// Rows come. Those of somebody who has ended are to be taken over at once.
  void rows_come() {
    const MutexLock lock(mutex_);
    if (!std::exchange(rows_come_, true)) {
      changed_.notify_all();
    }
  }
  /// Gives everything back.
  void close() {
    const Turn turn(*this, SteadyTime::max());
    session_.reset();
    const MutexLock lock(mutex_);
    lease_.gone();
  }

  /// The buckets are ours now, as far as anybody here can know.
  bool usable() {
    const MutexLock lock(mutex_);
    return lease_.holds();
  }
  /// Writes marks on the session; ErrorCode::unavailable where there is none. After an error the session may be over.
  Result<std::vector<MarkStatus>> mark(std::span<const RowEdit> marks, Deadline deadline) {
    // Most of the time is for the marks themselves: a request that meets its deadline ends the session, and with it all
    // that is out is lost.
    const SteadyTime now = clock_.steady_now();
    const Turn turn(*this, deadline.is_never() ? SteadyTime::max() : now + deadline.left(now) / 3);
    if (!turn.mine()) {
      return Error(ErrorCode::throttled, "the session that writes marks was busy for too long");
    }
    if (!session_) {
      return Error(ErrorCode::unavailable, "the session that held the rows has ended");
    }
    return ask([&] { return session_->mark(marks, deadline); });
  }

 private:
  using Buckets = std::vector<std::uint32_t>;

  /// The session is one caller's at a time; he has it without a lock.
  class Turn : boost::noncopyable {
   public:
    /// Waits for it until the deadline.
    Turn(LockHolder& holder, SteadyTime until) : holder_(holder) {
      const MutexLock lock(holder_.mutex_);
      mine_ = holder_.changed_.wait_until(holder_.mutex_, until,
                                          [&]() SLUICE_REQUIRES(holder_.mutex_) { return !holder_.busy_; });
      holder_.busy_ = holder_.busy_ || mine_;
    }
    ~Turn() {
      if (mine_) {
        const MutexLock lock(holder_.mutex_);
        holder_.busy_ = false;
        holder_.changed_.notify_all();
      }
    }

    bool mine() const { return mine_; }

   private:
    LockHolder& holder_;
    bool mine_ = false;
  };

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      Duration pause{};
      Duration quick{};
      {
        const Turn turn(*this, SteadyTime::max());
        const auto done = session_ ? beat() : connect();
        rows_.locks_trouble(done ? std::nullopt : std::optional(done.error()));
        if (done) {
          retry_.worked();
        }
        pause = done ? next_beat() : retry_.next(done.error().code(), random_);
        quick = done && members_ > 1 && session_->frees_at_once() ? std::min(kQuickBeat, pause) : pause;
      }
      rest(stop, quick, pause);
    }
  }
  /// For `pause`; only for `quick` when rows come, and not at all when the session is over.
  void rest(const std::stop_token& stop, Duration quick, Duration pause) {
    const SteadyTime now = clock_.steady_now();
    const MutexLock lock(mutex_);
    const auto over = [this]() SLUICE_REQUIRES(mutex_) { return look_; };
    const auto called = [this]() SLUICE_REQUIRES(mutex_) { return look_ || rows_come_; };
    changed_.wait_until(mutex_, stop, clock_.machine_time(now + quick), over);
    changed_.wait_until(mutex_, stop, clock_.machine_time(now + pause), called);
    look_ = rows_come_ = false;
  }

  Result<void> connect() {
    const SteadyTime asked_at = lease_now();
    const Deadline deadline = Deadline::after(clock_, kConnectTime);
    SLUICE_TRY(opened, database_.open_locks(deadline));
    SLUICE_TRY(members, (*opened)->join(space_, deadline));
    if (members->other_buckets != 0) {
      return Error(ErrorCode::unavailable,
                   "other hosts share the outbox into " + std::to_string(members->other_buckets) +
                       " buckets, and this one into " + std::to_string(space_.buckets) +
                       "; give all of them the same 'buckets' (this one waits until they have ended)");
    }
    session_ = std::move(*opened);
    alive(asked_at);
    return share_out(members->count);
  }
  Result<void> beat() {
    const SteadyTime asked_at = lease_now();
    SLUICE_TRY(members, ask([this] { return session_->beat(beat_deadline()); }));
    alive(asked_at);
    return share_out(members->count);
  }
  /// All members get about the same number of buckets.
  Result<void> share_out(std::uint32_t members) {
    if (members != std::exchange(members_, members)) {
      unsettled_until_ = clock_.steady_now() + kUnsettled;
    }
    const std::uint32_t all = std::max(members, 1U);
    share_ = (space_.buckets + all - 1) / all;
    SLUICE_PASS_ON(leave_surplus());
    return take_missing();
  }
  /// Nothing more goes out of what is too much; it is given back once nothing of it is out.
  Result<void> leave_surplus() {
    Buckets surplus;
    while (held_.size() > share_) {
      surplus.push_back(*held_.rbegin());
      leaving_.insert(held_.extract(surplus.back()));
    }
    if (!surplus.empty()) {
      rows_.run([&](RowScheduler& rows) { rows.leave_buckets(surplus); });
    }
    Buckets free;
    std::copy_if(leaving_.begin(), leaving_.end(), std::back_inserter(free),
                 [this](std::uint32_t bucket) { return rows_.nothing_out(bucket); });
    SLUICE_PASS_ON(give_back(free));
    for (const std::uint32_t bucket : free) {
      leaving_.erase(bucket);
    }
    return {};
  }
  /// Tries each bucket once at most: nobody sees more than what it has itself, and how many others there are.
  Result<void> take_missing() {
    for (std::uint32_t tried = 0; held_.size() < share_;) {
      const Buckets wanted = next_to_try(tried);
      if (wanted.empty()) {
        break;
      }
      SLUICE_TRY(locked, ask([&] { return session_->lock(wanted, beat_deadline()); }, true));
      const std::span<const std::uint32_t> got = *locked;
      const auto kept = got.first(std::min(got.size(), share_ - held_.size()));
      if (!kept.empty()) {
        held_.insert(kept.begin(), kept.end());
        rows_.run([&](RowScheduler& rows) { rows.take_buckets(kept); });
      }
      SLUICE_PASS_ON(give_back(got.subspan(kept.size())));
    }
    return {};
  }
  /// As many as are missing, or a few more: fewer are not worth a request of their own.
  Buckets next_to_try(std::uint32_t& tried) {
    constexpr std::size_t kLeast = 8;
    Buckets next;
    for (; tried < space_.buckets && next.size() < std::max(share_ - held_.size(), kLeast); ++tried) {
      // What is leaving is locked by this session still, and would be had a second time.
      if (!held_.contains(next_) && !leaving_.contains(next_)) {
        next.push_back(next_);
      }
      next_ = (next_ + 1) % space_.buckets;
    }
    return next;
  }
  Result<void> give_back(std::span<const std::uint32_t> buckets) {
    return buckets.empty() ? Result<void>() : ask([&] { return session_->unlock(buckets, beat_deadline()); }, true);
  }

  /// Asks the session something, and does what follows when it is over. `of_locks`: any error is its end, for what it
  /// has locked and is not known to have would be nobody's for as long as it lives.
  template <typename Question>
  auto ask(Question question, bool of_locks = false) -> decltype(question()) {
    auto answer = question();
    if (!answer && (of_locks || ends_session(answer.error().code()))) {
      over(answer.error());
    }
    return answer;
  }
  // By a heartbeat alone, for others may see nothing else. Whether the lease before had ended is the session's to say.
  void alive(SteadyTime asked_at) {
    const MutexLock lock(mutex_);
    static_cast<void>(lease_.renewed(asked_at));
  }
  // While nobody else has the turn, so that what is taken next comes after it.
  void over(const Error& error) {
    const auto ended = std::exchange(session_, nullptr);  // may give back what it has, once nobody here uses it
    held_.clear();
    leaving_.clear();
    members_ = 0;
    {
      const MutexLock lock(mutex_);
      lease_.gone();
      look_ = true;
    }
    rows_.locks_trouble(error);
    lost_();
  }
  Duration next_beat() const {
    const bool busy = !leaving_.empty() || (held_.size() < share_ && clock_.steady_now() < unsettled_until_);
    return busy ? kQuickBeat : session_->beat_every(lease_length_);
  }
  SteadyTime lease_now() {
    const MutexLock lock(mutex_);
    return lease_.now();
  }
  Deadline beat_deadline() {
    const MutexLock lock(mutex_);
    return Deadline::at(clock_.steady_now() + lease_.left().value_or(Duration::zero()));
  }

  // Fixed after construction.
  const LockSpace space_;
  const Duration lease_length_;
  Database& database_;
  const Clock& clock_;
  Random& random_;
  SourceRows& rows_;
  const std::function<void()> lost_;

  // Touched only by whoever has the turn.
  std::unique_ptr<LockSession> session_;
  std::set<std::uint32_t> held_;
  std::set<std::uint32_t> leaving_;  ///< nothing more goes out of them
  std::size_t share_ = 0;            ///< so many are to be held
  std::uint32_t next_;               ///< to be tried; members that begin at different ones meet less
  std::uint32_t members_ = 0;
  SteadyTime unsettled_until_{};
  RetryPause retry_;

  Mutex mutex_;
  Condition changed_;
  bool busy_ SLUICE_GUARDED_BY(mutex_) = false;       ///< somebody has the turn
  bool look_ SLUICE_GUARDED_BY(mutex_) = false;       ///< the session is over
  bool rows_come_ SLUICE_GUARDED_BY(mutex_) = false;  ///< since the last beat
  /// From when the last heartbeat began that was answered.
  owned::OwnLease lease_ SLUICE_GUARDED_BY(mutex_);

  std::jthread thread_;
};

/// A job's side of an outbox: rows as messages, in order within each group, while other hosts have the other buckets.
///
/// Nothing is written when a row is handed out: the source holds the right to it by the locks of its buckets. A
/// completion marks the row on the session that holds them; when that is gone all that is out is `lost`, and comes back
/// to whoever has the bucket next. A source that was not started can settle what another process was handed, under the
/// condition that the row has as many tries as then; it claims nothing.
class OutboxSource final : public Source {
 public:
  OutboxSource(OutboxOptions options, const Selection& selection, Database& database, const Clock& clock,
               Random& random)
      : options_(std::move(options)),
        taking_(selection.job.empty() ? nullptr : options_.jobs->add(selection)),
        database_(database),
        clock_(clock),
        rows_(options_, selection, database, clock, random,
              {.ready = [this] { events_->ready(); },
               .put_aside = [this](const std::vector<Row>& rows) { put_aside(rows); },
               .told = [this] { holder_.rows_come(); },
               .warn = [this](const std::string& text) { warn(text); }}),
        holder_({selection.job, options_.settings.config.buckets}, options_.settings.config.lease, database, clock,
                random, rows_, [this] { events_->lost(rows_.lose_all()); }) {}
  ~OutboxSource() override { stop(); }

  /// False: there was no descriptor left, and it is not to be started.
  bool can_be_woken() const { return rows_.can_be_woken(); }

  const SourceTraits& traits() const override {
    static constexpr SourceTraits kTraits{.groups = true, .runs_ahead = true};
    return kTraits;
  }

  void start(SourceEvents events) override {
    SLUICE_ASSERT(!events_);
    if (events.by_call) {
      return;  // rows are handed out to jobs only, and a claim says so
    }
    events_.emplace(std::move(events));
    holder_.start();
    rows_.start();
  }

  void stop() override {
    if (!events_ || stopped_.exchange(true)) {
      return;
    }
    rows_.stop();
    holder_.stop();
    events_->close();
    if (rows_.nothing_out()) {
      holder_.close();
    }
  }

  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline) override {
    if (!events_) {
      return Error(ErrorCode::invalid, "rows of an outbox are handed out to a host's job only");
    }
    rows_.wait_for_first(clock_.machine_time(deadline.time()));
    Claimed claimed;
    if (holder_.usable()) {
      claimed.deliveries = rows_.take(request);
    }
    if (!claimed.deliveries.empty()) {
      holder_.rows_come();
    } else if (const auto trouble = rows_.trouble()) {
      // No claim has waited for what did not answer in time: the next one need not come later for it.
      const bool silent = trouble->code() == ErrorCode::timeout;
      return Error(silent ? ErrorCode::unavailable : trouble->code(), trouble->message());
    }
    return claimed;
  }

  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline) override {
    const bool started = events_.has_value();
    std::vector<SettleResult> results(completions.size(), {started ? SettleStatus::lost : SettleStatus::applied, {}});
    std::vector<Step> steps;
    for (std::size_t i = 0; i < completions.size(); ++i) {
      const Completion& completion = completions[i];
      const auto key = rows_.key_of(completion.receipt);
      if (!key || (started && !rows_.is_out(completion.receipt))) {
        continue;
      }
      if (auto mark = mark_of(completion, *key, options_.settings.config.retry_limit)) {
        steps.push_back({*std::move(mark), fate_of(completion), &results[i]});
        steps.back().mark.only_if =
            started ? std::nullopt : std::optional(static_cast<std::uint32_t>(completion.receipt.version));
      } else if (started) {
        results[i].status = SettleStatus::applied;
        rows_.end(*key, fate_of(completion));
      }
    }
    if (!steps.empty()) {
      started ? write(steps, deadline) : write_for_others(steps, deadline);
    }
    return results;
  }

  void handled(std::span<const Receipt> receipts) override { rows_.handled(receipts); }
  SendOrder send_order(std::span<const Receipt> receipts) override { return rows_.send_order(receipts); }

  bool holds(std::uint32_t /*part*/) override { return holder_.usable(); }

  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration /*visibility*/,
                                   Deadline /*deadline*/) override {
    std::vector<ExtendResult> results(receipts.size(), {SettleStatus::lost, {}, {}, {}});
    for (std::size_t i = 0; i < receipts.size(); ++i) {
      if (rows_.is_out(receipts[i])) {
        results[i] = {SettleStatus::applied, receipts[i], SteadyTime::max(), {}};
      }
    }
    return results;
  }

 private:
  /// What settling one completion takes.
  struct Step {
    RowEdit mark;
    Fate fate;  ///< of the row, once the mark is written
    SettleResult* result;
  };
  using WriteMarks = std::function<Result<std::vector<MarkStatus>>(std::span<const RowEdit>)>;

  void write(std::span<const Step> steps, Deadline deadline) {
    const auto marks = mapped(steps, &Step::mark);
    const auto on_session = [&](std::span<const RowEdit> some) { return holder_.mark(some, deadline); };
    const auto written = steps.size() > 1 ? on_session(marks) : mark_anyhow(marks, on_session);
    if (written) {
      if (options_.observer) {
        options_.observer->marked(steps.size());
      }
      for (std::size_t i = 0; i < steps.size(); ++i) {
        written_one(steps[i], (*written)[i]);
      }
    } else if (concerns_the_rows(written.error()) && steps.size() > 1) {
      // One of them is to blame, and the others are not to wait for it.
      write(steps.first(steps.size() / 2), deadline);
      write(steps.subspan(steps.size() / 2), deadline);
    } else if (concerns_the_rows(written.error())) {
      const RowKey key = marks[0].key;
      warn("row " + to_string(key) + " cannot be marked, its group waits: " + written.error().message());
      *steps[0].result = {SettleStatus::lost, written.error()};
      rows_.end(key, {Fate::Kind::put_back, kRefusedWait});
    } else if (!ends_session(written.error().code())) {
      for (const Step& step : steps) {
        *step.result = {SettleStatus::failed, written.error()};
      }
    }
    // Otherwise all that was out has gone with the session.
  }

  void written_one(const Step& step, MarkStatus status) {
    const RowKey key = step.mark.key;
    if (status == MarkStatus::gone) {
      rows_.end(key, {Fate::Kind::changed});
      return;
    }
    if (const auto why = reason_to_wait(status)) {
      // The engine knows what its handler has made of the row, and marks it when it comes back.
      warn("row " + to_string(key) + " cannot be marked yet: " + why->message() + "; its mark waits");
      rows_.end(key, {Fate::Kind::put_back, kLockedWait});
      return;
    }
    step.result->status = SettleStatus::applied;
    const auto held = rows_.end(key, step.fate);
    if (!held || !options_.observer) {
      return;
    }
    if (step.mark.sent) {
      options_.observer->published(held->group.type, std::max(clock_.wall_now() - held->sent_at, Duration::zero()));
    } else {
      options_.observer->failed(held->group.type, step.mark.error);
    }
  }

  void write_for_others(std::span<const Step> steps, Deadline deadline) {
    auto session = database_.open_locks(deadline);
    const auto on_session = [&](std::span<const RowEdit> some) { return (*session)->mark(some, deadline); };
    const auto written = session ? mark_anyhow(mapped(steps, &Step::mark), on_session)
                                 : Result<std::vector<MarkStatus>>(session.error());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      SettleResult& result = *steps[i].result;
      if (!written) {
        result = {SettleStatus::failed, written.error()};
      } else if (const auto why = reason_to_wait((*written)[i])) {
        result = {SettleStatus::failed, *why};
      } else if ((*written)[i] == MarkStatus::gone) {
        result.status = SettleStatus::lost;
      }
    }
  }

  // A row's end is worth more than its reason, which may be what the database refuses.
  Result<std::vector<MarkStatus>> mark_anyhow(std::vector<RowEdit> marks, const WriteMarks& write) const {
    auto written = write(marks);
    const bool reasons =
        std::any_of(marks.begin(), marks.end(), [](const RowEdit& mark) { return !mark.error.empty(); });
    if (written || !reasons || !concerns_the_rows(written.error())) {
      return written;
    }
    for (RowEdit& mark : marks) {
      mark.reason = RowEdit::Value::clear;
      mark.error.clear();
    }
    auto bare = write(marks);
    if (bare) {
      warn("row " + to_string(marks[0].key) +
           " is marked without its reason, which the database refuses: " + written.error().message());
    }
    return bare;
  }

  void put_aside(const std::vector<Row>& rows) {
    std::vector<RowEdit> marks;
    for (const Row& row : rows) {
      warn("row " + to_string(row.key()) + " cannot be handed out, it becomes a dead letter: " + row.unreadable);
      marks.push_back(dead_mark(row.key(), options_.settings.config.retry_limit, row.unreadable));
    }
    const auto marked = mark_anyhow(std::move(marks), [this](std::span<const RowEdit> some) {
      return holder_.mark(some, Deadline::after(clock_, kPutAsideTime));
    });
    if (!marked) {
      warn("rows that cannot be handed out could not be put aside, and are tried again: " + marked.error().message());
    }
  }

  void warn(const std::string& text) const {
    if (options_.report) {
      options_.report("outbox " + options_.settings.name + ": " + text);
    }
  }

  // Fixed after construction.
  const OutboxOptions options_;
  const std::shared_ptr<const Selection> taking_;  ///< so that its rows count; null: it is no job's
  Database& database_;
  const Clock& clock_;

  std::optional<EventGate> events_;  ///< nothing: it has not been started, and no thread runs
  std::atomic<bool> stopped_ = false;
  SourceRows rows_;
  LockHolder holder_;
};

}  // namespace

Result<std::unique_ptr<Source>> make_outbox_source(OutboxOptions options, const Selection& selection,
                                                   Database& database, const Clock& clock, Random& random) {
  const std::string name = options.settings.name;
  auto source = std::make_unique<OutboxSource>(std::move(options), selection, database, clock, random);
  if (!source->can_be_woken()) {
    return Error(ErrorCode::unavailable, "outbox:" + name +
                                             " needs a file descriptor, and none is left; raise the limit on open "
                                             "files (ulimit -n)");
  }
  return std::unique_ptr<Source>(std::move(source));
}

}  // namespace sluice::queue::outbox
