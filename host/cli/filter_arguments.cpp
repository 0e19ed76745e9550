#include "host/cli/filter_arguments.hpp"

#include <algorithm>

#include "base/text/utf8.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kMaxShownColumns = 100;

/// The text with a caret below the place, where both fit on a line.
Exit syntax_error(const std::string& text, const operate::FilterError& error) {
  std::vector<std::string> lines{"--where, column " + std::to_string(error.column()) + ": " + error.message()};
  const bool one_line = std::none_of(text.begin(), text.end(), [](char byte) { return byte >= 0 && byte < ' '; });
  if (one_line && display_width(text) <= kMaxShownColumns) {
    std::size_t bytes = 0;
    for (std::size_t column = 0; bytes < text.size(); ++bytes) {
      column += continues_utf8(text[bytes]) ? 0 : 1;
      if (column == error.column()) {
        break;
      }
    }
    lines.push_back("  " + text);
    lines.push_back("  " + std::string(display_width(text.substr(0, bytes)), ' ') + "^");
  }
  return {kExitUsage, std::move(lines)};
}

}  // namespace

std::vector<Flag> joined(std::vector<Flag> first, const std::vector<Flag>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<Flag> filter_flags() {
  return {{.name = "where",
           .value = "FILTER",
           .help = "only messages that match, such as 'receive_count > 3 and data.type = \"invoice\"'"},
          {.name = "older-than", .value = "TIME", .help = "only those created longer ago than that, such as 1h"},
          {.name = "error",
           .value = "CAUSE",
           .help = "only those that failed for it: a fingerprint that `sluice dlq` shows, or such an error's text"},
          {.name = "error-like", .value = "TEXT", .help = "only those whose last error holds TEXT; * is any text"}};
}

OrExit<operate::Filter> parse_filter(const Arguments& arguments) {
  operate::Filter filter;
  if (arguments.has("where")) {
    const std::string text = arguments.get("where");
    auto parsed = operate::Filter::parse(text);
    if (parsed.has_error()) {
      return syntax_error(text, parsed.error());
    }
    filter = std::move(*parsed);
  }
  if (arguments.has("older-than")) {
    SLUICE_TRY(age, arguments.duration("older-than", Duration{}));
    filter = filter.also(operate::Filter::older_than(*age));
  }
  if (arguments.has("error")) {
    if (arguments.get("error").empty()) {
      return Exit::usage("--error is empty; `sluice dlq` shows the fingerprints of what lies there");
    }
    filter = filter.also(operate::Filter::error_of(arguments.get("error")));
  }
  if (arguments.has("error-like")) {
    if (arguments.get("error-like").empty()) {
      return Exit::usage("--error-like is empty, and every error holds that; write --error-like '*' for any error");
    }
    filter = filter.also(operate::Filter::error_like(arguments.get("error-like")));
  }
  return filter;
}

}  // namespace sluice::cli
