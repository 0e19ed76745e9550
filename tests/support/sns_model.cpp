#include "tests/support/sns_model.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "base/timestamp.hpp"
#include "dynamo/signing/signer.hpp"

namespace sluice::test {
namespace {

constexpr std::size_t kMaxBytes = 262144;

std::string header_of(const std::string& head, const std::string& name) {
  std::string lower = head;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::size_t at = lower.find("\r\n" + name + ": ");
  if (at == std::string::npos) {
    return {};
  }
  const std::size_t begin = at + name.size() + 4;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

/// What stands behind "name=" up to a comma.
std::string part_of(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name + "=");
  const std::size_t begin = at == std::string::npos ? text.size() : at + name.size() + 1;
  return text.substr(begin, text.find(',', begin) - begin);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::map<std::string, std::string> form_of(const std::string& body) {
  std::map<std::string, std::string> form;
  for (const std::string& field : split(body, '&')) {
    const std::size_t equals = field.find('=');
    form[decoded(field.substr(0, equals))] = equals == std::string::npos ? "" : decoded(field.substr(equals + 1));
  }
  return form;
}

std::string field(const std::map<std::string, std::string>& form, const std::string& name) {
  const auto found = form.find(name);
  return found == form.end() ? "" : found->second;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return out;
}

bool is_fifo_id(const std::string& text) {
  return !text.empty() && text.size() <= 128 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

WallTime now_with(int seconds_ahead) {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()) + std::chrono::seconds(seconds_ahead);
}

}  // namespace

std::string SnsModel::answer(const std::string& head, const std::string& body) {
  const std::lock_guard lock(mutex_);
  const Form form = form_of(body);
  ++requests_[field(form, "Action")];
  if (const auto fault = planned_fault()) {
    return fault->code.empty() ? http(fault->status, "<html>a proxy</html>") : refuse(*fault);
  }
  if (const auto refusal = check_signature(head, body)) {
    return refuse(*refusal);
  }
  return dispatch(form, split(part_of(header_of(head, "authorization"), "Credential"), '/').at(2));
}

std::optional<SnsModel::Refusal> SnsModel::planned_fault() {
  if (failures_left_ == 0) {
    return std::nullopt;
  }
  --failures_left_;
  return failure_;
}

std::optional<SnsModel::Refusal> SnsModel::check_signature(const std::string& head, const std::string& body) const {
  const std::string authorization = header_of(head, "authorization");
  const auto scope = split(part_of(authorization, "Credential"), '/');
  std::string stamp = header_of(head, "x-amz-date");
  if (scope.size() != 5 || scope[3] != "sns" || stamp.size() != 16) {
    return Refusal{403, "IncompleteSignature", "no signature for SNS"};
  }
  if (scope[0] != key_) {
    return Refusal{
        403, scope[0] == kKey ? "ExpiredToken" : "InvalidClientTokenId",
        "The security token included in the request is " + std::string(scope[0] == kKey ? "expired" : "invalid")};
  }
  const auto time = parse_timestamp(stamp.substr(0, 4) + "-" + stamp.substr(4, 2) + "-" + stamp.substr(6, 5) + ":" +
                                    stamp.substr(11, 2) + ":" + stamp.substr(13, 3));
  dynamo::Headers headers;
  for (const std::string& name : split(part_of(authorization, "SignedHeaders"), ';')) {
    if (name != "x-amz-date" && name != "x-amz-security-token") {
      headers.emplace_back(name, header_of(head, name));
    }
  }
  const dynamo::Signer signer(dynamo::SigningOptions{.region = scope[2], .service = "sns"});
  const std::string path = split(head, ' ').at(1);
  const auto refused = signer.sign(
      dynamo::SignableRequest{.path = path, .headers = headers, .body = body},
      {.access_key_id = key_, .secret_access_key = kSecret, .session_token = header_of(head, "x-amz-security-token")},
      time.value_or(WallTime()));
  if (refused || headers.back().second != authorization) {
    return Refusal{403, "SignatureDoesNotMatch", "The request signature we calculated does not match"};
  }
  if (std::chrono::abs(*time - now_with(seconds_ahead_)) > std::chrono::minutes(15)) {
    return Refusal{403, "SignatureDoesNotMatch", "Signature expired: " + stamp + " is now earlier than allowed"};
  }
  return std::nullopt;
}

std::string SnsModel::dispatch(const Form& form, const std::string& region) {
  if (field(form, "Version") != "2010-03-31") {
    return refuse({400, "InvalidParameter", "Invalid parameter: Version"});
  }
  const std::string action = field(form, "Action");
  if (action == "PublishBatch") {
    return publish_batch(form, region);
  }
  return action == "ListTopics"           ? list_topics(form, region)
         : action == "GetTopicAttributes" ? topic_attributes(form)
                                          : refuse({400, "InvalidAction", action});
}

std::string SnsModel::publish_batch(const Form& form, const std::string& region) {
  const std::string topic = field(form, "TopicArn");
  if (topics_.count(topic) == 0) {
    return refuse({404, "NotFound", "Topic does not exist"});
  }
  if (split(topic, ':').at(3) != region) {
    return refuse({400, "InvalidParameter", "Invalid parameter: TopicArn Reason: of another region"});
  }
  std::size_t count = 0;
  std::size_t bytes = 0;
  const auto member = [](std::size_t i) { return "PublishBatchRequestEntries.member." + std::to_string(i) + "."; };
  while (form.count(member(count + 1) + "Id") > 0) {
    ++count;
  }
  for (const auto& [name, value] : form) {
    bytes += name.ends_with(".Message") || name.find(".MessageAttributes.") != std::string::npos ? value.size() : 0;
    for (const auto& [text, code] : refused_batches_) {
      if (name.ends_with(".Message") && value.find(text) != std::string::npos) {
        return refuse({400, code, "an entry brings its batch down: " + text});
      }
    }
  }
  if (count == 0 || count > 10 || bytes > kMaxBytes) {
    return refuse({400,
                   count == 0   ? "EmptyBatchRequest"
                   : count > 10 ? "TooManyEntriesInBatchRequest"
                                : "BatchRequestTooLong",
                   std::to_string(count) + " entries, " + std::to_string(bytes) + " bytes"});
  }
  batch_sizes_.push_back(count);
  std::string good;
  std::string bad;
  for (std::size_t i = 1; i <= count; ++i) {
    const std::string id = "<Id>" + field(form, member(i) + "Id") + "</Id>";
    if (const auto refusal = take_entry(form, member(i), topic)) {
      bad += "<member>" + id + "<Code>" + refusal->code + "</Code><Message>" + escaped(refusal->message) +
             "</Message><SenderFault>" + (refusal->status < 500 ? "true" : "false") + "</SenderFault></member>";
    } else {
      good += "<member>" + id + "<MessageId>" + std::to_string(messages_.size()) + "</MessageId></member>";
    }
  }
  return http(200,
              "<PublishBatchResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><PublishBatchResult><Failed>" +
                  bad + "</Failed><Successful>" + good +
                  "</Successful></PublishBatchResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>"
                  "</PublishBatchResponse>");
}

std::optional<SnsModel::Refusal> SnsModel::take_entry(const Form& form, const std::string& member,
                                                      const std::string& topic) {
  PublishedMessage message{topic,
                           field(form, member + "Message"),
                           field(form, member + "MessageGroupId"),
                           field(form, member + "MessageDeduplicationId"),
                           {}};
  for (int i = 1; form.count(member + "MessageAttributes.entry." + std::to_string(i) + ".Name") > 0; ++i) {
    const std::string attribute = member + "MessageAttributes.entry." + std::to_string(i) + ".";
    const std::string value = field(form, attribute + "Value.StringValue");
    if (value.empty() || field(form, attribute + "Value.DataType") != "String") {
      return Refusal{400, "InvalidParameterValue", "an attribute has no value"};
    }
    message.attributes[field(form, attribute + "Name")] = value;
  }
  for (EntryFault& fault : entry_faults_) {
    if (fault.left > 0 && message.body.find(fault.text) != std::string::npos) {
      --fault.left;
      return Refusal{fault.code == "InternalError" ? 500 : 400, fault.code, "as the test <wants> it"};
    }
  }
  const bool fifo = topic.ends_with(".fifo");
  if (message.body.empty() || (fifo && (!is_fifo_id(message.group) || !is_fifo_id(message.deduplication)))) {
    return Refusal{400, "InvalidParameter", "Invalid parameter: the message, its group or its deduplication id"};
  }
  if (!fifo || deduplicated_.insert(topic + " " + message.deduplication).second) {
    messages_.push_back(std::move(message));
  }
  return std::nullopt;
}

std::string SnsModel::list_topics(const Form& form, const std::string& region) {
  const std::string token = field(form, "NextToken");
  std::string members;
  std::string next;
  std::size_t count = 0;
  for (const auto& [arn, readable] : topics_) {
    if (split(arn, ':').at(3) != region || arn <= token) {
      continue;
    }
    if (count++ == page_size_) {
      break;
    }
    members += "<member><TopicArn>" + arn + "</TopicArn></member>";
    next = arn;
  }
  return http(200, "<ListTopicsResponse><ListTopicsResult><Topics>" + members + "</Topics>" +
                       (count > page_size_ ? "<NextToken>" + next + "</NextToken>" : "") +
                       "</ListTopicsResult></ListTopicsResponse>");
}

std::string SnsModel::topic_attributes(const Form& form) {
  const auto found = topics_.find(field(form, "TopicArn"));
  if (found == topics_.end()) {
    return refuse({404, "NotFound", "Topic does not exist"});
  }
  if (!found->second) {
    return refuse({403, "AuthorizationError", "is not authorized to perform: SNS:GetTopicAttributes"});
  }
  return http(
      200, "<GetTopicAttributesResponse><GetTopicAttributesResult><Attributes><entry><key>TopicArn</key><value>" +
               found->first + "</value></entry></Attributes></GetTopicAttributesResult></GetTopicAttributesResponse>");
}

std::string SnsModel::refuse(const Refusal& refusal) const {
  return http(refusal.status,
              "<ErrorResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><Error><Type>Sender</Type><Code>" +
                  refusal.code + "</Code><Message>" + escaped(refusal.message) +
                  "</Message></Error><RequestId>1</RequestId></ErrorResponse>");
}

std::string SnsModel::http(int status, const std::string& body) const {
  char date[64];
  const std::time_t now = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(now_with(seconds_ahead_)));
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: text/xml\r\nDate: " + date +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string SnsModel::add_topic(const std::string& name, const std::string& region, const std::string& account) {
  const std::lock_guard lock(mutex_);
  std::string arn = "arn:aws:sns:" + region + ":" + account + ":" + name;
  topics_[arn] = true;
  return arn;
}

void SnsModel::remove_topic(const std::string& arn) {
  const std::lock_guard lock(mutex_);
  topics_.erase(arn);
}

void SnsModel::hide_attributes(const std::string& arn) {
  const std::lock_guard lock(mutex_);
  topics_.at(arn) = false;
}

void SnsModel::set_page_size(std::size_t size) {
  const std::lock_guard lock(mutex_);
  page_size_ = size;
}

void SnsModel::fail_requests(int count, int status, const std::string& code) {
  const std::lock_guard lock(mutex_);
  failures_left_ = count;
  failure_ = {status, code, "as the test wants it"};
}

void SnsModel::fail_entries(const std::string& text, int count, const std::string& code) {
  const std::lock_guard lock(mutex_);
  entry_faults_.push_back({text, count, code});
}

void SnsModel::refuse_batches_with(const std::string& text, const std::string& code) {
  const std::lock_guard lock(mutex_);
  refused_batches_[text] = code;
}

void SnsModel::exchange_key(const std::string& key) {
  const std::lock_guard lock(mutex_);
  key_ = key;
}

void SnsModel::set_clock(int seconds_ahead) {
  const std::lock_guard lock(mutex_);
  seconds_ahead_ = seconds_ahead;
}

int SnsModel::requests(const std::string& action) const {
  const std::lock_guard lock(mutex_);
  const auto found = requests_.find(action);
  return found == requests_.end() ? 0 : found->second;
}

std::vector<PublishedMessage> SnsModel::messages() const {
  const std::lock_guard lock(mutex_);
  return messages_;
}

std::vector<std::size_t> SnsModel::batch_sizes() const {
  const std::lock_guard lock(mutex_);
  return batch_sizes_;
}

}  // namespace sluice::test
