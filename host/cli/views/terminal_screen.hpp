#pragma once

#include <signal.h>
#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "host/cli/console.hpp"

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
  struct Size {
    std::size_t columns = 80;
    std::size_t rows = 24;
  };
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

  Size size() const;
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

}  // namespace sluice::cli
