#include "host/stores/outbox/session_threads.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "base/signal_block.hpp"

namespace sluice::queue::outbox {

namespace {

constexpr Duration kReadTime = std::chrono::seconds(30);
// A wait that nothing ends is begun anew, so that a connection which died unnoticed is found out.
constexpr Duration kLongestWait = std::chrono::seconds(30);

}  // namespace

RowReader::RowReader(RowScheduler::Settings settings, Database& database, const Clock& clock, Random& random,
                     Events events)
    : database_(database),
      clock_(clock),
      random_(random),
      events_(std::move(events)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      scheduler_(std::move(settings)) {
  SLUICE_ASSERT(wake_.open());
}

void RowReader::start() {
  const SignalBlock quiet;
  thread_ = std::jthread([this](const std::stop_token& stop) { run_until(stop); });
}

void RowReader::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    wake_reader();
    thread_.join();
  }
}

bool RowReader::changed() {
  if (std::exchange(reader_waits_, false)) {
    wake_reader();
  }
  changed_.notify_all();
  return scheduler_.ready() && std::exchange(claimer_waits_, false);
}

std::vector<Row> RowReader::take(std::size_t max, std::size_t bytes) {
  const MutexLock lock(mutex_);
  auto rows = scheduler_.take(max, bytes);
  claimer_waits_ = !scheduler_.ready();
  if (!rows.empty() && std::exchange(reader_waits_, false)) {
    wake_reader();
  }
  return rows;
}

void RowReader::wait_for_first(SteadyTime until) {
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, until, [this]() SLUICE_REQUIRES(mutex_) {
    return scheduler_.ready() || scheduler_.read_once() || locks_trouble_ || reader_trouble_;
  });
}

void RowReader::wake_reader() {
  const std::uint64_t one = 1;
  // It fails only where the counter is full, and then the descriptor is readable anyway.
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void RowReader::note_trouble(std::optional<Error> RowReader::*place, std::optional<Error> error) {
  const MutexLock lock(mutex_);
  this->*place = std::move(error);
  changed_.notify_all();
}

std::optional<Error> RowReader::trouble() const {
  const MutexLock lock(mutex_);
  return locks_trouble_ ? locks_trouble_ : reader_trouble_;
}

void RowReader::run_until(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (!session_ && !connect()) {
      pause(stop);
      continue;
    }
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
    if (stop.stop_requested()) {
      return;
    }
    const ReadOrder order = next_read();
    if (order.kind == ReadOrder::Kind::none) {
      wait(order);
    } else if (!read(order)) {
      pause(stop);
    }
  }
}

bool RowReader::connect() {
  auto opened = database_.open_reader(Deadline::after(clock_, kConnectTime));
  if (!opened) {
    failed(opened.error());
    return false;
  }
  const auto source = (*opened)->source_id(Deadline::after(clock_, kConnectTime));
  if (!source) {
    failed(source.error());
    return false;
  }
  events_.named(*source);
  session_ = std::move(*opened);
  return true;
}

void RowReader::failed(const Error& error) {
  if (ends_session(error.code())) {
    session_.reset();
  }
  note_trouble(&RowReader::reader_trouble_, error);
}

ReadOrder RowReader::next_read() {
  const MutexLock lock(mutex_);
  ReadOrder order = scheduler_.next_read(clock_.steady_now());
  reader_waits_ = order.kind == ReadOrder::Kind::none;
  return order;
}

void RowReader::wait(const ReadOrder& order) {
  const SteadyTime until = std::min(order.wake, clock_.steady_now() + kLongestWait);
  const auto news = session_->wait(wake_.get(), Deadline::at(until));
  if (!news) {
    failed(news.error());
    return;
  }
  note_trouble(&RowReader::reader_trouble_, std::nullopt);
  if (*news == ReadSession::News::none) {
    return;
  }
  run([&](RowScheduler& rows) {
    if (*news == ReadSession::News::rows) {
      rows.rows_told(clock_.steady_now());
    } else {
      rows.change_told(clock_.steady_now());
    }
    return true;
  });
}

bool RowReader::read(const ReadOrder& order) {
  const Deadline deadline = Deadline::after(clock_, kReadTime);
  std::optional<Error> error;
  std::vector<Row> aside;
  const auto answered = [&](auto answer, auto taken_up) {
    error = answer ? std::nullopt : std::optional(answer.error());
    aside = run([&](RowScheduler& rows) {
      if (!answer) {
        rows.read_failed();
        return std::vector<Row>();
      }
      return (rows.*taken_up)(order, std::move(*answer), clock_.steady_now());
    });
  };
  if (order.kind == ReadOrder::Kind::page) {
    answered(session_->fetch(order.request, deadline), &RowScheduler::page_read);
  } else {
    answered(session_->fetch_groups(order.groups, order.request.limit, order.request, deadline),
             &RowScheduler::groups_read);
  }
  if (error) {
    failed(*error);
    return false;
  }
  retry_.worked();
  note_trouble(&RowReader::reader_trouble_, std::nullopt);
  if (!aside.empty()) {
    events_.put_aside(aside);
  }
  const bool crowded = run([](RowScheduler& rows) { return rows.crowded(); });
  if (!std::exchange(crowded_, crowded) && crowded) {
    events_.crowded();
  }
  return true;
}

void RowReader::pause(const std::stop_token& stop) {
  const Duration wait = retry_.next(random_);
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, stop, clock_.machine_time(clock_.steady_now() + wait), [] { return false; });
}

namespace {

// While buckets change hands.
constexpr Duration kQuickBeat = std::chrono::milliseconds(100);
constexpr Duration kUnsettled = std::chrono::seconds(10);

}  // namespace

class LockHolder::Turn {
 public:
  /// Waits for it until the deadline.
  Turn(LockHolder& holder, SteadyTime until) : holder_(holder) {
    const MutexLock lock(holder_.mutex_);
    mine_ = holder_.changed_.wait_until(holder_.mutex_, until,
                                        [&]() SLUICE_REQUIRES(holder_.mutex_) { return !holder_.busy_; });
    holder_.busy_ = holder_.busy_ || mine_;
  }
  ~Turn() { give_back(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  void give_back() {
    if (mine_) {
      const MutexLock lock(holder_.mutex_);
      holder_.busy_ = false;
      mine_ = false;
      holder_.changed_.notify_all();
    }
  }
  bool mine() const { return mine_; }
  std::unique_ptr<LockSession>& session() { return holder_.session_; }

 private:
  LockHolder& holder_;
  bool mine_ = false;
};

LockHolder::LockHolder(Settings settings, Database& database, const Clock& clock, Random& random, RowReader& rows,
                       std::function<void()> lost)
    : settings_(std::move(settings)),
      database_(database),
      clock_(clock),
      random_(random),
      rows_(rows),
      lost_(std::move(lost)),
      share_(settings_.space.buckets, static_cast<std::uint32_t>(random.below(settings_.space.buckets))),
      lease_clock_(clock),
      lease_(settings_.lease) {}

LockHolder::~LockHolder() { stop(); }

void LockHolder::start() {
  const SignalBlock quiet;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void LockHolder::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
}

void LockHolder::close() {
  Turn turn(*this, SteadyTime::max());
  turn.session().reset();
  const MutexLock lock(mutex_);
  lease_.gone();
}

bool LockHolder::usable() {
  const MutexLock lock(mutex_);
  return lease_.holds(lease_clock_.now());
}

SteadyTime LockHolder::lease_now() {
  const MutexLock lock(mutex_);
  return lease_clock_.now();
}

Deadline LockHolder::beat_deadline() {
  const MutexLock lock(mutex_);
  return Deadline::at(clock_.steady_now() + (lease_.ends() - lease_clock_.now()));
}

template <typename T>
bool LockHolder::answered(Turn& turn, const Result<T>& result, SteadyTime asked_at) {
  if (result) {
    alive(asked_at);
  } else if (ends_session(result.error().code())) {
    over(turn, result.error());
  } else {
    rows_.locks_trouble(result.error());
  }
  return result.has_value();
}

// Whether the lease before had ended is the session's to say.
void LockHolder::alive(SteadyTime asked_at) {
  const MutexLock lock(mutex_);
  static_cast<void>(lease_.renewed(asked_at, lease_clock_.now()));
}

void LockHolder::over(Turn& turn, const Error& error) {
  turn.session().reset();
  {
    const MutexLock lock(mutex_);
    lease_.gone();
    share_lost_ = true;
    look_ = true;
  }
  // While nobody else has the turn, so that what is taken next comes after it.
  rows_.locks_trouble(error);
  lost_();
}

Result<std::vector<MarkStatus>> LockHolder::mark(std::span<const Mark> marks, Deadline deadline) {
  Turn turn(*this, deadline.time());
  if (!turn.mine()) {
    return Error(ErrorCode::throttled, "the session that writes marks was busy until the deadline");
  }
  if (!turn.session()) {
    return Error(ErrorCode::unavailable, "the session that held the rows has ended");
  }
  const SteadyTime asked_at = lease_now();
  auto marked = turn.session()->mark(marks, deadline);
  if (marked || ends_session(marked.error().code())) {
    answered(turn, marked, asked_at);
  }
  return marked;
}

void LockHolder::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Duration pause = kQuickBeat;
    {
      Turn turn(*this, SteadyTime::max());
      {
        const MutexLock lock(mutex_);
        look_ = false;
        if (std::exchange(share_lost_, false)) {
          share_.lost_all();
          members_ = 0;
        }
      }
      const bool works = turn.session() ? beat(turn) : connect(turn);
      const SteadyTime now = clock_.steady_now();
      if (works) {
        rows_.locks_trouble(std::nullopt);
        retry_.worked();
        pause = next_beat(now);
      } else {
        pause = retry_.next(random_);
      }
    }
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, stop, clock_.machine_time(clock_.steady_now() + pause),
                        [this]() SLUICE_REQUIRES(mutex_) { return look_; });
  }
}

Duration LockHolder::next_beat(SteadyTime now) const {
  const bool busy = !share_.settled() && (now < unsettled_until_ || share_.leaving());
  return busy ? kQuickBeat : beat_every_;
}

bool LockHolder::connect(Turn& turn) {
  const SteadyTime asked_at = lease_now();
  const Deadline deadline = Deadline::after(clock_, kConnectTime);
  auto opened = database_.open_locks(deadline);
  if (!opened) {
    rows_.locks_trouble(opened.error());
    return false;
  }
  const auto members = (*opened)->join(settings_.space, deadline);
  if (!members) {
    rows_.locks_trouble(members.error());
    return false;
  }
  if (members->other_buckets != 0) {
    rows_.locks_trouble(Error(ErrorCode::unavailable,
                              "other hosts share the outbox into " + std::to_string(members->other_buckets) +
                                  " buckets, and this one into " + std::to_string(settings_.space.buckets) +
                                  "; give all of them the same 'buckets' (this one waits until they have ended)"));
    return false;
  }
  turn.session() = std::move(*opened);
  beat_every_ = turn.session()->beat_every(settings_.lease);
  alive(asked_at);
  return share_out(turn, members->count);
}

bool LockHolder::beat(Turn& turn) {
  const SteadyTime asked_at = lease_now();
  const auto members = turn.session()->beat(beat_deadline());
  return answered(turn, members, asked_at) && share_out(turn, members->count);
}

bool LockHolder::share_out(Turn& turn, std::uint32_t members) {
  if (members != std::exchange(members_, members)) {
    unsettled_until_ = clock_.steady_now() + kUnsettled;
  }
  if (const auto surplus = share_.shared_by(members); !surplus.empty()) {
    rows_.run([&](RowScheduler& rows) { return rows.leave_buckets(surplus), true; });
  }
  const auto nothing_out = [this](std::uint32_t bucket) {
    return rows_.run([bucket](RowScheduler& rows) { return rows.out_of(bucket) == 0; });
  };
  if (const auto free = share_.free_to_go(nothing_out); !free.empty()) {
    if (!give_back(turn, free)) {
      return false;
    }
    share_.unlocked(free);
  }
  share_.begin_round();
  for (auto wanted = share_.to_try(); !wanted.empty(); wanted = share_.to_try()) {
    const SteadyTime asked_at = lease_now();
    const auto locked = turn.session()->lock(wanted, beat_deadline());
    if (!answered(turn, locked, asked_at)) {
      return false;
    }
    const auto got = share_.locked(*locked);
    if (!got.surplus.empty() && !give_back(turn, got.surplus)) {
      return false;
    }
    if (!got.held.empty()) {
      rows_.run([&](RowScheduler& rows) { return rows.take_buckets(got.held), true; });
    }
  }
  return true;
}

bool LockHolder::give_back(Turn& turn, std::span<const std::uint32_t> buckets) {
  const SteadyTime asked_at = lease_now();
  return answered(turn, turn.session()->unlock(buckets, beat_deadline()), asked_at);
}

}  // namespace sluice::queue::outbox
