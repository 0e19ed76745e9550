// Runs a command for each message.

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sluice/handler.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "child.hpp"
#include "command.hpp"
#include "environment.hpp"
#include "exit_codes.hpp"
#include "output.hpp"

namespace {

using std::chrono::nanoseconds;
using SteadyTime = std::chrono::steady_clock::time_point;

// The stop token cannot be polled together with pipes; this is how late it may be noticed.
constexpr std::chrono::milliseconds kTick(25);
// A grandchild may go on writing into the pipe of a child that has ended; so much is still read.
constexpr int kReadsAfterEnd = 32;
constexpr std::int64_t kMaxOutputLimit = 16 * 1024 * 1024;

std::optional<sluice_log_level> level_option(const sluice::Options& values, const char* name) {
  constexpr std::array<std::string_view, 6> kWords{"trace", "debug", "info", "warn", "error", "off"};
  const auto word = values.get<std::string>(name);
  const auto found = std::find(kWords.begin(), kWords.end(), word);
  if (found == kWords.end()) {
    throw std::invalid_argument(std::string("the option \"") + name +
                                "\" must be trace, debug, info, warn, error or off; it is \"" + word + "\"");
  }
  return word == "off" ? std::nullopt : std::optional(static_cast<sluice_log_level>(found - kWords.begin()));
}

std::string folder_option(const sluice::Options& values) {
  std::string folder = values.get("cwd", "");
  std::error_code failure;
  if (values.has("cwd") && !std::filesystem::is_directory(folder, failure)) {
    throw std::invalid_argument("the option \"cwd\" must be a folder that exists; \"" + folder + "\" is none");
  }
  return folder;
}

std::size_t output_limit_option(const sluice::Options& values) {
  const auto limit = values.get<std::int64_t>("output_limit");
  if (limit < 0 || limit > kMaxOutputLimit) {
    throw std::invalid_argument("the option \"output_limit\" must be from 0 to " + std::to_string(kMaxOutputLimit) +
                                "; it is " + std::to_string(limit));
  }
  return static_cast<std::size_t>(limit);
}

Inherited inherited(const sluice::Options& values) {
  if (values.get<bool>("clear_env")) {
    return Inherited::nothing;
  }
  return values.get<bool>("aws_env") ? Inherited::everything : Inherited::all_but_aws;
}

/// Where to look for a command without a slash: where the child itself would.
std::string search_path(const Variables& environment) {
  const auto found = environment.find("PATH");
  if (found != environment.end()) {
    return found->second;
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name;
}

/// Decides when a running command is to be ended, and how hard. The time is an argument.
///
/// A host that stops lets a command go on as long as its drain lasts, which is what `time_left` then says; shortly
/// before, the command is ended, so that it does not outlive the host while its message begins anew elsewhere.
class Supervisor {
 public:
  enum class Why { nothing, timeout, attempt_timeout, stop };
  struct Limits {
    std::optional<nanoseconds> timeout;
    std::optional<nanoseconds> stop_grace;  ///< none: as long as the drain lasts
    nanoseconds kill_after{};
  };

  Supervisor(const Limits& limits, SteadyTime started) : limits_(limits), started_(started) {}

  /// The signal to send now; 0 for none. Each is sent once.
  int step(SteadyTime now, const sluice::Context& context) {
    if (why_ == Why::nothing) {
      why_ = judge(now, context);
      terminated_at_ = now;
      return why_ == Why::nothing ? 0 : SIGTERM;
    }
    const bool host_ends = why_ == Why::stop && context.time_left() <= reserve_ / 4;
    if (!killed_ && (host_ends || now - terminated_at_ >= limits_.kill_after)) {
      killed_ = true;
      return SIGKILL;
    }
    return 0;
  }
  Why why() const { return why_; }

 private:
  Why judge(SteadyTime now, const sluice::Context& context) {
    if (limits_.timeout && now - started_ >= *limits_.timeout) {
      return Why::timeout;
    }
    if (!context.stop_requested()) {
      return Why::nothing;
    }
    const nanoseconds left = context.time_left();
    if (!stop_seen_at_) {
      if (left <= nanoseconds::zero()) {
        return Why::attempt_timeout;
      }
      stop_seen_at_ = now;
      reserve_ = std::min(limits_.kill_after, left / 5);
    }
    const bool grace_over =
        limits_.stop_grace ? now - *stop_seen_at_ >= *limits_.stop_grace : !SLUICE_GUARD(exec_grace);
    return grace_over || left <= reserve_ ? Why::stop : Why::nothing;
  }

  const Limits& limits_;
  SteadyTime started_;
  Why why_ = Why::nothing;
  bool killed_ = false;
  SteadyTime terminated_at_;
  std::optional<SteadyTime> stop_seen_at_;
  nanoseconds reserve_{};  ///< what of the drain is kept for ending the command
};

class Exec {
 public:
  static constexpr const char* help =
      "Runs a command for each message, with the body on its standard input. Its exit code is the outcome: 0 done, 75 "
      "retry, 65 reject, anything else retry.";
  static constexpr sluice::OptionSpec options[] = {
      sluice::required<std::vector<std::string>>("command", R"(The program and its arguments, as ["program", "a"].)"),
      sluice::option<bool>("shell", "false",
                           "Run the first string of command with /bin/sh -c; the others are its $1, $2 and so on."),
      sluice::option<std::map<std::string, std::string>>(
          "exit_codes", R"(What exit codes mean, as {3 = "discard", 4 = "retry 30s", default = "reject"}.)"),
      sluice::option<nanoseconds>("timeout", "How long the command may run; default: as long as the job's timeout."),
      sluice::option<nanoseconds>("kill_after", "5s", "From SIGTERM to SIGKILL, when the command has to end."),
      sluice::option<nanoseconds>(
          "stop_grace", "How long a command may go on when the host stops; default: as long as the drain lasts."),
      sluice::option<std::string>("cwd", "The folder to run in; default: the host's."),
      sluice::option<std::map<std::string, std::string>>("env", "More environment variables.").secret(),
      sluice::option<bool>("clear_env", "false", "Start from an empty environment instead of the host's."),
      sluice::option<bool>("aws_env", "false", "Hand on the host's AWS_* variables, its credentials among them."),
      sluice::option<std::string>("stdout_level", "info", "At which level to log the output, or off."),
      sluice::option<std::string>("stderr_level", "warn", "At which level to log the error output, or off."),
      sluice::option<std::int64_t>("output_limit", "65536", "At most so many bytes of output into the log."),
  };

  explicit Exec(const sluice::Options& values)
      : environment_(base_environment(inherited(values), values.map("env"))),
        folder_(folder_option(values)),
        command_(find_command(values.list("command"), values.get<bool>("shell"), folder_, search_path(environment_))),
        exit_codes_(values.map("exit_codes")),
        limits_{values.find<nanoseconds>("timeout"), values.find<nanoseconds>("stop_grace"),
                values.duration("kill_after")},
        output_level_(level_option(values, "stdout_level")),
        error_level_(level_option(values, "stderr_level")),
        output_limit_(output_limit_option(values)) {
    if (limits_.timeout && *limits_.timeout <= nanoseconds::zero()) {
      throw std::invalid_argument("the option \"timeout\" must be more than 0s");
    }
  }

  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    if (context.stop_requested()) {
      return sluice::release();
    }
    Child child;
    const std::vector<std::string> environment = message_environment(environment_, message);
    if (const int error = child.start({command_.program, command_.arguments, environment, folder_, message.body()})) {
      return not_started(error);
    }
    Supervisor supervisor(limits_, std::chrono::steady_clock::now());
    OutputBudget budget(output_limit_);
    OutputStream output(context, output_level_, budget);
    OutputStream errors(context, error_level_, budget);
    while (!child.ended()) {
      child.wait(kTick);
      forward(child, output, errors, 1);
      if (const int signal = supervisor.step(std::chrono::steady_clock::now(), context)) {
        child.signal_group(signal);
      }
    }
    forward(child, output, errors, kReadsAfterEnd);
    output.finish();
    errors.finish();
    if (supervisor.why() != Supervisor::Why::nothing) {
      child.signal_group(SIGKILL);  // What the command started and did not take along.
    }
    return outcome(child.collect(), supervisor.why(), errors.tail());
  }

 private:
  /// Hands on what has been written, in at most `reads` pieces a stream.
  static void forward(Child& child, OutputStream& output, OutputStream& errors, int reads) {
    std::string text;
    for (int i = 0; i < reads && child.read_output(text); ++i, text.clear()) {
      output.write(text);
    }
    text.clear();
    for (int i = 0; i < reads && child.read_errors(text); ++i, text.clear()) {
      errors.write(text);
    }
  }

  sluice::Outcome not_started(int error) const {
    const std::string reason =
        "cannot start " + command_.program + ": " + std::generic_category().message(error) +
        (error == ENOEXEC ? "; a script needs a first line such as #!/bin/sh, or the option shell" : "");
    // Only the message can make the environment too big, and it does so every time.
    return error == E2BIG ? sluice::reject(reason + "; the message's attributes are too big for an environment")
                          : sluice::retry(reason);
  }

  sluice::Outcome outcome(const ChildEnd& end, Supervisor::Why why, const std::string& last_words) const {
    const std::string detail = last_words.empty() ? "" : ": " + last_words;
    switch (why) {
      case Supervisor::Why::stop:
        return sluice::release();
      case Supervisor::Why::timeout:
        return sluice::retry("timed out: did not end within the option timeout" + detail);
      case Supervisor::Why::attempt_timeout:
        return sluice::retry("timed out: did not end within the job's timeout" + detail);
      case Supervisor::Why::nothing:
        break;
    }
    switch (end.how) {
      case ChildEnd::How::exited:
        return exit_codes_.of_exit(end.code).outcome("exited with " + std::to_string(end.code) + detail);
      case ChildEnd::How::killed:
        return exit_codes_.of_signal().outcome("killed by " + signal_name(end.code) +
                                               (end.core_dumped ? " (core dumped)" : "") + detail);
      case ChildEnd::How::unknown:
        break;
    }
    return sluice::retry("how the command ended is not known: somebody else collected its exit code");
  }

  Variables environment_;
  std::string folder_;
  Command command_;
  ExitCodes exit_codes_;
  Supervisor::Limits limits_;
  std::optional<sluice_log_level> output_level_;
  std::optional<sluice_log_level> error_level_;
  std::size_t output_limit_;
};

}  // namespace

SLUICE_PLUGIN("exec", "1.0.0", Exec)
