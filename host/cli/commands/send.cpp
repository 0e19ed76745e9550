#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/text/json_check.hpp"
#include "base/text/utf8.hpp"
#include "host/cli/command.hpp"
#include "host/cli/drop_in/dynamomq_operations.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/line_reader.hpp"

namespace sluice::cli {

namespace {

using operate::BatchCommitter;
using operate::LineRanges;
using operate::LineReader;
using operate::MessageTemplate;
using operate::SendRun;

/// One transaction, one sync of the disk.
constexpr std::size_t kSqliteBatch = 8000;
/// Twenty requests of 25 side by side.
constexpr std::size_t kDynamoDbBatch = 500;
/// A batch also ends at this many bytes, so that large bodies do not add up.
constexpr std::size_t kBatchBytes = 4UL * 1024 * 1024;
/// Input that brings nothing for so long has paused.
constexpr Duration kLinePause = std::chrono::milliseconds(5);

BatchCommitter::Listener listener_of(const QueueSession& session, bool lists, Console& console) {
  return {.stored =
              [lists, &console](const std::string& ids) {
                if (lists) {
                  console.out(ids);
                  console.flush();
                }
              },
          .passed_over =
              [&console](const BatchCommitter::Refusal& refusal) {
                console.note("sluice send: line " + std::to_string(refusal.line) + ": " + refusal.why);
              },
          .progress =
              [&console](std::uint64_t sent, double seconds) {
                const auto rate = static_cast<std::uint64_t>(static_cast<double>(sent) / seconds);
                console.progress(std::to_string(sent) + " sent, " + std::to_string(rate) + " a second");
              },
          .listens = [&console] { return console.writable(); },
          .explained = [&session](const Error& error) { return session.explained(error); }};
}

/// Sends one message for each line of input that a run wants, in batches, in constant memory, and prints the id of each
/// message once it is durable, or how many they are. At the end it names every line that was not stored. A batch is
/// sent while the next one is read. For one use, by one thread.
///
/// A batch goes off when it is full or when the input pauses, so that a slow producer's lines do not wait.
class BulkSender {
 public:
  /// `lists`: prints the ids. The references outlive it.
  BulkSender(bool keep_going, bool lists, SendRun run, queue::Sender& sender, QueueSession& session,
             const MessageTemplate& messages, Console& console)
      : stop_at_refusal_(!keep_going),
        lists_(lists),
        run_(std::move(run)),
        batch_size_(session.place().in_sqlite() ? kSqliteBatch : kDynamoDbBatch),
        messages_(messages),
        console_(console),
        committer_(keep_going, run_, sender, session.clock(), listener_of(session, lists, console)) {}

  /// Until the end of input, the first error, an interruption, or nobody reads the ids any more.
  Exit run(int input) {
    const InterruptFlag interrupt;
    LineReader reader(input, interrupt.descriptor());
    const LineReader::Status last = read(reader, interrupt);
    const int failure = errno;
    // What stood before a bad line is good, and is sent; what an interruption finds unsent stays unsent.
    const bool interrupted = interrupt.raised();
    if (!interrupted && !batch_.empty()) {
      hand_over();
    }
    committer_.drain();
    return finish(last, failure, interrupted);
  }

  /// How many messages are stored, once `run` has returned.
  std::uint64_t sent() const { return committer_.sent(); }

 private:
  LineReader::Status read(LineReader& reader, const InterruptFlag& interrupt) {
    LineReader::Status status = LineReader::Status::line;
    while (status == LineReader::Status::line && !interrupt.raised()) {
      if (full() && !pass_on(interrupt)) {
        break;
      }
      if (!reader.ready(kLinePause)) {
        // Before it waits for input it must know that there is still something to wait for.
        if ((!batch_.empty() && !pass_on(interrupt)) || !committer_.drain()) {
          break;
        }
      }
      std::string_view line;
      status = reader.next(line);
      if (status == LineReader::Status::line) {
        add(line);
      } else if (status == LineReader::Status::too_long) {
        refuse_long_line();
        status = LineReader::Status::line;
      }
      if (stop_at_refusal_ && !batch_.refusals.empty()) {
        break;
      }
    }
    return status;
  }

  /// Adds a line to the batch.
  void add(std::string_view line) {
    ++line_;
    if (json_trimmed(line).empty() || !run_.wants(line_)) {
      return;
    }
    auto message = messages_.from_json(line);
    if (message.has_error()) {
      const bool json = !json_problem(json_trimmed(line));
      batch_.refusals.push_back({line_, (json ? "" : "not JSON: ") + message.error().message()});
      return;
    }
    batch_bytes_ += line.size();
    batch_.messages.push_back(std::move(*message));
    batch_.lines.push_back(line_);
  }

  /// Counts a line that no message fits in, and refuses it where the run wants it.
  void refuse_long_line() {
    ++line_;
    if (run_.wants(line_)) {
      batch_.refusals.push_back({line_, "longer than " + std::to_string(LineReader::kMaxLine / 1024 / 1024) +
                                            " MiB, the most that a line may have; send a smaller message"});
    }
  }

  bool full() const {
    return batch_.messages.size() + batch_.refusals.size() >= batch_size_ || batch_bytes_ >= kBatchBytes;
  }

  /// Hands the batch over once the one before is sent; false when that, or an interruption, ends the command.
  bool pass_on(const InterruptFlag& interrupt) { return committer_.drain() && !interrupt.raised() && hand_over(); }

  bool hand_over() {
    batch_bytes_ = 0;
    batch_.last_line = handed_over_ = line_;
    const std::size_t count = batch_.messages.size();
    const bool goes_on = committer_.pass_on(std::exchange(batch_, {}));
    if (goes_on) {
      // The next one is likely to be as large.
      batch_.messages.reserve(count);
      batch_.lines.reserve(count);
    }
    return goes_on;
  }

  Exit finish(LineReader::Status last, int failure, bool interrupted) {
    console_.end_progress();
    // An interruption ends the reading too, and says nothing of what was still to come.
    const bool at_end = !interrupted && last == LineReader::Status::end && committer_.committed() == handed_over_;
    if (auto reasons = committer_.stopped_by(); !reasons.empty()) {
      return unfinished(kExitFailure, std::move(reasons), so_far(), at_end);
    }
    if (interrupted) {
      return unfinished(kExitInterrupted, {}, "interrupted; " + so_far(), at_end);
    }
    if (last == LineReader::Status::failed) {
      return unfinished(kExitFailure, {},
                        std::string("cannot read standard input: ") + std::strerror(failure) + "; " + so_far(), false);
    }
    if (committer_.refused() > 0) {
      return unfinished(kExitFailure, {},
                        so_far() + ", " + std::to_string(committer_.refused()) +
                            (committer_.refused() == 1 ? " line was passed over" : " lines were passed over"),
                        at_end);
    }
    if (!lists_) {
      console_.out(so_far() + "\n");
    }
    return Exit::ok();
  }

  std::string so_far() const {
    std::string text = std::to_string(sent()) + (sent() == 1 ? " message was sent" : " messages were sent");
    if (committer_.existing() > 0) {
      text += ", " + std::to_string(committer_.existing()) + " of them before";
    }
    return text;
  }

  /// Why it ended, and how the lines that are missing are sent.
  Exit unfinished(int code, std::vector<std::string> reasons, std::string summary, bool at_end) const {
    if (const LineRanges missing = committer_.missing(at_end); !missing.empty()) {
      const std::string lines = missing.text();
      const bool one = lines.find_first_of(",-") == std::string::npos;
      summary += (one ? "; line " + lines + " is not stored" : "; lines " + lines + " are not stored") +
                 "; send the same input again with --resume " + committer_.token(at_end);
    }
    reasons.push_back(std::move(summary));
    return {code, std::move(reasons)};
  }

  const bool stop_at_refusal_;
  const bool lists_;
  const SendRun run_;
  const std::size_t batch_size_;
  const MessageTemplate& messages_;
  Console& console_;
  BatchCommitter committer_;
  BatchCommitter::Batch batch_;
  std::size_t batch_bytes_ = 0;
  std::uint64_t line_ = 0;
  std::uint64_t handed_over_ = 0;  ///< up to which line; behind it there are none to be sent, once all are read
};

OrExit<queue::NewMessage> read_message(const Arguments& arguments, const MessageTemplate& messages) {
  if (arguments.has("text")) {
    return or_usage(messages.from_text(arguments.get("text")));
  }
  if (arguments.has("file")) {
    SLUICE_TRY(bytes, read_named(arguments, "file"));
    return or_usage(messages.from_file(arguments.get("file"), std::move(*bytes)));
  }
  auto message = messages.from_json(arguments.get("data"));
  if (message.has_error() && json_problem(json_trimmed(arguments.get("data")))) {
    return Exit::usage("--data is not JSON: " + message.error().message() +
                       R"(; quote it for the shell, --data '{"n": 1}', or send plain text with --text)");
  }
  return or_usage(std::move(message));
}

Exit send_one(QueueSession& session, const queue::NewMessage& message, Console& console) {
  SLUICE_TRY(sender, session.open_sender());
  const auto results = (*sender)->send({&message, 1}, session.deadline());
  const queue::SendResult& result = results.front();
  switch (result.status) {
    case queue::SendStatus::deduplicated:
      console.note("a duplicate: message " + result.id + " was sent first, and this one is not stored");
      [[fallthrough]];
    case queue::SendStatus::sent:
      return print(result.id + "\n", console);
    case queue::SendStatus::duplicate_id:
      return Exit::failure("a message with the id " + message.id + " is in queue " + session.queue() +
                           " already; choose another --id, or none");
    case queue::SendStatus::failed:
      break;
  }
  return session.failure(result.error);
}

OrExit<void> check_sources(const Arguments& arguments) {
  if (!arguments.has("data") && !arguments.has("text") && !arguments.has("file") && !arguments.reads_stdin()) {
    return Exit::usage(
        "nothing to send; give --data JSON, --text TEXT, --file FILE, or - for JSON lines on standard input");
  }
  for (const char* const name : {"id", "content-type", "attr", "group", "dedup-id", "unique-key"}) {
    const auto values = arguments.all(name);
    if (!std::all_of(values.begin(), values.end(), is_utf8)) {
      return Exit::usage("--" + std::string(name) + " is not UTF-8; only a body may be any bytes");
    }
  }
  return {};
}

OrExit<SendRun> run_of(const Arguments& arguments) {
  if (!arguments.has("resume")) {
    SeededRandom random;
    return SendRun::begin(random);
  }
  auto run = SendRun::resume(arguments.get("resume"));
  if (!run) {
    return Exit::usage("--resume \"" + arguments.get("resume") +
                       "\" is not what a run has said, such as 5f3c9a1b-e07d-8224-8abc:3,51-53,101-");
  }
  return std::move(*run);
}

Exit send_lines(const Arguments& arguments, const MessageTemplate& messages, Console& console) {
  SLUICE_TRY(run, run_of(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments));
  SLUICE_TRY(opened, session->open_sender());
  const bool typed = ::isatty(STDIN_FILENO) == 1;
  if (typed && console.error_is_terminal()) {
    console.note("type one message a line, as JSON; Ctrl-D ends");
  }
  BulkSender sender(arguments.has("keep-going"), typed || lists_ids(arguments, console), std::move(*run), **opened,
                    *session, messages, console);
  Exit exit = sender.run(STDIN_FILENO);
  if (const auto cost = session->cost()) {
    console.note("sent " + counted(sender.sent(), "message") +
                 "; DynamoDB: " + cost::text_of(*cost, sender.sent(), "message"));
  }
  return exit;
}

Exit send(const Arguments& arguments, Console& console) {
  SLUICE_PASS_ON(check_sources(arguments));
  SLUICE_TRY(messages, read_template(arguments));
  if (arguments.reads_stdin()) {
    return send_lines(arguments, *messages, console);
  }
  SLUICE_TRY(message, read_message(arguments, *messages));
  message->id = arguments.get("id");
  SLUICE_TRY(session, QueueSession::open(arguments));
  return send_one(*session, *message, console);
}

Exit enqueue_test(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, QueueSession::open(arguments));
  const BulkOutcome outcome = DynamoMqOperations(*session).enqueue_test();
  if (console.shows_text()) {
    TextTable table({{.title = "ID"}, {.title = "RESULT"}}, console.screen());
    for (const std::string& id : outcome.successes) {
      table.add({id, {"sent", Colour::green}});
    }
    for (const auto& failed : outcome.failures) {
      table.add({failed.id, {failed.error.message(), Colour::red}});
    }
    console.out(table.take());
  } else {
    console.out(json_text([&outcome](JsonWriter& json) { write_outcome(json, outcome, false, false); }));
  }
  if (outcome.failures.empty()) {
    return Exit::ok();
  }
  return Exit::failure(std::to_string(outcome.failures.size()) + " of 4 messages were not sent; the first, " +
                       outcome.failures.front().id + ": " + outcome.failures.front().error.message());
}

}  // namespace

std::vector<Command> send_commands() {
  return {
      {
          .name = "send",
          .summary = "Send one message, or one for each line of standard input",
          .usage = "[QUEUE] (--data JSON | --text TEXT | --file FILE | -) [OPTION]...",
          .description =
              "Prints the id of each message once it is stored for good; with - on a terminal how many were sent, "
              "unless they are typed there or there is --ids. A JSON string is sent as its characters "
              "(text/plain), other JSON as it is written (application/json). With - every line is the JSON body of "
              "one message; the first batch with a bad line is the last, and Ctrl-C stops it between two batches. "
              "Every line that was not stored is named, and --resume sends the same input again for those alone: "
              "their messages have the same ids then, so that what was stored without an answer is not stored twice "
              "while it is in the queue.\n\n"
              "Of the messages sent with one --dedup-id within its window only the first is stored; the others are "
              "accepted and answered with its id, even after it is done. While a message with a --unique-key lies in "
              "the queue no other with that key is put beside it. Both may be taken out of each body: body:order_id, "
              "or by a JSON pointer, body:/order/id.\n\n"
              "A queue that no job, host file or earlier message knows is refused without --create.",
          .flags = with_place_flags(
              {against("text|file|-", {"data", "JSON", "the body, as JSON"}),
               against("file|-", {"text", "TEXT", "the body, as plain text"}),
               against("-",
                       {"file", "FILE",
                        "the body is the whole file: JSON if it is named .json and is that, else text, else bytes"}),
               against("-", filled({"id", "ID", "the message's id [default: a new UUID]; one in use is refused"})),
               {"delay", "TIME", "not to be worked on before this has passed: 10s, 15m, 2h"},
               repeated({"attr", "NAME=VALUE", "an attribute; may be repeated"}),
               {"content-type", "TYPE", "the body's type [default: by the body]"},
               {"group", "GROUP", "the group that the message belongs to"},
               filled({"dedup-id", "ID", "not stored if one with this id was sent within the window"}),
               {"dedup-window", "TIME", "how long that lasts [default: the queue's, 5m]"},
               filled({"unique-key", "KEY", "not stored while one with this key is in the queue"}),
               only_with("unique-key",
                         one_of({"unique", "while-queued|until-done", "how long that holds [default: until-done]"})),
               one_of({"priority", "critical|high|normal|low", "not in DynamoMQ's tables [default: normal]"}),
               kCreateFlag,
               kIdsFlag,
               only_with("-", {"keep-going", {}, "with -: name bad lines, pass over them, exit 1 at the end"}),
               only_with("-", filled({"resume", "TOKEN", "with -: only the lines that a run said it has not stored"}))},
              Outboxes::taken),
          .examples = "sluice send orders --data '{\"order\": 7}' --attr tenant=acme\n"
                      "sluice send orders --text hello --delay 10m\n"
                      "jq -c .orders[] day.json | sluice send orders -",
          .stdin_operand = true,
          .run = send,
      },
      {
          .name = "enqueue-test",
          .summary = "Put four test messages into a queue",
          .usage = "[QUEUE] [OPTION]...",
          .description =
              "Their ids are A-101, A-202, A-303 and A-404; messages that have these ids are replaced. Prints which "
              "were sent. A queue that no job, host file or earlier message knows is refused without --create.",
          .flags = with_store_flags({kCreateFlag}),
          .examples = "sluice enqueue-test playground --create",
          .run = enqueue_test,
      },
  };
}

}  // namespace sluice::cli
