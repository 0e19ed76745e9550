#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/core/noncopyable.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/bell.hpp"
#include "base/mutex.hpp"
#include "base/signal_block.hpp"
#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/views/top_view.hpp"
#include "host/operate/fleet_report.hpp"
#include "host/operate/top_model.hpp"

namespace sluice::cli {

namespace {

using operate::TopModel;
using operate::TopWish;

// Another page than the one that is scrolled, and no cursor; and back.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?25h\x1b[?1049l";

/// The terminal while a live screen has it: its own page, no echo, keys at once. Whatever ends the program's interest,
/// a key, Ctrl-C, Ctrl-Z or an error, gives it back as it was. Of one thread.
class TerminalScreen : boost::noncopyable {
 public:
  struct Woken {
    std::string bytes;   ///< that were typed
    bool ended = false;  ///< Ctrl-C, SIGTERM, or the terminal is gone
  };

  /// Whether both ends are terminals that can move their cursor.
  static bool possible(const Console& console) {
    const char* const terminal = std::getenv("TERM");
    return ::isatty(STDIN_FILENO) == 1 && console.output_is_terminal() &&
           (terminal == nullptr || std::string_view(terminal) != "dumb");
  }

  /// `signals` outlive it.
  TerminalScreen(Console& console, const InterruptFlag& signals) : console_(console), signals_(signals) {
    ::tcgetattr(STDIN_FILENO, &before_);
    enter();
  }
  ~TerminalScreen() { leave(); }

  /// Replaces the picture. False when nobody can see it any more.
  bool show(const std::vector<std::string>& lines) {
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

  /// Waits for a key, a signal, `descriptor` to become readable, or the time; Duration::max() for no limit.
  Woken wait(int descriptor, Duration time) {
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

 private:
  void enter() {
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

  void leave() {
    console_.out(kLeave);
    console_.flush();
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }

  void take_signals(Woken& woken) {
    signals_.hush();
    if (signals_.take(SIGTSTP)) {
      leave();
      ::kill(::getpid(), SIGSTOP);  // here it goes on; SIGCONT tells to show everything again
    }
    if (signals_.take(SIGCONT)) {
      enter();
    }
    woken.ended = woken.ended || signals_.raised() || signals_.take(SIGHUP);
  }

  Console& console_;
  const InterruptFlag& signals_;
  termios before_{};
};

/// For one call of a store. The screen goes on without it, and its end waits for it.
constexpr Duration kCallTime = std::chrono::seconds(5);
/// While a look goes on, what it has found so far is shown that often.
constexpr Duration kShowAgain = std::chrono::milliseconds(250);
/// Hosts tell in detail for so long beyond the next look.
constexpr Duration kWatchMargin = std::chrono::seconds(8);

/// Looks at hosts and queues for `sluice top`, keeps what it has seen in the model, and carries out what its user
/// wants: once, or on a thread of its own, so that keys are obeyed while a store takes its time.
class TopLookout : boost::noncopyable {
 public:
  /// `session` outlives it.
  explicit TopLookout(FleetSession& session)
      : session_(session), model_(session.queue_names(), session.queues().queue()) {
    SLUICE_ASSERT(news_.descriptor() >= 0);
  }

  /// Looks once at everything; hosts are not asked to tell in detail.
  void look_once() { look(Duration::zero(), {}); }
  /// Looks again and again until it is destroyed.
  void start(Duration interval) {
    const SignalBlock none_there;
    thread_ = std::jthread([this, interval](const std::stop_token& stop) { run(stop, interval); });
  }

  /// Calls `act` with the model, which nobody else touches meanwhile.
  template <typename Act>
  auto with(Act act) {
    const MutexLock lock(mutex_);
    return act(model_);
  }
  /// Readable when there is something new to show.
  const Bell& news() const { return news_; }
  /// "12 RCU/s, 0.1 WCU/s"; empty where looking costs nothing.
  std::string cost() {
    const MutexLock lock(mutex_);
    return cost_;
  }
  /// Carries out a wish of the user's, or looks at once.
  void ask(TopWish wish) {
    {
      const MutexLock lock(mutex_);
      wishes_.push_back(std::move(wish));
    }
    changed_.notify_all();
  }

 private:
  void run(const std::stop_token& stop, Duration interval) {
    while (!stop.stop_requested()) {
      const SteadyTime next = session_.clock().steady_now() + interval;
      while (const auto wish = next_wish()) {
        if (wish->kind == TopWish::Kind::pause || wish->kind == TopWish::Kind::resume) {
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

  std::optional<TopWish> next_wish() {
    const MutexLock lock(mutex_);
    if (wishes_.empty()) {
      return std::nullopt;
    }
    TopWish wish = std::move(wishes_.front());
    wishes_.pop_front();
    return wish;
  }

  void carry_out(const TopWish& wish) {
    const bool pauses = wish.kind == TopWish::Kind::pause;
    const fleet::Directive pause{
        .id = {}, .wish = fleet::Wish::pause, .target = fleet::Target::queue, .name = wish.queue};
    const auto done = pauses ? session_.give(pause, wish.queue) : session_.reset(pause.wish, wish.queue);
    std::string said = done.has_error() ? done.error().lines().front()
                                        : "queue " + wish.queue + (pauses ? " is paused" : " is resumed");
    with([&said](TopModel& model) { model.say(std::move(said)); });
  }

  /// `watched_for`: how long hosts shall tell in detail.
  void look(Duration watched_for, const std::stop_token& stop) {
    const bool stores_answer = look_at_hosts(watched_for);
    news_.ring();
    SteadyTime shown = session_.clock().steady_now();
    std::set<const void*> silent;  // stores that have let a call of this look wait in vain
    for (const std::string& queue : queues(stores_answer)) {
      if (stop.stop_requested()) {
        return;
      }
      count(queue, silent);
      if (const SteadyTime now = session_.clock().steady_now(); now - shown >= kShowAgain) {
        shown = now;
        news_.ring();
      }
    }
    news_.ring();
  }

  /// False: a store has let it wait in vain, and need not be asked for more.
  bool look_at_hosts(Duration watched_for) {
    const SteadyTime begun = session_.clock().steady_now();
    const Deadline deadline = Deadline::after(session_.clock(), kCallTime);
    if (watched_for > Duration::zero()) {
      static_cast<void>(session_.fleet().watch(watched_for, deadline));  // without it the screen tells less
    }
    // Who looks again is told by the records soon.
    const auto view = watched_for == Duration::zero() ? session_.hosts_now(kCallTime)
                                                      : session_.checked(session_.fleet().hosts(deadline));
    const auto steering = session_.fleet().steering(deadline);
    with([&](TopModel& model) {
      if (view.has_error()) {
        return model.see_no_hosts(view.error().lines().front());
      }
      model.see(*view, steering ? *steering : fleet::SteeringView{});
      if (!view->troubles.empty()) {
        model.say(view->troubles.front().text());
      }
    });
    return session_.clock().steady_now() - begun < kCallTime;
  }

  /// `asked`: of the stores too, which know more than files name.
  std::vector<std::string> queues(bool asked) {
    if (const std::string& only = session_.queues().queue(); !only.empty()) {
      return {only};
    }
    std::set<std::string> names(session_.queue_names().begin(), session_.queue_names().end());
    if (asked) {
      const Deadline deadline = Deadline::after(session_.clock(), kCallTime);
      if (const auto made = session_.queues().queues().made_by_messages(deadline)) {
        names.insert(made->begin(), made->end());
      }
    }
    // In which of several stores a queue lies that hosts with other files work on, those know.
    if (session_.queues().host().stores.empty()) {
      with([&names](TopModel& model) {
        for (const fleet::KnownHost& host : model.fleet().hosts) {
          for (const fleet::JobRecord& job : host.record.jobs) {
            const auto queues = fleet::queues_in(job.queue);
            names.insert(queues.begin(), queues.end());
          }
        }
      });
    }
    return {names.begin(), names.end()};
  }

  void count(const std::string& queue, std::set<const void*>& silent) {
    const void* const store = store_identity(session_.queues().host(), queue);
    if (silent.contains(store)) {
      return with([&](TopModel& model) { model.see_trouble(queue, "not counted: its store does not answer"); });
    }
    auto known = counters_.find(queue);
    if (known == counters_.end()) {
      auto opened = session_.queues().open_counter(queue);
      if (!opened) {
        return with([&](TopModel& model) { model.see_trouble(queue, opened.error().message()); });
      }
      known = counters_.emplace(queue, std::move(*opened)).first;
    }
    const auto counted = known->second.step(Deadline::after(session_.clock(), kCallTime));
    if (!counted &&
        (counted.error().code() == ErrorCode::timeout || counted.error().code() == ErrorCode::unavailable)) {
      silent.insert(store);
    }
    with([&](TopModel& model) {
      if (counted) {
        model.see(queue, *counted, session_.clock().wall_now());
      } else {
        model.see_trouble(queue, counted.error().message());
      }
    });
  }

  /// Since the last call.
  std::string measured_cost() {
    const auto now_spent = session_.queues().cost();
    if (!now_spent) {
      return {};
    }
    const SteadyTime now = session_.clock().steady_now();
    const cost::Spent before = std::exchange(spent_, *now_spent);
    const SteadyTime since = std::exchange(spent_at_, now);
    const double seconds = std::chrono::duration<double>(now - since).count();
    if (since == SteadyTime{} || seconds <= 0) {
      return {};
    }
    return rate_text((spent_.read_units - before.read_units) / seconds) + " RCU/s, " +
           rate_text((spent_.write_units - before.write_units) / seconds) + " WCU/s";
  }

  // Fixed after construction.
  FleetSession& session_;
  const Bell news_;

  // Touched only by who looks.
  std::map<std::string, operate::QueueCounter> counters_;
  cost::Spent spent_{};
  SteadyTime spent_at_{};

  Mutex mutex_;
  Condition changed_;
  TopModel model_ SLUICE_GUARDED_BY(mutex_);
  std::deque<TopWish> wishes_ SLUICE_GUARDED_BY(mutex_);
  std::string cost_ SLUICE_GUARDED_BY(mutex_);
  // Last, so that it ends before what it uses.
  std::jthread thread_;
};

/// After Escape, for the rest of a key's bytes.
constexpr Duration kKeyTime = std::chrono::milliseconds(50);
constexpr std::size_t kAnyWidth = 1'000'000;

std::string as_json(const TopModel& model, WallTime now) {
  const auto all = [now](const auto& records) {
    return [&records, now](JsonWriter& json) { operate::write_all(json, records, now); };
  };
  const auto jobs = model.slowest_jobs();
  return json_line("at", now, "queues", all(model.queues()), "hosts", all(model.fleet().hosts), "jobs", all(jobs));
}

/// One picture for a pipe, a file, or a script.
Exit show_once(FleetSession& session, Console& console) {
  TopLookout lookout(session);
  lookout.look_once();
  const WallTime now = session.clock().wall_now();
  return lookout.with([&](TopModel& model) {
    if (console.shows_json()) {
      console.out(as_json(model, now));
    } else {
      const auto [colours, columns] = console.screen();
      const TopFrame frame{.columns = columns == 0 ? kAnyWidth : columns,
                           .rows = 0,
                           .colours = colours,
                           .now = now,
                           .every = {},
                           .cost = {}};
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
  Top(FleetSession& session, const InterruptFlag& signals, Console& console, Duration interval)
      : session_(session),
        console_(console),
        every_(config::format_duration(interval)),
        lookout_(session),
        screen_(console, signals) {
    lookout_.start(interval);
  }

  void run() {
    bool ended = !draw();
    while (!ended) {
      const auto woken = screen_.wait(lookout_.news().descriptor(), keys_.waits() ? kKeyTime : Duration::max());
      lookout_.news().hush();
      const bool nothing_followed = keys_.waits() && woken.bytes.empty();
      ended = woken.ended || press(nothing_followed ? keys_.give_up() : keys_.take(woken.bytes)) || !draw();
    }
  }

 private:
  /// True when the user wants to end.
  bool press(const std::vector<operate::TopKey>& keys) {
    for (const operate::TopKey& key : keys) {
      auto wish = lookout_.with([&key](TopModel& model) { return model.press(key); });
      if (wish && wish->kind == TopWish::Kind::quit) {
        return true;
      }
      if (wish) {
        lookout_.ask(std::move(*wish));
      }
    }
    return false;
  }

  bool draw() {
    const TerminalSize size = terminal_size(STDOUT_FILENO);
    const TopFrame frame{.columns = size.columns,
                         .rows = size.rows,
                         .colours = console_.output_has_colour(),
                         .now = session_.clock().wall_now(),
                         .every = every_,
                         .cost = lookout_.cost()};
    return screen_.show(lookout_.with([&frame](TopModel& model) { return draw_top(model, frame); }));
  }

  FleetSession& session_;
  Console& console_;
  const std::string every_;
  TopKeys keys_;
  TopLookout lookout_;
  // Last, so that the terminal is given back before anything is waited for.
  TerminalScreen screen_;
};

Exit top(const Arguments& arguments, Console& console) {
  SLUICE_TRY(interval, arguments.duration("interval", std::chrono::seconds(2), std::chrono::milliseconds(200),
                                          std::chrono::hours(1)));
  const bool live = !arguments.has("once") && console.shows_text() && TerminalScreen::possible(console);
  if (!live) {
    SLUICE_TRY(session, FleetSession::open(arguments));
    return show_once(*session, console);
  }
  const InterruptFlag signals{SIGHUP, SIGTSTP, SIGCONT, SIGWINCH};
  SLUICE_TRY(session, FleetSession::open(arguments));
  Top(*session, signals, console, *interval).run();
  return console.writable() ? Exit::ok() : Exit::silent(kExitBrokenPipe);
}

}  // namespace

std::vector<Command> top_commands() {
  return {
      {
          .name = "top",
          .summary = "Watch queues, hosts and the slowest handlers on a live screen",
          .usage = "[QUEUE] [--interval TIME] [--once] [OPTION]...",
          .description =
              "Queues with what lies in them, the age of the oldest ready message, rates in and out and of failures; "
              "hosts; and the handlers that take longest. Keys: up and down select a queue, p pauses or resumes it on "
              "all hosts, s sorts by the next column, r turns the order round, / filters, ? explains, q ends.\n\n"
              "On DynamoDB a long queue is counted a page at a look, so that looking costs little: 1,000+ is a count "
              "under way, and the headline says what looking costs. Without a terminal, with --once and as JSON there "
              "is one picture.",
          .flags = with_store_flags(
              {{"interval", "TIME", "between two looks [default: 2s]"}, {"once", {}, "one picture, and end"}}),
          .examples = "sluice top\n"
                      "sluice top --once --output json | jq '.queues[] | select(.dlq > 0)'",
          .run = top,
      },
  };
}

}  // namespace sluice::cli
