#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sns {

/// An element of a small XML document. A value.
struct XmlElement {
  std::string name;
  std::string text;  ///< what stands in it outside of its children
  std::vector<XmlElement> children{};

  /// The first child of that name, or null.
  const XmlElement* child(std::string_view wanted) const;
  /// The text of that child; empty when there is none.
  std::string text_of(std::string_view wanted) const;
  /// The first element of that name in the whole tree, in the order of the document, or null.
  const XmlElement* find(std::string_view wanted) const;
};

/// Nothing for what is not well-formed, has a document type, or is nested deeper than 32. Pure.
std::optional<XmlElement> parse_xml(std::string_view text);

}  // namespace sns
