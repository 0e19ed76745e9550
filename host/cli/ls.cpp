#include <algorithm>

#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/message_text.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kDefaultLimit = 10;
constexpr std::size_t kMaxLimit = 1'000'000;
constexpr std::size_t kPageSize = 250;

/// Shows a list that nobody has whole at any moment.
class ListWriter {
 public:
  ListWriter(Output output, Console& console)
      : output_(output), console_(console), table_(console.output_has_colour()) {}

  void add(const queue::StoredMessage& message, WallTime now) {
    if (output_ == Output::text) {
      table_.add(message, now);
      return;
    }
    if (!begun_) {
      json_.begin_object();
      json_.key("statuses");
      json_.begin_array();
      begun_ = true;
    }
    writer_.write_status(json_, message, now);
  }

  /// Lets what there is be seen.
  void flush() {
    console_.out(output_ == Output::text ? table_.take() : json_.take_text());
    console_.flush();
  }

  void finish() {
    if (output_ == Output::json) {
      if (!begun_) {
        json_.begin_object();
        json_.key("statuses");
        json_.begin_array();
      }
      json_.end_array();
      json_.end_object();
      console_.out(json_.take_line());
    }
  }

 private:
  const Output output_;
  Console& console_;
  MessageTable table_;
  JsonText json_{JsonText::Layout::indented};
  MessageJson writer_;
  bool begun_ = false;
};

struct Wanted {
  queue::ListRequest request;
  operate::Filter filter;
  std::size_t limit = 0;  ///< 0: no limit
};

/// Shows pages until the limit is reached, there are no more, or nobody reads.
Exit list(QueueSession& session, Wanted wanted, ListWriter& writer, Console& console) {
  std::size_t shown = 0;
  bool more = false;
  // A filter passes over messages, so that the limit says nothing about the size of a page.
  const bool whole_pages = wanted.limit == 0 || !wanted.filter.empty();
  while (console.writable() && !more) {
    wanted.request.limit = whole_pages ? kPageSize : std::min(kPageSize, wanted.limit - shown);
    const auto page = session.oper().list(wanted.request, session.deadline());
    if (page.has_error()) {
      return session.failure(page.error());
    }
    const WallTime now = session.clock().wall_now();
    for (const auto& message : page->messages) {
      if (!wanted.filter.matches(message, now)) {
        continue;
      }
      more = wanted.limit != 0 && shown == wanted.limit;
      if (more) {
        break;
      }
      writer.add(message, now);
      ++shown;
    }
    writer.flush();
    if (page->next.empty()) {
      break;
    }
    more = more || (wanted.limit != 0 && shown == wanted.limit);
    wanted.request.cursor = page->next;
  }
  writer.finish();
  if (shown == 0 && console.output_is_terminal() && console.error_is_terminal()) {
    console.flush();
    console.note("no messages");
  }
  if (more && console.error_is_terminal()) {
    console.flush();
    console.note("there may be more; --limit N or --all shows it");
  }
  return Exit::ok();
}

Exit ls(const Arguments& arguments, Console& console) {
  const auto output = arguments.output();
  if (output.has_error()) {
    return output.error();
  }
  if (arguments.has("all") && arguments.has("limit")) {
    return Exit::usage("--all and --limit exclude each other; give one");
  }
  const auto limit = arguments.count("limit", kDefaultLimit, kMaxLimit);
  if (limit.has_error()) {
    return limit.error();
  }
  const auto filter = parse_filter(arguments);
  if (filter.has_error()) {
    return filter.error();
  }
  auto session = QueueSession::open(arguments);
  if (session.has_error()) {
    return session.error();
  }
  ListWriter writer(*output, console);
  return list(*session,
              {.request = {.half = half_of(arguments), .limit = 0, .cursor = {}, .content = filter->reads_content()},
               .filter = *filter,
               .limit = arguments.has("all") ? 0 : *limit},
              writer, console);
}

}  // namespace

Command ls_command() {
  return {
      .name = "ls",
      .group = "Queues",
      .summary = "List messages, the oldest first",
      .usage = "[--dlq] [--where FILTER] [--limit N | --all] [OPTION]...",
      .description =
          "Prints a JSON object whose \"statuses\" have one object for each message: id, status, state, receive count, "
          "and why it failed last. `sluice peek` shows whole messages and `sluice export` writes them out. Nothing is "
          "claimed or changed.",
      .flags =
          with_store_flags(joined({{.name = "dlq", .value = {}, .help = "its dead-letter half instead"},
                                   {.name = "limit", .value = "N", .help = "show at most N messages [default: 10]"},
                                   {.name = "all", .value = {}, .help = "show all"}},
                                  filter_flags())),
      .examples =
          "sluice ls --queue orders --limit 3\n"
          "sluice ls --queue orders --where 'receive_count > 3 and data.type = \"invoice\"'\n"
          "sluice ls --queue orders --dlq --error-like '*timeout*' --output text",
      .run = ls,
  };
}

}  // namespace sluice::cli
