#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

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

}  // namespace sluice::cli
