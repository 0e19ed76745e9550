#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/shell_word.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/message_view.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kDefaultLimit = 10;
constexpr std::size_t kMaxLimit = 1'000'000;
constexpr std::size_t kPageSize = 250;
// Records that are read only to say how many there are.
constexpr std::size_t kCountedAhead = 1000;

/// Where a list has come to.
struct Ending {
  std::uint64_t shown = 0;
  std::optional<std::uint64_t> total;  ///< of all that it would show without a limit, where that is known
  bool at_least = false;               ///< there are more than `total`
  std::string next;                    ///< the cursor that goes on; empty: there is no more
};

/// Shows a list that nobody has whole at any moment.
class ListWriter {
 public:
  ListWriter(Output output, Console& console)
      : output_(output),
        console_(console),
        table_(RowsView{.colours = console.output_has_colour(),
                        .columns = {"ID", "STATE", "HALF", "RECEIVES", "AGE", "ERROR"}}) {}

  void add(const queue::StoredMessage& message, WallTime now) {
    if (output_ == Output::text) {
      table_.add_record(operate::row_of(operate::ListedMessage{message}, now));
      return;
    }
    if (!begun_) {
      json_.begin_object();
      json_.key("statuses");
      json_.begin_array();
      begun_ = true;
    }
    operate::write_object(json_, operate::ListedMessage{message}, now);
  }

  /// Lets what there is be seen.
  void flush() {
    console_.out(output_ == Output::text ? table_.take() : json_.take_text());
    console_.flush();
  }

  void finish(const Ending& ending) {
    if (output_ == Output::text) {
      return;
    }
    if (!begun_) {
      json_.begin_object();
      json_.key("statuses");
      json_.begin_array();
    }
    json_.end_array();
    if (ending.total) {
      json_.member("total", *ending.total);
    }
    if (!ending.next.empty()) {
      json_.member("next", ending.next);
    }
    json_.end_object();
    console_.out(json_.take_line());
  }

 private:
  const Output output_;
  Console& console_;
  TextTable table_;
  JsonWriter json_{JsonWriter::Layout::indented};
  bool begun_ = false;
};

struct Wanted {
  queue::ListRequest request;
  operate::Filter filter;
  std::size_t limit = 0;            ///< 0: no limit
  std::optional<queue::Half> then;  ///< the half that comes after this one
  bool from_start = true;           ///< no cursor was given
  std::vector<queue::Half> halves;  ///< all that is asked for
};

std::string_view name_of(queue::Half half) { return half == queue::Half::dlq ? "dlq" : "standard"; }

/// Goes through the pages of one half, or of both, one after the other. For one use.
class Listing {
 public:
  Listing(QueueSession& session, Wanted wanted, ListWriter& writer, Console& console)
      : session_(session), wanted_(std::move(wanted)), writer_(writer), console_(console) {}

  /// Shows pages until the limit is reached, there are no more, or nobody reads.
  OrExit<Ending> run() {
    while (console_.writable()) {
      SLUICE_TRY(page, list(page_size()));
      const std::string start = wanted_.request.cursor;
      const auto rest = show(*page);
      if (rest) {
        return stopped_within(start, *rest);
      }
      writer_.flush();
      if (!next_page(page->next)) {
        break;
      }
      if (wanted_.limit != 0 && ending_.shown == wanted_.limit) {
        ending_.next = cursor();
        break;
      }
    }
    return ending_;
  }

  /// How many there are in all: by the store's count where that costs nothing, else by a look at what comes next.
  void count(bool worth_reads) {
    if (!wanted_.filter.empty() || !session_.place().in_sqlite()) {
      return ending_.next.empty() || worth_reads ? count_ahead() : void();
    }
    std::uint64_t total = 0;
    for (const queue::Half half : wanted_.halves) {
      const auto stats = session_.oper().stats({.half = half}, session_.deadline());
      if (stats.has_error()) {
        return;
      }
      total += stats->total();
    }
    ending_.total = total;
  }

  const Ending& ending() const { return ending_; }

 private:
  OrExit<queue::ListPage> list(std::size_t limit) {
    wanted_.request.limit = limit;
    auto page = session_.oper().list(wanted_.request, session_.deadline());
    if (page.has_error()) {
      const bool wrong_cursor = page.error().code() == ErrorCode::invalid && !wanted_.request.cursor.empty();
      return wrong_cursor ? Exit::usage("--cursor: " + page.error().message()) : session_.failure(page.error());
    }
    return std::move(*page);
  }

  std::size_t page_size() const {
    // A filter passes over messages, so that the limit says nothing about the size of a page.
    const bool whole_pages = wanted_.limit == 0 || !wanted_.filter.empty();
    return whole_pages ? kPageSize : std::min<std::size_t>(kPageSize, wanted_.limit - ending_.shown);
  }

  /// The place of the first message that is over the limit; nothing when there is none in the page.
  std::optional<std::size_t> show(const queue::ListPage& page) {
    const WallTime now = session_.clock().wall_now();
    for (std::size_t index = 0; index < page.messages.size(); ++index) {
      if (!wanted_.filter.matches(page.messages[index], now)) {
        continue;
      }
      if (wanted_.limit != 0 && ending_.shown == wanted_.limit) {
        return index;
      }
      writer_.add(page.messages[index], now);
      ++ending_.shown;
    }
    return std::nullopt;
  }

  /// The cursor behind the messages of a page that were shown or passed over.
  OrExit<Ending> stopped_within(const std::string& start, std::size_t used) {
    writer_.flush();
    wanted_.request.cursor = start;
    SLUICE_TRY(again, list(used));
    wanted_.request.cursor = again->next;
    ending_.next = cursor();
    return ending_;
  }

  /// False when there is none.
  bool next_page(const std::string& next) {
    wanted_.request.cursor = next;
    if (!next.empty()) {
      return true;
    }
    if (!wanted_.then) {
      return false;
    }
    wanted_.request.half = *std::exchange(wanted_.then, std::nullopt);
    return true;
  }

  /// With the half before it where there are two.
  std::string cursor() const {
    return wanted_.halves.size() > 1 ? std::string(name_of(wanted_.request.half)) + ":" + wanted_.request.cursor
                                     : wanted_.request.cursor;
  }

  void count_ahead() {
    if (!wanted_.from_start) {
      return;
    }
    std::uint64_t total = ending_.shown;
    std::size_t read = 0;
    bool more = !ending_.next.empty();
    while (more && read < kCountedAhead) {
      const auto page = list(kPageSize);
      if (page.has_error()) {
        return;
      }
      const WallTime now = session_.clock().wall_now();
      for (const queue::StoredMessage& message : page->messages) {
        total += wanted_.filter.matches(message, now) ? 1 : 0;
      }
      read += page->messages.size();
      more = next_page(page->next);
    }
    ending_.total = total;
    ending_.at_least = more;
  }

  QueueSession& session_;
  Wanted wanted_;
  ListWriter& writer_;
  Console& console_;
  Ending ending_;
};

/// "10 of 419", and how to see the others.
std::string summary(const Ending& ending) {
  std::string text = std::to_string(ending.shown);
  if (ending.total) {
    text += std::string(" of ") + (ending.at_least ? "more than " : "") + std::to_string(*ending.total);
  }
  return text + "; --all shows it, --cursor " + shell_word(ending.next) + " goes on";
}

OrExit<Wanted> parse_wanted(const Arguments& arguments) {
  if (arguments.has("all") && arguments.has("limit")) {
    return Exit::usage("--all and --limit exclude each other; give one");
  }
  if (arguments.has("dlq") && arguments.has("both")) {
    return Exit::usage("--dlq and --both exclude each other; give one");
  }
  SLUICE_TRY(limit, arguments.count("limit", kDefaultLimit, kMaxLimit));
  SLUICE_TRY(filter, parse_filter(arguments));
  Wanted wanted;
  wanted.request.half = half_of(arguments);
  wanted.request.content = filter->reads_content();
  wanted.request.newest_first = arguments.has("newest");
  wanted.request.cursor = arguments.get("cursor");
  wanted.from_start = !arguments.has("cursor");
  wanted.filter = std::move(*filter);
  wanted.limit = arguments.has("all") ? 0 : *limit;
  wanted.halves = {wanted.request.half};
  if (arguments.has("both")) {
    wanted.halves = {queue::Half::standard, queue::Half::dlq};
    wanted.then = queue::Half::dlq;
    std::string& cursor = wanted.request.cursor;
    const auto colon = cursor.find(':');
    if (const std::string half = cursor.substr(0, colon); half == "dlq") {
      wanted.request.half = queue::Half::dlq;
      wanted.then.reset();
    } else if (!cursor.empty() && half != "standard") {
      return Exit::usage("--cursor " + cursor + ": a list with --both gives one such as standard:... or dlq:...");
    }
    cursor = colon == std::string::npos ? std::string() : cursor.substr(colon + 1);
  }
  return wanted;
}

Exit ls(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(wanted, parse_wanted(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments));
  ListWriter writer(*output, console);
  Listing listing(*session, std::move(*wanted), writer, console);
  SLUICE_PASS_ON(listing.run());
  const bool told = *output == Output::text && console.error_is_terminal();
  listing.count(told);
  const Ending& ending = listing.ending();
  writer.finish(ending);
  console.flush();
  if (ending.shown == 0 && console.output_is_terminal() && console.error_is_terminal()) {
    console.note("no messages");
  } else if (!ending.next.empty() && told) {
    console.note(summary(ending));
  }
  return Exit::ok();
}

}  // namespace

Command ls_command() {
  return {
      .name = "ls",
      .group = "Queues",
      .summary = "List messages, the oldest or the newest first",
      .usage = "[--dlq | --both] [--newest] [FILTER] [--limit N | --all] [OPTION]...",
      .description =
          "Shows a row for each message, or prints a JSON object whose \"statuses\" have one object for each: id, "
          "state, "
          "receive count, and why it failed last. Where there are more, it says how many (on DynamoDB, if a thousand "
          "more records tell) and the cursor that goes on, in JSON as \"total\" and \"next\". `sluice peek` shows "
          "whole "
          "messages and `sluice export` writes them out. Nothing is claimed or changed.",
      .flags =
          with_store_flags(joined({{.name = "dlq", .value = {}, .help = "its dead-letter half instead"},
                                   {.name = "both", .value = {}, .help = "its dead-letter half too, after the other"},
                                   {.name = "newest", .value = {}, .help = "the newest first"},
                                   {.name = "cursor", .value = "CURSOR", .help = "go on where a list has ended"},
                                   {.name = "limit", .value = "N", .help = "show at most N messages [default: 10]"},
                                   {.name = "all", .value = {}, .help = "show all"}},
                                  filter_flags())),
      .examples =
          "sluice ls --queue orders --limit 3\n"
          "sluice ls --queue orders --where 'receive_count > 3 and data.type = \"invoice\"'\n"
          "sluice ls --queue orders --both --newest\n"
          "sluice ls --queue orders --dlq --error-like '*timeout*' --output text",
      .run = ls,
  };
}

}  // namespace sluice::cli
