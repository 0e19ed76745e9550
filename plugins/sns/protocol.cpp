#include "protocol.hpp"

#include <expat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <memory>
#include <utility>

#include "base/text/percent.hpp"
#include "publishing/publishing.hpp"

namespace sns {

namespace {

using publishing::consists_of;

constexpr std::size_t kMaxNameLength = 256;
constexpr std::size_t kMaxRegionLength = 63;

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

namespace {

constexpr std::size_t kMaxDepth = 32;

/// The elements that are open, outermost first.
struct Reader {
  XML_Parser parser = nullptr;
  std::vector<XmlElement> open;
  std::optional<XmlElement> root;
};

Reader& of(void* user) { return *static_cast<Reader*>(user); }

void on_start(void* user, const XML_Char* name, const XML_Char**) {
  Reader& reader = of(user);
  if (reader.open.size() >= kMaxDepth) {
    XML_StopParser(reader.parser, XML_FALSE);
    return;
  }
  reader.open.push_back({name, {}});
}

void on_end(void* user, const XML_Char*) {
  Reader& reader = of(user);
  XmlElement element = std::move(reader.open.back());
  reader.open.pop_back();
  if (reader.open.empty()) {
    reader.root = std::move(element);
  } else {
    reader.open.back().children.push_back(std::move(element));
  }
}

void on_text(void* user, const XML_Char* text, int length) {
  Reader& reader = of(user);
  if (!reader.open.empty()) {
    reader.open.back().text.append(text, static_cast<std::size_t>(length));
  }
}

// No answer of AWS has one, and what it could declare is of no use to us.
void on_document_type(void* user, const XML_Char*, const XML_Char*, const XML_Char*, int) {
  XML_StopParser(of(user).parser, XML_FALSE);
}

struct FreeParser {
  void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
};

}  // namespace

const XmlElement* XmlElement::child(std::string_view wanted) const {
  for (const XmlElement& element : children) {
    if (element.name == wanted) {
      return &element;
    }
  }
  return nullptr;
}

std::string XmlElement::text_of(std::string_view wanted) const {
  const XmlElement* found = child(wanted);
  return found == nullptr ? std::string() : found->text;
}

const XmlElement* XmlElement::find(std::string_view wanted) const {
  if (name == wanted) {
    return this;
  }
  for (const XmlElement& element : children) {
    if (const XmlElement* found = element.find(wanted)) {
      return found;
    }
  }
  return nullptr;
}

std::optional<XmlElement> parse_xml(std::string_view text) {
  const std::unique_ptr<XML_ParserStruct, FreeParser> parser(XML_ParserCreate("UTF-8"));
  if (parser == nullptr || text.size() > INT_MAX) {
    return std::nullopt;
  }
  Reader reader{parser.get(), {}, {}};
  XML_SetUserData(parser.get(), &reader);
  XML_SetElementHandler(parser.get(), &on_start, &on_end);
  XML_SetCharacterDataHandler(parser.get(), &on_text);
  XML_SetStartDoctypeDeclHandler(parser.get(), &on_document_type);
  if (XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE) != XML_STATUS_OK) {
    return std::nullopt;
  }
  return std::move(reader.root);
}

namespace {

template <std::size_t count>
bool among(const std::array<std::string_view, count>& codes, std::string_view code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

bool is_temporary(std::string_view code) {
  constexpr std::array<std::string_view, 13> kCodes = {"Throttled",
                                                       "Throttling",
                                                       "ThrottlingException",
                                                       "ThrottledException",
                                                       "KMSThrottling",
                                                       "KMSThrottlingException",
                                                       "RequestLimitExceeded",
                                                       "TooManyRequestsException",
                                                       "InternalError",
                                                       "InternalFailure",
                                                       "InternalErrorException",
                                                       "ServiceUnavailable",
                                                       "RequestTimeout"};
  return among(kCodes, code);
}

Failure failure_of(std::string code, std::string_view message, int status) {
  constexpr int kTooManyRequests = 429;
  Failure failure{std::move(code), publishing::one_line(message, 500)};
  failure.temporary =
      is_temporary(failure.code) || says_expired(failure.code) || status >= 500 || status == kTooManyRequests;
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

std::optional<std::size_t> place_of(const XmlElement& member, std::size_t count) {
  const std::string id = member.text_of("Id");
  std::size_t place = 0;
  const auto end = std::from_chars(id.data(), id.data() + id.size(), place);
  const bool good = end.ec == std::errc() && end.ptr == id.data() + id.size() && place < count;
  return good ? std::optional(place) : std::nullopt;
}

}  // namespace

bool says_expired(std::string_view code) {
  constexpr std::array<std::string_view, 4> kCodes = {"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId",
                                                      "UnrecognizedClientException"};
  return among(kCodes, code);
}

std::optional<Failure> read_failure(const sluice::dynamo::HttpResult& result) {
  constexpr int kGood = 200;
  if (!result) {
    return failure_of(result.error());
  }
  if (result->status == kGood) {
    return std::nullopt;
  }
  const auto document = parse_xml(result->body);
  const XmlElement* error = document ? document->find("Error") : nullptr;
  if (error == nullptr || error->text_of("Code").empty()) {
    Failure failure = failure_of("HTTP " + std::to_string(result->status), result->body.substr(0, 200), result->status);
    failure.unreachable = true;  // of a proxy, or of whoever else listens there
    return failure;
  }
  return failure_of(error->text_of("Code"), error->text_of("Message"), result->status);
}

BatchAnswer read_batch_answer(const sluice::dynamo::HttpResult& result, std::size_t count) {
  if (auto failure = read_failure(result)) {
    return {BatchResults(count, failure), true};
  }
  const auto document = parse_xml(result->body);
  const XmlElement* batch = document ? document->find("PublishBatchResult") : nullptr;
  const Failure silent{"NoAnswer", "the answer does not tell what became of the message", true};
  BatchAnswer answer{BatchResults(count, silent), batch == nullptr};
  if (batch == nullptr) {
    return answer;
  }
  if (const XmlElement* good = batch->child("Successful")) {
    for (const XmlElement& member : good->children) {
      if (const auto place = place_of(member, count)) {
        answer.results[*place].reset();
      }
    }
  }
  if (const XmlElement* bad = batch->child("Failed")) {
    for (const XmlElement& member : bad->children) {
      if (const auto place = place_of(member, count)) {
        answer.results[*place] = failure_of(member.text_of("Code"), member.text_of("Message"), 0);
      }
    }
  }
  return answer;
}

std::optional<TopicPage> read_topics(std::string_view body) {
  const auto document = parse_xml(body);
  const XmlElement* result = document ? document->find("ListTopicsResult") : nullptr;
  if (result == nullptr) {
    return std::nullopt;
  }
  TopicPage page{{}, result->text_of("NextToken")};
  if (const XmlElement* topics = result->child("Topics")) {
    for (const XmlElement& member : topics->children) {
      page.arns.push_back(member.text_of("TopicArn"));
    }
  }
  return page;
}

std::optional<std::map<std::string, std::string>> read_attributes(std::string_view body) {
  const auto document = parse_xml(body);
  const XmlElement* list = document ? document->find("Attributes") : nullptr;
  if (list == nullptr) {
    return std::nullopt;
  }
  std::map<std::string, std::string> attributes;
  for (const XmlElement& entry : list->children) {
    attributes[entry.text_of("key")] = entry.text_of("value");
  }
  return attributes;
}

}  // namespace sns
