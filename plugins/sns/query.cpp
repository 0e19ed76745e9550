#include "query.hpp"

#include "base/text/percent.hpp"

namespace sns {
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
