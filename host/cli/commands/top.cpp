#include <utility>

#include "base/timestamp.hpp"
#include "host/cli/command.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/views/terminal_screen.hpp"
#include "host/cli/views/top_keys.hpp"
#include "host/cli/views/top_looker.hpp"
#include "host/cli/views/top_screen.hpp"
#include "host/operate/fleet_report.hpp"

namespace sluice::cli {

namespace {

constexpr Duration kInterval = std::chrono::seconds(2);
constexpr Duration kShortestInterval = std::chrono::milliseconds(200);
constexpr Duration kLongestInterval = std::chrono::hours(1);
/// After Escape, for the rest of a key's bytes.
constexpr Duration kKeyTime = std::chrono::milliseconds(50);
constexpr std::size_t kAnyWidth = 1'000'000;

std::string as_json(const operate::TopModel& model, WallTime now) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  json.member("at", format_timestamp(now));
  json.key("queues");
  operate::write_all(json, model.queues(), now);
  json.key("hosts");
  operate::write_all(json, model.fleet().hosts, now);
  json.key("jobs");
  operate::write_all(json, model.slowest_jobs(), now);
  json.end_object();
  return json.take_line();
}

/// One picture for a pipe, a file, or a script.
Exit show_once(FleetSession& session, Output output, Console& console) {
  TopBoard board(session.queue_names());
  TopLooker looker(session, board);
  looker.look(Duration::zero(), std::stop_token(), [] {});
  const WallTime now = session.clock().wall_now();
  return board.with([&](operate::TopModel& model) {
    if (output == Output::json) {
      console.out(as_json(model, now));
    } else {
      const TopFrame frame{
          .columns = kAnyWidth, .rows = 0, .colours = console.output_has_colour(), .now = now, .every = {}, .cost = {}};
      for (const std::string& line : draw_top(model, frame)) {
        console.out(line + "\n");
      }
    }
    return model.message().empty() ? Exit::ok() : Exit::failure(model.message());
  });
}

/// The live screen.
class Top {
 public:
  Top(FleetSession& session, ScreenSignals& signals, Console& console, Duration interval)
      : session_(session),
        console_(console),
        every_(config::format_duration(interval)),
        board_(session.queue_names()),
        lookout_(session, board_, interval),
        screen_(console, signals) {}

  void run() {
    bool ended = !draw();
    while (!ended) {
      const auto woken = screen_.wait(lookout_.descriptor(), keys_.waits() ? kKeyTime : Duration::max());
      lookout_.take_news();
      const bool nothing_followed = keys_.waits() && woken.bytes.empty();
      ended = woken.ended || press(nothing_followed ? keys_.give_up() : keys_.take(woken.bytes)) || !draw();
    }
  }

 private:
  /// True when the user wants to end.
  bool press(const std::vector<operate::TopKey>& keys) {
    for (const operate::TopKey& key : keys) {
      auto wish = board_.with([&key](operate::TopModel& model) { return model.press(key); });
      if (wish && wish->kind == operate::TopWish::Kind::quit) {
        return true;
      }
      if (wish) {
        lookout_.ask(std::move(*wish));
      }
    }
    return false;
  }

  bool draw() {
    const TerminalScreen::Size size = screen_.size();
    const TopFrame frame{.columns = size.columns,
                         .rows = size.rows,
                         .colours = console_.output_has_colour(),
                         .now = session_.clock().wall_now(),
                         .every = every_,
                         .cost = lookout_.cost()};
    return screen_.show(board_.with([&frame](operate::TopModel& model) { return draw_top(model, frame); }));
  }

  FleetSession& session_;
  Console& console_;
  const std::string every_;
  TopKeys keys_;
  TopBoard board_;
  TopLookout lookout_;
  // Last, so that the terminal is given back before anything is waited for.
  TerminalScreen screen_;
};

Exit top(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(interval, arguments.duration("interval", kInterval));
  if (*interval < kShortestInterval || *interval > kLongestInterval) {
    return Exit::usage("--interval " + arguments.get("interval") + ": write a time from 200ms to 1h");
  }
  const bool live = !arguments.has("once") && *output == Output::text && TerminalScreen::possible(console);
  if (!live) {
    auto session = FleetSession::open(arguments);
    return session.has_error() ? session.error() : show_once(*session, *output, console);
  }
  ScreenSignals signals;  // before the store's threads
  SLUICE_TRY(session, FleetSession::open(arguments));
  Top(*session, signals, console, *interval).run();
  return console.writable() ? Exit::ok() : Exit(kExitBrokenPipe, std::vector<std::string>{});
}

}  // namespace

Command top_command() {
  return {
      .name = "top",
      .group = "Fleet",
      .summary = "Watch queues, hosts and the slowest handlers on a live screen",
      .usage = "[--interval TIME] [--once] [OPTION]...",
      .description =
          "Queues with what lies in them, the age of the oldest ready message, rates in and out and of failures; "
          "hosts; "
          "and the handlers that take longest. Keys: up and down select a queue, p pauses or resumes it on all hosts, "
          "s "
          "sorts by the next column, r turns the order round, / filters, ? explains, q ends.\n\n"
          "On DynamoDB a long queue is counted a page at a look, so that looking costs little: 1,000+ is a count under "
          "way, and the headline says what looking costs. Without a terminal, with --once and as JSON there is one "
          "picture.",
      .flags = with_store_flags({{.name = "interval", .value = "TIME", .help = "between two looks [default: 2s]"},
                                 {.name = "once", .value = {}, .help = "one picture, and end"}}),
      .examples =
          "sluice top\n"
          "sluice top --once --output json | jq '.queues[] | select(.dlq > 0)'",
      .run = top,
  };
}

}  // namespace sluice::cli
