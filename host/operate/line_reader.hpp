#pragma once

#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace sluice::operate {

/// Reads lines from a descriptor in constant memory. One thread.
class LineReader {
 public:
  static constexpr std::size_t kMaxLine = 16UL * 1024 * 1024;

  enum class Status {
    line,      ///< a line, without its end
    end,       ///< no more input
    stopped,   ///< the stop descriptor became readable
    too_long,  ///< longer than the limit; the next call passes over the rest of it
    failed,    ///< the system refused; errno says why
  };

  /// `stop`: a descriptor that ends a wait for input when it becomes readable. Neither is closed here.
  LineReader(int input, int stop, std::size_t max_line = kMaxLine) : input_(input), stop_(stop), max_line_(max_line) {}

  /// The next line; blocks for input. The view is valid until the next call.
  Status next(std::string_view& line);

  /// True when `next` has a whole line, or the end, without waiting longer than `patience` for each piece of it.
  bool ready(Duration patience);

 private:
  enum class Wait { readable, paused, stopped };

  /// Whether the next line is whole; `scanned_` is its end then.
  bool line_buffered();
  bool too_long() const { return scanned_ - begin_ > max_line_; }
  Wait wait(int milliseconds) const;
  /// Makes room and reads once.
  void fill();

  const int input_;
  const int stop_;
  const std::size_t max_line_;
  std::string buffer_;
  std::size_t begin_ = 0;    // of what has not been given out
  std::size_t scanned_ = 0;  // up to here there is no line break
  bool passing_ = false;     // over the rest of a line that is too long
  bool ended_ = false;
  int failure_ = 0;
};

}  // namespace sluice::operate
