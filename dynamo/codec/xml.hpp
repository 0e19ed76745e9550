#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Reads the XML in which AWS's query services, STS and SNS, answer. Looks for elements by their tags, which have no
/// attributes there, and for nothing else: what is no XML simply has none of them. Pure; what is a view borrows the
/// text.
namespace sluice::dynamo {

/// What stands between <tag> and </tag>, markup included; the first one.
std::optional<std::string_view> xml_inside(std::string_view xml, const std::string& tag);
/// The same of each of them.
std::vector<std::string_view> xml_each(std::string_view xml, const std::string& tag);
/// The text of the first one, trimmed; nothing where it has elements in it, or an entity that is none of XML's own.
std::optional<std::string> xml_text(std::string_view xml, const std::string& tag);

}  // namespace sluice::dynamo
