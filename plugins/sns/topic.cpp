#include "topic.hpp"

#include <algorithm>

#include "publishing/resource.hpp"

namespace sns {
namespace {

constexpr std::size_t kMaxNameLength = 256;
constexpr std::size_t kMaxRegionLength = 63;

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool consists_of(std::string_view text, std::string_view others) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter_or_digit(c) || others.find(c) != std::string_view::npos;
  });
}

}  // namespace

bool is_topic_name(std::string_view text) {
  constexpr std::string_view kFifo = ".fifo";
  if (text.size() > kMaxNameLength) {
    return false;
  }
  if (text.ends_with(kFifo)) {
    text.remove_suffix(kFifo.size());
  }
  return consists_of(text, "-_");
}

std::optional<Topic> parse_topic_arn(std::string_view text) {
  const auto name = publishing::parse_resource_name(text);
  const bool good = name && text.starts_with("arn:") && name->service == "sns" && consists_of(name->partition, "-") &&
                    name->region.size() <= kMaxRegionLength && consists_of(name->region, "-") &&
                    consists_of(name->account, "") && is_topic_name(name->resource);
  return good ? std::optional(Topic{std::string(text), std::string(name->region), std::string(name->resource)})
              : std::nullopt;
}

}  // namespace sns
