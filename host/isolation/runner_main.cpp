#include <fcntl.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>

#include "base/signal_block.hpp"
#include "host/isolation/runner.hpp"
#include "host/isolation/state_folder.hpp"
#include "host/plugin/around.hpp"

namespace sluice::isolation {
namespace {

constexpr int kUsage = 64;

/// The plugin by its name while that is the file the host has, so that what lies beside it is found too.
std::string plugin_path(const std::string& file, int descriptor) {
  return is_file_at(file, descriptor) ? file : path_of(descriptor);
}

/// Of the plugin in this file, or behind the descriptor, which is closed.
Result<const sluice_handler*> find_handler(const std::string& file, const std::string& name, int descriptor) {
  const Descriptor given(descriptor);
  const plugin::LibraryResult library = plugin::load_library(plugin_path(file, descriptor));
  if (library.plugin == nullptr) {
    return Error(ErrorCode::invalid, file + " " + library.why);
  }
  if (const sluice_handler* found = plugin::find_handler(*library.plugin, name)) {
    return found;
  }
  return Error(ErrorCode::invalid, file + " has no handler \"" + name + "\" any more");
}

Result<std::vector<plugin::AroundSpec>> find_arounds(const RunnerSetup& start) {
  std::vector<plugin::AroundSpec> arounds;
  for (const AroundFacts& around : start.arounds) {
    const int descriptor = kPluginDescriptor + 1 + static_cast<int>(arounds.size());
    SLUICE_TRY(handler, find_handler(around.plugin, around.handler, descriptor));
    arounds.push_back({*handler, around.options});
  }
  return arounds;
}

void limit_memory(std::uint64_t bytes) {
  if (bytes > 0) {
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_DATA, &limit);
  }
}

/// What a Runner tells its host. Thread-safe: a plugin's own threads may log at any time. The host listens while a
/// message is at work, and a full ring is waited for then; between messages what does not fit is lost, and counted.
class RunnerVoice final : public plugin::HealthSeat {
 public:
  explicit RunnerVoice(RunnerControl& control) : events_(control) {}

  /// What the handler says of what it works with. The host forgets it when the process ends.
  void report(std::string_view part, bool works, std::string_view text) noexcept override {
    try {
      say(RunnerEvent::health, works ? 1 : 0, static_cast<std::int64_t>(part.size()),
          std::string(part).append(text.substr(0, plugin::kHealthTextLimit)));
    } catch (const std::exception&) {
      // Without memory nothing is said.
    }
  }
  void clear() noexcept override {}

  /// Whether the host listens.
  void heard(bool listens) { heard_.store(listens); }
  void ready() { say(RunnerEvent::ready, 0, 0, {}); }
  void refused(std::string_view why) { say(RunnerEvent::refused, 0, 0, why); }
  void host_log(std::int32_t level, std::string_view text) { say(RunnerEvent::host_log, level, 0, text); }
  void log(std::size_t message, std::int32_t level, std::string_view text) {
    say(RunnerEvent::attempt_log, level, 0, text, message);
  }
  void metrics(plugin::MetricBoard& board) {
    for (const std::string& piece : pack_changes(board.take_changes())) {
      say(RunnerEvent::metrics, 0, 0, piece);
    }
  }
  void checkpoint(std::size_t message, std::string_view bytes, const queue::Effects* effects) {
    say_effects(message, effects);
    say(RunnerEvent::checkpoint, effects != nullptr ? 1 : 0, 0, bytes, message);
  }
  void outcome(std::size_t message, const plugin::Outcome& outcome) {
    say_effects(message, outcome.effects.get());
    say(RunnerEvent::outcome, static_cast<std::int32_t>(outcome.status), outcome.delay ? outcome.delay->count() : -1,
        outcome.reason, message);
  }
  void extended(std::size_t message, Duration duration) noexcept {
    say(RunnerEvent::extended, 0, duration.count(), {}, message);
  }

 private:
  void say_effects(std::size_t message, const queue::Effects* staged) {
    const std::string effects = staged != nullptr ? pack_effects(*staged) : std::string();
    for (std::size_t at = 0; at < effects.size(); at += kEventTextLimit) {
      say(RunnerEvent::effects, 0, static_cast<std::int64_t>(effects.size()),
          std::string_view(effects).substr(at, kEventTextLimit), message);
    }
  }
  void say(RunnerEvent kind, std::int32_t level, std::int64_t number, std::string_view text,
           std::size_t message = 0) noexcept {
    const MutexLock lock(mutex_);
    if (lost_ > 0) {
      const std::string note = std::to_string(lost_) + " log lines between two messages were lost: too many at once";
      if (events_.write(RunnerEvent::host_log, SLUICE_LOG_WARN, 0, note)) {
        lost_ = 0;
      }
    }
    while (!events_.write(kind, static_cast<std::int16_t>(level), number, text, message)) {
      if (!heard_.load()) {
        ++lost_;
        return;
      }
      events_.wait_for_room();
    }
  }

  // Synchronises itself.
  std::atomic<bool> heard_{true};
  // Guarded by mutex_.
  Mutex mutex_;
  EventRing events_ SLUICE_GUARDED_BY(mutex_);
  std::uint64_t lost_ SLUICE_GUARDED_BY(mutex_) = 0;
};

/// One of the messages that came with an order, and its attempt. Asks the host to store its progress, and waits for
/// what it says: it answers, or ends this process.
class RunnerMessage final : public plugin::AttemptWatcher, public plugin::CheckpointStore {
 public:
  RunnerMessage(RunnerControl& control, RunnerVoice& voice, const Clock& clock, std::size_t number)
      : attempt(clock), control_(control), voice_(voice), number_(number) {}

  void extended(Duration duration) noexcept override { voice_.extended(number_, duration); }
  void stop_requested(SteadyTime, bool) noexcept override {}  // The host knows: it has asked for it.
  queue::SettleResult checkpoint(std::string_view bytes, std::shared_ptr<const queue::Effects> effects) override {
    const std::uint32_t seen = control_.answers.load();
    voice_.checkpoint(number_, bytes, effects.get());
    while (control_.answers.load() == seen) {
      futex_wait(control_.answers, seen, Duration::max());
    }
    return control_.answer.get();
  }

  plugin::Work work() { return {wire.message, wire.queue, wire.max_attempts, attempt}; }

  WireMessage wire;
  plugin::Attempt attempt;

 private:
  RunnerControl& control_;
  RunnerVoice& voice_;
  const std::size_t number_;
};

/// A Runner from its first order to its last. One thread runs handlers; a second one carries the host's stop to them.
class RunnerBody {
 public:
  RunnerBody(std::unique_ptr<SharedMemory> control, std::unique_ptr<SharedMemory> payload)
      : control_memory_(std::move(control)),
        payload_(std::move(payload)),
        control_(*reinterpret_cast<RunnerControl*>(control_memory_->data())),
        voice_(control_) {}

  int run();

 private:
  RunnerOrder next_order();
  std::string_view payload_bytes();
  bool begin();
  void work();
  /// The messages that came with an order, at work from now on; none where they cannot be read.
  std::vector<plugin::Work> unpack();
  /// The number of the message that is at work under this id; nothing where there is none.
  std::optional<std::size_t> number_of(std::string_view id);
  /// Under `arming_`.
  void carry_stop(std::size_t number) SLUICE_REQUIRES(arming_);
  void carry_stops(const std::stop_token& stop);

  const SystemClock clock_;
  SeededRandom random_;
  const std::unique_ptr<SharedMemory> control_memory_;
  const std::unique_ptr<SharedMemory> payload_;
  RunnerControl& control_;
  RunnerVoice voice_;
  HandlerFacts facts_;
  std::shared_ptr<plugin::MetricBoard> metrics_;
  std::unique_ptr<plugin::HandlerInstance> instance_;
  std::uint32_t orders_seen_ = 0;
  SpinBudget spin_;
  /// Between the end of messages and the next ones no stop may reach an attempt.
  Mutex arming_;
  std::deque<RunnerMessage> messages_ SLUICE_GUARDED_BY(arming_);  ///< those at work are the first
  std::size_t at_work_ SLUICE_GUARDED_BY(arming_) = 0;
  std::jthread stop_carrier_;
};

int RunnerBody::run() {
  install_crash_handler(&control_.crash, CrashNotice::none);
  install_look_handler(SIGQUIT);
  while (true) {
    switch (next_order()) {
      case RunnerOrder::start:
        if (!begin()) {
          return 0;
        }
        break;
      case RunnerOrder::messages:
        work();
        break;
      default:
        stop_carrier_.request_stop();
        control_.stop.fetch_add(1);
        futex_wake(control_.stop);
        instance_.reset();
        return 0;
    }
  }
}

RunnerOrder RunnerBody::next_order() {
  const std::uint32_t seen = orders_seen_;
  if (!spin_.until([&] { return control_.orders.load(std::memory_order_acquire) != seen; })) {
    control_.runner_sleeps.store(1);
    while (control_.orders.load() == seen) {
      futex_wait(control_.orders, seen, Duration::max());
    }
    control_.runner_sleeps.store(0);
  }
  ++orders_seen_;
  return control_.order;
}

std::string_view RunnerBody::payload_bytes() {
  if (!payload_->follow(control_.payload_room) || control_.payload_size > payload_->size()) {
    return {};
  }
  return {payload_->data(), control_.payload_size};
}

bool RunnerBody::begin() {
  auto start = unpack_setup(payload_bytes());
  if (!start) {
    voice_.refused("its own order could not be read: a defect of sluice");
    return false;
  }
  limit_memory(start->memory);
  facts_ = start->facts;
  handler_begins({&facts_, {}, 0});
  const auto handler = find_handler(start->facts.plugin, start->facts.handler, kPluginDescriptor);
  const auto arounds = find_arounds(*start);
  if (!handler || !arounds) {
    voice_.refused(handler ? arounds.error().message() : handler.error().message());
    return false;
  }
  auto log = [this](sluice_log_level level, std::string_view, std::string_view id, std::string_view text) {
    if (const auto number = id.empty() ? std::nullopt : number_of(id)) {
      voice_.log(*number, level, text);
    } else {
      voice_.host_log(level, text);
    }
  };
  metrics_ = std::make_shared<plugin::MetricBoard>(start->facts.job, log);
  auto instance = plugin::make_within({std::move(log),
                                       {start->effects, start->keeps_key, &random_, &clock_},
                                       std::shared_ptr<plugin::HealthSeat>(std::shared_ptr<void>(), &voice_),
                                       metrics_},
                                      **handler, start->facts.job, start->options, *arounds);
  handler_returns();
  if (!instance) {
    voice_.refused(instance.error().message());
    return false;
  }
  instance_ = std::move(*instance);
  stop_carrier_ = std::jthread([this](const std::stop_token& stop) { carry_stops(stop); });
  voice_.metrics(*metrics_);
  voice_.ready();
  voice_.heard(false);
  return true;
}

std::vector<plugin::Work> RunnerBody::unpack() {
  std::string_view bytes = payload_bytes();
  const std::size_t count = std::min<std::size_t>(control_.messages, RunnerControl::kMostMessages);
  const MutexLock lock(arming_);
  while (messages_.size() < count) {
    messages_.emplace_back(control_, voice_, clock_, messages_.size());
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!unpack_message(bytes, messages_[i].wire)) {
      return {};
    }
  }
  if (!bytes.empty()) {
    return {};
  }
  at_work_ = count;
  std::vector<plugin::Work> batch;
  batch.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    RunnerMessage& message = messages_[i];
    message.attempt.arm(SteadyTime(Duration(control_.deadline)));
    message.attempt.set_first_result(message.wire.first_result);
    message.attempt.set_checkpoints(&message);
    message.attempt.watch(message);
    carry_stop(i);
    batch.push_back(message.work());
  }
  return batch;
}

void RunnerBody::work() {
  // From here on what ends the process, such as no memory for them, is these messages' own.
  control_.begun.store(orders_seen_);
  voice_.heard(true);
  const std::vector<plugin::Work> batch = unpack();
  if (batch.empty()) {
    for (std::size_t i = 0; i < control_.messages; ++i) {
      voice_.outcome(i, {plugin::OutcomeStatus::fault, {}, "the message could not be read by the handler's process"});
    }
    voice_.heard(false);
    return;
  }
  std::vector<plugin::Outcome> outcomes(batch.size());
  const bool alone = batch.size() == 1;
  handler_begins({&facts_, alone ? std::string_view(batch.front().message.id) : kOneOfABatch, alone ? 0 : kNoSlot});
  if (alone) {
    outcomes.front() = instance_->handle(batch.front());
  } else {
    instance_->handle_batch(batch, outcomes);
  }
  handler_returns();
  voice_.metrics(*metrics_);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    voice_.outcome(i, outcomes[i]);
  }
  {
    const MutexLock lock(arming_);
    for (std::size_t i = 0; i < at_work_; ++i) {
      messages_[i].attempt.unwatch(messages_[i]);
    }
    at_work_ = 0;
  }
  voice_.heard(false);
}

std::optional<std::size_t> RunnerBody::number_of(std::string_view id) {
  const MutexLock lock(arming_);
  for (std::size_t i = 0; i < at_work_; ++i) {
    if (messages_[i].wire.message.id == id) {
      return i;
    }
  }
  return std::nullopt;
}

void RunnerBody::carry_stop(std::size_t number) {
  const std::uint8_t asked = control_.stops[number].load();
  plugin::Attempt& attempt = messages_[number].attempt;
  if ((asked & RunnerControl::kLost) != 0) {
    attempt.lose_lease();
  } else if ((asked & RunnerControl::kStop) != 0) {
    attempt.request_stop(SteadyTime(Duration(control_.stop_end.load())));
  }
}

void RunnerBody::carry_stops(const std::stop_token& stop) {
  const SignalBlock block;
  std::uint32_t seen = 0;
  while (!stop.stop_requested()) {
    futex_wait(control_.stop, seen, Duration::max());
    seen = control_.stop.load();
    const MutexLock lock(arming_);
    // What was asked for a message that has ended is gone by now.
    for (std::size_t i = 0; i < at_work_; ++i) {
      carry_stop(i);
    }
  }
}

}  // namespace

bool is_runner(int argc, char** argv) { return argc > 1 && std::strcmp(argv[1], kRunnerWord) == 0; }

int run_runner() {
  auto control = SharedMemory::attach(kControlDescriptor);
  auto payload = SharedMemory::attach(kPayloadDescriptor);
  if (!control || !payload || (*control)->size() < sizeof(RunnerControl)) {
    std::fprintf(stderr, "sluice: '%s' is what a host starts by itself, for jobs with isolation = \"process\"\n",
                 kRunnerWord);
    return kUsage;
  }
  for (int descriptor = kPluginDescriptor; ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0; ++descriptor) {
  }
  return RunnerBody(std::move(*control), std::move(*payload)).run();
}

}  // namespace sluice::isolation
