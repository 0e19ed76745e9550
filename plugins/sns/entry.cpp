#include "entry.hpp"

#include <algorithm>

#include "base/text/percent.hpp"
#include "publishing/routes.hpp"
#include "publishing/text.hpp"

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

namespace {

std::string form(std::string_view action) {
  std::string text = "Action=";
  text += action;
  return text + "&Version=2010-03-31";
}

void add(std::string& text, const std::string& name, std::string_view value) {
  text += '&';
  text += name;
  text += '=';
  text += sluice::percent_encoded(value);
}

}  // namespace

std::string publish_batch_form(std::string_view topic_arn, const std::vector<const Entry*>& entries) {
  std::string text = form("PublishBatch");
  add(text, "TopicArn", topic_arn);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = *entries[i];
    const std::string member = "PublishBatchRequestEntries.member." + std::to_string(i + 1) + ".";
    add(text, member + "Id", std::to_string(i));
    add(text, member + "Message", entry.body);
    if (!entry.group.empty()) {
      add(text, member + "MessageGroupId", entry.group);
    }
    if (!entry.deduplication.empty()) {
      add(text, member + "MessageDeduplicationId", entry.deduplication);
    }
    for (std::size_t k = 0; k < entry.attributes.size(); ++k) {
      const std::string attribute = member + "MessageAttributes.entry." + std::to_string(k + 1) + ".";
      add(text, attribute + "Name", entry.attributes[k].first);
      add(text, attribute + "Value.DataType", "String");
      add(text, attribute + "Value.StringValue", entry.attributes[k].second);
    }
  }
  return text;
}

std::string list_topics_form(std::string_view token) {
  std::string text = form("ListTopics");
  if (!token.empty()) {
    add(text, "NextToken", token);
  }
  return text;
}

std::string topic_attributes_form(std::string_view topic_arn) {
  std::string text = form("GetTopicAttributes");
  add(text, "TopicArn", topic_arn);
  return text;
}

}  // namespace sns
