#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace sluice::validate {

/// What is wrong with a plugin, why it matters, and the mend. A value; each text is one line.
struct Finding {
  enum class Level : std::uint8_t { warning, error };

  std::string check;  ///< that it belongs to, such as "outcomes"; empty: by which it was found
  Level level = Level::error;
  std::string what;
  std::string where;  ///< with which input it showed first; empty: with none
  std::string why;
  std::string mend;
};

/// Of a file that no host loads: "WHAT: MEND", as the host says it.
Finding refusal_finding(std::string check, const std::string& why);

/// What became of one check. A value.
struct CheckResult {
  enum class Verdict : std::uint8_t { passed, warned, failed, skipped };

  std::string check;
  std::string handler;  ///< empty: the plugin as a whole
  std::vector<Finding> findings{};
  std::vector<std::string> notes{};               ///< what was tried, or why it was not; no finding
  std::map<std::string, std::int64_t> figures{};  ///< measured, such as "p50_ns"
  bool skipped = false;

  Verdict verdict() const;
  std::size_t count(Finding::Level level) const;
  /// One finding of a kind is enough, with whatever input it shows again.
  void add(Finding finding);
};

std::string_view to_string(CheckResult::Verdict verdict);  // "pass", "warn", "fail", "skip"
std::string_view to_string(Finding::Level level);          // "warning", "error"

/// What a plugin was found to be. A value.
struct Report {
  std::string file;
  std::string name;     ///< of the plugin; empty: it could not be read
  std::string version;  ///< as `name`
  std::uint64_t seed = 0;
  std::vector<CheckResult> checks{};  ///< in the order in which they were made
  Duration took{};

  std::size_t count(Finding::Level level) const;
};

// The lines in which a child tells what it found: fields with tabs between them, each shown with control characters
// escaped, so that a plugin's words can be anything.

std::string told_line(const std::vector<std::string>& fields);
std::vector<std::string> told_fields(std::string_view line);

/// A finding as a line, and back; the line's first field is kFound.
inline constexpr std::string_view kFound = "found";
std::string told_finding(const Finding& finding);
/// Nothing of it is trusted: a line that is no finding is one without texts.
Finding read_finding(const std::vector<std::string>& fields);

}  // namespace sluice::validate
