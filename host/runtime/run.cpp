#include "host/runtime/run.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "base/ranges.hpp"
#include "base/text/decimal.hpp"
#include "base/text/joined.hpp"
#include "base/text/json_string.hpp"
#include "host/observe/build_info.hpp"

namespace sluice::runtime {
namespace {

// More values than these are in the JSON alone.
constexpr std::size_t kValuesInText = 5;

/// "12 requests, 3.0 RCU, 40.0 WCU, $0.000025 ($0.0000025 a message)"
std::string usage_text(const cost::Usage& usage, const cost::Prices& prices) {
  const double money = prices.of(usage.spent);
  std::string text = cost::text_of(usage.spent, 0, {}) + ", " + prices.text(money);
  if (usage.messages > 0) {
    text += " (" + prices.text(money / usage.messages) + " a message)";
  }
  return text;
}

/// The members of a usage, for an object that has begun.
std::string usage_json(const cost::Usage& usage, const cost::Prices& prices) {
  return "\"messages\": " + fixed_decimal(usage.messages, 0) +
         ", \"requests\": " + fixed_decimal(usage.spent.requests, 3) +
         ", \"read_units\": " + fixed_decimal(usage.spent.read_units, 3) +
         ", \"write_units\": " + fixed_decimal(usage.spent.write_units, 3) +
         ", \"money\": " + fixed_decimal(prices.of(usage.spent), 10) + "}";
}

cost::Usage sum_of(const cost::CostView& view) {
  cost::Usage sum;
  for (const cost::CostView::Row& row : view.rows) {
    sum += row.total;
  }
  return sum;
}

cost::Usage other_of(const cost::CostView& view) {
  cost::Usage other = view.values.other;
  other += view.values.gone;
  return other;
}

using work::LedgerSnapshot;

double in_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// "claimed 9 = 7 done + 1 retried + 1 rejected, stranded 0"; `whole` names the zeroes too.
std::string sum_text(const LedgerSnapshot& ledger, bool whole) {
  std::string text = "claimed " + std::to_string(ledger.claimed) + " = ";
  const std::size_t begin = text.size();
  for (const work::EndingCount& ending : work::kEndingCounts) {
    const std::uint64_t count = ledger.*ending.count;
    if (count == 0 && !whole) {
      continue;
    }
    text += (text.size() == begin ? "" : " + ") + std::to_string(count) + " " + std::string(ending.name);
  }
  if (text.size() == begin) {
    text += "0";
  }
  return text + ", stranded " + std::to_string(ledger.stranded);
}

std::string sum_json(const LedgerSnapshot& ledger) {
  std::string out = "{\"claimed\":" + std::to_string(ledger.claimed);
  for (const work::EndingCount& ending : work::kEndingCounts) {
    out += ",\"" + std::string(ending.name) + "\":" + std::to_string(ledger.*ending.count);
  }
  return out + ",\"stranded\":" + std::to_string(ledger.stranded) + "}";
}

Error cannot_write(const std::string& path) {
  return {ErrorCode::invalid, "cannot write the drain report " + path + ": " + std::strerror(errno) +
                                  "; give --drain-report a file in a folder that exists and can be written"};
}

constexpr int kInternal = 70;
constexpr int kSignalled = 128;

/// Passes signals on to the host and reaps whatever has ended, until that is the host.
int attend(pid_t host, const sigset_t& signals) {
  for (int signal = 0; sigwait(&signals, &signal) == 0;) {
    if (signal != SIGCHLD) {
      kill(host, signal);
      continue;
    }
    int status = 0;
    for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended == host) {
        return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
      }
    }
  }
  return kInternal;
}

/// Runs `body` and returns its exit code; as process 1 of a container, in a child. Process 1 must reap every orphan,
/// which would take the exit codes of a plugin's own commands away from it. So it stays a small init: it passes signals
/// on, reaps, and ends with the host's exit code (128 + signal when that was killed). Call it before any thread exists.
int run_below_init(const std::function<int()>& body) {
  if (getpid() != 1) {
    return body();
  }
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}) {
    sigaddset(&signals, signal);
  }
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t host = fork();
  if (host < 0) {
    std::fprintf(stderr, "sluice: cannot start the host below process 1: %s\n", std::strerror(errno));
    return kInternal;
  }
  if (host == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return body();
  }
  return attend(host, signals);
}

constexpr int kClean = 0;
constexpr int kAbandoned = 75;
constexpr int kConfiguration = 78;

/// The process has ended a second after the drain time-out, or two after a hard stop: these, and the last words.
constexpr Duration kDrainMargin = std::chrono::milliseconds(600);
constexpr Duration kHardStopMargin = std::chrono::milliseconds(1600);
/// For a reader of stderr that has stalled.
constexpr Duration kFlushTime = std::chrono::milliseconds(250);
/// What a host that ends gives the collectors of its log lines and spans: never more than this, and so much after the
/// drain time-out at most, which leaves the watchdog its own.
constexpr Duration kLongestShipping = std::chrono::seconds(3);
constexpr Duration kLastShipping = std::chrono::milliseconds(300);
/// What a host with a few jobs opens; with fewer it would not come far.
constexpr std::size_t kDescriptors = 64;
/// For what is left to destroy when a start has failed.
constexpr Duration kRefusalTime = std::chrono::seconds(2);

std::string out_of_resources(const std::exception& error) {
  return std::string("cannot start: ") + error.what() + " (limits: " + thread_limits() + "); raise the limit";
}

/// Waits until the watchdog has ended the process.
[[noreturn]] void leave_to_watchdog() {
  while (true) {
    ::pause();
  }
}

/// Why a host cannot start: one line for each thing that is wrong. Empty: it can.
using Refusal = std::vector<std::string>;

Refusal no_jobs(const config::HostConfig& config) {
  return {"no job to run: no file matches " + joined(config.jobs) +
          "; write one, with [job], queue = \"...\" and handler = \"...\" ('sluice plugins' lists the handlers), "
          "or mend [host] jobs in " +
          config.file};
}

/// Everything of a run. The main thread only waits and decides; what may hang is the errand's or a job's.
class Run {
 public:
  Run(const RunOptions& options, HostEvents& events, observe::Log& log, Watchdog& watchdog, DrainReportFile& report)
      : options_(options), events_(events), log_(log), watchdog_(watchdog), report_(report), errand_(events) {}

  int run();

 private:
  // On the errand's thread.
  Refusal prepare();
  Refusal prepare_host();

  int serve();
  int finish(int status_if_clean);
  void say(const DrainCertificate& certificate);
  /// To the companion, where there is one.
  void tell(const DrainCertificate& certificate) {
    options_.companion != nullptr ? options_.companion->host_ends(certificate) : say(certificate);
  }
  /// Leaves word of it for the next host, and tells those who wait.
  void end(const DrainCertificate& certificate, int status) {
    if (!certificate.clean) {
      host_->note_unclean_end(joined(certificate.left_behind));
    }
    host_->farewell({status, certificate.text()});
  }
  void tell_collectors();
  void bound_by(int nth, Duration drain_timeout);
  int refuse(const Refusal& lines);
  DrainCertificate certificate_of(JobSet::Drained drained) const;

  const RunOptions& options_;
  HostEvents& events_;
  observe::Log& log_;
  Watchdog& watchdog_;
  DrainReportFile& report_;
  SystemClock clock_;
  SeededRandom random_;
  std::atomic<SteadyTime> draining_since_{SteadyTime::max()};
  // Made by the errand, then used by the main thread.
  HostGround ground_;
  std::unique_ptr<Host> host_;
  std::size_t jobs_ = 0;  ///< with which it starts
  Refusal refusal_;
  // Last, so that it ends before what it uses.
  Errand errand_;
};

Refusal Run::prepare() {
  try {
    const auto loaded = config::load_host_config(options_.config_file, config::process_environment());
    if (!loaded) {
      return mapped(loaded.error(), &config::ConfigError::text);
    }
    ground_.config = *loaded;
    ground_.config.allow_insecure_files = options_.allow_insecure_files;
    ground_.name = host_name(ground_.config);
    log_.set(options_.companion != nullptr ? observe::LogLevel::off
                                           : static_cast<observe::LogLevel>(ground_.config.log_level),
             static_cast<observe::LogFormat>(ground_.config.log_format));
    auto telemetry =
        Telemetry::open({ground_.config, ground_.name, observe::build_info().version, log_, clock_, random_});
    if (!telemetry) {
      return Refusal{telemetry.error().message()};
    }
    ground_.telemetry = std::move(*telemetry);
    return prepare_host();
  } catch (const std::exception& error) {  // No memory, or no thread.
    return Refusal{out_of_resources(error)};
  }
}

Refusal Run::prepare_host() {
  auto planned = load_job_plans(ground_.config, ground_.plugins, [](const config::JobConfig&) { return false; });
  if (!planned) {
    return mapped(planned.error(), &config::ConfigError::text);
  }
  auto& plans = *planned;
  if (plans.empty()) {
    return no_jobs(ground_.config);
  }
  for (const plugin::RejectedPlugin& rejected : ground_.plugins.rejected()) {
    log_.warn("plugin not used", {{"file", rejected.file}, {"why", rejected.why}});
  }
  jobs_ = plans.size();
  ground_.book = std::make_unique<cost::CostBook>(ground_.config, clock_);
  ground_.queues = std::make_unique<HostQueues>(
      ground_.config, clock_, random_, &ground_.metrics, [this](const std::string& text) { log_.warn(text); },
      ground_.book.get());
  HostParts parts{options_.explain, log_, clock_, random_, errand_, events_, {}, {}};
  if (Companion* const them = options_.companion) {
    parts.watch = [them](const work::AttemptEnd& end) { them->ended(end); };
    parts.reloaded = [them](const ReloadNews& result) { them->reloaded(result); };
  }
  host_ = std::make_unique<Host>(ground_, parts);
  if (auto made = host_->prepare(std::move(plans)); !made) {
    return Refusal{made.error().message()};
  }
  return {};
}

int Run::run() {
  if (auto started = errand_.start(); !started) {
    return refuse({started.error().message()});
  }
  const auto work = [this] { return Errand::Rest([this, refusal = prepare()] { refusal_ = refusal; }); };
  if (!errand_.carry_out(work)) {
    // Nothing was claimed, and what the errand is in, such as the start-up code of a plugin, may never return.
    if (!watchdog_.begin_last_words(kClean)) {
      leave_to_watchdog();
    }
    tell({});
    std::_Exit(kClean);
  }
  return refusal_.empty() ? serve() : refuse(refusal_);
}

void Run::bound_by(int nth, Duration drain_timeout) {
  const SteadyTime now = clock_.steady_now();
  if (nth == 1) {
    draining_since_ = now;
  }
  watchdog_.end_by(now + (nth == 1 ? drain_timeout + kDrainMargin : kHardStopMargin));
}

int Run::serve() {
  Host& host = *host_;
  watchdog_.set_last_words([this] {
    const DrainCertificate certificate = certificate_of(host_->account());
    const int status = certificate.clean ? kClean : kAbandoned;
    return Watchdog::Ending{status, [this, certificate, status] {
                              end(certificate, status);
                              say(certificate);
                            }};
  });
  const Duration drain_timeout = ground_.config.drain_timeout;
  events_.on_termination([this, &host, drain_timeout](int nth) {
    bound_by(nth, drain_timeout);
    if (nth == 1) {
      host.begin_drain();
    } else {
      host.hard_stop();
    }
  });
  if (auto started = host.start(); !started) {
    log_.print("sluice: " + started.error().message() + "\n");
    host.hard_stop();
    return finish(kConfiguration);
  }
  if (!events_.terminating()) {
    log_.info("running", {{"host", ground_.name}, {"jobs", jobs_}, {"plugins", ground_.plugins.plugins().size()}});
  }
  if (options_.companion != nullptr) {
    options_.companion->host_runs(*ground_.queues, events_);
  }
  host.run(options_.until_empty, options_.progress);
  return finish(kClean);
}

int Run::finish(int status_if_clean) {
  if (draining_since_.load() == SteadyTime::max()) {
    bound_by(1, ground_.config.drain_timeout);
  }
  Host& host = *host_;
  const JobSet::Drained drained = host.drain();
  const int status = drained.clean ? status_if_clean : kAbandoned;
  if (!watchdog_.begin_last_words(status)) {
    leave_to_watchdog();
  }
  const DrainCertificate certificate = certificate_of(drained);
  end(certificate, status);
  tell(certificate);
  tell_collectors();
  const bool hangs = !drained.clean || drained.threads_left || errand_.under_way() || host.waits_for_store() ||
                     events_.hard_stop_requested();
  if (hangs && SLUICE_GUARD(hung_threads_left)) {
    // A handler, a call of the store or a plugin's constructor may be under way, whose thread uses what destructors
    // would take away: they would wait for it.
    std::fflush(nullptr);
    std::_Exit(status);
  }
  // From here on only destructors run, and those of plugins may hang: a signal reaches the watchdog alone.
  events_.on_termination([this](int nth) { bound_by(nth, Duration::zero()); });
  return status;
}

DrainCertificate Run::certificate_of(JobSet::Drained drained) const {
  DrainCertificate certificate;
  certificate.jobs = std::move(drained.jobs);
  certificate.clean = drained.clean;
  certificate.left_behind = std::move(drained.left_behind);
  const SteadyTime since = draining_since_;
  certificate.took = since == SteadyTime::max() ? Duration::zero() : clock_.steady_now() - since;
  certificate.dynamodb = ground_.queues->cost();
  if (certificate.dynamodb) {
    certificate.cost = BookedCost{ground_.book->view(), ground_.book->prices()};
  }
  return certificate;
}

void Run::say(const DrainCertificate& certificate) {
  // To people first: the file may be a pipe that nobody reads.
  const work::LedgerSnapshot sum = certificate.total();
  std::vector<observe::LogField> fields{{"claimed", sum.claimed}};
  for (const work::EndingCount& ending : work::kEndingCounts) {
    fields.emplace_back(ending.name, sum.*ending.count);
  }
  fields.emplace_back("stranded", sum.stranded);
  fields.emplace_back("took_ms", std::chrono::duration_cast<std::chrono::milliseconds>(certificate.took).count());
  fields.emplace_back("clean", certificate.clean);
  log_.print(certificate.text() + "\n", fields);
  static_cast<void>(log_.flush(kFlushTime));
  if (auto written = report_.write(certificate); !written) {
    log_.print("sluice: " + written.error().message() + "\n");
    static_cast<void>(log_.flush(kFlushTime));
  }
}

/// What log senders and traces still have, within the drain's time; the certificate is out by now.
void Run::tell_collectors() {
  if (events_.hard_stop_requested()) {
    return;
  }
  const SteadyTime end = draining_since_.load() + ground_.config.drain_timeout + kLastShipping;
  ground_.telemetry->flush(std::min(end, clock_.steady_now() + kLongestShipping));
  static_cast<void>(log_.flush(kFlushTime));
}

int Run::refuse(const Refusal& lines) {
  static_cast<void>(watchdog_.begin_last_words(kConfiguration));
  for (const std::string& line : lines) {
    log_.print("sluice: " + line + "\n");
  }
  static_cast<void>(log_.flush(kFlushTime));
  watchdog_.end_by(clock_.steady_now() + kRefusalTime);
  return kConfiguration;
}

/// Never destroyed: it keeps its word beyond the end of `main`, where destructors of plugins run.
Watchdog& watchdog() {
  static Watchdog& dog = *new Watchdog([](int status) { std::_Exit(status); });
  return dog;
}

int run_process(const RunOptions& options) {
  observe::Log log(options.companion != nullptr ? observe::LogLevel::off : observe::LogLevel::info,
                   observe::LogFormat::text);
  log.tap(options.companion);
  const auto refuse = [&log](const Error& error) {
    log.print("sluice: " + error.message() + "\n");
    return kConfiguration;
  };
  if (auto room = room_for_descriptors(kDescriptors); !room) {
    return refuse(room.error());
  }
  auto report = DrainReportFile::open(options.drain_report);
  if (!report) {
    return refuse(report.error());
  }
  HostEvents events;
  SignalWatcher watcher(events);
  // Before there is a host nothing can be abandoned.
  watchdog().set_last_words([] { return Watchdog::Ending{kClean, {}}; });
  events.on_termination([](int) { watchdog().end_by(SystemClock().steady_now() + kDrainMargin); });
  for (Service* service : std::initializer_list<Service*>{&watchdog(), &watcher}) {
    if (auto started = service->start(); !started) {
      return refuse(started.error());
    }
  }
  return Run(options, events, log, watchdog(), *report).run();
}

}  // namespace

bool BookedCost::none() const {
  return std::all_of(view.rows.begin(), view.rows.end(),
                     [](const cost::CostView::Row& row) { return row.total.spent.none(); });
}

std::string BookedCost::text() const {
  std::string text = "cost: " + prices.text(prices.of(sum_of(view).spent)) + " by prices of " + prices.config().as_of;
  for (const cost::CostView::Row& row : view.rows) {
    text += "; " + row.job + " on " + row.queue + ": " + usage_text(row.total, prices);
  }
  std::size_t told = 0;
  cost::Usage rest = other_of(view);
  for (const cost::TopValues::Named& named : view.values.values) {
    if (told++ < kValuesInText) {
      text += "; " + view.attribute + " " + named.value + ": " + usage_text(named.usage, prices);
    } else {
      rest += named.usage;
    }
  }
  if (!rest.none()) {
    text += "; " + view.attribute + " " + std::string(cost::kOtherValues) + ": " + usage_text(rest, prices);
  }
  return text;
}

std::string BookedCost::json() const {
  std::string out = "{\"currency\": " + json_quoted(prices.currency()) +
                    ", \"as_of\": " + json_quoted(prices.config().as_of) +
                    ", \"money\": " + fixed_decimal(prices.of(sum_of(view).spent), 10) + ", \"jobs\": [";
  const char* comma = "";
  for (const cost::CostView::Row& row : view.rows) {
    out += comma + ("{\"queue\": " + json_quoted(row.queue)) + ", \"job\": " + json_quoted(row.job) + ", " +
           usage_json(row.total, prices);
    comma = ", ";
  }
  out += "]";
  if (!view.attribute.empty()) {
    out += ", \"attribute\": " + json_quoted(view.attribute) + ", \"values\": [";
    for (const cost::TopValues::Named& named : view.values.values) {
      out += "{\"value\": " + json_quoted(named.value) + ", " + usage_json(named.usage, prices) + ", ";
    }
    out += "{\"value\": " + json_quoted(cost::kOtherValues) + ", " + usage_json(other_of(view), prices) + "]";
  }
  return out + "}";
}

std::string DrainCertificate::text() const {
  const LedgerSnapshot sum = total();
  std::string out = "drain certificate: " + sum_text(sum, true) + "; drained in " + fixed_decimal(in_seconds(took), 1) +
                    (clean ? " s, clean" : " s, NOT clean");
  if (!clean && !left_behind.empty()) {
    out += " (" + joined(left_behind) + ")";
  }
  for (const auto& [name, ledger] : jobs) {
    out += "; " + name + ": " + sum_text(ledger, false);
  }
  if (dynamodb) {
    out += "; DynamoDB: " + cost::text_of(*dynamodb, sum.claimed, "claim");
  }
  if (cost && !cost->none()) {
    out += "; " + cost->text();
  }
  return out;
}

std::string DrainCertificate::json() const {
  std::string by_job;
  for (const auto& [name, ledger] : jobs) {
    by_job += (by_job.empty() ? "" : ",") + json_quoted(name) + ":" + sum_json(ledger);
  }
  std::string out = "{\"total\": " + sum_json(total()) + ", \"jobs\": {" + by_job +
                    "}, \"seconds\": " + fixed_decimal(in_seconds(took), 3) +
                    ", \"clean\": " + (clean ? "true" : "false");
  if (!clean) {
    out += ", \"left_behind\": [" + joined(mapped(left_behind, json_quoted)) + "]";
  }
  if (dynamodb) {
    out += ", \"dynamodb\": {\"requests\": " + fixed_decimal(dynamodb->requests, 0) +
           ", \"read_units\": " + fixed_decimal(dynamodb->read_units, 1) +
           ", \"write_units\": " + fixed_decimal(dynamodb->write_units, 1) + "}";
  }
  if (cost && !cost->none()) {
    out += ", \"cost\": " + cost->json();
  }
  return out + "}\n";
}

Result<DrainReportFile> DrainReportFile::open(const std::string& path) {
  Descriptor file(path.empty() ? -1 : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!path.empty() && !file.open()) {
    return cannot_write(path);
  }
  return DrainReportFile(path, std::move(file));
}

Result<void> DrainReportFile::write(const DrainCertificate& certificate) {
  if (!file_.open()) {
    return {};
  }
  // EINVAL: a pipe or terminal, which has nothing to cut.
  const bool cut = ::ftruncate(file_.get(), 0) == 0 || errno == EINVAL;
  return cut && write_all(file_.get(), certificate.json()) ? Result<void>() : cannot_write(path_);
}

int run_host(const RunOptions& options) {
  // Blocked before the fork below, so that a signal in the first moments is kept for the host and not lost.
  SignalWatcher::block_signals();
  return run_below_init([&options] {
    try {
      return run_process(options);
    } catch (const std::exception& error) {  // No memory, or no thread.
      std::fprintf(stderr, "sluice: %s\n", out_of_resources(error).c_str());
      return kConfiguration;
    }
  });
}

}  // namespace sluice::runtime
