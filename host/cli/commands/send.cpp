#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/text/json_check.hpp"
#include "base/text/utf8.hpp"
#include "host/cli/bulk_sender.hpp"
#include "host/cli/command.hpp"
#include "host/cli/commands/send_run.hpp"
#include "host/cli/message_template.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kMaxFileBytes = 64UL * 1024 * 1024;

OrExit<std::string> read_file(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  std::string bytes;
  std::array<char, 64 * 1024> piece;
  while (file && bytes.size() <= kMaxFileBytes) {
    file.read(piece.data(), piece.size());
    bytes.append(piece.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (bytes.size() > kMaxFileBytes) {
    return Exit::failure("--file " + name + ": larger than 64 MiB; no store takes that");
  }
  if (!file.eof()) {
    return Exit::failure("--file " + name + ": " + std::strerror(errno) +
                         (name == "-" ? "; for JSON lines on standard input write - alone, for all of it as one body "
                                        "--file /dev/stdin"
                                      : ""));
  }
  return bytes;
}

OrExit<queue::NewMessage> read_message(const Arguments& arguments, MessageTemplate& messages) {
  const auto or_exit = [](Result<queue::NewMessage> message) {
    return message ? OrExit<queue::NewMessage>(std::move(*message)) : Exit::usage(message.error().message());
  };
  if (arguments.has("text")) {
    return or_exit(messages.from_text(arguments.get("text")));
  }
  if (arguments.has("file")) {
    SLUICE_TRY(bytes, read_file(arguments.get("file")));
    return or_exit(messages.from_file(arguments.get("file"), std::move(*bytes)));
  }
  auto message = messages.from_json(arguments.get("data"));
  if (message.has_error() && !json_problem(json_trimmed(arguments.get("data")))) {
    return Exit::usage(message.error().message());
  }
  if (message.has_error()) {
    return Exit::usage("--data is not JSON: " + message.error().message() +
                       R"(; quote it for the shell, --data '{"n": 1}', or send plain text with --text)");
  }
  return std::move(*message);
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
      console.out(result.id + "\n");
      return Exit::ok();
    case queue::SendStatus::duplicate_id:
      return Exit::failure("a message with the id " + message.id + " is in queue " + session.queue() +
                           " already; choose another --id, or none");
    case queue::SendStatus::failed:
      break;
  }
  return session.failure(result.error);
}

Exit check_sources(const Arguments& arguments) {
  const int sources = int{arguments.has("data")} + int{arguments.has("text")} + int{arguments.has("file")} +
                      int{arguments.reads_stdin()};
  if (sources == 0) {
    return Exit::usage(
        "nothing to send; give --data JSON, --text TEXT, --file FILE, or - for JSON lines on standard input");
  }
  if (sources > 1) {
    return Exit::usage("give one of --data, --text, --file and -, not several");
  }
  if (arguments.reads_stdin() && arguments.has("id")) {
    return Exit::usage("--id names one message and - sends many; leave --id out");
  }
  if (arguments.has("id") && arguments.get("id").empty()) {
    return Exit::usage("--id is empty; leave it out to have one made");
  }
  for (const char* const name : {"id", "content-type", "attr", "group", "dedup-id", "unique-key"}) {
    const auto values = arguments.all(name);
    if (!std::all_of(values.begin(), values.end(), is_utf8)) {
      return Exit::usage("--" + std::string(name) + " is not UTF-8; only a body may be any bytes");
    }
  }
  for (const char* const name : {"keep-going", "resume"}) {
    if (arguments.has(name) && !arguments.reads_stdin()) {
      return Exit::usage("--" + std::string(name) + " goes with - only");
    }
  }
  return Exit::ok();
}

/// A typing error must not make a queue that nobody works on. Where a queue is a table, the table has to be there
/// anyway.
Exit check_queue(QueueSession& session, const Arguments& arguments) {
  if (arguments.has("create") || !session.place().in_sqlite()) {
    return Exit::ok();
  }
  std::vector<std::string> known = known_queues(session.host());
  const auto made =
      session.queues().made_by_messages_in(session.host().queue(session.queue()).store, session.deadline());
  if (made.has_error()) {
    return session.failure(made.error());
  }
  known.insert(known.end(), made->begin(), made->end());
  if (std::find(known.begin(), known.end(), session.queue()) != known.end()) {
    return Exit::ok();
  }
  const auto meant = config::nearest(session.queue(), known);
  return Exit::usage("no job, host file or earlier message knows a queue \"" + session.queue() + "\"; " +
                     (meant ? "did you mean \"" + *meant + "\"? " : "") +
                     "`sluice queues` lists them, --create makes it");
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

Exit send_lines(const Arguments& arguments, MessageTemplate& messages, Console& console) {
  SLUICE_TRY(run, run_of(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments));
  if (Exit refused = check_queue(*session, arguments); refused.code() != kExitOk) {
    return refused;
  }
  SLUICE_TRY(opened, session->open_sender());
  if (::isatty(STDIN_FILENO) == 1 && console.error_is_terminal()) {
    console.note("type one message a line, as JSON; Ctrl-D ends");
  }
  BulkSender sender({.keep_going = arguments.has("keep-going")}, std::move(*run), **opened, *session, messages,
                    console);
  Exit exit = sender.run(STDIN_FILENO);
  if (const auto cost = session->cost()) {
    console.note("sent " + std::to_string(sender.sent()) +
                 (sender.sent() == 1 ? " message; DynamoDB: " : " messages; DynamoDB: ") +
                 cost->text(sender.sent(), "message"));
  }
  return exit;
}

Exit send(const Arguments& arguments, Console& console) {
  if (Exit wrong = check_sources(arguments); wrong.code() != kExitOk) {
    return wrong;
  }
  SLUICE_TRY(messages, MessageTemplate::from(arguments));
  if (arguments.reads_stdin()) {
    return send_lines(arguments, *messages, console);
  }
  SLUICE_TRY(message, read_message(arguments, *messages));
  message->id = arguments.get("id");
  SLUICE_TRY(session, QueueSession::open(arguments));
  if (Exit refused = check_queue(*session, arguments); refused.code() != kExitOk) {
    return refused;
  }
  return send_one(*session, *message, console);
}

}  // namespace

Command send_command() {
  return {
      .name = "send",
      .group = "Queues",
      .summary = "Send one message, or one for each line of standard input",
      .usage = "[OPTION]... (--data JSON | --text TEXT | --file FILE | -)",
      .description =
          "Prints the id of each message once it is stored for good. A JSON string is sent as its characters "
          "(text/plain), other JSON as it is written (application/json). With - every line is the JSON body "
          "of one message; the first batch with a bad line is the last, and Ctrl-C stops it between two batches. Every "
          "line "
          "that was not stored is named, and --resume sends the same input again for those alone: their messages have "
          "the same ids then, so that what was stored without an answer is not stored twice while it is in the "
          "queue.\n\n"
          "Of the messages sent with one --dedup-id within its window only the first is stored; the others are "
          "accepted "
          "and answered with its id, even after it is done. While a message with a --unique-key lies in the queue no "
          "other with that key is put beside it. Both may be taken out of each body: "
          "body:order_id, or by a JSON pointer, body:/order/id.\n\n"
          "A queue that no job, host file or earlier message knows is refused without --create.",
      .flags = with_store_flags(
          {{.name = "data", .value = "JSON", .help = "the body, as JSON"},
           {.name = "text", .value = "TEXT", .help = "the body, as plain text"},
           {.name = "file",
            .value = "FILE",
            .help = "the body is the whole file: JSON if it is named .json and is that, else text, else bytes"},
           {.name = "id", .value = "ID", .help = "the message's id [default: a new UUID]; one in use is refused"},
           {.name = "delay", .value = "TIME", .help = "not to be worked on before this has passed: 10s, 15m, 2h"},
           {.name = "attr", .value = "NAME=VALUE", .help = "an attribute; may be repeated", .repeated = true},
           {.name = "content-type", .value = "TYPE", .help = "the body's type [default: by the body]"},
           {.name = "group", .value = "GROUP", .help = "the group that the message belongs to"},
           {.name = "dedup-id", .value = "ID", .help = "not stored if one with this id was sent within the window"},
           {.name = "dedup-window", .value = "TIME", .help = "how long that lasts [default: the queue's, 5m]"},
           {.name = "unique-key", .value = "KEY", .help = "not stored while one with this key is in the queue"},
           {.name = "unique", .value = "UNTIL", .help = "while-queued or until-done [default: until-done]"},
           {.name = "priority",
            .value = "WORD",
            .help = "critical, high, normal or low, but in DynamoMQ's tables [default: normal]"},
           {.name = "create", .value = {}, .help = "make the queue where nobody knows it yet (SQLite)"},
           {.name = "keep-going", .value = {}, .help = "with -: name bad lines, pass over them, exit 1 at the end"},
           {.name = "resume", .value = "TOKEN", .help = "with -: only the lines that a run said it has not stored"}}),
      .examples =
          "sluice send --queue orders --data '{\"order\": 7}' --attr tenant=acme\n"
          "sluice send --queue orders --text hello --delay 10m\n"
          "jq -c .orders[] day.json | sluice send --queue orders -",
      .stdin_operand = true,
      .run = send,
  };
}

}  // namespace sluice::cli
