#include "dynamo/codec/error_response.hpp"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "base/text/json_reader.hpp"
#include "base/text/utf8.hpp"
#include "dynamo/codec/header_lookup.hpp"
#include "dynamo/codec/item_reader.hpp"
#include "dynamo/codec/responses.hpp"

namespace sluice::dynamo {

namespace {

// An error's body is small; what is longer is not DynamoDB's, or not worth reading.
constexpr std::size_t kMaxErrorBody = 1u << 20;
constexpr std::size_t kMaxForeignText = 200;
constexpr std::size_t kMaxReasons = 100;
constexpr std::size_t kMaxName = 200;

struct ErrorBody {
  std::string type;
  std::string message;
  std::vector<std::string> throttling_reasons;
  std::vector<std::string> throttled_resources;
  std::vector<std::string> cancellation_codes;  // in the order of the statements, "None" for innocent ones
};

// Reads a member when it is a string, and passes over anything else.
void read_text(JsonReader& reader, std::string& text) {
  if (reader.peek() == JsonReader::Kind::string) {
    reader.read_string(text);
  } else {
    reader.skip();
  }
}

template <typename Read>
void read_objects(JsonReader& reader, Read read_member) {
  if (reader.peek() != JsonReader::Kind::array) {
    reader.skip();
    return;
  }
  reader.begin_array();
  while (reader.next_element()) {
    if (reader.peek() != JsonReader::Kind::object) {
      reader.skip();
      continue;
    }
    std::string_view name;
    reader.begin_object();
    while (reader.next_member(name)) {
      read_member(name);
    }
  }
}

void read_throttling_reasons(JsonReader& reader, ErrorBody& body) {
  read_objects(reader, [&](std::string_view name) {
    std::string text;
    if (name == "reason" || name == "Reason") {
      read_text(reader, text);
      body.throttling_reasons.push_back(one_line(text));
    } else if (name == "resource" || name == "Resource") {
      read_text(reader, text);
      body.throttled_resources.push_back(std::move(text));
    } else {
      reader.skip();
    }
  });
  body.throttling_reasons.resize(std::min(body.throttling_reasons.size(), kMaxReasons));
}

void read_cancellation_reasons(JsonReader& reader, ErrorBody& body) {
  read_objects(reader, [&](std::string_view name) {
    if (name == "Code") {
      read_text(reader, body.cancellation_codes.emplace_back());
    } else {
      reader.skip();
    }
  });
  body.cancellation_codes.resize(std::min(body.cancellation_codes.size(), kMaxReasons));
}

bool read_error_body(std::string_view text, ErrorBody& body) {
  JsonReader reader(text.substr(0, kMaxErrorBody), kMaxJsonDepth, JsonReader::BadText::replace);
  std::string_view name;
  reader.begin_object();
  while (reader.next_member(name)) {
    if (name == "__type" || name == "code" || name == "Code") {
      read_text(reader, body.type);
    } else if (name == "message" || name == "Message") {
      read_text(reader, body.message);
    } else if (name == "ThrottlingReasons" || name == "throttlingReasons") {
      read_throttling_reasons(reader, body);
    } else if (name == "CancellationReasons" || name == "cancellationReasons") {
      read_cancellation_reasons(reader, body);
    } else {
      reader.skip();
    }
  }
  return reader.finish();
}

// "com.amazonaws.dynamodb.v20120810#ValidationException" and "ValidationException:http://..." alike.
std::string bare_name(std::string_view type) {
  const std::size_t hash = type.rfind('#');
  type.remove_prefix(hash == std::string_view::npos ? 0 : hash + 1);
  type = type.substr(0, std::min(type.find(':'), kMaxName));
  const bool plain = std::all_of(type.begin(), type.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
  return plain ? std::string(type) : std::string();
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    text += text.empty() ? part : ", " + part;
  }
  return text;
}

// A page's text without its tags; what is in the head besides the title is of no use to a reader either, but short.
std::string without_tags(std::string_view html) {
  std::string text;
  bool in_tag = false;
  for (const char c : html.substr(0, 16 * kMaxForeignText)) {
    if (c == '<') {
      in_tag = true;
      text.push_back(' ');
    } else if (in_tag) {
      in_tag = c != '>';
    } else {
      text.push_back(c);
    }
  }
  return text;
}

Error foreign_error(int status, std::string_view body) {
  std::string text = one_line(without_tags(body)).substr(0, kMaxForeignText);
  text = one_line(text);  // once more, as a character may have been cut in half
  const std::string status_text = "HTTP " + std::to_string(status);
  const bool redirect = status < 400;
  Error error(
      redirect || status == 404 ? ErrorKind::malformed_response : error_kind("", status),
      one_line(status_text + " from something that is not DynamoDB (check the endpoint, or a proxy on the way): " +
               (text.empty() ? "an empty body" : text)));
  error.outcome_unknown = status >= 500;
  return error;
}

// What is behind a cancelled transaction: its worst reason as far as callers branch on it.
ErrorKind cancellation_kind(const std::vector<std::string>& codes) {
  ErrorKind kind = ErrorKind::validation;
  for (const std::string& code : codes) {
    if (code == "None") {
      continue;
    }
    const ErrorKind reason = error_kind(code, 0);
    if (reason == ErrorKind::conditional_check_failed) {
      return reason;
    }
    if (reason == ErrorKind::throttled || (reason == ErrorKind::server && kind == ErrorKind::validation)) {
      kind = reason;
    }
  }
  return kind;
}

std::string describe(const ErrorBody& body, const std::string& name) {
  std::string text = name;
  if (!body.message.empty()) {
    text += ": " + body.message;
  }
  if (!body.throttling_reasons.empty()) {
    text += " (throttled by " + joined(body.throttling_reasons);
    text += body.throttled_resources.empty() ? ")" : " on " + joined(body.throttled_resources) + ")";
  }
  if (!body.cancellation_codes.empty()) {
    text += " (reasons: " + joined(body.cancellation_codes) + ")";
  }
  return one_line(text);
}

Error dynamodb_error(int status, ErrorBody body) {
  std::string name = bare_name(body.type);
  const bool cancelled = name == "TransactionCanceledException";
  Error error(cancelled ? cancellation_kind(body.cancellation_codes) : error_kind(name, status), describe(body, name));
  error.outcome_unknown = may_have_taken_effect(name, status);
  error.exception_name = std::move(name);
  error.throttling_reasons = std::move(body.throttling_reasons);
  return error;
}

long retry_after(const Headers& headers) {
  constexpr long kLongest = 24L * 3600 * 1000;
  const std::string* value = find_header(headers, "x-amz-retry-after");
  long milliseconds = -1;
  if (value != nullptr) {
    const char* end = value->data() + value->size();
    const auto [stop, problem] = std::from_chars(value->data(), end, milliseconds);
    if (problem != std::errc() || stop != end || milliseconds < 0) {
      return -1;
    }
  }
  return std::min(milliseconds, kLongest);
}

}  // namespace

std::string one_line(std::string_view text) {
  constexpr std::string_view kEllipsis = "...";
  std::string line;
  bool space_due = false;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    if (length == 1 && (first <= 0x20 || first == 0x7F)) {
      space_due = !line.empty();
    } else {
      const std::string_view piece = length == 0 ? kReplacementCharacter : text.substr(0, length);
      if (line.size() + 1 + piece.size() + kEllipsis.size() > kMaxErrorText) {
        line += kEllipsis;
        return line;
      }
      if (std::exchange(space_due, false)) {
        line.push_back(' ');
      }
      line += piece;
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return line;
}

Error decode_error(int status, const Headers& headers, std::string_view body) {
  ErrorBody parsed;
  const bool readable = read_error_body(body, parsed) && !bare_name(parsed.type).empty();
  Error error = readable ? dynamodb_error(status, std::move(parsed)) : foreign_error(status, body);
  error.http_status = status;
  error.retry_after_ms = retry_after(headers);
  if (const std::string* id = find_header(headers, "x-amzn-requestid")) {
    error.request_id = one_line(id->substr(0, kMaxName));
  }
  return error;
}

}  // namespace sluice::dynamo
