#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

/// Tells JSON from other text.
namespace sluice::queue {

/// Objects and arrays within one another; deeper JSON is an error.
inline constexpr std::size_t kJsonDepth = 128;

/// Accepts exactly one value, UTF-8, nested at most kJsonDepth deep. Reusable, so that a line costs no allocation. For
/// one thread at a time.
class JsonChecker {
 public:
  JsonChecker();
  ~JsonChecker();
  JsonChecker(const JsonChecker&) = delete;
  JsonChecker& operator=(const JsonChecker&) = delete;

  /// Nothing when the text is JSON; otherwise what is wrong and where, such as "syntax error at character 7".
  std::optional<std::string> problem(std::string_view text);

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

/// The same for one text alone.
std::optional<std::string> json_problem(std::string_view text);

constexpr bool is_json_space(char byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

/// `text` without the spaces around it.
std::string_view json_trimmed(std::string_view text);

}  // namespace sluice::queue
