#include "protocol.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text/number.hpp"
#include "base/text/percent.hpp"
#include "base/text/utf8.hpp"
#include "dynamo/codec/responses.hpp"
#include "dynamo/codec/xml.hpp"
#include "publishing/publishing.hpp"

namespace sns {

namespace {

using publishing::consists_of;
using sluice::dynamo::xml_each;
using sluice::dynamo::xml_inside;
using sluice::dynamo::xml_text;

constexpr std::size_t kMaxNameLength = 256;

constexpr std::size_t kMaxIdLength = 128;
constexpr std::size_t kTypeLength = 6;  // "String"

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

bool is_temporary(std::string_view code) {
  constexpr std::array<std::string_view, 6> kCodes{"*Throttl*", "RequestLimitExceeded", "TooManyRequests*",
                                                   "Internal*", "ServiceUnavailable",   "RequestTimeout"};
  return publishing::matches_any(kCodes, code);
}

Failure failure_of(const std::string& code, std::string_view message, int status) {
  constexpr int kTooManyRequests = 429;
  Failure failure{publishing::one_line(code), publishing::one_line(message, 500)};
  failure.temporary = is_temporary(failure.code) || sluice::dynamo::says_expired(failure.code) || status >= 500 ||
                      status == kTooManyRequests;
  return failure;
}

/// No answer came. Whether the request has taken effect nobody knows; at least once is what is promised, and FIFO
/// topics store a message once.
Failure failure_of(const sluice::dynamo::Error& error) {
  using sluice::dynamo::ErrorKind;
  if (error.kind == ErrorKind::no_credentials || error.kind == ErrorKind::validation) {
    return {error.kind == ErrorKind::no_credentials ? "NoCredentials" : "BadRequest", error.message, false, true};
  }
  return {error.kind == ErrorKind::timeout ? "Timeout" : "Unreachable", error.message,
          error.kind != ErrorKind::cancelled, true};
}

/// Of an entry of an answer, by the name that it was sent under.
std::optional<std::size_t> place_of(std::string_view member, std::size_t count) {
  const auto place = sluice::parse_number<std::size_t>(xml_text(member, "Id").value_or(""));
  return place < count ? place : std::nullopt;
}

}  // namespace

bool is_region(std::string_view text) {
  constexpr std::size_t kMaxLength = 63;
  const bool small = std::none_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  return small && consists_of(text, "-") && text.size() <= kMaxLength;
}

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
                    is_region(name->region) && consists_of(name->account, "") && is_topic_name(name->resource);
  return good ? std::optional(Topic{std::string(text), std::string(name->region), std::string(name->resource)})
              : std::nullopt;
}

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
  if (!sluice::is_utf8(body)) {
    return BadEntry{"the message is not UTF-8, and SNS takes nothing else"};
  }
  Entry entry{std::string(body), {}, {}, std::move(attributes)};
  // What has no value is no attribute to SNS.
  std::erase_if(entry.attributes,
                [](const auto& named) { return named.second.empty() || !sluice::is_utf8(named.second); });
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

std::optional<Failure> read_failure(const sluice::dynamo::HttpResult& result) {
  constexpr int kGood = 200;
  if (!result) {
    return failure_of(result.error());
  }
  if (result->status == kGood) {
    return std::nullopt;
  }
  const std::string_view error = xml_inside(result->body, "Error").value_or("");
  const std::string code = xml_text(error, "Code").value_or("");
  if (code.empty()) {
    Failure failure = failure_of("HTTP " + std::to_string(result->status), result->body.substr(0, 200), result->status);
    failure.unreachable = true;  // of a proxy, or of whoever else listens there
    return failure;
  }
  return failure_of(code, xml_text(error, "Message").value_or(""), result->status);
}

BatchAnswer read_batch_answer(const sluice::dynamo::HttpResult& result, std::size_t count) {
  if (auto failure = read_failure(result)) {
    return {BatchResults(count, failure), true};
  }
  const auto batch = xml_inside(result->body, "PublishBatchResult");
  const Failure silent{"NoAnswer", "the answer does not tell what became of the message", true};
  BatchAnswer answer{BatchResults(count, silent), !batch};
  const auto members = [&batch](const char* list) {
    return xml_each(xml_inside(batch.value_or(""), list).value_or(""), "member");
  };
  for (const std::string_view good : members("Successful")) {
    if (const auto place = place_of(good, count)) {
      answer.results[*place].reset();
    }
  }
  for (const std::string_view bad : members("Failed")) {
    if (const auto place = place_of(bad, count)) {
      answer.results[*place] = failure_of(xml_text(bad, "Code").value_or(""), xml_text(bad, "Message").value_or(""), 0);
    }
  }
  return answer;
}

std::optional<TopicPage> read_topics(std::string_view body) {
  const auto result = xml_inside(body, "ListTopicsResult");
  if (!result) {
    return std::nullopt;
  }
  TopicPage page{{}, xml_text(*result, "NextToken").value_or("")};
  for (const std::string_view member : xml_each(*result, "member")) {
    page.arns.push_back(xml_text(member, "TopicArn").value_or(""));
  }
  return page;
}

bool tells_attributes(std::string_view body) { return xml_inside(body, "Attributes").has_value(); }

}  // namespace sns
