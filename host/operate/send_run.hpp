#pragma once

#include <boost/icl/closed_interval.hpp>
#include <boost/icl/interval_set.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "host/queue/message.hpp"

/// What is sent: messages made of texts, and which lines of an input, so that a sending can be repeated for those that
/// it did not store.
namespace sluice::operate {

/// Lines of an input, counted from 1, as people write them: "3,51-53,101-". The last range may have no end. A value.
class LineRanges {
 public:
  /// Nothing for a text that is not that, or whose ranges do not rise.
  static std::optional<LineRanges> parse(std::string_view text);

  void add(std::uint64_t line) { ranges_.add(line); }
  /// This line and all behind it.
  void add_from(std::uint64_t line);
  void add(const LineRanges& lines) { ranges_ += lines.ranges_; }

  bool empty() const { return ranges_.empty(); }
  /// How many ranges they are.
  std::size_t count() const { return ranges_.iterative_size(); }
  bool contains(std::uint64_t line) const { return boost::icl::contains(ranges_, line); }
  /// Those of them that come behind this one.
  LineRanges behind(std::uint64_t line) const;
  /// The same lines, or more where that takes more than `most` ranges: the last one then has no end.
  LineRanges at_most(std::size_t most) const;
  std::string text() const;

 private:
  boost::icl::interval_set<std::uint64_t, std::less, boost::icl::closed_interval<std::uint64_t>> ranges_;
};

/// Lines that may have been stored, by the moments of which their ids were made (queue::Sender). Few. A value.
class UnsureLines {
 public:
  void add(const std::string& moment, std::uint64_t line) { by_moment_[moment].add(line); }
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
  std::map<std::string, LineRanges> by_moment_;
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

/// What messages are made from: what all of them share, and a body for each. A value.
struct MessageTemplate {
  queue::NewMessage shared{};  ///< delay, attributes, keys
  std::string dedup_from{};    ///< a JSON pointer into the body; empty: the id is shared's
  std::string unique_from{};   ///< likewise
  std::string content_type{};  ///< what the sender named; empty: by the body

  /// A message of a JSON text: a JSON string becomes text/plain with its characters, anything else application/json as
  /// it is written. The error says what is wrong with the JSON.
  Result<queue::NewMessage> from_json(std::string_view json) const;
  Result<queue::NewMessage> from_text(std::string text) const;
  /// JSON if it is that, else plain text.
  Result<queue::NewMessage> from_json_or_text(std::string_view text) const;
  /// application/json when the name ends in .json and the bytes are JSON, text/plain when they are UTF-8, otherwise
  /// application/octet-stream.
  Result<queue::NewMessage> from_file(const std::string& name, std::string bytes) const;

 private:
  queue::NewMessage make(std::string body, std::string_view by_body) const;
  /// Its keys, where they are taken from the body. The error says what the body lacks.
  Result<queue::NewMessage> keyed(queue::NewMessage message) const;
};

}  // namespace sluice::operate
