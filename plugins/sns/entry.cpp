#include "entry.hpp"

#include <algorithm>

#include "publishing/digest.hpp"
#include "publishing/text.hpp"

namespace sns {
namespace {

constexpr std::size_t kMaxIdLength = 128;
constexpr std::size_t kTypeLength = 6;  // "String"

}  // namespace

std::size_t Entry::size() const {
  std::size_t bytes = body.size();
  for (const auto& [name, value] : attributes) {
    bytes += name.size() + kTypeLength + value.size();
  }
  return bytes;
}

bool is_fifo_id(std::string_view text) {
  return !text.empty() && text.size() <= kMaxIdLength &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

std::variant<Entry, BadEntry> make_entry(const Topic& topic, std::string_view body, std::string_view aggregate_id,
                                         std::string_view unique_id,
                                         std::vector<std::pair<std::string, std::string>> attributes,
                                         const EntryRules& rules) {
  if (body.empty()) {
    return BadEntry{"the message is empty, and SNS takes none that is"};
  }
  if (!publishing::is_utf8(body)) {
    return BadEntry{"the message is not UTF-8, and SNS takes nothing else"};
  }
  Entry entry{std::string(body), {}, {}, std::move(attributes)};
  // What has no value is no attribute to SNS.
  std::erase_if(entry.attributes,
                [](const auto& named) { return named.second.empty() || !publishing::is_utf8(named.second); });
  if (entry.size() > kMaxBytes) {
    return BadEntry{"the message has " + std::to_string(entry.size()) + " bytes with its attributes, and SNS takes " +
                    std::to_string(kMaxBytes)};
  }
  if (topic.is_fifo() && aggregate_id.empty()) {
    return BadEntry{"the topic is FIFO, and the message has neither an aggregate_id nor a group"};
  }
  if (!aggregate_id.empty() && (topic.is_fifo() || rules.group_on_standard)) {
    if (!is_fifo_id(aggregate_id) && !rules.hash_groups) {
      return BadEntry{"\"" + publishing::one_line(aggregate_id) +
                      "\" can be no group: 1 to 128 characters of ASCII without a space; set group_id = \"hash\""};
    }
    entry.group = is_fifo_id(aggregate_id) ? std::string(aggregate_id) : publishing::sha256_hex(aggregate_id);
  }
  if (topic.is_fifo()) {
    entry.deduplication = is_fifo_id(unique_id) ? std::string(unique_id) : publishing::sha256_hex(unique_id);
  }
  return entry;
}

}  // namespace sns
