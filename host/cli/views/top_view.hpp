#pragma once

#include <signal.h>
#include <termios.h>

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/cli/console.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/operate/top_model.hpp"

namespace sluice::cli {

/// Takes the signals that concern a live screen (Ctrl-C, Ctrl-Z, a new size, being told to end) to where they are
/// waited for, for its lifetime. To be made before any thread that could get one instead. At most one at a time.
class ScreenSignals {
 public:
  ScreenSignals();
  ~ScreenSignals();
  ScreenSignals(const ScreenSignals&) = delete;
  ScreenSignals& operator=(const ScreenSignals&) = delete;

  /// Readable when one has come.
  int descriptor() const { return descriptor_; }
  /// The next one that has come; 0: none.
  int take();

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

/// The terminal while a live screen has it: its own page, no echo, keys at once. Whatever ends the program's interest,
/// a key, Ctrl-C, Ctrl-Z or an error, gives it back as it was. Of one thread.
class TerminalScreen {
 public:
  struct Woken {
    std::string bytes;     ///< that were typed
    bool ended = false;    ///< Ctrl-C, SIGTERM, or the terminal is gone
    bool resized = false;  ///< or shown again after Ctrl-Z
  };

  /// Whether both ends are terminals that can move their cursor.
  static bool possible(const Console& console);

  /// `signals` outlive it.
  TerminalScreen(Console& console, ScreenSignals& signals);
  ~TerminalScreen();
  TerminalScreen(const TerminalScreen&) = delete;
  TerminalScreen& operator=(const TerminalScreen&) = delete;

  /// Replaces the picture. False when nobody can see it any more.
  bool show(const std::vector<std::string>& lines);
  /// Waits for a key, a signal, `descriptor` to become readable, or the time; Duration::max() for no limit.
  Woken wait(int descriptor, Duration time);

 private:
  void enter();
  void leave();
  void suspend();
  void take_signals(Woken& woken);

  Console& console_;
  ScreenSignals& signals_;
  termios before_{};
};

/// Makes keys of the bytes that a terminal sends, which cuts them where it likes. Of one thread.
class TopKeys {
 public:
  /// The keys that are whole. The beginning of another is kept.
  std::vector<operate::TopKey> take(std::string_view bytes);
  /// Something is kept that is a key of its own when nothing follows it: Escape.
  bool waits() const { return !kept_.empty(); }
  /// Nothing has followed.
  std::vector<operate::TopKey> give_up();

 private:
  std::string kept_;
};

/// Looks at hosts and queues for `sluice top`, keeps what it has seen in the model, and carries out what its user
/// wants: once, or on a thread of its own, so that keys are obeyed while a store takes its time.
class TopLookout {
 public:
  /// `session` outlives it.
  explicit TopLookout(FleetSession& session);
  ~TopLookout();
  TopLookout(const TopLookout&) = delete;
  TopLookout& operator=(const TopLookout&) = delete;

  /// Looks once at everything; hosts are not asked to tell in detail.
  void look_once() { look(Duration::zero(), {}); }
  /// Looks again and again until it is destroyed.
  void start(Duration interval);

  /// Calls `act` with the model, which nobody else touches meanwhile.
  template <typename Act>
  auto with(Act act) {
    const MutexLock lock(mutex_);
    return act(model_);
  }
  /// Readable when there is something new to show.
  int descriptor() const { return news_; }
  /// Makes it unreadable.
  void take_news();
  /// "12.5 RCU/s, 0.1 WCU/s"; empty where looking costs nothing.
  std::string cost();
  /// Carries out a wish of the user's, or looks at once.
  void ask(operate::TopWish wish);

 private:
  void run(const std::stop_token& stop, Duration interval);
  /// `watched_for`: how long hosts shall tell in detail.
  void look(Duration watched_for, const std::stop_token& stop);
  void look_at_hosts(Duration watched_for);
  void count(const std::string& queue);
  std::vector<std::string> queues();
  void carry_out(const operate::TopWish& wish);
  void tell();
  std::optional<operate::TopWish> next_wish();
  /// Since the last call.
  std::string measured_cost();

  // Fixed after construction.
  FleetSession& session_;
  const int news_;  ///< eventfd

  // Touched only by who looks.
  std::map<std::string, operate::QueueCounter> counters_;
  runtime::DynamoDbCost spent_{};
  SteadyTime spent_at_{};

  Mutex mutex_;
  Condition changed_;
  operate::TopModel model_ SLUICE_GUARDED_BY(mutex_);
  std::deque<operate::TopWish> wishes_ SLUICE_GUARDED_BY(mutex_);
  std::string cost_ SLUICE_GUARDED_BY(mutex_);
  // Last, so that it ends before what it uses.
  std::jthread thread_;
};

/// How a picture is to be drawn. A value.
struct TopFrame {
  std::size_t columns = 80;
  std::size_t rows = 24;  ///< 0: as many as it takes, and nothing about keys
  bool colours = false;
  WallTime now{};
  std::string every;  ///< "2s"; empty: one picture
  std::string cost;   ///< what looking costs; empty: nothing
};

/// The picture: lines that fit into the frame, no more than it has rows. A pure function.
std::vector<std::string> draw_top(const operate::TopModel& model, const TopFrame& frame);

/// The beginning of a line of at most so many columns, whole characters and colours.
std::string fit_line(const std::string& line, std::size_t columns);

}  // namespace sluice::cli
