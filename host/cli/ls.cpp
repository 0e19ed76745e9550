#include <algorithm>

#include "host/cli/command.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/message_json.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kDefaultLimit = 10;
constexpr std::size_t kMaxLimit = 1'000'000;
constexpr std::size_t kPageSize = 250;

/// Prints pages until `limit` messages are shown (0: no limit), there are no more, or nobody reads.
Exit list(QueueSession& session, queue::ListRequest request, std::size_t limit, Console& console) {
  JsonText json(JsonText::Layout::compact);
  MessageJson writer;
  std::size_t shown = 0;
  while (console.writable()) {
    request.limit = limit == 0 ? kPageSize : std::min(kPageSize, limit - shown);
    const auto page = session.store().list(request, session.deadline());
    if (page.has_error()) {
      return Exit::failure(page.error());
    }
    const WallTime now = session.clock().wall_now();
    for (const auto& message : page->messages) {
      writer.write(json, message, now);
      console.out(json.take_line());
    }
    console.flush();
    shown += page->messages.size();
    if (page->next.empty()) {
      break;
    }
    if (limit != 0 && shown >= limit) {
      if (console.error_is_terminal()) {
        console.note("there may be more; --limit N or --all shows it");
      }
      break;
    }
    request.cursor = page->next;
  }
  return Exit::ok();
}

Exit ls(const Arguments& arguments, Console& console) {
  if (arguments.has("all") && arguments.has("limit")) {
    return Exit::usage("--all and --limit exclude each other; give one");
  }
  const auto limit = arguments.count("limit", kDefaultLimit, kMaxLimit);
  if (limit.has_error()) {
    return limit.error();
  }
  auto session = QueueSession::open(arguments);
  if (session.has_error()) {
    return session.error();
  }
  return list(*session, {.address = queue_address(arguments), .limit = 0, .cursor = {}},
              arguments.has("all") ? 0 : *limit, console);
}

}  // namespace

Command ls_command() {
  return {
      .name = "ls",
      .group = "Queues",
      .summary = "List messages, the oldest first",
      .usage = "--queue QUEUE [--dlq] [--limit N | --all] [--config FILE]",
      .description =
          "Prints one JSON object a line, with the keys that `sluice get` shows. Nothing is claimed or "
          "changed.",
      .flags = {{.name = "queue", .value = "QUEUE", .help = "the queue", .required = true},
                {.name = "dlq", .value = {}, .help = "its dead-letter half instead"},
                {.name = "limit", .value = "N", .help = "show at most N messages [default: 10]"},
                {.name = "all", .value = {}, .help = "show all"},
                config_flag()},
      .examples =
          "sluice ls --queue orders --limit 3\n"
          "sluice ls --queue orders --dlq --all | jq -r .failure.error | sort | uniq -c",
      .run = ls,
  };
}

}  // namespace sluice::cli
