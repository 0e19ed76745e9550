#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/replace.hpp>
#include <boost/core/noncopyable.hpp>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/bell.hpp"
#include "base/ranges.hpp"
#include "base/temporary_folder.hpp"
#include "base/text/json_string.hpp"
#include "base/text/visible.hpp"
#include "host/cli/command.hpp"
#include "host/cli/handler_choice.hpp"
#include "host/cli/views/outcome_text.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/line_reader.hpp"
#include "host/operate/send_run.hpp"
#include "host/runtime/run.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::cli {

namespace {

using operate::LineReader;
using work::AttemptEnd;
using work::Ending;

/// A build that writes a file in several steps is taken up once it has been quiet for so long.
constexpr int kQuietMilliseconds = 150;
constexpr Duration kStoreTime = std::chrono::seconds(10);

/// "12:31:05", when the file was written; empty where it is not there.
std::string built_at(const std::string& file) {
  struct stat status {};
  std::tm local{};
  std::array<char, 16> text{};
  if (::stat(file.c_str(), &status) != 0 || ::localtime_r(&status.st_mtim.tv_sec, &local) == nullptr) {
    return {};
  }
  return {text.data(), std::strftime(text.data(), text.size(), "%H:%M:%S", &local)};
}

/// False where what it lies on is mounted noexec: nothing can be loaded from there.
bool may_execute_in(const std::string& folder) {
  struct statvfs mounted {};
  return ::statvfs(folder.c_str(), &mounted) != 0 || (mounted.f_flag & ST_NOEXEC) == 0;
}

/// Tells of each new build of a file, on a thread of its own.
class BuildWatch : boost::noncopyable {
 public:
  /// `built` is called on the thread.
  BuildWatch(const std::string& file, std::function<void()> built) : built_(std::move(built)) {
    // A link and what it leads to may lie in two folders.
    std::error_code code;
    for (const auto& path : {std::filesystem::path(file), std::filesystem::canonical(file, code)}) {
      names_.push_back(path.filename().string());
      ::inotify_add_watch(events_.get(), path.parent_path().c_str(), IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR);
    }
  }
  ~BuildWatch() { end_.ring(); }

  Result<void> start() {
    return thread_.start([this](const std::stop_token& stop) { watch(stop); });
  }

 private:
  void watch(const std::stop_token& stop) {
    bool changed = false;
    while (!stop.stop_requested()) {
      std::array<pollfd, 2> waits{pollfd{events_.get(), POLLIN, 0}, pollfd{end_.descriptor(), POLLIN, 0}};
      const int count = ::poll(waits.data(), waits.size(), changed ? kQuietMilliseconds : -1);
      if (waits[1].revents != 0) {
        return;
      }
      if (count == 0 && std::exchange(changed, false)) {
        built_();
      }
      changed = read_events() || changed;
    }
  }

  /// Whether any of them is about the file.
  bool read_events() const {
    bool mine = false;
    alignas(inotify_event) std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = ::read(events_.get(), buffer.data(), buffer.size())) > 0;) {
      for (const char* at = buffer.data(); at < buffer.data() + got;) {
        const auto* const event = reinterpret_cast<const inotify_event*>(at);
        const std::string_view name = event->len > 0 ? std::string_view(event->name) : std::string_view();
        mine = mine || std::find(names_.begin(), names_.end(), name) != names_.end();
        at += sizeof(inotify_event) + event->len;
      }
    }
    return mine;
  }

  const std::function<void()> built_;
  std::vector<std::string> names_;
  const Descriptor events_{::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
  const Bell end_;
  // Last, so that it ends before what it uses.
  runtime::ServiceThread thread_{"sluice-builds"};
};

/// What is shown, a line at once, from any thread.
class DevScreen {
 public:
  explicit DevScreen(Console& console) : console_(console), colours_(console.output_has_colour()) {}

  void line(const std::string& text) {
    const MutexLock lock(mutex_);
    console_.out(text + "\n");
    console_.flush();
  }
  /// About one message; empty: about none.
  void about(const std::string& id, const std::string& text) {
    line(id.empty() ? text : tinted(visible(id), Colour::dim, colours_) + "  " + text);
  }
  void news(const std::string& text, Colour colour) { line(tinted("-- " + visible(text), colour, colours_)); }
  bool colours() const { return colours_; }

 private:
  Mutex mutex_;
  Console& console_ SLUICE_GUARDED_BY(mutex_);
  const bool colours_;
};

/// What a run of `sluice dev` is made of. A value.
struct DevPlan {
  std::string plugin;  ///< its file
  /// What is loaded of it: a build may write into the file while its code runs. The file itself where nothing in the
  /// temporary folder may be executed.
  std::string copy;
  config::JobConfig job;
  bool typed = false;     ///< messages come from standard input, too
  bool terminal = false;  ///< where a person types

  /// Has the copy be as the file is now.
  Result<void> take_copy() const {
    if (copy == plugin) {
      return {};
    }
    std::error_code code;
    std::filesystem::copy_file(plugin, copy + ".new", std::filesystem::copy_options::overwrite_existing, code);
    if (!code) {
      std::filesystem::rename(copy + ".new", copy, code);
    }
    return code ? Result<void>(Error(ErrorCode::unavailable, "cannot copy " + plugin + ": " + code.message()))
                : Result<void>();
  }
  /// What is said of the copy is said of the file.
  std::string named(std::string text) const {
    boost::replace_all(text, copy, plugin);
    return text;
  }
};

/// Sends a line at a time, on a thread of its own, and asks for the end once there are no more and all is worked off.
class MessageFeed : boost::noncopyable {
 public:
  MessageFeed(const DevPlan& plan, Descriptor file, DevScreen& screen, runtime::HostQueues& queues,
              std::function<void()> worked_off)
      : plan_(plan), file_(std::move(file)), screen_(screen), queues_(queues), worked_off_(std::move(worked_off)) {}
  ~MessageFeed() { end_.ring(); }

  Result<void> start() {
    return thread_.start([this](const std::stop_token& stop) { run(stop); });
  }
  /// Some message has ended.
  void look() {
    {
      const MutexLock lock(mutex_);
      ++ended_;
    }
    changed_.notify_all();
  }

 private:
  void run(const std::stop_token& stop) {
    const std::string& queue = plan_.job.queue;
    auto sender = queues_.open_sender(queue);
    if (!sender) {
      screen_.news(sender.error().message(), Colour::red);
      worked_off_();
      return;
    }
    if (file_.open() && !send_all(file_.get(), **sender)) {
      return;
    }
    if (plan_.typed && !send_all(STDIN_FILENO, **sender)) {
      return;
    }
    await_end(stop);
  }

  /// False when the end has come meanwhile.
  bool send_all(int input, queue::Sender& sender) {
    LineReader lines(input, end_.descriptor());
    std::string_view line;
    auto status = LineReader::Status::line;
    for (std::uint64_t number = 1;
         (status = lines.next(line)) == LineReader::Status::line || status == LineReader::Status::too_long; ++number) {
      if (status == LineReader::Status::too_long) {
        screen_.news("line " + std::to_string(number) + " is longer than a message may be", Colour::red);
      } else if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
        send(line, number, sender);
      }
    }
    if (status == LineReader::Status::failed) {
      screen_.news(std::string("cannot read messages: ") + std::strerror(errno), Colour::red);
    }
    return status != LineReader::Status::stopped;
  }

  void send(std::string_view line, std::uint64_t number, queue::Sender& sender) {
    auto message = operate::MessageTemplate().from_json_or_text(line);
    if (!message) {
      screen_.news("line " + std::to_string(number) + ": " + message.error().message(), Colour::red);
      return;
    }
    message->id = "m-" + std::to_string(++sent_);
    const auto results = sender.send({&*message, 1}, Deadline::after(clock_, kStoreTime));
    if (results.front().status != queue::SendStatus::sent) {
      screen_.news("line " + std::to_string(number) + " was not sent: " + results.front().error.message(), Colour::red);
    }
  }

  /// Until nothing is left in the job's queues but what lies in their dead-letter halves.
  void await_end(const std::stop_token& stop) {
    bool told = false;
    std::uint64_t seen = 0;
    while (!stop.stop_requested()) {
      seen = ended();
      const auto left = messages_left();
      if (!left) {
        screen_.news(left.error().message(), Colour::red);
        break;
      }
      if (*left == 0) {
        break;
      }
      if (plan_.terminal && !std::exchange(told, true)) {
        screen_.news("no more messages; " + counted(*left, "message") + " not done yet. Ctrl-C ends at once",
                     Colour::dim);
      }
      const MutexLock lock(mutex_);
      changed_.wait(mutex_, stop, [&]() SLUICE_NO_TSA { return ended_ != seen; });
    }
    if (!stop.stop_requested()) {
      worked_off_();
    }
  }

  Result<std::uint64_t> messages_left() {
    std::uint64_t left = 0;
    for (const std::string& queue : plan_.job.queue_names()) {
      SLUICE_TRY(oper, queues_.open_operator(queue));
      SLUICE_TRY(stats,
                 (*oper)->stats({.half = queue::Half::standard, .exact = true}, Deadline::after(clock_, kStoreTime)));
      left += stats->total();
    }
    return left;
  }
  std::uint64_t ended() {
    const MutexLock lock(mutex_);
    return ended_;
  }

  const DevPlan& plan_;
  const Descriptor file_;
  DevScreen& screen_;
  runtime::HostQueues& queues_;
  const std::function<void()> worked_off_;
  const SystemClock clock_;
  const Bell end_;
  std::uint64_t sent_ = 0;  // touched only by the thread
  Mutex mutex_;
  Condition changed_;
  std::uint64_t ended_ SLUICE_GUARDED_BY(mutex_) = 0;
  // Last, so that it ends before what it uses.
  runtime::ServiceThread thread_{"sluice-messages"};
};

/// Nothing: the line has none of that name.
std::optional<std::string_view> field_of(const observe::LogLine& line, std::string_view name) {
  const auto* const found =
      find_where(line.fields, [name](const observe::LogField& field) { return field.name() == name; });
  return found == nullptr ? std::nullopt : std::optional(found->value());
}

/// The author's side of a host: sends it messages, has it take up each build, and shows what comes of both.
class DevCompanion final : public runtime::Companion {
 public:
  DevCompanion(const DevPlan& plan, Descriptor messages, const TemporaryFolder& folder, Console& console)
      : plan_(plan), messages_(std::move(messages)), folder_(folder), screen_(console) {}

  observe::LogLevel level() const override { return observe::LogLevel::debug; }

  void take(const observe::LogLine& line) override {
    const std::string id(field_of(line, "id").value_or(""));
    if (field_of(line, "job") && !field_of(line, "reason")) {
      screen_.about(id, handler_line(line.level, line.message, screen_.colours()));
    } else if (id.empty() && line.level >= observe::LogLevel::warn) {
      std::string text(line.message);
      for (const observe::LogField& field : line.fields) {
        text += field.name() == "job" ? "" : ": " + std::string(field.value());
      }
      screen_.news(plan_.named(std::move(text)), Colour::yellow);
    }
  }

  void reloaded(const runtime::ReloadNews& result) override {
    for (const plugin::RejectedPlugin& unused : result.unused) {
      screen_.news("not taken up: " + plan_.named(unused.why), Colour::red);
    }
    for (const std::string& reason : result.refusals) {
      screen_.news("not taken up: " + plan_.named(reason) + "; the build before goes on", Colour::red);
    }
    if (result.unused.empty() && result.refusals.empty()) {
      const bool changed = !result.changes.changed.empty();
      screen_.news((changed ? "taken up " : "nothing new in ") +
                       std::filesystem::path(plan_.plugin).filename().string() + ", built " + built_at(plan_.plugin),
                   changed ? Colour::green : Colour::dim);
    }
  }

  void ended(const AttemptEnd& end) override {
    const std::string remark = ending_remark(end);
    std::string text =
        tinted(outcome_name(end), colour_of(end.ending), screen_.colours()) + " in " + time_text(end.took);
    text += end.attempt > 1 || end.ending == Ending::retried ? ", attempt " + std::to_string(end.attempt) : "";
    text += remark.empty() ? "" : ", " + remark;
    text += end.reason.empty() ? "" : ": " + visible(end.reason);
    screen_.about(end.id, text);
    const MutexLock lock(mutex_);
    if (feed_) {
      feed_->look();
    }
  }

  void host_runs(runtime::HostQueues& queues, runtime::HostEvents& events) override {
    auto feed = std::make_unique<MessageFeed>(plan_, std::move(messages_), screen_, queues,
                                              [&events] { static_cast<void>(events.ask_drain()); });
    builds_ = std::make_unique<BuildWatch>(plan_.plugin, [this, &events] {
      if (const auto copied = plan_.take_copy(); !copied) {
        screen_.news("not taken up: " + copied.error().message(), Colour::red);
      } else {
        events.signal(SIGHUP);
      }
    });
    for (const Result<void>& started : {builds_->start(), feed->start()}) {
      if (!started) {
        screen_.news(started.error().message(), Colour::red);
        static_cast<void>(events.ask_drain());
      }
    }
    const MutexLock lock(mutex_);
    feed_ = std::move(feed);
  }

  void host_ends(const runtime::DrainCertificate& certificate) override {
    builds_.reset();
    std::unique_ptr<MessageFeed> feed;
    {
      const MutexLock lock(mutex_);
      feed = std::move(feed_);
    }
    feed.reset();
    const work::LedgerSnapshot total = certificate.total();
    dead_ = total.rejected;
    screen_.news("done " + std::to_string(total.done) + ", retried " + std::to_string(total.retried) + ", dead " +
                     std::to_string(total.rejected) + others(total),
                 dead_ > 0 ? Colour::red : Colour::green);
    folder_.remove();
  }

  std::uint64_t dead() const { return dead_; }

 private:
  static std::string others(const work::LedgerSnapshot& total) {
    std::string text;
    for (const auto& [name, count] : {std::pair("discarded", total.discarded),
                                      {"snoozed", total.snoozed},
                                      {"put back", total.released + total.lost + total.stranded}}) {
      text += count > 0 ? ", " + std::string(name) + " " + std::to_string(count) : "";
    }
    return text;
  }

  const DevPlan& plan_;
  Descriptor messages_;
  const TemporaryFolder& folder_;
  DevScreen screen_;
  std::unique_ptr<BuildWatch> builds_;
  std::uint64_t dead_ = 0;
  Mutex mutex_;
  std::unique_ptr<MessageFeed> feed_ SLUICE_GUARDED_BY(mutex_);
};

/// The job that the options of the command line describe, as its file has it.
OrExit<std::string> job_text(const Arguments& arguments, const HandlerChoice& choice) {
  const config::JobConfig& job = choice.plan.config;
  SLUICE_TRY(concurrency, arguments.count("concurrency", 1, config::kMaxAsyncConcurrency));
  std::string text = "[job]\nqueue = " + json_quoted(job.queue) + "\nhandler = " + json_quoted(job.handler) +
                     "\nconcurrency = " + std::to_string(*concurrency) + "\n[job.options]\n";
  for (const std::string& option : arguments.all("option")) {
    SLUICE_TRY(line, option_line(option, *choice.plan.handler));
    text += *line;
  }
  return text;
}

/// The host file, and the job's where none is given.
OrExit<void> write_files(const Arguments& arguments, const HandlerChoice& choice, const std::string& plugin,
                         const TemporaryFolder& folder) {
  std::string jobs = folder.path() + "/" + choice.plan.config.name + ".toml";
  if (arguments.has("job")) {
    jobs = std::filesystem::absolute(arguments.get("job")).string();
  } else {
    SLUICE_TRY(text, job_text(arguments, choice));
    SLUICE_PASS_ON(write_file(jobs, *text));
  }
  return write_file(folder.path() + "/host.toml", "[host]\nname = \"dev\"\njobs = [" + json_quoted(jobs) +
                                                      "]\nplugin_dirs = [" + json_quoted(plugin) +
                                                      "]\nstate_dir = \"state\"\n"
                                                      "[store]\nkind = \"sqlite\"\npath = \"queues.db\"\n"
                                                      "[queues]\ncreate = true\n");
}

void say_hello(const DevPlan& plan, const HandlerChoice& choice, Console& console) {
  const config::JobConfig& job = choice.plan.config;
  console.out("handler " + job.handler + " of " + visible(std::filesystem::path(plan.plugin).filename().string()) +
              (choice.plan.plugin_version.empty() ? "" : " " + visible(choice.plan.plugin_version)) + ", built " +
              built_at(plan.plugin) + ", on queue " + work::queue_text(job) + "\n" +
              (plan.terminal ? "type a message a line, JSON or text; Ctrl-D ends, Ctrl-C ends at once\n" : ""));
  console.flush();
}

Exit dev(const Arguments& arguments, Console& console) {
  if (arguments.has("job") && !is_job_file(arguments.get("job"))) {
    return Exit::usage("--job names a job file here, such as jobs.d/orders.toml: `sluice dev` reads no host file");
  }
  // Before a plugin may start a thread: these signals are the host's.
  runtime::SignalWatcher::block_signals();
  DevPlan plan;
  SLUICE_TRY(plugin, plugin_file(arguments));
  plan.plugin = std::move(*plugin);
  plan.terminal = ::isatty(STDIN_FILENO) == 1;
  plan.typed = plan.terminal || !arguments.has("messages");
  SLUICE_TRY(messages, arguments.has("messages") ? open_named(arguments, "messages") : Descriptor());
  SLUICE_TRY(folder, TemporaryFolder::make("sluice-dev"));
  const std::string copy = (*folder)->path() + "/" + std::filesystem::path(plan.plugin).filename().string();
  plan.copy = may_execute_in((*folder)->path()) ? copy : plan.plugin;
  SLUICE_PASS_ON(plan.take_copy());
  auto choice = choose_handler(arguments,
                               {.handler = arguments.get("handler"),
                                .queue = arguments.has("job") ? "" : arguments.get("queue", "dev"),
                                .without_host_file = true,
                                .copy = plan.copy},
                               console);
  if (!choice) {
    std::vector<std::string> lines = choice.error().lines();
    std::transform(lines.begin(), lines.end(), lines.begin(),
                   [&plan](const std::string& line) { return plan.named(line); });
    return {choice.error().code(), std::move(lines)};
  }
  plan.job = (*choice)->plan.config;
  SLUICE_PASS_ON(write_files(arguments, **choice, plan.copy, **folder));
  say_hello(plan, **choice, console);
  DevCompanion companion(plan, std::move(*messages), **folder, console);
  runtime::RunOptions options;
  options.config_file = (*folder)->path() + "/host.toml";
  options.allow_insecure_files = true;
  options.companion = &companion;
  const int code = runtime::run_host(options);
  return Exit::silent(code == kExitOk && !plan.terminal && companion.dead() > 0 ? kExitFailure : code);
}

}  // namespace

std::vector<Command> dev_commands() {
  return {
      {
          .name = "dev",
          .summary = "Run a plugin while you write it: messages in, outcomes out, each build taken up",
          .usage = "--plugin X.so [--handler HANDLER] [--queue QUEUE] [--messages FILE] [OPTION]...",
          .description =
              "A host with the plugin alone and an embedded store in a temporary folder, which goes with it. The job "
              "is made of what the handler declares and --option says, with the usual policy; or it is that of --job. "
              "Messages come from --messages, a line each, JSON or text; and from standard input where that is a "
              "terminal or there is no --messages. Each message's log lines, outcome and time are shown.\n\n"
              "Each new build of the file is taken up at once: what runs ends with the code it began with, and what "
              "comes then has the new one. A build that does not load is told, and the one before goes on. What is "
              "loaded is a copy in the temporary folder, so that a build may write into the file (`cp` as well as "
              "`mv`); libraries that a plugin looks for beside itself ($ORIGIN) it does not find there. Where that "
              "folder is mounted noexec the file itself is loaded: then bring builds with `mv`.\n\n"
              "Ctrl-D, or the end of the messages, ends it once every message is done or dead; Ctrl-C at once. The "
              "last "
              "line counts what became of them. Ends with 0; with 1 where a message was dead-lettered and standard "
              "input is no terminal, so that a script knows.",
          .flags = {required({"plugin", "X.so", "the plugin"}),
                    against("job", {"handler", "HANDLER", "which of its handlers, where it has several"}),
                    against("job", {"queue", "QUEUE", "what the queue is called [default: dev]"}),
                    filled({"messages", "FILE", "a message a line"}),
                    against("job", repeated({"option", "NAME=VALUE", "an option of the handler; may be repeated"})),
                    against("job", {"concurrency", "N", "workers [default: 1]"}),
                    filled({"job", "FILE", "by this job file, instead of the four before"})},
          .examples = "sluice dev --plugin build/shout.so --option suffix='!'\n"
                      "sluice dev --plugin build/shout.so --messages samples.ndjson < /dev/null",
          .run = dev,
      },
  };
}

}  // namespace sluice::cli
