#include "dynamo/codec/error_response.hpp"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/text/json_reader.hpp"
#include "base/text/utf8.hpp"
#include "dynamo/codec/response_reader.hpp"
#include "dynamo/text.hpp"

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

// Takes a member's text; anything but a string is passed over.
bool took_text(JsonReader& reader, std::string& text) {
  return reader.peek() == JsonReader::Kind::string && took_value(reader, text);
}

// The objects of an array; anything else is passed over.
template <typename Read>
bool took_objects(JsonReader& reader, Read read) {
  return reader.peek() == JsonReader::Kind::array && read_elements(reader, [&] {
           if (reader.peek() == JsonReader::Kind::object) {
             return read_members(reader, read);
           }
           reader.skip();
           return true;
         });
}

bool took_throttling_reasons(JsonReader& reader, ErrorBody& body) {
  return took_objects(reader, [&](std::string_view name) {
    std::string text;
    if (name == "reason" || name == "Reason") {
      const bool took = took_text(reader, text);
      body.throttling_reasons.push_back(one_line(text));
      return took;
    }
    return (name == "resource" || name == "Resource") && took_text(reader, body.throttled_resources.emplace_back());
  });
}

bool read_error_body(std::string_view text, ErrorBody& body) {
  JsonReader reader(text.substr(0, kMaxErrorBody), kMaxJsonDepth, JsonReader::BadText::replace);
  read_members(reader, [&](std::string_view name) {
    if (name == "__type" || name == "code" || name == "Code") {
      return took_text(reader, body.type);
    }
    if (name == "message" || name == "Message") {
      return took_text(reader, body.message);
    }
    if (name == "ThrottlingReasons" || name == "throttlingReasons") {
      return took_throttling_reasons(reader, body);
    }
    return (name == "CancellationReasons" || name == "cancellationReasons") &&
           took_objects(reader, [&](std::string_view member) {
             return member == "Code" && took_text(reader, body.cancellation_codes.emplace_back());
           });
  });
  body.throttling_reasons.resize(std::min(body.throttling_reasons.size(), kMaxReasons));
  body.cancellation_codes.resize(std::min(body.cancellation_codes.size(), kMaxReasons));
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

struct NamedKind {
  std::string_view name;
  ErrorKind kind;
};

// Names without "Exception" or "Error" at the end: AWS spells many both ways, the codes of PartiQL statements a third.
// Sorted by name.
constexpr NamedKind kKinds[] = {
    {"AccessDenied", ErrorKind::access_denied},
    {"AuthFailure", ErrorKind::access_denied},
    {"BandwidthLimitExceeded", ErrorKind::throttled},
    {"ConditionalCheckFailed", ErrorKind::conditional_check_failed},
    {"DuplicateItem", ErrorKind::conditional_check_failed},
    {"EC2Throttled", ErrorKind::throttled},
    {"ExpiredToken", ErrorKind::access_denied},
    {"IncompleteSignature", ErrorKind::access_denied},
    {"IndexNotFound", ErrorKind::resource_not_found},
    {"InternalFailure", ErrorKind::server},
    {"InternalServer", ErrorKind::server},
    {"InvalidAccessKeyId", ErrorKind::access_denied},
    {"InvalidClientTokenId", ErrorKind::access_denied},
    {"InvalidSecurityToken", ErrorKind::access_denied},
    {"InvalidSignature", ErrorKind::access_denied},
    {"InvalidToken", ErrorKind::access_denied},
    {"KMSAccessDenied", ErrorKind::access_denied},
    {"LimitExceeded", ErrorKind::throttled},
    {"MissingAuthenticationToken", ErrorKind::access_denied},
    {"NotAuthorized", ErrorKind::access_denied},
    {"OptInRequired", ErrorKind::access_denied},
    {"PriorRequestNotComplete", ErrorKind::server},
    {"ProvisionedThroughputExceeded", ErrorKind::throttled},
    {"ReplicatedWriteConflict", ErrorKind::server},
    {"RequestExpired", ErrorKind::access_denied},
    {"RequestLimitExceeded", ErrorKind::throttled},
    {"RequestThrottled", ErrorKind::throttled},
    {"RequestTimeTooSkewed", ErrorKind::access_denied},
    {"RequestTimeout", ErrorKind::transport},
    {"ResourceNotFound", ErrorKind::resource_not_found},
    {"ServiceUnavailable", ErrorKind::server},
    {"SignatureDoesNotMatch", ErrorKind::access_denied},
    {"SlowDown", ErrorKind::throttled},
    {"TableNotFound", ErrorKind::resource_not_found},
    {"Throttled", ErrorKind::throttled},
    {"Throttling", ErrorKind::throttled},
    {"TokenRefreshRequired", ErrorKind::access_denied},
    {"TooManyRequests", ErrorKind::throttled},
    {"TransactionConflict", ErrorKind::server},
    {"TransactionInProgress", ErrorKind::throttled},
    {"UnauthorizedAccess", ErrorKind::access_denied},
    {"UnrecognizedClient", ErrorKind::access_denied},
    {"Validation", ErrorKind::validation},
};
static_assert(std::is_sorted(std::begin(kKinds), std::end(kKinds),
                             [](const NamedKind& a, const NamedKind& b) { return a.name < b.name; }));

std::string_view stem(std::string_view name) {
  for (const std::string_view ending : {std::string_view("Exception"), std::string_view("Error")}) {
    if (name.size() > ending.size() && name.substr(name.size() - ending.size()) == ending) {
      name.remove_suffix(ending.size());
    }
  }
  return name;
}

const NamedKind* lookup(std::string_view name) {
  const std::string_view wanted = stem(name);
  const auto* found = std::lower_bound(std::begin(kKinds), std::end(kKinds), wanted,
                                       [](const NamedKind& a, std::string_view b) { return a.name < b; });
  return found != std::end(kKinds) && found->name == wanted ? found : nullptr;
}

ErrorKind kind_of_status(int status) {
  switch (status) {
    case 401:
    case 403:
    case 407:
      return ErrorKind::access_denied;
    case 408:
      return ErrorKind::transport;
    case 429:
      return ErrorKind::throttled;
    default:
      return status >= 500 ? ErrorKind::server : ErrorKind::validation;
  }
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

std::uint32_t crc32(std::string_view bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

std::optional<Error> check_crc32(const Headers& headers, std::string_view body) {
  const std::string* header = find_header(headers, "x-amz-crc32");
  if (header == nullptr) {
    return std::nullopt;
  }
  std::uint32_t announced = 0;
  const char* end = header->data() + header->size();
  const auto [stop, problem] = std::from_chars(header->data(), end, announced);
  const std::uint32_t actual = crc32(body);
  if (problem == std::errc() && stop == end && announced == actual) {
    return std::nullopt;
  }
  Error error(ErrorKind::malformed_response, "the response is damaged: its CRC-32 is " + std::to_string(actual) +
                                                 ", announced was " + header->substr(0, 20));
  error.outcome_unknown = true;
  return error;
}

const std::string* find_header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key.size() == name.size() && lower_case(key) == name) {
      return &value;
    }
  }
  return nullptr;
}

ErrorKind error_kind(std::string_view name, int status) {
  const NamedKind* known = lookup(name);
  return known != nullptr ? known->kind : kind_of_status(status);
}

bool may_have_taken_effect(std::string_view exception_name, int status) {
  const NamedKind* known = lookup(exception_name);
  if (known == nullptr) {
    return status >= 500;
  }
  // The other names of kind `server` are refusals.
  const bool fault =
      known->name == "InternalServer" || known->name == "InternalFailure" || known->name == "ServiceUnavailable";
  return fault || (known->kind == ErrorKind::server && status >= 500);
}

}  // namespace sluice::dynamo
