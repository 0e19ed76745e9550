#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace sluice::cli::convert {

struct YamlMember;

/// A node of a YAML document: nothing, a scalar, a list or a mapping. A value.
struct YamlNode {
  enum class Kind { nothing, scalar, list, mapping };
  Kind kind = Kind::nothing;
  std::uint32_t line = 0;  ///< from 1
  std::string text;        ///< of a scalar
  std::vector<YamlNode> items;
  std::vector<YamlMember> members;  ///< in the order of the text

  /// The member of that name; null when there is none.
  const YamlNode* find(const std::string& key) const;
};

struct YamlMember {
  std::string key;
  YamlNode value;
};

struct YamlError {
  std::uint32_t line = 0;
  std::string what;
};

/// Reads the first document of a text, aliases and merge keys resolved. Errors name lines and never what stands there.
/// The one boundary of yaml-cpp.
std::variant<YamlNode, YamlError> parse_yaml(const std::string& text);

}  // namespace sluice::cli::convert
