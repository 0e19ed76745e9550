#include "host/isolation/runner.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <future>
#include <list>

#include "base/guard.hpp"
#include "base/signal_block.hpp"
#include "base/text/utf8.hpp"
#include "host/isolation/state_folder.hpp"

namespace sluice::isolation {
namespace {

/// Above what the descriptors are moved to.
constexpr int kAside = 16;
constexpr std::size_t kMostPlugins = config::kMaxArounds + 1;
static_assert(kPluginDescriptor + kMostPlugins <= kAside);
constexpr int kCannotStart = 127;

/// Everything between fork and exec: only calls that are safe there.
[[noreturn]] void become_runner(const RunnerBirth& birth, char* const* arguments, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SLUICE_GUARD(runner_dies_with_host) ? SIGKILL : 0);
  if (::getppid() != parent) {
    ::_exit(kCannotStart);
  }
  const int adjust = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (adjust >= 0) {
    static_cast<void>(::write(adjust, "1000", 4) < 0);
  }
  const int control = ::fcntl(birth.control->descriptor(), F_DUPFD, kAside);
  const int payload = ::fcntl(birth.payload, F_DUPFD, kAside);
  std::array<int, kMostPlugins> plugins{};
  std::transform(birth.plugin_files.begin(), birth.plugin_files.end(), plugins.begin(),
                 [](int file) { return ::fcntl(file, F_DUPFD, kAside); });
  ::dup2(control, kControlDescriptor);
  ::dup2(payload, kPayloadDescriptor);
  const int count = static_cast<int>(birth.plugin_files.size());
  for (int i = 0; i < count; ++i) {
    ::dup2(plugins.at(static_cast<std::size_t>(i)), kPluginDescriptor + i);
  }
  ::syscall(SYS_close_range, kPluginDescriptor + count, ~0U, 0);
  // As handlers in the host have it: what ends the host by its own rules is not theirs to take.
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    ::sigaddset(&blocked, signal);
  }
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  ::execv("/proc/self/exe", arguments);
  ::_exit(kCannotStart);
}

/// A handler's destructor may flush something.
constexpr Duration kRetireTime = std::chrono::seconds(5);
/// The same once the host itself ends, and its own time is running out.
constexpr Duration kLastTime = std::chrono::seconds(1);

constexpr std::size_t kPayloadAtFirst = 64 * 1024;
/// What a payload keeps between messages; the memory of larger ones is given back.
constexpr std::size_t kPayloadKept = 1024 * 1024;
constexpr Duration kLookTime = std::chrono::milliseconds(300);
constexpr Duration kKillTime = std::chrono::seconds(5);
constexpr Duration kStep = std::chrono::milliseconds(2);
constexpr int kMostHeard = 64;
constexpr Duration kLeastCpuLook = std::chrono::milliseconds(10);
/// From here on a process is taken to have met its memory limit.
constexpr double kNearLimit = 0.8;
constexpr std::string_view kBadAlloc = "bad_alloc";

std::size_t rounded(std::size_t size) {
  std::size_t room = kPayloadAtFirst;
  while (room < size) {
    room *= 2;
  }
  return room;
}

std::optional<plugin::Outcome> read_outcome(const EventHead& head, const std::string& text) {
  if (!queue::core::is_reportable(head.level)) {
    return std::nullopt;
  }
  plugin::Outcome outcome{static_cast<plugin::OutcomeStatus>(head.level), {}, clean_utf8(text, plugin::kReasonLimit)};
  if (head.number >= 0) {
    outcome.delay = std::min(Duration(head.number), plugin::kDelayLimit);
  }
  return outcome;
}

std::string in_handler(const RunnerSpec& spec) {
  return "handler '" + spec.handler + "' of " + spec.plugin.substr(spec.plugin.rfind('/') + 1);
}

std::string memory_note(const RunnerLimits& limits, std::uint64_t used) {
  if (limits.memory == 0 || static_cast<double>(used) < kNearLimit * static_cast<double>(limits.memory)) {
    return "";
  }
  return " (" + std::to_string(used >> 20U) + "MiB in use, and its memory limit is " +
         config::format_size(limits.memory) + ")";
}

/// Of a job's handler, in a process of its own; `message`: empty where it is about none.
void write_log_line(const plugin::HandlerLog& log, const RunnerSpec& spec, std::string_view message, std::int32_t level,
                    std::string_view text) {
  const std::string cleaned = clean_utf8(text, std::string::npos);
  plugin::write_log(log, level, spec.job, message, {cleaned.data(), cleaned.size()});
}

/// How a process ended of which nothing else is known.
std::string exit_text(std::optional<int> status) {
  if (!status) {
    return "its process has ended, and somebody else has taken its exit status";
  }
  if (WIFEXITED(*status)) {
    return "its process ended with exit code " + std::to_string(WEXITSTATUS(*status));
  }
  if (WTERMSIG(*status) == SIGKILL) {
    return "its process was killed by SIGKILL, which this host did not send: most likely memory ran out";
  }
  return "its process was killed by " + signal_name(WTERMSIG(*status));
}

constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr std::uint32_t kMostDoublings = 6;

}  // namespace

Result<std::shared_ptr<RunnerProcess>> RunnerProcess::make(const RunnerBirth& birth) {
  std::string name = "sluice";
  std::string word = kRunnerWord;
  std::string job = birth.job;
  const std::array<char*, 4> arguments{name.data(), word.data(), job.data(), nullptr};
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    become_runner(birth, arguments.data(), parent);
  }
  Descriptor descriptor(pid < 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!descriptor.open()) {
    const int code = errno;
    if (pid > 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    return Error(ErrorCode::unavailable,
                 "no process for a handler of job '" + birth.job + "' can be made: " + std::strerror(code));
  }
  return std::shared_ptr<RunnerProcess>(new RunnerProcess(pid, std::move(descriptor), birth.control));
}

std::optional<Duration> RunnerProcess::cpu_time() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
    return std::nullopt;
  }
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

bool RunnerProcess::reap() {
  int status = 0;
  const pid_t reaped = ::waitpid(pid_, &status, WNOHANG);
  if (reaped == 0) {
    return false;
  }
  if (reaped == pid_) {
    status_.store(status);
  }
  auto& control = *reinterpret_cast<RunnerControl*>(control_->data());
  control.ended.store(1);
  control.events.fetch_add(1);
  futex_wake(control.events);
  return true;
}

namespace asio = boost::asio;
using boost::system::error_code;

/// The Runners that live. Touched only by the spawner's thread, which runs `io`.
class RunnerSpawner::Nursery {
 public:
  Result<std::shared_ptr<RunnerProcess>> make(const RunnerBirth& birth) {
    SLUICE_TRY(made, RunnerProcess::make(birth));
    Descriptor watched(::fcntl((*made)->descriptor(), F_DUPFD_CLOEXEC, kAside));
    asio::posix::stream_descriptor ended(io);
    error_code failed;
    ended.assign(watched.get(), failed);
    if (failed) {
      (*made)->signal(SIGKILL);
      ::waitpid((*made)->pid(), nullptr, 0);
      return Error(ErrorCode::unavailable, "a handler's process cannot be looked after: " + failed.message());
    }
    static_cast<void>(watched.release());
    children_.push_back({*made, std::move(ended), asio::steady_timer(io)});
    await_end(std::prev(children_.end()));
    return made;
  }
  void retire(const std::shared_ptr<RunnerProcess>& process) {
    for (Child& child : children_) {
      if (child.process == process) {
        kill_in(child, kRetireTime);
      }
    }
  }
  void kill_all() {
    for (const Child& child : children_) {
      child.process->signal(SIGKILL);
    }
  }
  /// Those that nobody has told to end do not. With the last of them `io` has nothing more to do.
  void end() {
    for (Child& child : children_) {
      const Duration left = child.kill.expiry() - std::chrono::steady_clock::now();
      kill_in(child, child.retired ? std::min(left, kLastTime) : Duration::zero());
    }
    work_.reset();
  }

  asio::io_context io{1};

 private:
  struct Child {
    std::shared_ptr<RunnerProcess> process;
    asio::posix::stream_descriptor ended;  ///< readable then
    asio::steady_timer kill;
    bool retired = false;
  };

  void await_end(std::list<Child>::iterator child) {
    child->ended.async_wait(asio::posix::stream_descriptor::wait_read, [this, child](const error_code&) {
      if (child->process->reap()) {
        children_.erase(child);
      } else {
        await_end(child);
      }
    });
  }
  static void kill_in(Child& child, Duration span) {
    child.retired = true;
    child.kill.expires_after(span);
    child.kill.async_wait([process = child.process](const error_code& cancelled) {
      if (!cancelled) {
        process->signal(SIGKILL);
      }
    });
  }

  asio::executor_work_guard<asio::io_context::executor_type> work_{io.get_executor()};
  std::list<Child> children_;
};

RunnerSpawner::RunnerSpawner() : nursery_(std::make_unique<Nursery>()) {}

RunnerSpawner::~RunnerSpawner() { stop(); }

Result<void> RunnerSpawner::start() {
  try {
    const asio::steady_timer first(nursery_->io);  // makes the descriptors that `io` works with
  } catch (const boost::system::system_error& failed) {
    return state_file_error("no descriptor to look after handlers' processes", failed.code().value());
  }
  const SignalBlock block;
  return thread_.start([this](const std::stop_token&) { nursery_->io.run(); });
}

void RunnerSpawner::stop() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    asio::post(nursery_->io, [this] { nursery_->end(); });
  }
  thread_.stop();
}

Result<std::shared_ptr<RunnerProcess>> RunnerSpawner::make(const RunnerBirth& birth) {
  const auto made = std::make_shared<std::promise<Result<std::shared_ptr<RunnerProcess>>>>();
  {
    const MutexLock lock(mutex_);
    if (closed_) {
      return Error(ErrorCode::cancelled, "the host ends, and starts no process for a handler any more");
    }
    asio::post(nursery_->io, [this, &birth, made] { made->set_value(nursery_->make(birth)); });
  }
  return made->get_future().get();
}

void RunnerSpawner::retire(std::shared_ptr<RunnerProcess> process) {
  asio::post(nursery_->io, [this, process = std::move(process)] { nursery_->retire(process); });
}

void RunnerSpawner::kill_all() {
  const MutexLock lock(mutex_);
  closed_ = true;
  asio::post(nursery_->io, [this] { nursery_->kill_all(); });
}

Result<OpenPlugin> open_plugin(const std::string& file) {
  auto opened = std::make_shared<const Descriptor>(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  return opened->open() ? Result<OpenPlugin>(std::move(opened))
                        : Error(ErrorCode::invalid, file + " cannot be opened: " + std::strerror(errno));
}

Result<OpenPlugin> open_plugin(const plugin::LoadedPlugin& loaded) {
  const int source = loaded.bytes ? loaded.bytes->descriptor() : loaded.opened->get();
  auto copy = std::make_shared<const Descriptor>(::fcntl(source, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  return copy->open() ? Result<OpenPlugin>(std::move(copy))
                      : Error(ErrorCode::unavailable, loaded.file + " cannot be handed on: " + std::strerror(errno));
}

Runner::~Runner() {
  if (spec_.health) {
    spec_.health->clear();
  }
  plugin::MetricBoard::forget(series_);
  if (process_ && alive()) {
    give_order(RunnerOrder::end);
    spawner_.retire(process_);
  }
}

Result<std::unique_ptr<Runner>> Runner::start(const RunnerSpec& spec, RunnerSpawner& spawner,
                                              const plugin::HandlerLog& log) {
  SLUICE_TRY(control, SharedMemory::create("sluice-runner", sizeof(RunnerControl)));
  SLUICE_TRY(payload, SharedMemory::create("sluice-payload", kPayloadAtFirst));
  auto runner = std::unique_ptr<Runner>(new Runner(spec, spawner, log, std::move(*control), std::move(*payload)));
  const std::string begin = pack_setup({static_cast<const HandlerFacts&>(spec),
                                        spec.options,
                                        {spec.arounds.begin(), spec.arounds.end()},
                                        spec.limits.memory,
                                        spec.effects.store,
                                        spec.effects.keeps_key});
  SLUICE_PASS_ON(runner->put_payload(begin.size()));
  std::memcpy(runner->payload_->data(), begin.data(), begin.size());
  runner->give_order(RunnerOrder::start);
  std::vector<int> files{spec.file->get()};
  std::transform(spec.arounds.begin(), spec.arounds.end(), std::back_inserter(files),
                 [](const RunnerAround& around) { return around.file->get(); });
  auto process = spawner.make({runner->control_memory_, runner->payload_->descriptor(), std::move(files), spec.job});
  SLUICE_PASS_ON(process);
  runner->process_ = std::move(*process);
  runner->made_until_ = runner->clock_.steady_now() + spec.limits.start;
  runner->attend();
  if (runner->refusal_) {
    return Error(ErrorCode::invalid, *runner->refusal_);
  }
  if (runner->open_ > 0) {
    return Error(ErrorCode::invalid, "it cannot be made in a process of its own: " + runner->last_words());
  }
  return runner;
}

Runner::Heard Runner::hear() {
  EventHead head{};
  for (int count = 0; count < kMostHeard; ++count) {
    const EventRing::Found found = events_.read(head, text_);
    if (found == EventRing::Found::nothing) {
      return Heard::all;
    }
    if (found == EventRing::Found::nonsense || !hear_one(head)) {
      return Heard::nonsense;
    }
  }
  return Heard::some;
}

bool Runner::hear_one(const EventHead& head) {
  switch (head.kind) {
    case RunnerEvent::ready:
    case RunnerEvent::refused:
      if (!batch_.empty()) {
        return false;
      }
      open_ = 0;
      refusal_ =
          head.kind == RunnerEvent::refused ? std::optional(clean_utf8(text_, plugin::kReasonLimit)) : std::nullopt;
      return true;
    case RunnerEvent::attempt_log: {
      // A thread of the handler's may go on about a message that has ended.
      const plugin::Work* const work = work_of(head);
      write_log_line(log_, spec_, work != nullptr ? std::string_view(work->message.id) : std::string_view(), head.level,
                     text_);
      return true;
    }
    case RunnerEvent::host_log:
      write_log_line(log_, spec_, {}, head.level, text_);
      return true;
    case RunnerEvent::extended:
      if (const plugin::Work* const work = work_of(head)) {
        work->attempt.extend(Duration(head.number));
      }
      return true;
    case RunnerEvent::outcome:
      return hear_outcome(head);
    case RunnerEvent::metrics:
      return hear_metrics();
    case RunnerEvent::health:
      return hear_health(head);
    case RunnerEvent::effects:
      return hear_effects(head.number);
    case RunnerEvent::checkpoint:
      return hear_checkpoint(head);
    default:
      return false;
  }
}

bool Runner::hear_health(const EventHead& head) {
  const std::string_view text = text_;
  if (head.number < 0 || static_cast<std::uint64_t>(head.number) > text.size()) {
    return false;
  }
  if (spec_.health) {
    const auto name = static_cast<std::size_t>(head.number);
    spec_.health->report(text.substr(0, name), head.level != 0, text.substr(name));
  }
  return true;
}

bool Runner::hear_metrics() {
  const auto changes = unpack_changes(text_);
  return changes && (spec_.metrics == nullptr || std::all_of(changes->begin(), changes->end(), [this](const auto& one) {
                       return spec_.metrics->apply(one, series_);
                     }));
}

bool Runner::hear_effects(std::int64_t total) {
  const bool fits = total >= 0 && static_cast<std::uint64_t>(total) <= kMostPackedEffects &&
                    effects_.size() + text_.size() <= static_cast<std::uint64_t>(total);
  if (fits) {
    effects_ += text_;
  }
  return fits;
}

// The Runner's only thread that could say more waits for the answer.
bool Runner::hear_checkpoint(const EventHead& head) {
  const auto effects = head.level != 0 ? unpack_effects(std::exchange(effects_, {})) : nullptr;
  const plugin::Work* const work = work_of(head);
  if (work == nullptr || (head.level != 0 && effects == nullptr)) {
    return false;
  }
  plugin::CheckpointStore* const store = work->attempt.checkpoints();
  control().answer.put(store == nullptr ? queue::SettleResult{queue::SettleStatus::refused,
                                                              Error(ErrorCode::invalid, "nothing stores progress here")}
                                        : store->checkpoint(text_, effects));
  control().answers.fetch_add(1);
  futex_wake(control().answers);
  return true;
}

bool Runner::hear_outcome(const EventHead& head) {
  std::optional<plugin::Outcome> outcome = read_outcome(head, text_);
  const std::string effects = std::exchange(effects_, {});
  if (!outcome || work_of(head) == nullptr || outcomes_[head.message]) {
    return false;
  }
  if (!effects.empty()) {
    outcome->effects = unpack_effects(effects);
    if (outcome->effects == nullptr || outcome->status != plugin::OutcomeStatus::done) {
      return false;
    }
  }
  outcomes_[head.message] = std::move(outcome);
  --open_;
  return true;
}

void Runner::wait_for_event(std::uint32_t seen, SteadyTime until) {
  const auto happened = [&] { return control().events.load(std::memory_order_acquire) != seen; };
  if (spin_.until(happened)) {
    return;
  }
  const Duration left = until == SteadyTime::max() ? Duration::max() : until - clock_.steady_now();
  control().host_sleeps.store(1);
  if (!happened() && left > Duration::zero()) {
    futex_wait(control().events, seen, left);
  }
  control().host_sleeps.store(0);
}

void Runner::handle(std::span<const plugin::Work> batch, std::span<plugin::Outcome> outcomes) {
  effects_.clear();
  const auto facts_of = [](const plugin::Work& work) {
    return MessageFacts{work.queue, work.max_attempts, work.attempt.first_result().get()};
  };
  std::size_t size = 0;
  for (const plugin::Work& work : batch) {
    size += packed_size(work.message, facts_of(work));
  }
  if (auto room = put_payload(size); !room) {
    const plugin::Outcome later{plugin::OutcomeStatus::snooze, std::chrono::seconds(1), room.error().message()};
    std::fill(outcomes.begin(), outcomes.end(), later);
    return;
  }
  char* at = payload_->data();
  for (const plugin::Work& work : batch) {
    at = pack_message(work.message, facts_of(work), at);
  }
  control().messages = static_cast<std::uint32_t>(batch.size());
  control().deadline = batch.front().attempt.deadline().time_since_epoch().count();
  cpu_before_ =
      spec_.limits.cpu > Duration::zero() ? process_->cpu_time().value_or(Duration::zero()) : Duration::zero();
  batch_ = batch;
  outcomes_.assign(batch.size(), std::nullopt);
  open_ = batch.size();
  give_order(RunnerOrder::messages);
  attend();
  batch_ = {};
  if (size > kPayloadKept) {
    payload_->forget_beyond(kPayloadKept);
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    outcomes[i] =
        outcomes_[i] ? *std::move(outcomes_[i]) : plugin::Outcome{plugin::OutcomeStatus::crashed, {}, last_words()};
    if (spec_.limits.memory > 0 && outcomes[i].status == plugin::OutcomeStatus::fault &&
        outcomes[i].reason.find(kBadAlloc) != std::string::npos) {
      outcomes[i].reason += " (the job's memory limit is " + config::format_size(spec_.limits.memory) + ")";
    }
  }
}

void Runner::attend() {
  while (true) {
    const std::uint32_t seen = control().events.load();
    const bool ended = !alive();
    const Heard heard = hear();
    if (open_ == 0 || (ended && heard != Heard::some)) {
      return;
    }
    if (ended) {
      continue;
    }
    const Bound now =
        heard == Heard::nonsense ? Bound{{}, "it wrote over the memory that it shares with the host"} : bound();
    if (!now.broken.empty()) {
      kill(now.broken);
      return;
    }
    if (heard == Heard::all) {
      wait_for_event(seen, now.look_at);
    }
  }
}

Runner::Bound Runner::bound() const {
  const RunnerLimits& limits = spec_.limits;
  const SteadyTime now = clock_.steady_now();
  Bound bound;
  if (batch_.empty()) {
    bound.look_at = made_until_;
    bound.broken = now < made_until_ ? "" : "it was not made within " + config::format_duration(limits.start);
    return bound;
  }
  // One call times out when the last of its messages does.
  SteadyTime deadline = SteadyTime::min();
  for (const plugin::Work& work : batch_) {
    deadline = std::max(deadline, work.attempt.deadline());
  }
  if (deadline < SteadyTime::max() - limits.kill_grace) {
    bound.look_at = deadline + limits.kill_grace;
    if (now >= bound.look_at) {
      bound.broken = "timed out, and did not stop within " + config::format_duration(limits.kill_grace);
    }
  }
  if (limits.cpu > Duration::zero()) {
    const Duration used = process_->cpu_time().value_or(cpu_before_) - cpu_before_;
    if (used >= limits.cpu) {
      bound.broken = "used up its CPU limit of " + config::format_duration(limits.cpu);
    }
    // Several threads use it up faster than time passes.
    bound.look_at = std::min(bound.look_at, now + std::max(kLeastCpuLook, (limits.cpu - used) / 4));
  }
  return bound;
}

void Runner::kill(std::string why) {
  killed_because_ = std::move(why);
  process_->signal(SIGQUIT);
  const SteadyTime look_until = clock_.steady_now() + kLookTime;
  while (alive() && control().crash.state.load() != CrashRecord::complete && clock_.steady_now() < look_until) {
    futex_wait(control().events, control().events.load(), kStep);
  }
  process_->signal(SIGKILL);
  const SteadyTime gone_by = clock_.steady_now() + kKillTime;
  while (alive() && clock_.steady_now() < gone_by) {
    futex_wait(control().events, control().events.load(), kStep);
  }
}

OpenModules Runner::open_modules() const {
  OpenModules opened;
  std::size_t descriptor = kPluginDescriptor;
  const auto add = [&](const std::string& plugin, const OpenPlugin& file) {
    const OpenModule module{plugin, path_of(file->get())};
    // It was loaded by its name where that was this file still, whatever lies there by now.
    std::error_code code;
    opened[std::filesystem::absolute(plugin, code).string()] = module;
    opened["/proc/" + std::to_string(process_->pid()) + "/fd/" + std::to_string(descriptor++)] = module;
  };
  add(spec_.plugin, spec_.file);
  for (const RunnerAround& around : spec_.arounds) {
    add(around.plugin, around.file);
  }
  return opened;
}

std::string Runner::last_words() const {
  const auto crash = read_crash(control().crash, open_modules());
  const std::string stack = crash && !crash->stack.empty() ? "; stack: " + crash->stack_text() : "";
  const std::string memory = crash ? memory_note(spec_.limits, crash->memory) : "";
  std::string text;
  if (!killed_because_.empty()) {
    text = killed_because_ + ": killed; " + in_handler(spec_) + memory + stack;
  } else if (crash && crash->cause != CrashCause::look) {
    text = crash->summary() + (crash->blamed ? "" : " beside " + in_handler(spec_)) + memory + stack;
  } else {
    text = exit_text(process_->status()) + "; " + in_handler(spec_);
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return clean_utf8(text, plugin::kReasonLimit);
}

void RunnerInstance::forget_runner() {
  write_log_line(log_, spec_, {}, SLUICE_LOG_WARN,
                 "the handler's process has ended between two messages: " + runner_->last_words());
  runner_.reset();
}

std::optional<plugin::Outcome> RunnerInstance::make_ready() {
  if (runner_ && !runner_->alive()) {
    forget_runner();
  }
  if (runner_) {
    return std::nullopt;
  }
  const SteadyTime now = clock_.steady_now();
  if (now >= not_before_) {
    auto started = start();
    if (started) {
      failed_starts_ = 0;
      return std::nullopt;
    }
    why_not_ = started.error().message();
    const Duration pause = kFirstPause * (1U << std::min(failed_starts_++, kMostDoublings));
    not_before_ = clock_.steady_now() + pause;
    write_log_line(log_, spec_, {}, SLUICE_LOG_ERROR, "no process for the handler, messages wait: " + why_not_);
  }
  // Nobody has seen the message: its attempt is given back.
  return plugin::Outcome{plugin::OutcomeStatus::snooze, std::max(not_before_ - clock_.steady_now(), kFirstPause),
                         why_not_};
}

class RunnerInstance::StopCarrier final : public plugin::AttemptWatcher {
 public:
  StopCarrier(Runner& runner, plugin::Attempt& attempt, std::size_t message)
      : runner_(runner), attempt_(attempt), message_(message) {
    attempt_.watch(*this);
  }
  ~StopCarrier() override { attempt_.unwatch(*this); }

  void stop_requested(SteadyTime end, bool lease_lost) noexcept override {
    runner_.request_stop(message_, end, lease_lost);
  }
  void extended(Duration) noexcept override {}  // It is the Runner that has asked for it.

 private:
  Runner& runner_;
  plugin::Attempt& attempt_;
  const std::size_t message_;
};

void RunnerInstance::handle_batch(std::span<const plugin::Work> batch, std::span<plugin::Outcome> outcomes) {
  if (const auto waits = make_ready()) {
    std::fill(outcomes.begin(), outcomes.end(), *waits);
    return;
  }
  runner_->expect_messages(batch.size());
  {
    std::deque<StopCarrier> carriers;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      carriers.emplace_back(*runner_, batch[i].attempt, i);
    }
    runner_->handle(batch, outcomes);
  }
  const auto crashed = [](const plugin::Outcome& outcome) { return outcome.status == plugin::OutcomeStatus::crashed; };
  if (std::none_of(outcomes.begin(), outcomes.end(), crashed)) {
    return;
  }
  const bool killed = spawner_.closed();
  const bool unseen = !killed && !runner_->has_begun();
  unseen ? forget_runner() : runner_.reset();
  for (plugin::Outcome& outcome : outcomes) {
    if (killed && crashed(outcome)) {
      outcome = {plugin::OutcomeStatus::release, {}, "the host has killed its process to stop"};
    } else if (unseen && crashed(outcome)) {
      // Its attempt is given back.
      outcome = {plugin::OutcomeStatus::snooze, kFirstPause, std::move(outcome.reason)};
    }
  }
}

Result<void> Runner::put_payload(std::size_t size) {
  SLUICE_PASS_ON(payload_->grow(rounded(size)));
  control().payload_size = size;
  control().payload_room = payload_->size();
  return {};
}

}  // namespace sluice::isolation
