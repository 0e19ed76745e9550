#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.hpp"

/// Which lines of an input are sent, so that a sending can be repeated for those that it did not store.
namespace sluice::operate {

/// Lines of an input, counted from 1, as people write them: "3,51-53,101-". The last range may have no end. A value.
class LineRanges {
 public:
  /// Nothing for a text that is not that, or whose ranges do not rise.
  static std::optional<LineRanges> parse(std::string_view text);

  /// A line behind all that are in it.
  void add(std::uint64_t line);
  /// This line and all behind it.
  void add_from(std::uint64_t line);

  /// Lines behind all that are in it.
  void add(const LineRanges& lines);

  bool empty() const { return ranges_.empty(); }
  /// How many ranges they are.
  std::size_t count() const { return ranges_.size(); }
  bool contains(std::uint64_t line) const;
  /// Those of them that come behind this one.
  LineRanges behind(std::uint64_t line) const;
  /// The same lines, or more where that takes more than `most` ranges: the last one then has no end.
  LineRanges at_most(std::size_t most) const;
  std::string text() const;

 private:
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  std::vector<Range> ranges_;  // rising, never touching
};

/// Lines that may have been stored, by the moments of which their ids were made (queue::Sender). Few. A value.
class UnsureLines {
 public:
  /// A line behind all that are in it by that moment.
  void add(const std::string& moment, std::uint64_t line);
  void add(const std::string& moment, const LineRanges& lines);
  /// Empty for a line that is not among them.
  std::string moment_of(std::uint64_t line) const;
  /// How many ranges they are.
  std::size_t count() const;
  /// Those of them that come behind this one.
  UnsureLines behind(std::uint64_t line) const;
  void add(const UnsureLines& lines);
  /// "@MOMENT:LINES" of each.
  std::string text() const;
  /// Nothing for what is no such text; there is one for no lines, too.
  static std::optional<UnsureLines> parse(std::string_view text);

 private:
  std::vector<std::pair<std::string, LineRanges>> by_moment_;
};

/// One sending of an input, which may be repeated for the lines that it did not store. A line that may have been stored
/// has the same message id in the repetition, so that it is not stored twice. A value.
class SendRun {
 public:
  /// More ranges of lines than a command line holds without harm.
  static constexpr std::size_t kMostRanges = 1000;

  /// A new one, of all lines.
  static SendRun begin(Random& random);
  /// From what `token` gave; nothing for a text that is none.
  static std::optional<SendRun> resume(std::string_view token);

  const std::string& name() const { return name_; }
  bool repeats() const { return repeats_; }
  bool wants(std::uint64_t line) const { return lines_.contains(line); }
  /// What it wants behind that line.
  LineRanges rest(std::uint64_t line) const { return lines_.behind(line); }
  /// What an earlier one of this input may have stored, where ids are made of moments.
  const UnsureLines& unsure() const { return unsure_; }
  /// A UUID (version 8) out of the run and the line.
  std::string id(std::uint64_t line) const;
  /// With which the same input is sent again for these lines alone.
  std::string token(const LineRanges& missing, const UnsureLines& unsure) const;

 private:
  SendRun(std::string name, LineRanges lines, UnsureLines unsure, bool repeats)
      : name_(std::move(name)), lines_(std::move(lines)), unsure_(std::move(unsure)), repeats_(repeats) {}

  std::string name_;  ///< the UUID's first four groups
  LineRanges lines_;
  UnsureLines unsure_;
  bool repeats_;
};

}  // namespace sluice::operate
