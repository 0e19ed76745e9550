#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/ranges.hpp"
#include "base/text/json_check.hpp"
#include "base/text/visible.hpp"
#include "host/cli/command.hpp"
#include "host/cli/handler_choice.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/outcome_text.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/views/transaction_report.hpp"
#include "host/isolation/crash_handler.hpp"
#include "host/operate/line_reader.hpp"
#include "host/operate/record_json.hpp"
#include "host/runtime/host_queues.hpp"
#include "host/runtime/isolation_ward.hpp"
#include "host/runtime/one_message.hpp"

namespace sluice::cli {

namespace {

using work::AttemptEnd;
using work::Ending;

constexpr const char* kMadeId = "try-1";
/// A message that a debugger stops at is kept so long, whatever its queue says.
constexpr Duration kDebuggerLease = std::chrono::hours(1);

/// The message of a command. A value.
struct Subject {
  std::string queue;  ///< empty: of none
  queue::StoredMessage record;
  bool stored = false;  ///< it lies in that queue
};

// ---- Where it is from

OrExit<Subject> made(Result<queue::NewMessage> content) {
  SLUICE_TRY(message, or_usage(std::move(content)));
  Subject subject;
  queue::Message& made = subject.record.message;
  made.id = kMadeId;
  made.body = std::move(message->body);
  made.content_type = std::move(message->content_type);
  made.attributes = std::move(message->attributes);
  made.group = std::move(message->group);
  made.sent_at = SystemClock().wall_now();
  subject.record.created_at = subject.record.updated_at = made.sent_at;
  return subject;
}

OrExit<Subject> made_of(const Arguments& arguments) {
  SLUICE_TRY(messages, read_template(arguments));
  if (arguments.has("data-file")) {
    SLUICE_TRY(bytes, read_named(arguments, "data-file"));
    return made(messages->from_file(arguments.get("data-file"), std::move(*bytes)));
  }
  return made(messages->from_json_or_text(arguments.get("data")));
}

/// The message of that id, wherever it lies in the queue; of the dead-letter half alone with --dlq.
OrExit<Subject> stored_of(const Arguments& arguments, OpenQueues& open, const std::string& queue) {
  SLUICE_PASS_ON(check_known(open.queues, queue, open.deadline()));
  SLUICE_TRY(oper, open.queues.open_operator(queue));
  const std::string id = arguments.get("id");
  SLUICE_TRY(record, (*oper)->get(id, open.deadline()));
  if (half_of(arguments) == queue::Half::dlq && record->half != queue::Half::dlq) {
    return Exit::failure("message " + visible(id) + " of queue " + queue +
                         " lies in the standard half; leave --dlq out");
  }
  return Subject{queue, std::move(*record), true};
}

/// One line of what `sluice export` wrote: that of --line, which is to be the id's, else the one of the id, else the
/// first.
OrExit<Subject> exported(const Arguments& arguments) {
  const std::string name = arguments.get("file");
  constexpr std::size_t kMostLines = 1'000'000'000;
  SLUICE_TRY(wanted, arguments.count("line", 0, kMostLines));
  const std::string id = arguments.get("id");
  SLUICE_TRY(file, open_named(arguments, "file"));
  operate::LineReader lines(file->get(), -1, operate::kMaxRecordLine);
  std::string_view line;
  std::size_t number = 0;
  auto status = operate::LineReader::Status::line;
  while ((status = lines.next(line)) == operate::LineReader::Status::line) {
    ++number;
    if ((*wanted != 0 && number != *wanted) || json_trimmed(line).empty()) {
      continue;
    }
    auto record = operate::parse_record_line(line);
    if (!record) {
      return Exit::failure("--file " + name + ", line " + std::to_string(number) + ": " + record.error().message() +
                           "; a line is one message as `sluice export` writes it");
    }
    if (id.empty() || record->message.id == id) {
      return Subject{arguments.get("queue"), std::move(*record), false};
    }
  }
  if (status != operate::LineReader::Status::end) {
    return Exit::failure("--file " + name + ", line " + std::to_string(number + 1) + ": " +
                         (status == operate::LineReader::Status::too_long ? "too long" : std::strerror(errno)));
  }
  return Exit::failure("--file " + name + " has " + counted(number, "line") +
                       (*wanted > number             ? ", and no line " + std::to_string(*wanted)
                        : *wanted != 0 && id.empty() ? ", and line " + std::to_string(*wanted) + " is empty"
                        : id.empty()                 ? ", and no message"
                        : *wanted != 0 ? ", and line " + std::to_string(*wanted) + " is not message " + visible(id)
                                       : ", and none is message " + visible(id)));
}

// ---- What is shown

/// Shows a run: as text while it goes on, as JSON at its end.
class TryReport {
 public:
  /// `queues`: those of the host file where the message is from one; null: of none.
  TryReport(Console& console, const HandlerChoice& choice, const Subject& subject, runtime::HostQueues* queues)
      : console_(console), choice_(choice), subject_(subject), queues_(queues) {}

  void begin(std::uint32_t attempt) {
    attempt_ = attempt;
    if (!console_.shows_text()) {
      return;
    }
    const config::JobConfig& job = choice_.plan.config;
    console_.out("handler " + job.handler + " of " + visible(choice_.plan.plugin_file) +
                 (choice_.has_job ? ", as job " + job.name + " runs it" : "") + ", attempt " + std::to_string(attempt) +
                 of_most() + "\n");
    console_.out(message_text(subject_.record, SystemClock().wall_now(), console_.output_has_colour()));
    console_.out("\n");
    console_.flush();
  }

  /// A line of the handler's. Thread-safe.
  void log(sluice_log_level level, std::string_view text) {
    const MutexLock lock(mutex_);
    const auto known = static_cast<observe::LogLevel>(level);
    lines_.emplace_back(known, text);
    if (console_.shows_text()) {
      console_.out(handler_line(known, text, console_.output_has_colour()) + "\n");
      console_.flush();
    }
  }

  void finish(const AttemptEnd& end, bool settled) {
    const plugin::Outcome none{plugin::OutcomeStatus::fault, {}, end.reason};
    const config::JobConfig& job = choice_.plan.config;
    const plugin::Outcome& outcome = end.outcome ? *end.outcome : none;
    const DryRun run{job.name,
                     job.queue,
                     subject_.record.message.id,
                     plugin::effect_store(job.queue, choice_.host.store_of(job.queue).kind),
                     job.idempotency.has_value(),
                     outcome,
                     settled ? std::string() : refused_sends(choice_.host, queues_, job.queue, outcome)};
    console_.shows_text() ? text(end, run, settled) : json(end, run, settled);
  }

 private:
  std::uint32_t most() const { return choice_.plan.config.retry.max_attempts; }
  std::string of_most() const { return most() == 0 ? "" : " of " + std::to_string(most()); }

  /// Of a crash with a line for each function of its stack.
  static std::string reason_text(const AttemptEnd& end) {
    std::string text = visible(end.reason);
    if (!end.outcome || end.outcome->status != plugin::OutcomeStatus::crashed) {
      return text;
    }
    boost::replace_all(text, "; stack: ", "\n  at ");
    boost::replace_all(text, " < ", "\n  at ");
    return text;
  }

  /// What becomes of the message, by the job's policy.
  std::string ending_text(const AttemptEnd& end) const {
    const std::string after = end.delay > Duration::zero() ? " after " + time_text(end.delay) : " at once";
    switch (end.ending) {
      case Ending::done:
        return "the message is removed";
      case Ending::retried:
        if (subject_.record.half == queue::Half::dlq) {
          return "it stays a dead letter, and is tried again" + after;
        }
        return "it is tried again" + after +
               (most() != 0 && attempt_ >= most() ? ", beyond its attempts"
                                                  : ", as attempt " + std::to_string(attempt_ + 1) + of_most());
      case Ending::snoozed:
        return "it is handed out again" + after + ", and this does not count as an attempt";
      case Ending::rejected:
        return "it goes to the dead-letter half of its queue";
      case Ending::discarded:
        return "the message is removed without having been done";
      case Ending::released:
        return "it goes back at once, for anybody, and this does not count as an attempt";
      case Ending::lost:
        return "somebody else has it by now, or has changed it: nothing was written";
    }
    return {};
  }

  void text(const AttemptEnd& end, const DryRun& run, bool settled) {
    std::string text = "\noutcome: " + tinted(outcome_name(end), colour_of(end.ending), console_.output_has_colour());
    text += (end.reason.empty() ? "" : ": " + reason_text(end)) + "\n";
    text += "took: " + time_text(end.took) + "\n";
    text += (settled ? "settled: " : "a host's next step: ") + ending_text(end) + "\n";
    text += transaction_text(run);
    if (!settled && subject_.stored) {
      text += "nothing in queue " + subject_.queue + " has changed\n";
    }
    console_.out(text);
  }

  void json(const AttemptEnd& end, const DryRun& run, bool settled) {
    const auto message = [this](JsonWriter& json) {
      operate::write_object(json, subject_.record, SystemClock().wall_now());
    };
    const auto line = [](JsonWriter& json, const std::pair<observe::LogLevel, std::string>& one) {
      put_object(json, "level", observe::name_of(one.first), "text", one.second);
    };
    const config::JobConfig& job = choice_.plan.config;
    console_.out(json_line(
        "handler", job.handler, "plugin", choice_.plan.plugin_file, "job", or_null(choice_.has_job, job.name), "queue",
        or_null(!subject_.queue.empty(), subject_.queue), "attempt", attempt_, "message", message, "log",
        array_of(lines_, line), "outcome", outcome_name(end), "reason", end.reason, "took_ms",
        figure(std::chrono::duration<double, std::milli>(end.took).count(), 3), "ending", ending_name(end.ending),
        "delay", or_null(end.delay > Duration::zero(), config::format_duration(end.delay)), "settled", settled,
        "transaction", [&run](JsonWriter& member) { write_transaction(run, member); }));
  }

  Console& console_;
  const HandlerChoice& choice_;
  const Subject& subject_;
  runtime::HostQueues* const queues_;
  std::uint32_t attempt_ = 0;
  Mutex mutex_;
  std::vector<std::pair<observe::LogLevel, std::string>> lines_;
};

// ---- A debugger

/// Where a debugger has to stop: the author's own function behind the handler's entry, by its name in the plugin's
/// symbols. Empty: the file has none.
std::string breakpoint_of(const sluice_handler& handler) {
  Dl_info info{};
  const void* const entry = reinterpret_cast<const void*>(handler.handle);
  if (::dladdr(entry, &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const char*>(entry) - static_cast<const char*>(info.dli_fbase));
  const std::string name = isolation::function_at(info.dli_fname, offset);
  // sluice::detail::Thunks<Shout>::handle(void*, ...): what is called is Shout::handle.
  constexpr std::string_view kThunks = "Thunks<";
  const auto begin = name.find(kThunks);
  const auto end = name.rfind(">::");
  if (begin != std::string::npos && end != std::string::npos) {
    return name.substr(begin + kThunks.size(), end - begin - kThunks.size()) + "::handle";
  }
  return name.substr(0, name.find_first_of("(+"));
}

/// The command's own words again, without --gdb and with the handler in the process itself.
std::vector<std::string> words_of(const Arguments& arguments) {
  std::vector<std::string> words{std::string(arguments.command()->name), "--in-process"};
  for (const Flag& flag : arguments.command()->flags) {
    const std::string option = "--" + std::string(flag.name);
    if (!arguments.has(flag.name) || flag.name == "gdb" || flag.name == "in-process") {
      continue;
    }
    if (flag.value.empty()) {
      words.push_back(option);
      continue;
    }
    for (const std::string& value : arguments.all(flag.name)) {
      words.push_back(option + "=" + value);
    }
  }
  return words;
}

/// Becomes gdb, which runs this command with a breakpoint in the handler. Returns only where that cannot be.
Exit debug(const Arguments& arguments, const sluice_handler& handler, Console& console) {
  std::error_code code;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", code).string();
  std::vector<std::string> words{"gdb", "-q", "-ex", "set breakpoint pending on"};
  if (const std::string stop = breakpoint_of(handler); !stop.empty()) {
    words.insert(words.end(), {"-ex", "break " + stop});
  } else {
    console.note("the plugin has no symbols, so that gdb stops nowhere by itself; build it with RelWithDebInfo");
  }
  words.insert(words.end(), {"-ex", "run", "--args", self});
  const auto own = words_of(arguments);
  words.insert(words.end(), own.begin(), own.end());
  std::vector<char*> raw = mapped(words, [](std::string& word) { return word.data(); });
  raw.push_back(nullptr);
  console.flush();
  ::execvp(raw.front(), raw.data());
  return Exit::failure(errno == ENOENT
                           ? "--gdb needs gdb, which is not installed here (`apt install gdb`); with --in-process "
                             "another debugger can run this command"
                           : std::string("cannot start gdb: ") + std::strerror(errno));
}

// ---- The run

/// What a handler that worked may be taken for by a script.
bool went_well(const AttemptEnd& end) {
  return end.ending == Ending::done || end.ending == Ending::discarded || end.ending == Ending::snoozed ||
         end.ending == Ending::released;
}

OrExit<std::uint32_t> attempt_of(const Arguments& arguments, const Subject& subject, const config::JobConfig& job) {
  constexpr std::size_t kMost = 1'000'000;
  const std::uint32_t most = job.retry.max_attempts;
  const std::uint32_t next = subject.record.message.attempt + 1;
  SLUICE_TRY(attempt, arguments.count("attempt", most == 0 ? next : std::min(next, most), kMost));
  return static_cast<std::uint32_t>(*attempt);
}

/// The log of the job's own engine: it has something to say only where something is wrong.
class WarningTap final : public observe::LogTap {
 public:
  explicit WarningTap(TryReport& report) : report_(report) {}
  observe::LogLevel level() const override { return observe::LogLevel::error; }
  void take(const observe::LogLine& line) override {
    std::string text(line.message);
    for (const observe::LogField& field : line.fields) {
      text += field.name() == "reason" ? ": " + std::string(field.value()) : std::string();
    }
    report_.log(SLUICE_LOG_ERROR, text);
  }

 private:
  TryReport& report_;
};

/// One command: its message, its handler, and the queues that both are from.
class Trial {
 public:
  Trial(const Arguments& arguments, HandlerChoice& choice, Subject subject, runtime::HostQueues* queues,
        Console& console)
      : arguments_(arguments), choice_(choice), subject_(std::move(subject)), queues_(queues), console_(console) {}

  Exit run() {
    config::JobConfig& job = choice_.plan.config;
    job.queue = subject_.queue.empty() ? job.queue : subject_.queue;
    if (subject_.stored) {
      job.source = subject_.record.half == queue::Half::dlq ? config::Source::dlq : config::Source::standard;
    }
    SLUICE_TRY(run, run_of());
    return arguments_.has("settle") ? settle(*run) : rehearse(*run);
  }

 private:
  OrExit<runtime::OneRun> run_of() {
    runtime::OneRun run;
    run.plan = choice_.plan;
    run.effects = choice_.effects(random_, clock_);
    run.host = runtime::host_name(choice_.host);
    const config::QueueConfig queue = choice_.host.queue(choice_.plan.config.queue);
    run.lease = {queue.visibility_timeout, queue.max_lease};
    if (arguments_.has("in-process")) {
      run.lease.visibility = std::max(run.lease.visibility, std::min(kDebuggerLease, queue.max_lease));
      return run;
    }
    SLUICE_TRY(file, isolation::open_plugin(*choice_.registry.owner_of(choice_.plan.handler)));
    run.file = std::move(*file);
    SLUICE_TRY(arounds, runtime::open_arounds(choice_.plan, choice_.registry));
    run.arounds = *std::move(arounds);
    return run;
  }

  Exit rehearse(const runtime::OneRun& run) {
    SLUICE_TRY(attempt, attempt_of(arguments_, subject_, choice_.plan.config));
    return show(run, runtime::handed_out(subject_.record.message, *attempt), nullptr);
  }

  Exit settle(runtime::OneRun& run) {
    SLUICE_TRY(oper, operate::AuditedOperator::open(*queues_, subject_.queue, this_operator(), random_));
    SLUICE_TRY(source, queues_->open_source({subject_.queue, subject_.record.half}));
    SLUICE_TRY(delivery, runtime::claim_named({subject_.queue, subject_.record}, **oper, **source, run.lease, clock_));
    return show(run, std::move(*delivery), source->get());
  }

  Exit show(const runtime::OneRun& run, queue::Delivery delivery, queue::Source* source) {
    TryReport report(console_, choice_, subject_, queues_);
    report.begin(delivery.message.attempt);
    const plugin::HandlerLog log = [&report](sluice_log_level level, std::string_view, std::string_view,
                                             std::string_view text) { report.log(level, text); };
    WarningTap tap(report);
    observe::Log host_log(observe::LogLevel::off, observe::LogFormat::text);
    host_log.tap(&tap);
    const InterruptFlag interrupt;
    runtime::OneRunSeams seams{clock_, random_, log, host_log, source, {}, interrupt.descriptor()};
    if (source != nullptr) {
      seams.keys = [this](const std::string& queue) { return queues_->open_keys(queue); };
    }
    const auto end = runtime::run_one_message(run, std::move(delivery), seams);
    if (!end) {
      return end.error().code() == ErrorCode::cancelled ? Exit(kExitInterrupted, end.error().message())
                                                        : Exit(kExitConfiguration, end.error().message());
    }
    report.finish(*end, source != nullptr);
    return went_well(*end) ? Exit::ok() : Exit::silent(kExitFailure);
  }

  const Arguments& arguments_;
  HandlerChoice& choice_;
  const Subject subject_;
  runtime::HostQueues* const queues_;
  Console& console_;
  const SystemClock clock_;
  SeededRandom random_;
};

/// Chooses the handler for the message, and runs it on it.
Exit try_on(const Arguments& arguments, Subject subject, runtime::HostQueues* queues, Console& console) {
  SLUICE_TRY(choice,
             choose_handler(arguments, {arguments.get("handler"), subject.queue, subject.record.half}, console));
  if (arguments.has("gdb")) {
    return debug(arguments, *(*choice)->plan.handler, console);
  }
  return Trial(arguments, **choice, std::move(subject), queues, console).run();
}

/// The same on the message of --id in its queue.
Exit try_stored(const Arguments& arguments, Console& console) {
  if (arguments.get("queue").empty()) {
    return Exit::usage("which queue is message " + arguments.get("id") + " in? Write --queue QUEUE");
  }
  SLUICE_TRY(host, load_host_file(arguments));
  OpenQueues open(*host);
  SLUICE_TRY(subject, stored_of(arguments, open, arguments.get("queue")));
  return try_on(arguments, std::move(*subject), &open.queues, console);
}

Exit try_message(const Arguments& arguments, Console& console) {
  if (!arguments.has("data") && !arguments.has("data-file") && !arguments.has("id")) {
    return Exit::usage("which message? Give --data TEXT, --data-file FILE, or --id ID with --queue QUEUE");
  }
  if (!arguments.has("handler") && !arguments.has("plugin") && !arguments.has("job")) {
    return Exit::usage("which handler? Write `sluice try HANDLER`, or --plugin X.so with one handler in it");
  }
  if (arguments.has("id")) {
    return try_stored(arguments, console);
  }
  SLUICE_TRY(subject, made_of(arguments));
  subject->queue = arguments.get("queue");
  return try_on(arguments, std::move(*subject), nullptr, console);
}

Exit replay(const Arguments& arguments, Console& console) {
  if (!arguments.has("file")) {
    if (!arguments.has("id")) {
      return Exit::usage("which message? Write its ID with --queue QUEUE, or --file FILE");
    }
    return try_stored(arguments, console);
  }
  if (!arguments.has("queue") && !arguments.has("handler") && !arguments.has("plugin") && !arguments.has("job")) {
    return Exit::usage("through which handler? Write --queue QUEUE for that of its job, or --handler HANDLER");
  }
  SLUICE_TRY(subject, exported(arguments));
  return try_on(arguments, std::move(*subject), nullptr, console);
}

std::vector<Flag> run_flags() {
  return joined({{"attempt", "N", "tell the handler that it is attempt N [default: the next one]"},
                 {"gdb", {}, "run it under gdb, which stops where the handler begins"},
                 {"in-process", {}, "run the handler in this very process, for another debugger or a profiler"}},
                joined(handler_flags(), output_flags()));
}

constexpr std::string_view kAbout =
    "The handler runs here and now, without a time-out and in a process of its own, so that a crash is shown as what "
    "came of it. Shown are the message, the handler's log lines as they come, its outcome, what a host would do next "
    "by the job's policy, the time, and what would be committed together with a message that is done. What the handler "
    "does by itself, such as a request to another server, it really does. Ends with 0 where the handler is done with "
    "the message, discards it or puts it off, and with 1 where it failed: by its word, an exception or a crash.";

}  // namespace

std::vector<Command> try_commands() {
  static const std::string about(kAbout);
  static const std::string of_replay =
      "One real message, by its id from a queue or its dead-letter half, or from a line of what `sluice export` wrote, "
      "through the handler of the job that works on the queue. " +
      about +
      "\n\nNothing in the queue changes. With --settle the message is claimed and its outcome is written, effects "
      "included, as a host would do it; it is brought to the front of its queue for that, and its sent_at is that of "
      "the front from then on. A message that somebody has at work is refused. Where hosts run, pause the job before: "
      "one of them may be quicker.";
  static const std::string of_try =
      about +
      "\n\nThe handler is looked for in the host file's plugin folders, or in the file of --plugin alone. Its options "
      "are those of the job that uses it, else what it declares; --option wins over both. Nothing in any queue "
      "changes.";
  return {
      {
          .name = "try",
          .summary = "Run one message through one handler, without a queue",
          .usage = "HANDLER (--data TEXT | --data-file FILE | --id ID --queue QUEUE [--dlq]) [OPTION]...",
          .description = of_try,
          .flags =
              joined({alone({"handler", "HANDLER", "the handler, by its name; with --plugin that file's only one"}),
                      against("data-file|id", {"data", "TEXT", "the body: JSON if it is that, else plain text"}),
                      against("id", {"data-file", "FILE", "the body is the whole file"}),
                      {"id", "ID", "the message of this id, as it lies in the queue"},
                      {"queue", "QUEUE", "the queue of --id; with --data the handler is told it"},
                      kDlqFlag,
                      against("id", repeated({"attr", "NAME=VALUE", "an attribute; may be repeated", false, false,
                                              false, false, "attribute"})),
                      against("id", {"group", "GROUP", "the message's group"}),
                      against("id", {"content-type", "TYPE", "the body's type [default: by the body]"})},
                     run_flags()),
          .examples = "sluice try shout --plugin build/shout.so --data hello --option suffix='!'\n"
                      "sluice try transfer --data-file order.json --attr tenant=acme\n"
                      "sluice try transfer --id A-101 --queue transfers --gdb",
          .run = try_message,
      },
      {
          .name = "replay",
          .summary = "Run one real message through its handler here and now",
          .usage = "([QUEUE] ID [--dlq] [--settle] | --file FILE [--line N]) [--handler HANDLER] [OPTION]...",
          .description = of_replay,
          .flags = joined({alone({"id", "ID", "the message; with --file the line of this id"}),
                           {"queue", "QUEUE", "the queue that it lies in; with --file the one whose job counts"},
                           against("file", kDlqFlag),
                           {"file", "FILE", "a message from a file of `sluice export` instead"},
                           only_with("file", {"line", "N", "the line of the file [default: the first]"}),
                           {"handler", "HANDLER", "this handler instead of the job's"},
                           against("file", {"settle", {}, "claim the message and write what comes of it"})},
                          run_flags()),
          .examples = "sluice replay orders A-101 --dlq\n"
                      "sluice replay orders A-101 --dlq --settle\n"
                      "sluice replay --file dump.ndjson --line 7 --queue orders --gdb",
          .run = replay,
      },
  };
}

}  // namespace sluice::cli
