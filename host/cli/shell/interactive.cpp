#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <optional>
#include <utility>

#include "host/cli/command.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/shell/shell.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kCompletedIds = 20;
constexpr std::array<const char*, 9> kRemembered{"queue",  "config", "table", "index", "endpoint",
                                                 "region", "output", "json",  "wide"};

std::atomic<bool> interrupt_seen{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler touches it");

extern "C" void on_shell_interrupt(int) {
  if (interrupt_seen.exchange(true)) {
    // The command has not ended at the first one: it waits for somebody who does not answer.
    std::signal(SIGINT, SIG_DFL);
    ::raise(SIGINT);
  }
}

bool on_terminal() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1; }

/// Reads lines and gives them to the shell until either ends. False: some were passed over.
bool converse(Shell& shell, const ReadLine& read, const std::optional<HistoryFile>& history, Console& console) {
  bool whole = true;
  while (console.writable()) {
    console.flush();
    const TypedLine typed = read(shell.prompt());
    interrupt_seen = false;  // it was about the line
    if (typed.kind == TypedLine::Kind::end) {
      break;
    }
    if (typed.kind == TypedLine::Kind::too_long) {
      console.note("a line is longer than a mebibyte and was passed over; send long content with --file");
      whole = false;
    }
    if (typed.kind != TypedLine::Kind::text) {
      continue;
    }
    if (!typed.text.empty() && history && shell.may_be_kept(typed.text)) {
      history->append(typed.text);
    }
    const Shell::Next next = shell.step(typed.text);
    interrupt_seen = false;  // it was about the command
    if (next == Shell::Next::end) {
      break;
    }
  }
  return whole;
}

/// The whole dialogue. Where there is no terminal, `shows_prompts` says whether prompts are part of the output. False:
/// lines were passed over.
bool hold(Shell& shell, const char* history_name, bool shows_prompts, Console& console) {
  std::optional<HistoryFile> history;
  ReadLine read;
  // Ctrl-C ends what a command does and not the shell; a second one, while the command still runs, ends the shell.
  // Programs that a command starts are not affected: a handler, unlike a signal that is ignored, is not inherited.
  std::optional<SignalAction> survives;
  if (on_terminal()) {
    history = HistoryFile::at_usual_place(history_name);
    read = edited_lines(history ? history->load() : std::vector<std::string>(),
                        [&shell](std::string_view before) { return shell.complete(before); });
    survives.emplace(SIGINT, on_shell_interrupt);  // no SA_RESTART: a read that waits for an answer ends
    console.drop_output_while(interrupt_seen);
  }
  if (read || shows_prompts) {
    console.out(shell.greeting());
  }
  if (!read) {
    read = [&console, shows_prompts](const std::string& prompt) {
      console.out(shows_prompts ? prompt : std::string());
      console.flush();
      return read_plain_line(STDIN_FILENO);
    };
  }
  const bool whole = converse(shell, read, history, console);
  console.out(shell.farewell());
  console.flush();
  return whole;
}

RememberedOptions remembered(const Arguments& arguments) {
  RememberedOptions options;
  for (const char* name : kRemembered) {
    if (arguments.has(name)) {
      options[name] = arguments.get(name);
    }
  }
  return options;
}

/// Ids to complete with. Silent about failures: the command that is being typed will say what is wrong.
std::vector<std::string> first_ids(const RememberedOptions& options) {
  std::vector<std::string> ids;
  auto session = QueueSession::open(Arguments::of(options));
  if (session.has_error()) {
    return ids;
  }
  for (const auto half : {queue::Half::standard, queue::Half::dlq}) {
    const auto page = session->oper().list({.half = half, .limit = kCompletedIds, .cursor = {}, .content = false},
                                           Deadline::after(session->clock(), std::chrono::seconds(3)));
    if (page.has_error()) {
      return ids;
    }
    for (const auto& found : page->messages) {
      ids.push_back(found.message.id);
    }
  }
  return ids;
}

}  // namespace

Exit run_shell(const Arguments& arguments, Console& console) {
  RememberedOptions options = remembered(arguments);
  std::vector<std::string> queues;
  {
    SLUICE_TRY(session, QueueSession::open(arguments, QueueSession::Queue::optional));
    std::vector<std::string> failures;  // the command that meets them says so
    queues = session->all_queues(failures);
    if (!session->queue().empty()) {
      options["queue"] = session->queue();
    } else if (queues.size() == 1) {
      options["queue"] = queues.front();
    }
  }
  const auto run = [&console](const std::vector<std::string>& words, const RememberedOptions& remembered) {
    return run_command_line(words, console, remembered);
  };
  const auto try_open = [](const RememberedOptions& chosen) {
    const auto session = QueueSession::open(Arguments::of(chosen));
    return session.has_error() ? session.error() : Exit::ok();
  };
  const auto shell = queue_shell(
      std::move(options), {.run = run, .try_open = try_open, .queues = [&queues] { return queues; }, .ids = first_ids},
      console);
  const bool whole = hold(*shell, "history", false, console);
  // Who typed has seen what failed; a script has to be told.
  return Exit::silent(on_terminal()                         ? kExitOk
                      : whole || shell->last_failure() != 0 ? shell->last_failure()
                                                            : kExitUsage);
}

Exit run_dynamomq_shell(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, QueueSession::open(arguments, QueueSession::Queue::needed, QueueSession::HostFiles::named_only));
  static_cast<void>(hold(*dynamomq_shell(*session, console), "dynamomq_history", true, console));
  return Exit::ok();
}

Command shell_command() {
  return {
      .name = "shell",
      .summary = "Type commands one after the other, with history and completion",
      .usage = "[QUEUE] [OPTION]...",
      .description =
          "Every command on queues can be typed without the word sluice before it. The options given here are "
          "remembered and added to each command that takes them; `use QUEUE` goes to another queue, and `id ID` "
          "selects the message that --id would name. Quotes and backslashes are a shell's; nothing is expanded.\n\n"
          "On a terminal the arrow keys edit the line and go through the history, Tab completes commands, options, "
          "queues and ids, Ctrl-C drops the line and Ctrl-D ends. While a command runs Ctrl-C ends the command, and a "
          "second one the shell. The history is in $XDG_STATE_HOME/sluice/history, "
          "readable by its owner alone; lines that hold content of messages, or that begin with a space, are not in "
          "it. Elsewhere commands are read from standard input, one a line, nothing but their output is printed, and "
          "the exit code is that of the last one that failed.",
      .flags = with_store_flags({}),
      .examples = "sluice shell orders\nprintf 'stats\\nls --dlq\\n' | sluice shell orders",
      .run = run_shell,
  };
}

}  // namespace sluice::cli
