#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <span>
#include <thread>

#include "base/ranges.hpp"
#include "base/text/json_check.hpp"
#include "base/text/utf8.hpp"
#include "host/cli/command.hpp"
#include "host/cli/drop_in/dynamomq_operations.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/line_reader.hpp"
#include "host/operate/send_run.hpp"
#include "host/queue/sender.hpp"

namespace sluice::cli {

namespace {

using operate::LineRanges;
using operate::LineReader;
using operate::MessageTemplate;
using operate::SendRun;
using operate::UnsureLines;

/// One transaction, one sync of the disk.
constexpr std::size_t kSqliteBatch = 8000;
/// Twenty requests of 25 side by side.
constexpr std::size_t kDynamoDbBatch = 500;
/// A batch also ends at this many bytes, so that large bodies do not add up.
constexpr std::size_t kBatchBytes = 4UL * 1024 * 1024;
/// Input that brings nothing for so long has paused.
constexpr Duration kLinePause = std::chrono::milliseconds(5);
constexpr Duration kProgressInterval = std::chrono::milliseconds(200);

/// Sends one message for each line of input that a run wants, in batches, in constant memory, and prints the id of each
/// message once it is durable, in the order of the lines, or how many they are. At the end it names every line that was
/// not stored; a message that is there already, by its id, is one that an earlier try has stored. For one use.
///
/// A batch goes off when it is full or when the input pauses, so that a slow producer's lines do not wait. It is sent
/// on a thread of its own while the next one is read, and that thread alone touches what comes of it until `drain` has
/// returned.
class BulkSender {
 public:
  /// `lists`: prints the ids; `keep_going`: a refused line is named and passed over, otherwise its batch is the last.
  /// The references outlive it.
  BulkSender(bool keep_going, bool lists, SendRun run, queue::Sender& sender, QueueSession& session,
             const MessageTemplate& messages, Console& console)
      : keep_going_(keep_going),
        lists_(lists),
        run_(std::move(run)),
        batch_size_(session.place().in_sqlite() ? kSqliteBatch : kDynamoDbBatch),
        sender_(sender),
        session_(session),
        messages_(messages),
        console_(console) {}

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
    drain();
    return finish(last, failure, interrupted);
  }

  /// How many messages are stored, once `run` has returned.
  std::uint64_t sent() const { return sent_; }

 private:
  struct Refusal {
    std::uint64_t line = 0;
    std::string why;
  };
  struct Batch {
    std::vector<queue::NewMessage> messages{};  ///< without ids
    std::vector<std::uint64_t> lines{};         ///< where each of them stood
    std::vector<Refusal> refusals{};            ///< lines that are no message
    std::uint64_t last_line = 0;                ///< up to which the input was read
    std::size_t bytes = 0;

    bool empty() const { return messages.empty() && refusals.empty(); }
  };

  LineReader::Status read(LineReader& reader, const InterruptFlag& interrupt) {
    LineReader::Status status = LineReader::Status::line;
    while (status == LineReader::Status::line && !interrupt.raised()) {
      if (full() && !pass_on(interrupt)) {
        break;
      }
      if (!reader.ready(kLinePause)) {
        // Before it waits for input it must know that there is still something to wait for.
        if ((!batch_.empty() && !pass_on(interrupt)) || !drain()) {
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
      if (!keep_going_ && !batch_.refusals.empty()) {
        break;
      }
    }
    return status;
  }

  /// Adds a line to the batch.
  void add(std::string_view line) {
    ++batch_.last_line;
    if (json_trimmed(line).empty() || !run_.wants(batch_.last_line)) {
      return;
    }
    auto message = messages_.from_json(line);
    if (message.has_error()) {
      const bool json = !json_problem(json_trimmed(line));
      batch_.refusals.push_back({batch_.last_line, (json ? "" : "not JSON: ") + message.error().message()});
      return;
    }
    batch_.bytes += line.size();
    batch_.messages.push_back(std::move(*message));
    batch_.lines.push_back(batch_.last_line);
  }

  /// Counts a line that no message fits in, and refuses it where the run wants it.
  void refuse_long_line() {
    ++batch_.last_line;
    if (run_.wants(batch_.last_line)) {
      batch_.refusals.push_back({batch_.last_line, "longer than " + std::to_string(LineReader::kMaxLine / 1024 / 1024) +
                                                       " MiB, the most that a line may have; send a smaller message"});
    }
  }

  bool full() const {
    return batch_.messages.size() + batch_.refusals.size() >= batch_size_ || batch_.bytes >= kBatchBytes;
  }

  /// Hands the batch over once the one before is sent; false when that, or an interruption, ends the command.
  bool pass_on(const InterruptFlag& interrupt) { return drain() && !interrupt.raised() && hand_over(); }

  bool hand_over() {
    handed_over_ = batch_.last_line;
    if (!drain()) {
      return false;
    }
    const std::size_t count = batch_.messages.size();
    thread_ = std::jthread(
        [this, batch = std::exchange(batch_, {.last_line = handed_over_})]() mutable { stopped_ = !commit(batch); });
    // The next one is likely to be as large.
    batch_.messages.reserve(count);
    batch_.lines.reserve(count);
    return true;
  }

  /// Waits until everything is sent; false when nothing more is to be sent: a line was refused, or nobody reads the ids
  /// any more.
  bool drain() {
    if (thread_.joinable()) {
      thread_.join();
    }
    return !stopped_;
  }

  bool commit(Batch& batch) {
    auto results = send(batch.messages, batch.lines);
    std::string ids;
    for (std::size_t index = 0; index < results.size(); ++index) {
      note(batch.lines[index], results[index], ids, batch.refusals);
    }
    std::sort(batch.refusals.begin(), batch.refusals.end(),
              [](const Refusal& left, const Refusal& right) { return left.line < right.line; });
    for (const Refusal& refusal : batch.refusals) {
      refuse(refusal);
    }
    committed_ = batch.last_line;
    if (lists_) {
      console_.out(ids);
      console_.flush();
    }
    show_progress();
    return (keep_going_ || batch.refusals.empty()) && !too_many() && console_.writable();
  }

  void note(std::uint64_t line, const queue::SendResult& result, std::string& ids, std::vector<Refusal>& refusals) {
    if (result.status != queue::SendStatus::failed) {
      ++sent_;
      existing_ += result.status == queue::SendStatus::duplicate_id ? 1 : 0;
      ids.append(result.id).append("\n");
      return;
    }
    // Nothing that is refused now has gone away if an earlier run has stored it.
    if (const std::string before = run_.unsure().moment_of(line); !before.empty()) {
      unsure_.add(before, line);
    } else if (!moment_.empty() && result.error.code() == ErrorCode::unknown_outcome) {
      unsure_.add(moment_, line);
    }
    refusals.push_back({line, session_.explained(result.error)});
  }

  bool may_be_stored(std::uint64_t line) const {
    return run_.repeats() && (moment_.empty() || !run_.unsure().moment_of(line).empty());
  }

  Result<std::string> id_of(const queue::NewMessage& message, std::uint64_t line) const {
    if (moment_.empty()) {
      return run_.id(line);
    }
    const std::string before = run_.unsure().moment_of(line);
    const auto id = sender_.id_at(before.empty() ? moment_ : before, run_.name(), line, message);
    if (!id) {
      return Error(ErrorCode::invalid,
                   "--resume names the moment \"" + before +
                       "\", which this queue's store has not made; give what a run on this queue said");
    }
    return *id;
  }

  /// What became of the messages. Those that may have been stored before are looked for, the others are new.
  std::vector<queue::SendResult> send(std::vector<queue::NewMessage>& messages,
                                      const std::vector<std::uint64_t>& lines) {
    const auto all_failed = [&messages](const Error& error) {
      return std::vector<queue::SendResult>(messages.size(), {queue::SendStatus::failed, {}, error});
    };
    auto moment = sender_.moment(session_.deadline());
    if (!moment) {
      return all_failed(moment.error());
    }
    moment_ = std::move(*moment);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      auto id = id_of(messages[i], lines[i]);
      if (!id) {
        return all_failed(id.error());
      }
      messages[i].id = std::move(*id);
    }
    std::vector<queue::SendResult> results;
    for (std::size_t from = 0, end = 0; from < messages.size(); from = end) {
      const bool fresh = !may_be_stored(lines[from]);
      while (end < messages.size() && may_be_stored(lines[end]) != fresh) {
        ++end;
      }
      const auto stretch = std::span(messages).subspan(from, end - from);
      auto some = fresh ? sender_.send_fresh({std::move_iterator(stretch.begin()), std::move_iterator(stretch.end())},
                                             session_.deadline())
                        : sender_.send(stretch, session_.deadline());
      queue::fill_up(some, stretch.size());
      results.insert(results.end(), std::move_iterator(some.begin()), std::move_iterator(some.end()));
    }
    return results;
  }

  void refuse(const Refusal& refusal) {
    ++refused_;
    missing_.add(refusal.line);
    if (keep_going_) {
      return console_.note("sluice send: line " + std::to_string(refusal.line) + ": " + refusal.why);
    }
    auto* const same = find_where(reasons_, [&refusal](const auto& reason) { return reason.first == refusal.why; });
    auto& lines = same != nullptr ? same->second : reasons_.emplace_back(refusal.why, LineRanges{}).second;
    lines.add(refusal.line);
  }

  void show_progress() {
    const SteadyTime now = session_.clock().steady_now();
    if (now - shown_ >= kProgressInterval) {
      shown_ = now;
      const auto rate = static_cast<std::uint64_t>(static_cast<double>(sent_) /
                                                   std::chrono::duration<double>(now - started_).count());
      console_.progress(std::to_string(sent_) + " sent, " + std::to_string(rate) + " a second");
    }
  }

  // What is stored must not be among what is sent again where only moments tell it.
  bool too_many() const {
    return !moment_.empty() && std::max(missing_.count(), unsure_.count()) >= SendRun::kMostRanges;
  }

  Exit finish(LineReader::Status last, int failure, bool interrupted) {
    console_.end_progress();
    // An interruption ends the reading too, and says nothing of what was still to come.
    const bool at_end = !interrupted && last == LineReader::Status::end && committed_ == handed_over_;
    if (auto reasons = stopped_by(); !reasons.empty()) {
      return unfinished(kExitFailure, std::move(reasons), so_far(), at_end);
    }
    if (interrupted) {
      return unfinished(kExitInterrupted, {}, "interrupted; " + so_far(), at_end);
    }
    if (last == LineReader::Status::failed) {
      return unfinished(kExitFailure, {},
                        std::string("cannot read standard input: ") + std::strerror(failure) + "; " + so_far(), false);
    }
    if (refused_ > 0) {
      return unfinished(kExitFailure, {},
                        so_far() + ", " + std::to_string(refused_) +
                            (refused_ == 1 ? " line was passed over" : " lines were passed over"),
                        at_end);
    }
    if (!lists_) {
      console_.out(so_far() + "\n");
    }
    return Exit::ok();
  }

  /// Why lines were refused in the batch that ended it, one text for the lines with the same reason; empty when none
  /// has.
  std::vector<std::string> stopped_by() const {
    std::vector<std::string> texts;
    for (const auto& [why, lines] : reasons_) {
      const std::string text = lines.text();
      texts.push_back((is_one(text) ? "line " : "lines ") + text + ": " + why);
    }
    if (too_many()) {
      texts.emplace_back(
          "what was not stored lies in so many places of the input that --resume can name no more; mend what is wrong "
          "with it before the rest is sent");
    }
    return texts;
  }

  std::string so_far() const {
    std::string text = std::to_string(sent_) + (sent_ == 1 ? " message was sent" : " messages were sent");
    return existing_ > 0 ? text + ", " + std::to_string(existing_) + " of them before" : text;
  }

  /// Why it ended, and how the lines that are missing are sent. `at_end`: nothing comes behind those up to
  /// `committed_`.
  Exit unfinished(int code, std::vector<std::string> reasons, std::string summary, bool at_end) const {
    LineRanges missing = missing_;
    UnsureLines unsure = unsure_;
    if (!at_end) {
      missing.add(run_.rest(committed_));
      unsure.add(run_.unsure().behind(committed_));
    }
    if (const std::string lines = missing.text(); !missing.empty()) {
      summary += (is_one(lines) ? "; line " + lines + " is not stored" : "; lines " + lines + " are not stored") +
                 "; send the same input again with --resume " +
                 run_.token(moment_.empty() ? missing.at_most(SendRun::kMostRanges) : missing, unsure);
    }
    reasons.push_back(std::move(summary));
    return {code, std::move(reasons)};
  }

  static bool is_one(const std::string& lines) { return lines.find_first_of(",-") == std::string::npos; }

  // Fixed after construction.
  const bool keep_going_;
  const bool lists_;
  const SendRun run_;
  const std::size_t batch_size_;
  queue::Sender& sender_;
  QueueSession& session_;
  const MessageTemplate& messages_;
  Console& console_;

  // Of the caller's thread.
  Batch batch_;
  std::uint64_t handed_over_ = 0;  ///< up to which line; behind it there are none to be sent, once all are read

  // Touched only by the thread that sends, while it runs.
  std::uint64_t sent_ = 0;
  std::uint64_t existing_ = 0;  ///< of those: that an earlier try had stored
  std::uint64_t refused_ = 0;
  std::uint64_t committed_ = 0;  ///< the last line of the last batch that was sent
  LineRanges missing_;
  UnsureLines unsure_;
  std::string moment_;  ///< of the ids of the current batch; empty where they are made of none
  /// In the order of their first lines.
  std::vector<std::pair<std::string, LineRanges>> reasons_;
  const SteadyTime started_ = session_.clock().steady_now();
  SteadyTime shown_ = started_;
  bool stopped_ = false;  ///< nothing is sent any more

  std::jthread thread_;  // last: it uses all of the above
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
