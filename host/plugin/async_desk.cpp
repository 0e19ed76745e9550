#include "host/plugin/async_desk.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <thread>

#include "base/assert.hpp"
#include "base/signal_block.hpp"
#include "host/plugin/thrown_by.hpp"
#include "host/queue/moment.hpp"

namespace sluice::plugin {
namespace {

constexpr std::uint64_t kPlaceBits = 24;
constexpr std::uint64_t kMostPlaces = (std::uint64_t{1} << kPlaceBits) - 1;

sluice_token token_of(std::uint64_t turn, std::size_t place) { return turn << kPlaceBits | (place + 1); }
std::uint64_t turn_of(sluice_token token) { return token >> kPlaceBits; }
/// kMostPlaces for the token 0, where no place is.
std::size_t place_of(sluice_token token) { return ((token & kMostPlaces) - 1) & kMostPlaces; }

}  // namespace

/// What `call_after` has promised: sorted by time, and for each message at hand when its stop comes.
class AsyncDesk::Timers : boost::noncopyable {
 public:
  struct Timer {
    SteadyTime wanted;
    Watch* watch;  ///< of its message; null once that has ended
    const DeskUser* user;
    void (*call)(void*);
    void* data;
  };
  using Line = std::multimap<SteadyTime, Timer>;

  void add(Watch& watch, Duration delay, void (*callee)(void*), void* data) SLUICE_EXCLUDES(mutex_);
  /// The stop of its message is requested, or the message has ended: then nobody touches the watch any more.
  void hurry(Watch& watch) noexcept SLUICE_EXCLUDES(mutex_);
  void extended(Watch& watch, Duration duration) noexcept SLUICE_EXCLUDES(mutex_);
  /// Calls what is left of the user's, on this thread.
  void finish(const DeskUser& user) SLUICE_EXCLUDES(mutex_);
  /// Ends the thread, unless somebody has added something. Whoever adds something later begins another one.
  void stop() SLUICE_EXCLUDES(mutex_);

 private:
  static void call(const Timer& due);
  void run(const std::stop_token& stop) SLUICE_EXCLUDES(mutex_);
  bool idle() SLUICE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    // Whoever is called may add something, which waits for the end of the thread while that waits for the call.
    return line_.empty() && ready_.empty() && calling_ == nullptr;
  }
  void make_ready(Watch& watch) SLUICE_REQUIRES(mutex_);
  /// Moves what is due from the line.
  void take_due() SLUICE_REQUIRES(mutex_);

  const SystemClock clock_{};
  Mutex mutex_;
  Condition changed_;
  Line line_ SLUICE_GUARDED_BY(mutex_);
  std::deque<Line::node_type> ready_ SLUICE_GUARDED_BY(mutex_);
  const DeskUser* calling_ SLUICE_GUARDED_BY(mutex_) = nullptr;
  Mutex thread_mutex_;  ///< before mutex_
  std::jthread thread_ SLUICE_GUARDED_BY(thread_mutex_);
};

/// Carries what happens to one message's attempt to its timers.
class Watch final : public AttemptWatcher {
 public:
  Watch(AsyncDesk::Timers& all, const DeskUser& its_user, SteadyTime its_deadline)
      : user(its_user), deadline(its_deadline), timers_(all) {}

  void stop_requested(SteadyTime, bool) noexcept override { timers_.hurry(*this); }
  void extended(Duration duration) noexcept override { timers_.extended(*this, duration); }

  const DeskUser& user;
  // Guarded by the timers' mutex.
  std::vector<AsyncDesk::Timers::Line::iterator> timers;
  SteadyTime deadline;
  bool stopped = false;

 private:
  AsyncDesk::Timers& timers_;
};

void AsyncDesk::Timers::add(Watch& watch, Duration delay, void (*callee)(void*), void* data) {
  const MutexLock thread_lock(thread_mutex_);
  if (!thread_.joinable()) {
    const SignalBlock block;
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  const SteadyTime wanted = queue::until(clock_.steady_now(), delay);
  const MutexLock lock(mutex_);
  watch.timers.reserve(watch.timers.size() + 1);
  const SteadyTime due = watch.stopped ? SteadyTime::min() : std::min(wanted, watch.deadline);
  const auto place = line_.emplace(due, Timer{wanted, &watch, &watch.user, callee, data});
  watch.timers.push_back(place);
  if (watch.stopped) {
    make_ready(watch);
  }
  if (watch.stopped || place == line_.begin()) {
    changed_.notify_all();
  }
}

void AsyncDesk::Timers::make_ready(Watch& watch) {
  for (const Line::iterator timer : watch.timers) {
    timer->second.watch = nullptr;
    ready_.push_back(line_.extract(timer));
  }
  watch.timers.clear();
}

void AsyncDesk::Timers::hurry(Watch& watch) noexcept {
  const MutexLock lock(mutex_);
  watch.stopped = true;
  if (!watch.timers.empty()) {
    make_ready(watch);
    changed_.notify_all();
  }
}

void AsyncDesk::Timers::extended(Watch& watch, Duration duration) noexcept {
  const SteadyTime deadline = queue::until(clock_.steady_now(), duration);
  const MutexLock lock(mutex_);
  // What gets later is seen when the time before has come.
  if (deadline < watch.deadline) {
    for (Line::iterator& timer : watch.timers) {
      auto node = line_.extract(timer);
      node.key() = std::min(node.mapped().wanted, deadline);
      timer = line_.insert(std::move(node));
    }
    changed_.notify_all();
  }
  watch.deadline = deadline;
}

void AsyncDesk::Timers::take_due() {
  const SteadyTime now = clock_.steady_now();
  while (!line_.empty() && line_.begin()->first <= now) {
    Timer& timer = line_.begin()->second;
    Watch& watch = *timer.watch;
    const auto mine = std::find(watch.timers.begin(), watch.timers.end(), line_.begin());
    auto node = line_.extract(line_.begin());
    if (now < node.mapped().wanted && now < watch.deadline) {
      node.key() = std::min(node.mapped().wanted, watch.deadline);
      *mine = line_.insert(std::move(node));
      continue;
    }
    *mine = watch.timers.back();
    watch.timers.pop_back();
    node.mapped().watch = nullptr;
    ready_.push_back(std::move(node));
  }
}

void AsyncDesk::Timers::call(const Timer& due) {
  if (const auto thrown = thrown_by([&due] { due.call(due.data); })) {
    const std::string text = "what was to be called later threw: " + *thrown + "; a defect of the plugin";
    write_log(due.user->log, SLUICE_LOG_ERROR, due.user->job, {}, {text.data(), text.size()});
  }
}

void AsyncDesk::Timers::run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "sluice-timers");
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    take_due();
    if (ready_.empty()) {
      const SteadyTime next = line_.empty() ? SteadyTime::max() : line_.begin()->first;
      changed_.wait_until(mutex_, stop, next, [this, next]() SLUICE_REQUIRES(mutex_) {
        return !ready_.empty() || (!line_.empty() && line_.begin()->first < next);
      });
      continue;
    }
    const Timer due = ready_.front().mapped();
    ready_.pop_front();
    calling_ = due.user;
    lock.unlock();
    call(due);
    lock.lock();
    calling_ = nullptr;
    changed_.notify_all();
  }
}

void AsyncDesk::Timers::finish(const DeskUser& user) {
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait_until(mutex_, SteadyTime::max(), [&]() SLUICE_REQUIRES(mutex_) { return calling_ != &user; });
    const auto left = std::find_if(ready_.begin(), ready_.end(),
                                   [&](const Line::node_type& timer) { return timer.mapped().user == &user; });
    if (left == ready_.end()) {
      return;
    }
    const Timer due = left->mapped();
    ready_.erase(left);
    lock.unlock();
    call(due);
    lock.lock();
  }
}

void AsyncDesk::Timers::stop() {
  const MutexLock thread_lock(thread_mutex_);
  if (thread_.joinable() && idle()) {
    thread_.request_stop();
    thread_.join();
    thread_ = std::jthread();
  }
}

AsyncDesk::AsyncDesk() : timers_(std::make_unique<Timers>()) {}

AsyncDesk& AsyncDesk::instance() {
  static AsyncDesk& desk = *new AsyncDesk;
  return desk;
}

/// What a token's message says, under the lock, so that it does not end meanwhile.
template <typename Answer, typename Ask>
Answer AsyncDesk::ask(sluice_token token, Answer otherwise, Ask question) noexcept {
  AsyncDesk& desk = instance();
  const MutexLock lock(desk.mutex_);
  Place* const place = desk.find(token);
  return place == nullptr ? otherwise : question(place->entry->context());
}

const sluice_async_host& AsyncDesk::table() {
  using Host = sluice_async_host;
  static constexpr Host kTable{
      sizeof(Host),
      0,
      nullptr,
      [](const Host*, sluice_token token, const sluice_outcome* outcome) noexcept {
        return instance().complete(token, outcome);
      },
      [](const Host*, sluice_token token, sluice_log_level level, sluice_string text) noexcept {
        const bool written = ask(token, false, [&](const sluice_context& context) {
          context.log(&context, level, text);
          return true;
        });
        if (!written) {
          instance().refuse(token, "wrote a line to the log of a message that has ended");
        }
      },
      [](const Host*, sluice_token token) noexcept -> std::int32_t {
        return ask(token, std::int32_t{1},
                   [](const sluice_context& context) { return context.stop_requested(&context); });
      },
      [](const Host*, sluice_token token) noexcept -> std::int64_t {
        return ask(token, std::int64_t{0}, [](const sluice_context& context) { return context.time_left(&context); });
      },
      [](const Host*, sluice_token token, std::int64_t duration) noexcept -> std::int32_t {
        return ask(token, std::int32_t{1},
                   [&](const sluice_context& context) { return context.extend(&context, duration); });
      },
      [](const Host*, sluice_token token, const char* id) noexcept -> const void* {
        return ask(token, static_cast<const void*>(nullptr),
                   [&](const sluice_context& context) { return context.extension(&context, id); });
      },
      [](const Host*, sluice_token token, std::int64_t delay, void (*call)(void*), void* data) noexcept {
        return instance().call_after(token, std::max(Duration(delay), Duration::zero()), call, data);
      }};
  return kTable;
}

void AsyncDesk::join(const DeskUser& user) {
  const MutexLock lock(mutex_);
  users_.push_back(&user);
  jobs_.insert(user.job);
}

void AsyncDesk::leave(const DeskUser& user) {
  timers_->finish(user);
  bool last = false;
  {
    const MutexLock lock(mutex_);
    std::erase(users_, &user);
    last = users_.empty();
  }
  if (last) {
    timers_->stop();
  }
}

sluice_token AsyncDesk::open(const DeskUser& user, DeskEntry& entry) {
  const MutexLock lock(mutex_);
  if (free_.empty()) {
    SLUICE_ASSERT(places_.size() < kMostPlaces);
    places_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(places_.size() - 1));
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  Place& place = places_[number];
  ++place.turn;
  std::string().swap(place.last_id);
  place.entry = &entry;
  place.user = &user;
  place.job = &*jobs_.find(user.job);
  return token_of(place.turn, number);
}

AsyncDesk::Place* AsyncDesk::find(sluice_token token) {
  const std::size_t number = place_of(token);
  if (number >= places_.size()) {
    return nullptr;
  }
  Place& place = places_[number];
  return place.turn == turn_of(token) && place.entry != nullptr ? &place : nullptr;
}

void AsyncDesk::note_id(Place& place, const DeskEntry& entry) noexcept {
  try {
    place.last_id = entry.message_id();
  } catch (const std::exception&) {
    // Without memory a second completion is refused without a name.
  }
}

sluice_answer AsyncDesk::complete(sluice_token token, const sluice_outcome* outcome, Breach breach) noexcept {
  DeskEntry* entry = nullptr;
  std::unique_ptr<Watch> watch;
  {
    const MutexLock lock(mutex_);
    if (Place* const place = find(token)) {
      entry = std::exchange(place->entry, nullptr);
      note_id(*place, *entry);
      watch.reset(std::exchange(place->watch, nullptr));
      free_.push_back(static_cast<std::uint32_t>(place_of(token)));
    }
  }
  if (entry == nullptr) {
    return refuse(token, "completed a message that has ended");
  }
  if (watch) {
    entry->attempt().unwatch(*watch);
    timers_->hurry(*watch);
  }
  entry->end(outcome, breach);
  return SLUICE_ACCEPTED;
}

sluice_answer AsyncDesk::call_after(sluice_token token, Duration delay, void (*call)(void*), void* data) noexcept {
  try {
    const MutexLock lock(mutex_);
    if (Place* const place = find(token)) {
      if (place->watch == nullptr) {
        Attempt& attempt = place->entry->attempt();
        const SteadyTime deadline = queue::until(SystemClock().steady_now(), attempt.time_left());
        place->watch = std::make_unique<Watch>(*timers_, *place->user, deadline).release();
        attempt.watch(*place->watch);
      }
      timers_->add(*place->watch, delay, call, data);
      return SLUICE_ACCEPTED;
    }
  } catch (const std::exception&) {
    return SLUICE_NO_MEMORY;
  }
  return SLUICE_STALE;
}

sluice_answer AsyncDesk::refuse(sluice_token token, std::string_view what) noexcept {
  try {
    // Held to the end, so that the user whose log is written does not leave meanwhile.
    const MutexLock lock(mutex_);
    std::string_view job;
    std::string_view id;
    bool twice = false;
    const std::size_t number = place_of(token);
    if (number < places_.size() && turn_of(token) > 0 && turn_of(token) <= places_[number].turn) {
      const Place& place = places_[number];
      twice = place.turn == turn_of(token);
      job = *place.job;
      id = twice ? std::string_view(place.last_id) : std::string_view();
    }
    const std::string text = "the handler " + std::string(what) + " (token " + std::to_string(token) +
                             (job.empty() ? ", which the host has never given"
                              : twice     ? ", completed before"
                                          : ", whose message is long gone") +
                             "): it is refused; a defect of the plugin";
    const auto own = std::find_if(users_.begin(), users_.end(), [&](const DeskUser* user) { return user->job == job; });
    const DeskUser* const user = own != users_.end() ? *own : users_.empty() ? nullptr : users_.back();
    if (user != nullptr && user->log) {
      write_log(user->log, SLUICE_LOG_ERROR, job, id, {text.data(), text.size()});
    } else {  // its host has ended already
      const std::string whose = "job '" + std::string(job) + "', message '" + std::string(id) + "'";
      std::fprintf(stderr, "sluice: %s: %s\n", whose.c_str(), text.c_str());
    }
    return twice ? SLUICE_TWICE : SLUICE_STALE;
  } catch (const std::exception&) {
    return SLUICE_STALE;
  }
}

}  // namespace sluice::plugin
