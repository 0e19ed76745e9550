#include <fcntl.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstring>
#include <exception>

#include "base/signal_block.hpp"
#include "host/isolation/runner.hpp"
#include "host/isolation/state_folder.hpp"

namespace sluice::isolation {
namespace {

constexpr int kUsage = 64;

/// The plugin by its name while that is the file the host has, so that what lies beside it is found too.
std::string plugin_path(const std::string& file) {
  return is_file_at(file, kPluginDescriptor) ? file : "/proc/self/fd/" + std::to_string(kPluginDescriptor);
}

Result<const sluice_handler*> find_handler(const RunnerSetup& start) {
  const plugin::LibraryResult library = plugin::load_library(plugin_path(start.plugin));
  if (library.plugin == nullptr) {
    return Error(ErrorCode::invalid, library.why);
  }
  if (const sluice_handler* found = plugin::find_handler(*library.plugin, start.handler)) {
    return found;
  }
  return Error(ErrorCode::invalid, start.plugin + " has no handler \"" + start.handler + "\" any more");
}

void limit_memory(std::uint64_t bytes) {
  if (bytes > 0) {
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_DATA, &limit);
  }
}

/// What a Runner tells its host. Thread-safe: a plugin's own threads may log at any time. The host listens while a
/// message is at work, and a full ring is waited for then; between messages what does not fit is lost, and counted.
class RunnerVoice final : public plugin::AttemptWatcher {
 public:
  explicit RunnerVoice(RunnerControl& control) : writer_(control) {}

  /// Whether the host listens.
  void heard(bool listens) { heard_.store(listens); }
  void ready() { say(RunnerEvent::ready, 0, 0, {}); }
  void refused(std::string_view why) { say(RunnerEvent::refused, 0, 0, why); }
  void log(bool of_attempt, std::int32_t level, std::string_view text) {
    say(of_attempt ? RunnerEvent::attempt_log : RunnerEvent::host_log, level, 0, text);
  }
  void health(std::string_view part, bool works, std::string_view text) {
    say(RunnerEvent::health, works ? 1 : 0, static_cast<std::int64_t>(part.size()),
        std::string(part) + std::string(text));
  }
  void checkpoint(std::string_view bytes, const queue::Effects* effects) {
    say_effects(effects);
    say(RunnerEvent::checkpoint, effects != nullptr ? 1 : 0, 0, bytes);
  }
  void outcome(const plugin::Outcome& outcome) {
    say_effects(outcome.effects.get());
    say(RunnerEvent::outcome, static_cast<std::int32_t>(outcome.status), outcome.delay ? outcome.delay->count() : -1,
        outcome.reason);
  }
  void extended(Duration duration) noexcept override { say(RunnerEvent::extended, 0, duration.count(), {}); }
  void stop_requested(SteadyTime, bool) noexcept override {}  // The host knows: it has asked for it.

 private:
  void say_effects(const queue::Effects* staged) {
    const std::string effects = staged != nullptr ? pack_effects(*staged) : std::string();
    for (std::size_t at = 0; at < effects.size(); at += kEventTextLimit) {
      say(RunnerEvent::effects, 0, static_cast<std::int64_t>(effects.size()),
          std::string_view(effects).substr(at, kEventTextLimit));
    }
  }
  void say(RunnerEvent kind, std::int32_t level, std::int64_t number, std::string_view text) noexcept {
    const MutexLock lock(mutex_);
    if (lost_ > 0) {
      const std::string note = std::to_string(lost_) + " log lines between two messages were lost: too many at once";
      if (writer_.write(RunnerEvent::host_log, SLUICE_LOG_WARN, 0, note)) {
        lost_ = 0;
      }
    }
    while (!writer_.write(kind, static_cast<std::int16_t>(level), number, text)) {
      if (!heard_.load()) {
        ++lost_;
        return;
      }
      writer_.wait_for_room();
    }
  }

  // Synchronises itself.
  std::atomic<bool> heard_{true};
  // Guarded by mutex_.
  Mutex mutex_;
  EventWriter writer_ SLUICE_GUARDED_BY(mutex_);
  std::uint64_t lost_ SLUICE_GUARDED_BY(mutex_) = 0;
};

/// What the handler says of what it works with goes to the host.
class SpokenHealth final : public plugin::HealthSeat {
 public:
  explicit SpokenHealth(RunnerVoice& voice) : voice_(voice) {}

  void report(std::string_view part, bool works, std::string_view text) noexcept override {
    try {
      voice_.health(part, works, text.substr(0, plugin::kHealthTextLimit));
    } catch (const std::exception&) {
      // Without memory nothing is said.
    }
  }
  void clear() noexcept override {}  // The host does it when the process ends.

 private:
  RunnerVoice& voice_;
};

/// Asks the host to store progress, and waits for what it says: it answers, or ends this process.
class AskedCheckpoints final : public plugin::CheckpointStore {
 public:
  AskedCheckpoints(RunnerControl& control, RunnerVoice& voice) : control_(control), voice_(voice) {}

  queue::SettleResult checkpoint(std::string_view bytes, std::shared_ptr<const queue::Effects> effects) override {
    const std::uint32_t seen = control_.answers.load();
    voice_.checkpoint(bytes, effects.get());
    while (control_.answers.load() == seen) {
      futex_wait(control_.answers, seen, Duration::max());
    }
    return control_.answer.get();
  }

 private:
  RunnerControl& control_;
  RunnerVoice& voice_;
};

/// A Runner from its first order to its last. One thread runs handlers; a second one carries the host's stop to them.
class RunnerBody {
 public:
  RunnerBody(std::unique_ptr<SharedMemory> control, std::unique_ptr<SharedMemory> payload)
      : control_memory_(std::move(control)),
        payload_(std::move(payload)),
        control_(*reinterpret_cast<RunnerControl*>(control_memory_->data())),
        voice_(control_),
        attempt_(clock_) {}

  int run();

 private:
  RunnerOrder next_order();
  std::string_view payload_bytes();
  bool begin();
  void work();
  void arm();
  /// Under `arming_`.
  void carry_stop(std::uint32_t asked);
  void carry_stops(const std::stop_token& stop);

  const SystemClock clock_;
  SeededRandom random_;
  const std::unique_ptr<SharedMemory> control_memory_;
  const std::unique_ptr<SharedMemory> payload_;
  RunnerControl& control_;
  RunnerVoice voice_;
  AskedCheckpoints checkpoints_{control_, voice_};
  HandlerFacts facts_;
  std::unique_ptr<plugin::HandlerInstance> instance_;
  WireMessage message_;
  std::uint32_t orders_seen_ = 0;
  SpinBudget spin_;
  /// Between the end of a message and the next one no stop may reach the attempt.
  Mutex arming_;
  plugin::Attempt attempt_;
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
      case RunnerOrder::message:
        work();
        break;
      default:
        stop_carrier_.request_stop();
        control_.stop.fetch_add(RunnerControl::kNews);
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
  facts_ = static_cast<const HandlerFacts&>(*start);
  handler_begins({&facts_, {}, 0});
  const auto handler = find_handler(*start);
  ::close(kPluginDescriptor);
  if (!handler) {
    voice_.refused(handler.error().message());
    return false;
  }
  auto log = [this](sluice_log_level level, std::string_view, std::string_view id, std::string_view text) {
    voice_.log(!id.empty(), level, text);
  };
  auto instance = plugin::HandlerInstance::create(
      {std::move(log), {start->effects, start->keeps_key, &random_, &clock_}, std::make_shared<SpokenHealth>(voice_)},
      **handler, start->job, start->options);
  handler_returns();
  if (!instance) {
    voice_.refused(instance.error().message());
    return false;
  }
  instance_ = std::move(*instance);
  stop_carrier_ = std::jthread([this](const std::stop_token& stop) { carry_stops(stop); });
  voice_.ready();
  voice_.heard(false);
  return true;
}

void RunnerBody::work() {
  voice_.heard(true);
  if (!unpack_message(payload_bytes(), message_)) {
    voice_.outcome({plugin::OutcomeStatus::fault, {}, "the message could not be read by the handler's process"});
    voice_.heard(false);
    return;
  }
  arm();
  attempt_.watch(voice_);
  handler_begins({&facts_, message_.message.id, 0});
  const plugin::Outcome outcome = instance_->handle(message_.message, message_.queue, message_.max_attempts, attempt_);
  handler_returns();
  attempt_.unwatch(voice_);
  voice_.outcome(outcome);
  voice_.heard(false);
}

void RunnerBody::arm() {
  const MutexLock lock(arming_);
  attempt_.arm(SteadyTime(Duration(control_.deadline)));
  attempt_.set_first_result(message_.first_result);
  attempt_.set_checkpoints(&checkpoints_);
  carry_stop(control_.stop.load());
}

void RunnerBody::carry_stop(std::uint32_t asked) {
  if ((asked & RunnerControl::kLost) != 0) {
    attempt_.lose_lease();
  } else if ((asked & RunnerControl::kStop) != 0) {
    attempt_.request_stop(SteadyTime(Duration(control_.stop_end.load())));
  }
}

void RunnerBody::carry_stops(const std::stop_token& stop) {
  const SignalBlock block;
  std::uint32_t seen = 0;
  while (!stop.stop_requested()) {
    futex_wait(control_.stop, seen, Duration::max());
    const MutexLock lock(arming_);
    // What was asked for a message that has ended is gone by now.
    seen = control_.stop.load();
    carry_stop(seen);
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
  ::fcntl(kPluginDescriptor, F_SETFD, FD_CLOEXEC);
  return RunnerBody(std::move(*control), std::move(*payload)).run();
}

}  // namespace sluice::isolation
