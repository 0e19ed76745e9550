// Runs a command for each message.

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <sluice/handler.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "child.hpp"
#include "publishing/publishing.hpp"

namespace {

/// A program and its arguments, found once when the job starts.
struct Command {
  std::string program;                 ///< a path
  std::vector<std::string> arguments;  ///< from argv[0] on
};

bool is_executable(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::string search(const std::string& name, std::string_view search_path) {
  while (true) {
    const std::size_t end = search_path.find(':');
    const std::string folder(search_path.substr(0, end));
    // An empty folder would mean the current one; a queue's messages shall not depend on where the host was started.
    if (!folder.empty() && is_executable(folder + "/" + name)) {
      return folder + "/" + name;
    }
    if (end == std::string_view::npos) {
      return {};
    }
    search_path.remove_prefix(end + 1);
  }
}

/// Finds the program of `words`: as a path when it has a slash (relative to `folder`, unless that is empty), else in
/// the folders of `search_path`. With `shell`, the first word is a script for /bin/sh and the others are its $1, $2 and
/// so on. Throws std::invalid_argument with a sentence for the user when there is nothing to run.
Command find_command(const std::vector<std::string>& words, bool shell, const std::string& folder,
                     const std::string& search_path) {
  if (words.empty() || words.front().empty()) {
    publishing::refuse("command", R"(is empty; write it as ["program", "argument"])");
  }
  for (const std::string& word : words) {
    if (word.find('\0') != std::string::npos) {
      publishing::refuse("command", "has a zero byte in it");
    }
  }
  if (shell) {
    // The word after the script is its $0.
    std::vector<std::string> arguments{"sh", "-c", words.front(), "sh"};
    arguments.insert(arguments.end(), words.begin() + 1, words.end());
    return {"/bin/sh", std::move(arguments)};
  }
  const std::string& name = words.front();
  if (name.find('/') == std::string::npos) {
    const std::string program = search(name, search_path);
    if (program.empty()) {
      throw std::invalid_argument("the command \"" + name + "\" is in no folder of PATH, which is \"" + search_path +
                                  "\"; name it with its folder, or set PATH in the option \"env\"");
    }
    return {program, words};
  }
  const std::string seen_from_here = name.front() == '/' || folder.empty() ? name : folder + "/" + name;
  if (!is_executable(seen_from_here)) {
    throw std::invalid_argument("the command \"" + seen_from_here + "\" is not an executable file");
  }
  return {name, words};
}

// A build that tests whether tests notice brings its own.
#ifndef SLUICE_GUARD
#define SLUICE_GUARD(name) true
#endif

/// Variables by name: what of a child's environment is the same for all messages.
using Variables = std::map<std::string, std::string>;

constexpr std::string_view kAttributePrefix = "SLUICE_ATTR_";
constexpr std::string_view kAwsPrefix = "AWS_";  // of the host's keys, or the way to them

/// Variables end at a zero byte; a longer value is cut there, as the child would see it anyway.
std::string until_zero(std::string_view text) { return std::string(text.substr(0, text.find('\0'))); }

/// What is inherited, without what could be taken for a message's, and the option "env" on top. Throws
/// std::invalid_argument when a name in that cannot be a variable's.
Variables base_environment(const sluice::Options& values) {
  const bool with_keys = values.get<bool>("aws_env") || !SLUICE_GUARD(exec_keeps_keys);
  Variables variables;
  for (char** entry = values.get<bool>("clear_env") ? nullptr : environ; entry != nullptr && *entry != nullptr;
       ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    const bool withheld = text.starts_with(kAttributePrefix) || (text.starts_with(kAwsPrefix) && !with_keys);
    if (equals != std::string_view::npos && !withheld) {
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  for (const auto& [name, value] : values.map("env")) {
    if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos) {
      publishing::refuse("env", "has \"" + name + "\", which cannot be the name of a variable");
    }
    variables[name] = until_zero(value);
  }
  return variables;
}

/// SLUICE_ATTR_ and the name in upper case, with '_' for everything that is neither a letter nor a digit.
std::string attribute_variable(std::string_view name) {
  std::string variable(kAttributePrefix);
  for (const char c : name) {
    const bool lower = c >= 'a' && c <= 'z';
    const bool kept = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    variable += lower ? static_cast<char>(c - 'a' + 'A') : kept ? c : '_';
  }
  return variable;
}

/// "NAME=value" for each of `base` and for what the message says: SLUICE_MESSAGE_ID, SLUICE_QUEUE, SLUICE_ATTEMPT,
/// SLUICE_MAX_ATTEMPTS, SLUICE_CONTENT_TYPE, SLUICE_GROUP and SLUICE_ATTR_<NAME>. The message wins.
std::vector<std::string> message_environment(const Variables& base, const sluice::Message& message) {
  Variables variables = base;
  for (const auto [name, value] : message.attributes()) {
    variables[attribute_variable(name)] = until_zero(value);
  }
  variables["SLUICE_MESSAGE_ID"] = until_zero(message.id());
  variables["SLUICE_QUEUE"] = until_zero(message.queue());
  variables["SLUICE_ATTEMPT"] = std::to_string(message.attempt());
  variables["SLUICE_MAX_ATTEMPTS"] = std::to_string(message.max_attempts());
  variables["SLUICE_CONTENT_TYPE"] = until_zero(message.content_type());
  variables["SLUICE_GROUP"] = until_zero(message.group());
  std::vector<std::string> entries;
  entries.reserve(variables.size());
  for (const auto& [name, value] : variables) {
    entries.push_back(name + "=" + value);
  }
  return entries;
}

using std::chrono::nanoseconds;

/// What an exit code means for the message; is told why it has that one.
using Verdict = std::function<sluice::Outcome(std::string reason)>;

/// "500ms", "30s", "5m", "2h" or "1d", as all durations of options are written; up to a week.
std::optional<nanoseconds> parse_delay(std::string_view text) {
  constexpr nanoseconds kLongest = std::chrono::hours(7 * 24);
  const auto delay = sluice::detail::parse_duration_text(text);
  return delay && nanoseconds(*delay) <= kLongest ? std::optional(nanoseconds(*delay)) : std::nullopt;
}

std::optional<Verdict> parse_verdict(std::string_view text) {
  if (text == "done") return [](const std::string&) { return sluice::done(); };
  if (text == "retry") return [](std::string reason) { return sluice::retry(std::move(reason)); };
  if (text == "reject") return [](std::string reason) { return sluice::reject(std::move(reason)); };
  if (text == "discard") return [](std::string reason) { return sluice::discard(std::move(reason)); };
  if (text == "release") return [](const std::string&) { return sluice::release(); };
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, space);
  const auto after = parse_delay(text.substr(std::min(space + 1, text.size())));
  if (word == "retry" && after) return [=](std::string reason) { return sluice::retry(*after, std::move(reason)); };
  if (word == "snooze" && after) return [=](const std::string&) { return sluice::snooze(*after); };
  return std::nullopt;
}

std::optional<int> parse_code(std::string_view text) {
  int code = -1;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), code);
  const bool whole = error == std::errc() && rest == text.data() + text.size();
  return whole && code >= 0 && code <= 255 ? std::optional(code) : std::nullopt;
}

/// What ends mean: exit codes by their numbers, and death by a "signal". 0 done, 65 reject, 75 retry, everything else
/// ("default") and a signal retry, unless changed.
class ExitCodes {
 public:
  /// `changes` as the option "exit_codes" has them: "3", "default" or "signal" to "done", "retry", "retry 30s",
  /// "snooze 5m", "reject", "discard" or "release". Throws std::invalid_argument for anything else.
  explicit ExitCodes(const std::map<std::string, std::string>& changes) {
    for (const auto& [key, value] : changes) {
      const std::optional<Verdict> verdict = parse_verdict(value);
      if (!verdict) {
        publishing::refuse("exit_codes", "has \"" + value + "\" for \"" + key +
                                             "\"; it may be done, retry, retry 30s, snooze 5m, reject, discard or "
                                             "release");
      }
      const std::optional<int> code = parse_code(key);
      if (!code && key != "default" && key != "signal") {
        publishing::refuse("exit_codes",
                           "has \"" + key + "\"; it may name exit codes from 0 to 255, \"default\" and \"signal\"");
      }
      verdicts_[code ? std::to_string(*code) : key] = *verdict;
    }
  }

  const Verdict& of(const std::string& end) const {
    const auto found = verdicts_.find(end);
    return found == verdicts_.end() ? verdicts_.at("default") : found->second;
  }

 private:
  std::map<std::string, Verdict> verdicts_{{"0", *parse_verdict("done")},
                                           {"65", *parse_verdict("reject")},
                                           {"75", *parse_verdict("retry")},
                                           {"default", *parse_verdict("retry")},
                                           {"signal", *parse_verdict("retry")}};
};

constexpr std::size_t kMaxLine = 4096;
constexpr std::size_t kMaxTail = 1024;
constexpr int kTailLines = 5;

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) {
    line.remove_suffix(1);
  }
  return line;
}

/// How much output of one attempt may still go to the log; both streams share it.
struct OutputBudget {
  const std::size_t limit;
  std::size_t left = limit;
  bool exceeded = false;
};

/// One output stream on its way into the log, line by line, and the memory of its end.
class OutputStream {
 public:
  /// No `level`: not logged, only remembered.
  OutputStream(const sluice::Context& context, std::optional<sluice_log_level> level, OutputBudget& budget)
      : context_(context), level_(level), budget_(budget) {}
  OutputStream(const OutputStream&) = delete;
  OutputStream& operator=(const OutputStream&) = delete;

  void write(std::string_view bytes) {
    tail_.append(bytes.substr(bytes.size() - std::min(bytes.size(), kMaxTail)));
    tail_.erase(0, tail_.size() - std::min(tail_.size(), kMaxTail));
    if (!level_) {
      return;
    }
    const bool exceeded = bytes.size() > budget_.left;
    bytes = bytes.substr(0, budget_.left);
    budget_.left -= bytes.size();
    while (!bytes.empty()) {
      const std::size_t newline = bytes.find('\n');
      const std::size_t size = std::min({bytes.size(), newline, kMaxLine - line_.size()});
      line_ += bytes.substr(0, size);
      bytes.remove_prefix(size);
      if (size == newline) {
        bytes.remove_prefix(1);
        end_line();
      } else if (line_.size() == kMaxLine) {
        end_line();
      }
    }
    if (exceeded && !std::exchange(budget_.exceeded, true)) {
      context_.warn("output beyond " + std::to_string(budget_.limit) +
                    " bytes is not logged; see the option output_limit");
    }
  }
  /// Logs a last line that has no end.
  void finish() {
    if (level_) {
      end_line();
    }
  }
  /// The last lines, joined by " | ".
  std::string tail() const {
    std::string result;
    std::string_view rest = tail_;
    for (int lines = 0; lines < kTailLines && !rest.empty();) {
      const std::size_t newline = rest.rfind('\n');
      const std::string_view line = trimmed(newline == std::string_view::npos ? rest : rest.substr(newline + 1));
      if (!line.empty()) {
        result = result.empty() ? std::string(line) : std::string(line) + " | " + result;
        ++lines;
      }
      rest = newline == std::string_view::npos ? std::string_view() : rest.substr(0, newline);
    }
    return result;
  }

 private:
  void end_line() {
    if (const std::string_view line = trimmed(line_); !line.empty()) {
      context_.log(*level_, line);
    }
    line_.clear();
  }

  const sluice::Context& context_;
  std::optional<sluice_log_level> level_;
  OutputBudget& budget_;
  std::string line_;
  std::string tail_;
};

using SteadyTime = std::chrono::steady_clock::time_point;

// The stop token cannot be polled together with pipes; this is how late it may be noticed.
constexpr std::chrono::milliseconds kTick(25);
// A grandchild may go on writing into the pipe of a child that has ended; so much is still read.
constexpr int kReadsAfterEnd = 32;
constexpr std::int64_t kMaxOutputLimit = 16 * 1024 * 1024;

/// Where to look for a command without a slash: where the child itself would.
std::string search_path(const Variables& environment) {
  const auto found = environment.find("PATH");
  return found == environment.end() ? "/usr/local/bin:/usr/bin:/bin" : found->second;
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
  enum class Why { nothing, timeout, attempt_timeout, lost, stop };
  struct Limits {
    std::optional<nanoseconds> timeout;
    std::optional<nanoseconds> stop_grace;  ///< none: as long as the drain lasts
    nanoseconds kill_after{};
  };

  Supervisor(const Limits& limits, SteadyTime started) : limits_(limits), started_(started) {}

  /// The signal to send now; 0 for none. Each is sent once.
  int step(SteadyTime now, sluice::Context& context) {
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
  Why judge(SteadyTime now, sluice::Context& context) {
    if (limits_.timeout && now - started_ >= *limits_.timeout) {
      return Why::timeout;
    }
    if (!context.stop_requested()) {
      return Why::nothing;
    }
    const nanoseconds left = context.time_left();
    if (!stop_seen_at_) {
      if (left <= nanoseconds::zero()) {
        // A time-out can still be moved, to now as it is; what is lost cannot.
        return context.extend(nanoseconds::zero()) ? Why::attempt_timeout : Why::lost;
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
      : environment_(base_environment(values)),
        folder_(publishing::existing_folder(values, "cwd")),
        command_(find_command(values.list("command"), values.get<bool>("shell"), folder_, search_path(environment_))),
        exit_codes_(values.map("exit_codes")),
        limits_{values.find<nanoseconds>("timeout"), values.find<nanoseconds>("stop_grace"),
                values.duration("kill_after")},
        output_level_(publishing::log_level(values, "stdout_level", true)),
        error_level_(publishing::log_level(values, "stderr_level", true)),
        output_limit_(static_cast<std::size_t>(publishing::number_in(values, "output_limit", 0, kMaxOutputLimit))) {
    if (limits_.timeout && *limits_.timeout <= nanoseconds::zero()) {
      publishing::refuse("timeout", "must be more than 0s");
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
    OutputBudget budget{output_limit_};
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

  sluice::Outcome outcome(std::optional<int> status, Supervisor::Why why, const std::string& last_words) const {
    const std::string detail = last_words.empty() ? "" : ": " + last_words;
    switch (why) {
      case Supervisor::Why::stop:
        return sluice::release();
      case Supervisor::Why::timeout:
        return sluice::retry("timed out: did not end within the option timeout" + detail);
      case Supervisor::Why::attempt_timeout:
        return sluice::retry("timed out: did not end within the job's timeout" + detail);
      case Supervisor::Why::lost:
        return sluice::retry("stopped: the host has lost the message, which others may work on by now" + detail);
      case Supervisor::Why::nothing:
        break;
    }
    if (!status) {
      return sluice::retry("how the command ended is not known: somebody else collected its exit code");
    }
    if (WIFSIGNALED(*status)) {
      return exit_codes_.of("signal")("killed by " + signal_name(WTERMSIG(*status)) +
                                      (WCOREDUMP(*status) ? " (core dumped)" : "") + detail);
    }
    const std::string code = std::to_string(WEXITSTATUS(*status));
    return exit_codes_.of(code)("exited with " + code + detail);
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
