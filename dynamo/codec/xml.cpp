#include "dynamo/codec/xml.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/ranges.hpp"
#include "base/text/utf8.hpp"
#include "dynamo/text.hpp"

namespace sluice::dynamo {
namespace {

/// Takes "&amp;" or "&#xe9;" off the front, and appends what it stands for; false: it is nothing like that.
bool take_entity(std::string_view& text, std::string& out) {
  constexpr std::pair<std::string_view, char> kNamed[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
  if (const auto* named = find_where(kNamed, [&](const auto& known) { return text.starts_with(known.first); })) {
    out += named->second;
    text.remove_prefix(named->first.size());
    return true;
  }
  const std::string_view entity = text.substr(0, text.find(';'));
  const bool hexadecimal = entity.starts_with("&#x");
  const std::string_view digits = entity.substr(std::min<std::size_t>(hexadecimal ? 3 : 2, entity.size()));
  unsigned point = 0;
  const auto [rest, failed] =
      std::from_chars(digits.data(), digits.data() + digits.size(), point, hexadecimal ? 16 : 10);
  const bool character = point > 0 && point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
  if (!entity.starts_with("&#") || entity.size() == text.size() || failed != std::errc() ||
      rest != digits.data() + digits.size() || !character) {
    return false;
  }
  append_utf8(out, point);
  text.remove_prefix(entity.size() + 1);
  return true;
}

}  // namespace

std::optional<std::string_view> xml_inside(std::string_view xml, const std::string& tag) {
  const std::string open = "<" + tag + ">";
  const auto start = xml.find(open);
  if (start == std::string_view::npos) {
    return std::nullopt;
  }
  const auto begin = start + open.size();
  const auto end = xml.find("</" + tag + ">", begin);
  return end == std::string_view::npos ? std::nullopt : std::optional(xml.substr(begin, end - begin));
}

std::vector<std::string_view> xml_each(std::string_view xml, const std::string& tag) {
  std::vector<std::string_view> all;
  while (const auto content = xml_inside(xml, tag)) {
    all.push_back(*content);
    xml.remove_prefix(static_cast<std::size_t>(content->data() + content->size() - xml.data()));
  }
  return all;
}

std::optional<std::string> xml_text(std::string_view xml, const std::string& tag) {
  const auto content = xml_inside(xml, tag);
  if (!content || content->find('<') != std::string_view::npos) {
    return std::nullopt;
  }
  std::string out;
  for (std::string_view text = trim(*content); !text.empty();) {
    if (text.front() != '&') {
      out += text.front();
      text.remove_prefix(1);
    } else if (!take_entity(text, out)) {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace sluice::dynamo
