#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text/json_writer.hpp"
#include "host/cli/command.hpp"
#include "host/cli/line_reader.hpp"
#include "host/cli/queue_session.hpp"
#include "host/operate/copy.hpp"

namespace sluice::cli {

namespace {

/// A body of 16 MiB, which is the most that a store takes, with every byte escaped, and the rest of its record.
constexpr std::size_t kMaxRecordLine = 128UL * 1024 * 1024;

/// Where the lines come from; closed with the object.
class InputFile {
 public:
  explicit InputFile(const std::string& name)
      : descriptor_(name.empty() ? STDIN_FILENO : ::open(name.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~InputFile() {
    if (descriptor_ > STDERR_FILENO) {
      ::close(descriptor_);
    }
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
};

/// One run over the lines of a file. For one use.
class ImportRun {
 public:
  ImportRun(QueueSession& session, bool keep_going, bool keep_leases, Console& console)
      : session_(session),
        console_(console),
        keep_going_(keep_going),
        importer_(session.oper(), session.clock(), {.keep_leases = keep_leases}) {}

  Exit run(int input) {
    const InterruptFlag interrupt;
    LineReader reader(input, interrupt.descriptor(), kMaxRecordLine);
    auto status = LineReader::Status::stopped;
    while (!interrupt.raised()) {
      std::string_view text;
      status = reader.next(text);
      if (status != LineReader::Status::line) {
        break;
      }
      if (!take(text)) {
        break;
      }
    }
    const int reason = errno;
    // What was read before an error or an interruption is good, and is kept.
    if (!failed_) {
      flush();
    }
    console_.end_progress();
    return finish(interrupt.raised() ? LineReader::Status::stopped : status, reason);
  }

  const operate::Importer::Counts& counts() const { return importer_.counts(); }
  std::uint64_t lines() const { return line_; }

 private:
  /// False when this line ends the run.
  bool take(std::string_view text) {
    ++line_;
    if (const auto refusal = importer_.add(line_, text)) {
      return note(*refusal);
    }
    return !importer_.full() || flush();
  }

  bool note(const operate::Importer::Refusal& refusal) {
    const std::string text = "line " + std::to_string(refusal.line) + ": " + refusal.reason;
    if (keep_going_) {
      console_.note(text);
      return true;
    }
    if (stopped_by_.empty()) {
      stopped_by_ = text;
    }
    return false;
  }

  bool flush() {
    const auto refusals = importer_.flush(session_.deadline());
    if (refusals.has_error()) {
      failed_ = true;
      store_error_ = session_.explained(refusals.error());
      return false;
    }
    bool going_on = true;
    for (const auto& refusal : *refusals) {
      going_on = note(refusal) && going_on;
    }
    console_.progress("line " + std::to_string(line_) + ", " + so_far());
    return going_on;
  }

  std::string so_far() const {
    return std::to_string(counts().imported) + " imported, " + std::to_string(counts().existing) + " there already";
  }

  Exit finish(LineReader::Status status, int reason) const {
    constexpr const char* kAgain = "; the same command again passes over what is there and goes on";
    if (failed_) {
      return Exit::failure("stopped at line " + std::to_string(importer_.unwritten_line()) + " (" + so_far() +
                           "): " + store_error_ + kAgain);
    }
    if (!stopped_by_.empty()) {
      return Exit::failure(stopped_by_ + "; stopped there (" + so_far() +
                           "); mend the line and run it again, or pass over such lines with --on-error continue");
    }
    switch (status) {
      case LineReader::Status::stopped:
        return {kExitInterrupted, "interrupted after line " + std::to_string(line_) + " (" + so_far() + ")" + kAgain};
      case LineReader::Status::too_long:
        return Exit::failure("line " + std::to_string(line_ + 1) + ": longer than 128 MiB, which no record is; " +
                             "nothing after it was read (" + so_far() + ")");
      case LineReader::Status::failed:
        return Exit::failure("line " + std::to_string(line_ + 1) + ": cannot read: " + std::strerror(reason) + " (" +
                             so_far() + ")" + kAgain);
      default:
        break;
    }
    if (counts().refused > 0) {
      return Exit::failure(std::to_string(counts().refused) + " of " + std::to_string(line_) +
                           " lines were not imported; mend them and run it again, what is there stays as it is");
    }
    return Exit::ok();
  }

  QueueSession& session_;
  Console& console_;
  const bool keep_going_;
  operate::Importer importer_;
  std::uint64_t line_ = 0;
  bool failed_ = false;  ///< the store could not go on
  std::string store_error_;
  std::string stopped_by_;
};

void report(const ImportRun& run, const std::string& queue, Output output, Console& console) {
  const auto& counts = run.counts();
  if (output == Output::text) {
    console.out(std::to_string(counts.imported) + " imported, " + std::to_string(counts.existing) + " there already, " +
                std::to_string(counts.refused) + " refused, of " + std::to_string(run.lines()) + " lines\n");
    return;
  }
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  json.member("queue", queue);
  json.member("lines", run.lines());
  json.member("imported", counts.imported);
  json.member("existing", counts.existing);
  json.member("refused", counts.refused);
  json.end_object();
  console.out(json.take_line());
}

Exit check_words(const Arguments& arguments) {
  if (arguments.has("file") == arguments.reads_stdin()) {
    return Exit::usage("where are the records? give --file FILE, or - for standard input");
  }
  const std::string on_error = arguments.get("on-error", "stop");
  if (on_error != "stop" && on_error != "continue") {
    return Exit::usage("--on-error is stop or continue, not \"" + on_error + "\"");
  }
  return Exit::ok();
}

Exit import_queue(const Arguments& arguments, Console& console) {
  if (Exit wrong = check_words(arguments); wrong.code() != kExitOk) {
    return wrong;
  }
  SLUICE_TRY(output, arguments.output());
  const InputFile input(arguments.get("file"));
  if (input.descriptor() < 0) {
    return Exit::failure("--file " + arguments.get("file") + ": " + std::strerror(errno));
  }
  SLUICE_TRY(session, QueueSession::open(arguments));
  ImportRun run(*session, arguments.get("on-error") == "continue", arguments.has("keep-leases"), console);
  Exit exit = run.run(input.descriptor());
  report(run, session->queue(), *output, console);
  if (const auto cost = session->cost()) {
    console.note("imported " + std::to_string(run.counts().imported) +
                 " records; DynamoDB: " + cost->text(run.counts().imported, "record"));
  }
  return exit;
}

}  // namespace

Command import_command() {
  return {
      .name = "import",
      .group = "Queues",
      .summary = "Read records that `sluice export` wrote into a queue",
      .usage = "--queue QUEUE (--file FILE | -) [OPTION]...",
      .description =
          "Records keep everything: id, half, body, attributes, times, counts, version and failure. One whose id is "
          "in the queue already is passed over and counted, so a second run does not duplicate and goes on where the "
          "first ended. A delayed record stays delayed; one in flight comes in visible, unless --keep-leases is "
          "given.\n\n"
          "A line that is no record stops the run, after what came before it is written, and its number is named. "
          "Ctrl-C ends it between two batches. Prints a JSON object with the counts; exit 1 when a line was refused.",
      .flags = with_store_flags(
          {{.name = "file", .value = "FILE", .help = "the file of records"},
           {.name = "on-error", .value = "stop|continue", .help = "what a line that is no record does [default: stop]"},
           {.name = "keep-leases", .value = {}, .help = "what is in flight stays hidden until its time"}}),
      .examples =
          "sluice import --queue orders --file orders.jsonl\n"
          "zcat backup.jsonl.gz | sluice import --queue orders --on-error continue -",
      .stdin_operand = true,
      .run = import_queue,
  };
}

}  // namespace sluice::cli
