#include <algorithm>

#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/message_view.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kDefaultLimit = 10;
constexpr std::size_t kMaxLimit = 1'000'000;
constexpr std::size_t kPageSize = 250;

/// A JSON array, or one block of lines for each message.
class PeekWriter {
 public:
  PeekWriter(Output output, Console& console) : output_(output), console_(console) {
    if (output_ == Output::json) {
      json_.begin_array();
    }
  }

  void add(const queue::StoredMessage& message, WallTime now) {
    if (output_ == Output::json) {
      operate::write_object(json_, message, now);
      console_.out(json_.take_text());
      return;
    }
    console_.out((any_ ? "\n" : "") + message_text(message, now, console_.output_has_colour()));
    any_ = true;
  }

  void finish() {
    if (output_ == Output::json) {
      json_.end_array();
      console_.out(json_.take_line());
    }
  }

 private:
  const Output output_;
  Console& console_;
  JsonWriter json_{JsonWriter::Layout::indented};
  bool any_ = false;
};

struct Search {
  operate::Filter filter;
  bool any_state = false;
  std::size_t limit = kDefaultLimit;

  bool wants(const queue::StoredMessage& message, WallTime now) const {
    return (any_state || message.state(now) == queue::MessageState::ready) && filter.matches(message, now);
  }
};

Exit show(QueueSession& session, const Search& search, queue::ListRequest request, PeekWriter& writer,
          Console& console) {
  std::size_t left = search.limit;
  // With a filter nobody knows how far it is to the next match.
  const bool chooses = !search.any_state || !search.filter.empty();
  do {
    request.limit = chooses ? std::clamp<std::size_t>(left * 2, 25, kPageSize) : std::min(left, kPageSize);
    const auto page = session.oper().list(request, session.deadline());
    if (page.has_error()) {
      return session.failure(page.error());
    }
    const WallTime now = session.clock().wall_now();
    for (const queue::StoredMessage& message : page->messages) {
      if (left > 0 && search.wants(message, now)) {
        writer.add(message, now);
        --left;
      }
    }
    console.flush();
    request.cursor = page->next;
  } while (left > 0 && !request.cursor.empty() && console.writable());
  writer.finish();
  return Exit::ok();
}

Exit peek(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(filter, parse_filter(arguments));
  SLUICE_TRY(limit, arguments.count("limit", kDefaultLimit, kMaxLimit));
  SLUICE_TRY(session, QueueSession::open(arguments));
  PeekWriter writer(*output, console);
  const Search search{.filter = std::move(*filter), .any_state = arguments.has("any-state"), .limit = *limit};
  return show(*session, search, {.half = half_of(arguments), .limit = 0, .cursor = {}}, writer, console);
}

}  // namespace

Command peek_command() {
  return {
      .name = "peek",
      .group = "Queues",
      .summary = "Look at the next messages without receiving them",
      .usage = "[--dlq] [FILTER] [--limit N] [OPTION]...",
      .description =
          "Prints a JSON array of whole messages, in the order in which they would be received; only those that are "
          "due, unless there is --any-state. Nothing is claimed or changed.",
      .flags =
          with_store_flags(joined({dlq_flag(),
                                   {.name = "limit", .value = "N", .help = "at most N messages [default: 10]"},
                                   {.name = "any-state", .value = {}, .help = "those in flight and those delayed too"}},
                                  filter_flags())),
      .examples =
          "sluice peek --queue orders --limit 1\n"
          "sluice peek --queue orders --dlq --where 'failure.attempts >= 5'",
      .run = peek,
  };
}

}  // namespace sluice::cli
