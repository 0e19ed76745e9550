#include <poll.h>
#include <unistd.h>

#include <array>

#include "base/text/json_writer.hpp"
#include "base/timestamp.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/watcher.hpp"

namespace sluice::cli {

namespace {

using operate::Event;
using operate::EventKind;

constexpr std::size_t kDefaultLimit = 1000;
constexpr std::size_t kMaxLimit = 100'000;
constexpr std::size_t kLongestEventName = std::string_view("dead lettered").size();
constexpr Duration kShortestInterval = std::chrono::milliseconds(50);
constexpr Duration kLongestInterval = std::chrono::hours(24);

Colour colour_of(EventKind kind) {
  switch (kind) {
    case EventKind::dead_lettered:
      return Colour::red;
    case EventKind::retrying:
    case EventKind::expired:
      return Colour::yellow;
    case EventKind::gone:
    case EventKind::redriven:
      return Colour::green;
    case EventKind::claimed:
    case EventKind::released:
    case EventKind::out_of_view:
      return Colour::dim;
    default:
      return Colour::none;
  }
}

bool tells_failure(const Event& event) {
  return !event.message.failure.empty() &&
         (event.kind == EventKind::retrying || event.kind == EventKind::dead_lettered);
}

bool tells_due_time(const Event& event) {
  return event.message.state == queue::MessageState::delayed && event.kind != EventKind::gone;
}

/// Shows events as JSON lines or as rows.
class EventWriter {
 public:
  EventWriter(Output output, Console& console)
      : output_(output), console_(console), table_({{}, {}, {}, {}, {}}, console.output_has_colour()) {}

  void add(const Event& event) {
    if (output_ == Output::text) {
      add_row(event);
    } else {
      add_line(event);
    }
  }

  void flush() {
    console_.out(table_.take());
    console_.flush();
  }

 private:
  void add_line(const Event& event) {
    const operate::Sighting& message = event.message;
    json_.begin_object();
    json_.member("at", format_timestamp(event.seen_at));
    json_.member("event", to_string(event.kind));
    json_.member("id", message.id);
    json_.member("queue_type", to_string(message.half));
    json_.member("receive_count", std::uint64_t{message.attempt});
    json_.member("version", message.version);
    if (tells_due_time(event)) {
      json_.member("due_at", format_timestamp(message.due_at()));
    }
    if (tells_failure(event)) {
      json_.member("error", message.failure.error);
      json_.member("attempts", std::uint64_t{message.failure.attempts});
      json_.member("handler", message.failure.handler);
      json_.member("host", message.failure.host);
    }
    json_.end_object();
    console_.out(json_.take_line());
  }

  void add_row(const Event& event) {
    std::string name(to_string(event.kind));
    for (char& byte : name) {
      byte = byte == '_' ? ' ' : byte;
    }
    name.resize(kLongestEventName, ' ');  // rows come one by one, and stay aligned
    std::string detail = tells_due_time(event) ? "due " + clock_text(event.message.due_at()) : std::string();
    if (tells_failure(event)) {
      detail += (detail.empty() ? "" : ", ") + event.message.failure.error;
    }
    table_.add({clock_text(event.seen_at),
                {name, colour_of(event.kind)},
                event.message.id,
                "received " + std::to_string(event.message.attempt) + "x",
                detail});
  }

  /// "23:14:00.906", UTC as everywhere.
  static std::string clock_text(WallTime time) { return format_timestamp(time).substr(11, 12); }

  const Output output_;
  Console& console_;
  TextTable table_;
  JsonWriter json_{JsonWriter::Layout::compact};
};

enum class Woken { by_time, by_interrupt, by_reader };

/// Waits for the next look; ends at once on Ctrl-C, and when nobody reads standard output any more.
Woken wait_for_look(const InterruptFlag& interrupt, Duration interval) {
  std::array<pollfd, 2> watched{pollfd{interrupt.descriptor(), POLLIN, 0}, pollfd{STDOUT_FILENO, 0, 0}};
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(interval).count();
  ::poll(watched.data(), watched.size(), static_cast<int>(milliseconds));
  if (interrupt.raised()) {
    return Woken::by_interrupt;
  }
  return (watched[1].revents & (POLLERR | POLLNVAL)) != 0 ? Woken::by_reader : Woken::by_time;
}

/// Looks until somebody ends it. For one use.
class Tail {
 public:
  Tail(QueueSession& session, operate::LookRequest request, Output output, Console& console)
      : session_(session), request_(std::move(request)), console_(console), writer_(output, console) {}

  Exit run(Duration interval) {
    const InterruptFlag interrupt;
    while (console_.writable()) {
      if (auto failed = look()) {
        return Exit::failure(*failed);
      }
      const Woken woken = wait_for_look(interrupt, interval);
      if (woken == Woken::by_reader) {
        return {kExitBrokenPipe, std::vector<std::string>{}};
      }
      if (woken == Woken::by_interrupt) {
        break;
      }
    }
    return Exit::ok();
  }

  std::uint64_t looks() const { return looks_; }

 private:
  /// A failure that does not pass by itself.
  std::optional<Error> look() {
    auto found = operate::take_look(session_.oper(), request_, session_.clock(), session_.deadline());
    if (!found) {
      if (!found.error().transient()) {
        return found.error();
      }
      if (found.error().message() != last_trouble_) {
        last_trouble_ = found.error().message();
        console_.note(last_trouble_ + "; looking again");
      }
      return std::nullopt;
    }
    last_trouble_.clear();
    ++looks_;
    tell_limits(*found);
    for (const Event& event : watcher_.step(std::move(*found))) {
      writer_.add(event);
    }
    writer_.flush();
    return std::nullopt;
  }

  void tell_limits(const operate::Snapshot& found) {
    if (!found.whole() && !told_window_) {
      told_window_ = true;
      console_.note("there are more than " + std::to_string(request_.limit) +
                    " records; of the standard half the oldest are watched, of the dead-letter half the youngest: "
                    "--limit N widens the view");
    }
    if (const auto cost = session_.cost(); cost && looks_ == 1) {
      console_.note("watching " + session_.queue() + "; one look costs " + cost->text(0, "look") +
                    "; --interval and --limit change that");
    }
  }

  QueueSession& session_;
  const operate::LookRequest request_;
  Console& console_;
  EventWriter writer_;
  operate::Watcher watcher_;
  std::string last_trouble_;
  bool told_window_ = false;
  std::uint64_t looks_ = 0;
};

Exit tail(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(interval, arguments.duration("interval", std::chrono::seconds(1)));
  if (*interval < kShortestInterval || *interval > kLongestInterval) {
    return Exit::usage("--interval is 50ms to 24h");
  }
  SLUICE_TRY(limit, arguments.count("limit", kDefaultLimit, kMaxLimit));
  SLUICE_TRY(filter, parse_filter(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments));
  operate::LookRequest request{.halves = {}, .limit = *limit, .wanted = {}};
  if (!arguments.has("dlq")) {
    request.halves.push_back(queue::Half::standard);
  }
  request.halves.push_back(queue::Half::dlq);
  if (!filter->empty()) {
    request.wanted = [&](const queue::StoredMessage& record) {
      return filter->matches(record, session->clock().wall_now());
    };
    request.content = filter->reads_content();
  }
  Tail watch(*session, std::move(request), *output, console);
  Exit exit = watch.run(*interval);
  if (const auto cost = session->cost(); cost && exit.code() == kExitOk) {
    console.note(std::to_string(watch.looks()) + " looks; DynamoDB: " + cost->text(watch.looks(), "look"));
  }
  return exit;
}

}  // namespace

Command tail_command() {
  return {
      .name = "tail",
      .group = "Queues",
      .summary = "Show what happens in a queue, as it happens",
      .usage = "--queue QUEUE [--dlq] [--interval TIME] [--limit N] [OPTION]...",
      .description =
          "Looks at the queue again and again and tells what has changed: arrived, claimed, retrying with its error, "
          "released, expired (the lease ran out), dead_lettered with its reason, redriven, edited, and gone (done, "
          "discarded or removed). One JSON object a line, or a row with --output text. Ends on Ctrl-C.\n\n"
          "It compares looks and follows no log: what comes and goes between two of them is not seen, and several "
          "claims of a message between them are one. With more than --limit records in a half the oldest of the "
          "standard and the youngest of the dead-letter half are watched; one that leaves the view is out_of_view, "
          "which may mean gone. Nothing is claimed or changed. On "
          "DynamoDB each look reads that many records, and says what it costs.",
      .flags = with_store_flags(
          joined({{.name = "dlq", .value = {}, .help = "only the dead-letter half"},
                  {.name = "interval", .value = "TIME", .help = "between two looks, 50ms to 24h [default: 1s]"},
                  {.name = "limit", .value = "N", .help = "look at so many records of each half [default: 1000]"}},
                 filter_flags())),
      .examples =
          "sluice tail --queue orders --output text\n"
          "sluice tail --queue orders --dlq | jq -r .error",
      .run = tail,
  };
}

}  // namespace sluice::cli
