#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/random.hpp"
#include "host/cli/line_ranges.hpp"

namespace sluice::cli {

/// One sending of an input, which may be repeated for the lines that it did not store. A line has the same message id
/// in each repetition, so that one that was stored after all is not stored twice. A value.
class SendRun {
 public:
  /// A new one, of all lines.
  static SendRun begin(Random& random);
  /// From what `token` gave; nothing for a text that is none.
  static std::optional<SendRun> resume(std::string_view token);

  bool wants(std::uint64_t line) const { return lines_.contains(line); }
  /// A UUID (version 8) out of the run and the line.
  std::string id(std::uint64_t line) const;
  /// With which the same input is sent again for these lines alone; for a great many scattered ones the rest of the
  /// input is among them.
  std::string token(const LineRanges& missing) const;

 private:
  SendRun(std::string name, LineRanges lines) : name_(std::move(name)), lines_(std::move(lines)) {}

  std::string name_;  ///< the UUID's first four groups
  LineRanges lines_;
};

}  // namespace sluice::cli
