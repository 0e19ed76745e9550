#include "host/cli/views/top_view.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/ranges.hpp"
#include "base/text/visible.hpp"
#include "base/timestamp.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/fleet_report.hpp"

namespace sluice::cli {

namespace {

using operate::TopKey;
using Kind = TopKey::Kind;

constexpr char kEscape = '\x1b';
/// No key that a terminal sends is longer.
constexpr std::size_t kLongestSequence = 16;

bool ends_sequence(char byte) { return byte >= 0x40 && byte <= 0x7e; }

/// How many bytes the sequence that begins with Escape has; 0 while it is not whole.
std::size_t sequence_length(std::string_view text) {
  if (text.size() < 2) {
    return 0;
  }
  if (text[1] != '[' && text[1] != 'O') {
    return 1;  // Escape, and a key after it
  }
  const auto end = std::find_if(text.begin() + 2, text.end(), ends_sequence);
  if (end == text.end()) {
    return text.size() > kLongestSequence ? text.size() : 0;
  }
  return static_cast<std::size_t>(end - text.begin()) + 1;
}

TopKey key_of(char byte) {
  switch (byte) {
    case '\r':
    case '\n':
      return {Kind::enter, 0};
    case '\b':
    case '\x7f':
      return {Kind::erase, 0};
    default:
      return {Kind::character, byte};
  }
}

using operate::JobSummary;
using operate::TopMode;
using operate::TopModel;
using operate::TopOrder;
using operate::TopQueue;
using Lines = std::vector<std::string>;

constexpr std::string_view kReverse = "\x1b[7m";
constexpr std::array kHelp{
    "up, down, j, k   select a queue",
    "s, S             sort by the next or the previous column",
    "r                turn the order round",
    "/                show only what contains a text; Enter keeps it, Escape ends it",
    "p                pause the selected queue on all hosts, or resume it",
    "Space            look now",
    "q, Ctrl-C        end",
};

std::string without_colours(const std::string& line) {
  std::string plain;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '\x1b') {
      at = std::min(line.find('m', at), line.size());
    } else {
      plain += line[at];
    }
  }
  return plain;
}

/// The title that the queues are sorted by has a mark.
constexpr std::array<std::string_view, operate::kTopOrders> kOrderTitles{
    "QUEUE", "READY", "IN FLIGHT", "DELAYED", "DLQ", "OLDEST", "IN/S", "OUT/S", "FAILED/S"};

/// A job among the slowest, and the handler of it that is longest at work.
struct SlowJob {
  JobSummary summary;
  const operate::HandlerAtWork* longest = nullptr;
};

void describe(const SlowJob& job, operate::Fields& fields) {
  const JobSummary& summary = job.summary;
  fields.text({}, operate::names("SLOWEST JOBS", 12), summary.name);
  fields.text({}, operate::names("HANDLER", 12, 3), summary.handler);
  fields.number({}, operate::figures("WORKERS", 2), summary.workers);
  fields.number({}, operate::figures("RUNNING"), summary.running);
  fields.number({}, operate::figures("STUCK"), summary.stuck, summary.stuck > 0 ? Colour::red : Colour::none);
  fields.seconds({}, operate::figures("MEAN"), summary.pace.mean);
  fields.seconds({}, operate::figures("P95"), summary.pace.p95);
  fields.seconds({}, operate::figures("SLOWEST"), summary.pace.slowest);
  std::string now;
  if (job.longest != nullptr) {
    const fleet::RunningRecord& handler = job.longest->handler;
    now =
        handler.message + " " +
        (handler.since == WallTime{} ? "-" : time_text(std::max(Duration(fields.now() - handler.since), Duration(1))));
  }
  fields.cell(operate::names("LONGEST NOW", 20, 1), std::move(now));
}

std::vector<SlowJob> slow_jobs(const TopModel& model, const std::vector<operate::HandlerAtWork>& running) {
  std::vector<SlowJob> jobs;
  for (JobSummary& summary : model.slowest_jobs()) {
    const auto* const longest = find_where(running, [&summary](const auto& at_work) {
      return at_work.handler.job == summary.name && fleet::draws_from(summary.queue, at_work.handler.queue);
    });
    jobs.push_back({std::move(summary), longest});
  }
  return jobs;
}

std::string headline(const TopModel& model, const TopFrame& frame) {
  std::size_t hosts = 0;
  std::uint64_t workers = 0;
  std::uint64_t running = 0;
  for (const fleet::KnownHost& host : model.fleet().hosts) {
    if (host.pulse != fleet::Pulse::silent) {
      ++hosts;
      running += host.record.running_total;
      for (const fleet::JobRecord& job : host.record.jobs) {
        workers += job.concurrency;
      }
    }
  }
  constexpr std::string_view kDate = "2006-01-02T";
  constexpr std::string_view kTime = "15:04:05";
  constexpr std::string_view kName = "sluice top  ";
  const std::string every = frame.every.empty() ? "" : ", every " + frame.every;
  std::string text = std::string(kName) + format_timestamp(frame.now).substr(kDate.size(), kTime.size()) + "Z" + every;
  const auto figure = [&model, hosts](std::uint64_t number) {
    return model.hosts_known() ? std::to_string(number) : hosts == 0 ? "?" : std::to_string(number) + "+";
  };
  text += "  hosts " + figure(hosts) + ", workers " + figure(workers) + ", running " + figure(running);
  text += frame.cost.empty() ? "" : "  " + frame.cost;
  // What looking costs stands last, and is to be seen.
  for (const std::string_view spared : {kName, std::string_view(every)}) {
    if (text.size() > frame.columns) {
      text.erase(text.find(spared), spared.size());
    }
  }
  return tinted(text, Colour::dim, frame.colours);
}

std::string footer(const TopModel& model) {
  const auto shown = model.queues();
  switch (model.mode()) {
    case TopMode::filter:
      return "filter: " + visible(model.filter()) + "_";
    case TopMode::confirm: {
      const TopQueue& queue = shown[std::min(model.selected(), shown.size() - 1)];
      return std::string(queue.paused ? "Resume" : "Pause") + " queue " + visible(queue.name) + " on all hosts? [y/N]";
    }
    default:
      break;
  }
  if (!model.message().empty()) {
    return visible(model.message());
  }
  return "q quit  s sort  r reverse  / filter" + (model.filter().empty() ? "" : " (" + visible(model.filter()) + ")") +
         "  p pause or resume  ? help";
}

/// As many lines as there is room for; the last one says how many more there are.
void append_cut(Lines& out, const Lines& lines, std::size_t room) {
  if (lines.size() <= room) {
    out.insert(out.end(), lines.begin(), lines.end());
  } else if (room > 0) {
    out.insert(out.end(), lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(room) - 1);
    out.push_back("... " + std::to_string(lines.size() - room + 1) + " more");
  }
}

/// Lines of which the one selected is among those that are seen; the first is the headline.
Lines scrolled(Lines lines, std::size_t selected, std::size_t room) {
  if (lines.size() > room && selected + 1 >= room - 1 && room > 2) {
    const std::size_t hidden = std::min(selected + 3 - room, lines.size() - room);
    lines.erase(lines.begin() + 1, lines.begin() + 1 + static_cast<std::ptrdiff_t>(hidden));
  }
  return lines;
}

/// How many rows each part gets: what it needs, and where there is not enough the queues come first.
std::array<std::size_t, 3> shares(const std::array<std::size_t, 3>& needs, std::size_t room) {
  std::array<std::size_t, 3> shares{};
  const std::size_t fair = room / 3;
  std::size_t left = room;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    shares[i] = std::min(needs[i], fair);
    left -= shares[i];
  }
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const std::size_t more = std::min(left, needs[i] - shares[i]);
    shares[i] += more;
    left -= more;
  }
  return shares;
}

/// Marks the selected row, by its colour or by a sign before it.
void mark(Lines& lines, std::size_t selected, bool colours) {
  if (colours) {
    // In one colour: the end of its own ones would be the end of the marking.
    lines[selected] = std::string(kReverse) + without_colours(lines[selected]) + std::string(kPlain);
    return;
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    lines[i].insert(0, i == selected ? ">" : " ");
  }
}

Lines body(const TopModel& model, const TopFrame& frame, std::size_t room) {
  const Screen screen{frame.colours, frame.columns};
  const auto running = operate::handlers_at_work(model.fleet());
  std::array<Lines, 3> parts{
      lines_of(rows_of(model.queues(), frame.now,
                       {.screen = screen,
                        .marked = kOrderTitles.at(static_cast<std::size_t>(model.order())),
                        .mark = model.reversed() ? "^" : "v"})),
      lines_of(rows_of(
          model.fleet().hosts, frame.now,
          {.screen = screen, .columns = {"HOST", "STATE", "UP", "RUNNING", "DONE/S", "FAILED/S", "SEEN", "VERSION"}})),
      lines_of(rows_of(slow_jobs(model, running), frame.now, {.screen = screen}))};
  for (const std::string& warning : operate::host_warnings(model.fleet(), frame.now)) {
    for (const std::string& line : lines_of(wrapped(visible(warning), screen))) {
      parts[1].push_back(tinted(line, Colour::red, frame.colours));
    }
  }
  const bool selects = frame.rows > 0 && parts[0].size() > 1;
  if (selects) {
    mark(parts[0], model.selected() + 1, frame.colours);
  }
  constexpr std::size_t kGaps = 2;
  const auto given = shares({parts[0].size(), parts[1].size(), parts[2].size()}, room - std::min(room, kGaps));
  if (selects) {
    parts[0] = scrolled(std::move(parts[0]), model.selected(), given[0]);
  }
  Lines out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && given[i] > 0) {
      out.emplace_back();
    }
    append_cut(out, parts[i], given[i]);
  }
  return out;
}

}  // namespace

std::vector<TopKey> TopKeys::take(std::string_view bytes) {
  kept_ += bytes;
  std::vector<TopKey> keys;
  std::string_view rest = kept_;
  while (!rest.empty()) {
    std::size_t length = 1;
    if (rest.front() != kEscape) {
      const TopKey key = key_of(rest.front());
      if (key.kind != Kind::character || static_cast<unsigned char>(key.character) >= 0x20) {
        keys.push_back(key);
      }
    } else {
      length = sequence_length(rest);
      if (length == 0) {
        break;
      }
      if (length == 1) {
        keys.push_back({Kind::escape, 0});
      } else if (length == 3 && (rest[2] == 'A' || rest[2] == 'B')) {
        keys.push_back({rest[2] == 'A' ? Kind::up : Kind::down, 0});
      }
    }
    rest.remove_prefix(length);
  }
  kept_ = std::string(rest);
  return keys;
}

std::vector<TopKey> TopKeys::give_up() {
  const bool escape = std::exchange(kept_, {}).size() == 1;
  return escape ? std::vector<TopKey>{{Kind::escape, 0}} : std::vector<TopKey>{};
}

std::vector<std::string> draw_top(const TopModel& model, const TopFrame& frame) {
  constexpr std::size_t kEndless = 1'000'000;
  constexpr std::size_t kFrameLines = 3;  // headline, an empty line, and the keys
  Lines lines{headline(model, frame), {}};
  if (frame.rows == 0) {
    const Lines rest = body(model, frame, kEndless);
    lines.insert(lines.end(), rest.begin(), rest.end());
  } else {
    const std::size_t room = frame.rows - std::min(frame.rows, kFrameLines);
    const Lines rest = model.mode() == TopMode::help ? Lines(kHelp.begin(), kHelp.end()) : body(model, frame, room);
    append_cut(lines, rest, room);
    lines.resize(std::min(lines.size(), frame.rows - std::min<std::size_t>(frame.rows, 1)));
    lines.push_back(footer(model));
  }
  for (std::string& line : lines) {
    line = fit_line(line, frame.columns);
  }
  return lines;
}

}  // namespace sluice::cli
