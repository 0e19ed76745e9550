#pragma once

#include <atomic>
#include <boost/core/noncopyable.hpp>
#include <csignal>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace sluice::cli {

/// How a command shows what it found.
enum class Output { json, text };

/// What text is written on. A value.
struct Screen {
  bool colours = false;     ///< it shows them
  std::size_t columns = 0;  ///< of a terminal, so that text is made to fit; 0: text is as wide as it is
};

/// What a command reads from and writes to: data on standard output, everything else on standard error. One thread.
///
/// Output is buffered; what cannot be written is remembered rather than reported by each call: a command that writes
/// much asks `writable()` now and then, and whoever runs it looks at the end.
class Console : boost::noncopyable {
 public:
  /// What is found is shown so, until it is said otherwise. Whoever runs a command says it before.
  void show_as(Output output) { output_ = output; }
  bool shows_json() const { return output_ == Output::json; }
  bool shows_text() const { return output_ == Output::text; }
  /// Text is not made to fit into the terminal.
  void show_wide(bool wide) { wide_ = wide; }

  void out(std::string_view text);
  /// Hands everything to the system.
  void flush();
  /// False once standard output failed, or while the flag of `drop_output_while` is set; further output is dropped.
  bool writable() const { return failure_ == 0 && (dropping_ == nullptr || !*dropping_); }
  /// For who runs one command after the other: the flag, which must outlive the console, ends a command's output.
  void drop_output_while(const std::atomic<bool>& flag) { dropping_ = &flag; }
  /// errno of that failure; EPIPE when the reader has gone; 0 without one.
  int output_failure() const { return failure_; }

  /// One line on standard error, a warning wrapped where that is a terminal; control characters are shown escaped.
  void note(std::string_view line);
  /// Text of several lines on standard error; control characters but line breaks and tabs are shown escaped.
  void error_text(std::string_view text);
  /// Puts a line over the last one if standard error is a terminal, as much of it as fits, and is nothing otherwise.
  void progress(std::string_view line);
  /// Takes the progress line away, if there is one: what follows says it. Thread-safe.
  static void end_progress();

  /// A yes or no on the terminal; false for anything but y or yes.
  bool confirm(std::string_view question);
  /// True when somebody can be asked: input and standard error are terminals.
  bool interactive() const;
  bool error_is_terminal() const;
  bool output_is_terminal() const;
  /// True when output goes to a terminal whose user has not turned colours off (NO_COLOR, TERM=dumb).
  bool output_has_colour() const;
  /// What standard output is: a terminal has its columns, a pipe and a file have none.
  Screen screen() const;

 private:
  std::string buffer_;
  Output output_ = Output::text;
  bool wide_ = false;
  int failure_ = 0;
  const std::atomic<bool>* dropping_ = nullptr;
};

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};
/// Of the terminal that the descriptor is; the usual one where it does not say.
TerminalSize terminal_size(int descriptor);

/// Handles a signal in another way for its lifetime.
class SignalAction : boost::noncopyable {
 public:
  SignalAction(int signal, void (*handler)(int), int flags = 0);
  ~SignalAction() { ::sigaction(signal_, &before_, nullptr); }

 private:
  const int signal_;
  struct sigaction before_ {};
};

/// Turns SIGINT and SIGTERM into a flag for its lifetime, so that a bulk command ends between two batches. A second
/// signal ends the process as usual. At most one at a time.
class InterruptFlag : boost::noncopyable {
 public:
  /// `others`: what is to be taken beside them, by `take`, as often as it comes.
  explicit InterruptFlag(std::initializer_list<int> others = {});
  ~InterruptFlag();

  bool raised() const;
  /// Waits so long; false at once when the flag is raised.
  bool wait(Duration time) const;
  /// Whether that signal has come since this was asked last.
  bool take(int signal) const;
  /// Becomes readable when a signal comes, for poll(2), and stays so until `hush`.
  int descriptor() const;
  void hush() const;

 private:
  std::deque<SignalAction> actions_;
};

}  // namespace sluice::cli
