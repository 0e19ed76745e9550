#include "host/cli/views/top_view.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/signal_block.hpp"
#include "base/text/decimal.hpp"
#include "base/text/utf8.hpp"
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

/// For one call of a store. The screen goes on without it, and its end waits for it.
constexpr Duration kCallTime = std::chrono::seconds(5);
/// Hosts tell in detail for so long beyond the next look.
constexpr Duration kWatchMargin = std::chrono::seconds(8);

using operate::JobSummary;
using operate::TopMode;
using operate::TopModel;
using operate::TopOrder;
using operate::TopQueue;
using Lines = std::vector<std::string>;

constexpr std::size_t kWidestName = 28;
constexpr std::string_view kReverse = "\x1b[7m";
constexpr std::string_view kPlain = "\x1b[0m";
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
  fields.text({}, {"SLOWEST HANDLERS", false, kWidestName}, summary.handler);
  fields.text({}, {"JOB", false, kWidestName}, summary.name);
  fields.number({}, operate::figures("WORKERS"), summary.workers);
  fields.number({}, operate::figures("RUNNING"), summary.running);
  fields.number({}, operate::figures("STUCK"), summary.stuck, summary.stuck > 0 ? Colour::red : Colour::none);
  fields.seconds({}, operate::figures("MEAN"), summary.pace.mean);
  fields.seconds({}, operate::figures("P95"), summary.pace.p95);
  fields.seconds({}, operate::figures("SLOWEST"), summary.pace.slowest);
  std::string now;
  if (job.longest != nullptr) {
    const fleet::RunningRecord& handler = job.longest->handler;
    now = handler.message + " " + time_text(std::max(Duration(fields.now() - handler.since), Duration(1)));
  }
  fields.cell({"LONGEST NOW"}, std::move(now));
}

std::vector<SlowJob> slow_jobs(const TopModel& model, const std::vector<operate::HandlerAtWork>& running) {
  std::vector<SlowJob> jobs;
  for (JobSummary& summary : model.slowest_jobs()) {
    const auto longest = std::find_if(running.begin(), running.end(), [&summary](const auto& at_work) {
      return at_work.handler.job == summary.name && fleet::draws_from(summary.queue, at_work.handler.queue);
    });
    jobs.push_back({std::move(summary), longest == running.end() ? nullptr : &*longest});
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
  std::string text = "sluice top  " + format_timestamp(frame.now).substr(kDate.size(), kTime.size()) + "Z";
  text += frame.every.empty() ? "" : ", every " + frame.every;
  text += "  hosts " + std::to_string(hosts) + ", workers " + std::to_string(workers) + ", running " +
          std::to_string(running);
  text += frame.cost.empty() ? "" : "  " + frame.cost;
  return frame.colours ? coloured(text, Colour::dim) : text;
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
  const auto running = operate::handlers_at_work(model.fleet());
  std::array<Lines, 3> parts{
      lines_of(rows_of(model.queues(), frame.now,
                       {.colours = frame.colours,
                        .marked = kOrderTitles.at(static_cast<std::size_t>(model.order())),
                        .mark = model.reversed() ? "^" : "v"})),
      lines_of(rows_of(model.fleet().hosts, frame.now,
                       {.colours = frame.colours,
                        .columns = {"HOST", "STATE", "UP", "RUNNING", "DONE/S", "FAILED/S", "SEEN", "VERSION"},
                        .widest_name = kWidestName})),
      lines_of(rows_of(slow_jobs(model, running), frame.now, {.colours = frame.colours}))};
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

// Another page than the one that is scrolled, and no cursor; and back.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?25h\x1b[?1049l";
constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH};

sigset_t screen_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) {
    sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

ScreenSignals::ScreenSignals() {
  const sigset_t set = screen_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  descriptor_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  SLUICE_ASSERT(descriptor_ >= 0);
}

ScreenSignals::~ScreenSignals() {
  while (take() != 0) {
    // What came too late concerns nobody any more.
  }
  ::close(descriptor_);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int ScreenSignals::take() {
  signalfd_siginfo info{};
  return ::read(descriptor_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))
             ? static_cast<int>(info.ssi_signo)
             : 0;
}

bool TerminalScreen::possible(const Console& console) {
  const char* const terminal = std::getenv("TERM");
  return ::isatty(STDIN_FILENO) == 1 && console.output_is_terminal() &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

TerminalScreen::TerminalScreen(Console& console, ScreenSignals& signals) : console_(console), signals_(signals) {
  ::tcgetattr(STDIN_FILENO, &before_);
  enter();
}

TerminalScreen::~TerminalScreen() { leave(); }

void TerminalScreen::enter() {
  termios raw = before_;
  // Ctrl-C and Ctrl-Z stay signals; Ctrl-\ would end the program without giving the terminal back.
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VQUIT] = _POSIX_VDISABLE;
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  console_.out(kEnter);
  console_.flush();
}

void TerminalScreen::leave() {
  console_.out(kLeave);
  console_.flush();
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

void TerminalScreen::suspend() {
  leave();
  ::kill(::getpid(), SIGSTOP);
  // Here it goes on; SIGCONT tells to show everything again.
}

bool TerminalScreen::show(const std::vector<std::string>& lines) {
  // In place, so that nothing flickers; what is left of the last picture goes line by line.
  console_.out("\x1b[H");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    console_.out(lines[i]);
    console_.out(i + 1 < lines.size() ? "\x1b[K\n" : "\x1b[K");
  }
  console_.out("\x1b[J");
  console_.flush();
  return console_.writable();
}

void TerminalScreen::take_signals(Woken& woken) {
  for (int signal = signals_.take(); signal != 0; signal = signals_.take()) {
    switch (signal) {
      case SIGTSTP:
        suspend();
        break;
      case SIGCONT:
        enter();
        woken.resized = true;
        break;
      case SIGWINCH:
        woken.resized = true;
        break;
      default:
        woken.ended = true;
        break;
    }
  }
}

TerminalScreen::Woken TerminalScreen::wait(int descriptor, Duration time) {
  const auto limit = std::min<Duration>(time, std::chrono::hours(1));
  const int milliseconds = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(limit).count());
  std::array<pollfd, 3> watched{
      {{STDIN_FILENO, POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}, {descriptor, POLLIN, 0}}};
  ::poll(watched.data(), watched.size(), milliseconds);
  Woken woken;
  if ((watched[0].revents & POLLIN) != 0) {
    std::array<char, 256> bytes;
    const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    woken.bytes.assign(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    woken.ended = got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
  } else if ((watched[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
    woken.ended = true;
  }
  take_signals(woken);
  return woken;
}

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

void TopLookout::look_at_hosts(Duration watched_for) {
  const Deadline deadline = Deadline::after(session_.clock(), kCallTime);
  if (watched_for > Duration::zero()) {
    static_cast<void>(session_.fleet().watch(watched_for, deadline));  // without it the screen tells less
  }
  const auto view = session_.fleet().hosts(deadline);
  const auto steering = session_.fleet().steering(deadline);
  with([&](operate::TopModel& model) {
    if (!view) {
      return model.say(view.error().message());
    }
    model.see(*view, steering ? *steering : fleet::SteeringView{});
    if (!view->troubles.empty()) {
      model.say(view->troubles.front().place + ": " + view->troubles.front().error.message());
    }
  });
}

std::vector<std::string> TopLookout::queues() {
  std::set<std::string> names(session_.queue_names().begin(), session_.queue_names().end());
  with([&names](operate::TopModel& model) {
    for (const fleet::KnownHost& host : model.fleet().hosts) {
      for (const fleet::JobRecord& job : host.record.jobs) {
        const auto queues = fleet::queues_in(job.queue);
        names.insert(queues.begin(), queues.end());
      }
    }
  });
  return {names.begin(), names.end()};
}

void TopLookout::count(const std::string& queue) {
  auto known = counters_.find(queue);
  if (known == counters_.end()) {
    auto opened = session_.queues().queues().open_operator(queue);
    if (!opened) {
      return with([&](operate::TopModel& model) { model.see_trouble(queue, opened.error().message()); });
    }
    const bool keeps_count = session_.queues().host().store_of(queue).kind == config::StoreKind::sqlite;
    known =
        counters_
            .try_emplace(queue, std::move(*opened),
                         keeps_count ? operate::QueueCounter::Method::at_once : operate::QueueCounter::Method::by_pages,
                         session_.clock())
            .first;
  }
  const auto counted = known->second.step(Deadline::after(session_.clock(), kCallTime));
  with([&](operate::TopModel& model) {
    if (counted) {
      model.see(queue, *counted, session_.clock().wall_now());
    } else {
      model.see_trouble(queue, counted.error().message());
    }
  });
}

void TopLookout::carry_out(const operate::TopWish& wish) {
  const bool pauses = wish.kind == operate::TopWish::Kind::pause;
  std::string said;
  if (pauses) {
    fleet::Directive directive;
    directive.wish = fleet::Wish::pause;
    directive.target = fleet::Target::queue;
    directive.name = wish.queue;
    const auto given = session_.give(directive, wish.queue);
    said = given.has_error() ? given.error().lines().front() : "queue " + wish.queue + " is paused";
  } else {
    const auto taken = session_.reset(fleet::Wish::pause, wish.queue);
    said = taken.has_error() ? taken.error().lines().front() : "queue " + wish.queue + " is resumed";
  }
  with([&said](operate::TopModel& model) { model.say(std::move(said)); });
}

std::string TopLookout::measured_cost() {
  const auto now_spent = session_.queues().cost();
  if (!now_spent) {
    return {};
  }
  const SteadyTime now = session_.clock().steady_now();
  const runtime::DynamoDbCost before = std::exchange(spent_, *now_spent);
  const SteadyTime since = std::exchange(spent_at_, now);
  const double seconds = std::chrono::duration<double>(now - since).count();
  if (since == SteadyTime{} || seconds <= 0) {
    return {};
  }
  return fixed_decimal((spent_.read_units - before.read_units) / seconds, 1) + " RCU/s, " +
         fixed_decimal((spent_.write_units - before.write_units) / seconds, 1) + " WCU/s";
}

TopLookout::TopLookout(FleetSession& session)
    : session_(session), news_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), model_(session.queue_names()) {
  SLUICE_ASSERT(news_ >= 0);
}

TopLookout::~TopLookout() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  ::close(news_);
}

void TopLookout::start(Duration interval) {
  const SignalBlock none_there;
  thread_ = std::jthread([this, interval](const std::stop_token& stop) { run(stop, interval); });
}

void TopLookout::look(Duration watched_for, const std::stop_token& stop) {
  look_at_hosts(watched_for);
  tell();
  for (const std::string& queue : queues()) {
    if (stop.stop_requested()) {
      return;
    }
    count(queue);
    tell();
  }
}

void TopLookout::take_news() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(news_, &count, sizeof(count));
}

void TopLookout::tell() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(news_, &one, sizeof(one));
}

std::string TopLookout::cost() {
  const MutexLock lock(mutex_);
  return cost_;
}

void TopLookout::ask(operate::TopWish wish) {
  {
    const MutexLock lock(mutex_);
    wishes_.push_back(std::move(wish));
  }
  changed_.notify_all();
}

std::optional<operate::TopWish> TopLookout::next_wish() {
  const MutexLock lock(mutex_);
  if (wishes_.empty()) {
    return std::nullopt;
  }
  operate::TopWish wish = std::move(wishes_.front());
  wishes_.pop_front();
  return wish;
}

void TopLookout::run(const std::stop_token& stop, Duration interval) {
  while (!stop.stop_requested()) {
    const SteadyTime next = session_.clock().steady_now() + interval;
    while (const auto wish = next_wish()) {
      if (wish->kind == operate::TopWish::Kind::pause || wish->kind == operate::TopWish::Kind::resume) {
        carry_out(*wish);
      }
    }
    look(interval + kWatchMargin, stop);
    std::string cost = measured_cost();
    const MutexLock lock(mutex_);
    cost_ = std::move(cost);
    changed_.wait_until(mutex_, stop, next, [this]() SLUICE_NO_TSA { return !wishes_.empty(); });
  }
}

std::string fit_line(const std::string& line, std::size_t columns) {
  std::string out;
  std::size_t used = 0;
  bool coloured = false;
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == '\x1b') {
      const std::size_t end = std::min(line.find('m', at), line.size() - 1);
      coloured = line.compare(at, end + 1 - at, kPlain) != 0;
      out.append(line, at, end + 1 - at);
      at = end + 1;
      continue;
    }
    const std::size_t length = std::max<std::size_t>(utf8_length(std::string_view(line).substr(at)), 1);
    const std::size_t width = display_width(std::string_view(line).substr(at, length));
    if (used + width > columns) {
      return coloured ? out + std::string(kPlain) : out;
    }
    out.append(line, at, length);
    used += width;
    at += length;
  }
  return out;
}

std::vector<std::string> draw_top(const TopModel& model, const TopFrame& frame) {
  constexpr std::size_t kEndless = 1'000'000;
  constexpr std::size_t kAround = 3;  // headline, an empty line, and the keys
  Lines lines{headline(model, frame), {}};
  if (frame.rows == 0) {
    const Lines rest = body(model, frame, kEndless);
    lines.insert(lines.end(), rest.begin(), rest.end());
  } else {
    const std::size_t room = frame.rows - std::min(frame.rows, kAround);
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
