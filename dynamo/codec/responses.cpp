#include "dynamo/codec/responses.hpp"

#include <zlib.h>

#include <algorithm>
#include <boost/algorithm/string/trim_all.hpp>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/number.hpp"
#include "base/text/utf8.hpp"
#include "dynamo/codec/json_codec.hpp"

namespace sluice::dynamo {
namespace {

/// Reads an object whose members are all optional: `read(name)` returns true when it took the member's value, or when
/// the reader has failed; anything else is passed over. A null counts as absent.
template <typename Read>
bool read_members(JsonReader& reader, Read read) {
  std::string_view name;
  reader.begin_object();
  while (reader.next_member(name)) {
    if (reader.peek() == JsonReader::Kind::null || !read(name)) {
      reader.skip();
    }
  }
  return !reader.failed();
}

template <typename Read>
bool read_elements(JsonReader& reader, Read read) {
  reader.begin_array();
  while (reader.next_element()) {
    if (!read()) {
      return false;
    }
  }
  return !reader.failed();
}

// Reading functions that always take the value, so that they fit into read_members. What does not fit fails the reader.

bool took_value(JsonReader& reader, std::string& text) {
  reader.read_string(text);
  return true;
}

bool took_value(JsonReader& reader, bool& flag) {
  reader.read_bool(flag);
  return true;
}

bool took_value(JsonReader& reader, Item& item) {
  read_item(reader, item);
  return true;
}

bool took_value(JsonReader& reader, std::vector<Item>& items) {
  read_elements(reader, [&] { return read_item(reader, items.emplace_back()); });
  return true;
}

template <typename Number>
requires std::same_as<Number, std::int64_t> || std::same_as<Number, double>
bool took_value(JsonReader& reader, Number& number) {
  std::string_view text;
  if (reader.read_number(text)) {
    if (const auto read = parse_number<Number>(text)) {
      number = *read;
    } else {
      reader.fail("a number is out of range");
    }
  }
  return true;
}

/// A member by its name, and where its value goes.
struct Member {
  std::string_view name;
  std::variant<std::string*, bool*, std::int64_t*, double*, Item*, std::vector<Item>*> into;
};
/// Takes the value of the member of that name; false: it is none of these.
bool took(JsonReader& reader, std::string_view name, std::initializer_list<Member> members) {
  for (const Member& member : members) {
    if (member.name == name) {
      return std::visit([&reader](auto* into) { return took_value(reader, *into); }, member.into);
    }
  }
  return false;
}

/// Takes these members of an object.
bool took_inside(JsonReader& reader, std::initializer_list<Member> members) {
  read_members(reader, [&](std::string_view name) { return took(reader, name, members); });
  return true;
}

/// What decoders of successful answers fail with.
Error unreadable(std::string_view what, const std::string& why) {
  Error error(ErrorKind::malformed_response, "the " + std::string(what) + " cannot be read: " + why);
  error.outcome_unknown = true;
  return error;
}

/// Reads a whole response; `read` as in read_members.
template <typename Output, typename Read>
Result<Output> decode_response(std::string_view body, std::string_view what, Read read) {
  if (body.size() > kMaxResponseBytes) {
    return unreadable(what, "it is longer than 128 MiB");
  }
  Output output;
  JsonReader reader(body, kMaxJsonDepth, JsonReader::BadText::replace);
  if (read_members(reader, [&](std::string_view name) { return read(reader, output, name); }) && reader.finish()) {
    return output;
  }
  return unreadable(what, reader.reason() + " (" + reader.place() + ")");
}

// Answers that tell of a success.

// The total of table and indexes, as TOTAL asks for; where it is told apart by kind, that counts.
void read_capacity(JsonReader& reader, Usage usage, Capacity& capacity) {
  double total = 0;
  Capacity by_kind;
  took_inside(
      reader,
      {{"CapacityUnits", &total}, {"ReadCapacityUnits", &by_kind.read}, {"WriteCapacityUnits", &by_kind.write}});
  if (by_kind.read > 0 || by_kind.write > 0) {
    capacity += by_kind;
  } else {
    (usage == Usage::read ? capacity.read : capacity.write) += total;
  }
}

// One object, or one for each table of a batch.
bool took_capacity(JsonReader& reader, Usage usage, Capacity& capacity) {
  const auto read = [&] {
    read_capacity(reader, usage, capacity);
    return !reader.failed();
  };
  static_cast<void>(reader.peek() == JsonReader::Kind::array ? read_elements(reader, read) : read());
  return true;
}

Error statement_error(JsonReader& reader, Item& item) {
  std::string code;
  std::string message;
  took_inside(reader, {{"Code", &code}, {"Message", &message}, {"Item", &item}});
  Error error(error_kind(code, 0), one_line(code + ": " + message));
  error.exception_name = std::move(code);
  error.outcome_unknown = may_have_taken_effect(error.exception_name, 0);
  return error;
}

bool read_statement_result(JsonReader& reader, StatementResult& result) {
  return read_members(reader, [&](std::string_view name) {
    if (name == "Error") {
      result.error = statement_error(reader, result.item);
      return true;
    }
    return took(reader, name, {{"Item", &result.item}});
  });
}

// {"table": [items]} of a BatchGetItem.
bool took_tables(JsonReader& reader, std::vector<Item>& items) {
  read_members(reader, [&](std::string_view) { return took_value(reader, items); });
  return true;
}

// {"table": {"Keys": [keys]}} of a BatchGetItem.
bool took_unprocessed(JsonReader& reader, std::vector<Item>& keys) {
  read_members(reader, [&](std::string_view) { return took_inside(reader, {{"Keys", &keys}}); });
  return true;
}

/// An array of objects that each name an attribute and, under `kind`, what it is.
template <typename Keep>
bool took_attributes(JsonReader& reader, std::string_view kind, Keep keep) {
  read_elements(reader, [&] {
    std::string attribute;
    std::string is;
    took_inside(reader, {{"AttributeName", &attribute}, {kind, &is}});
    keep(attribute, is);
    return !reader.failed();
  });
  return true;
}

bool took_key_schema(JsonReader& reader, std::string& hash_key, std::string& range_key) {
  return took_attributes(reader, "KeyType", [&](const std::string& attribute, const std::string& type) {
    (type == "HASH" ? hash_key : range_key) = attribute;
  });
}

bool took_stream(JsonReader& reader, TableDescription& table) {
  bool enabled = false;
  std::string view_type;
  took_inside(reader, {{"StreamEnabled", &enabled}, {"StreamViewType", &view_type}});
  if (enabled) {
    table.stream_view_type = view_type;
  }
  return true;
}

bool read_index(JsonReader& reader, IndexDescription& index) {
  return read_members(reader, [&](std::string_view name) {
    if (name == "KeySchema") {
      return took_key_schema(reader, index.hash_key, index.range_key);
    }
    if (name == "Projection") {
      return took_inside(reader, {{"ProjectionType", &index.projection}});
    }
    return took(reader, name,
                {{"IndexName", &index.name},
                 {"IndexStatus", &index.status},
                 {"Backfilling", &index.backfilling},
                 {"ItemCount", &index.item_count},
                 {"IndexSizeBytes", &index.size_bytes}});
  });
}

bool took_table_member(JsonReader& reader, std::string_view name, TableDescription& table) {
  if (name == "KeySchema") {
    return took_key_schema(reader, table.hash_key, table.range_key);
  }
  if (name == "AttributeDefinitions") {
    return took_attributes(reader, "AttributeType", [&table](const std::string& attribute, const std::string& type) {
      table.attribute_types[attribute] = type;
    });
  }
  if (name == "GlobalSecondaryIndexes") {
    read_elements(reader, [&] { return read_index(reader, table.indexes.emplace_back()); });
    return true;
  }
  if (name == "BillingModeSummary") {
    return took_inside(reader, {{"BillingMode", &table.billing_mode}});
  }
  if (name == "TableClassSummary") {
    return took_inside(reader, {{"TableClass", &table.table_class}});
  }
  if (name == "ProvisionedThroughput") {
    return took_inside(reader, {{"ReadCapacityUnits", &table.read_units}, {"WriteCapacityUnits", &table.write_units}});
  }
  if (name == "StreamSpecification") {
    return took_stream(reader, table);
  }
  return took(reader, name,
              {{"TableName", &table.name},
               {"TableStatus", &table.status},
               {"TableArn", &table.arn},
               {"ItemCount", &table.item_count},
               {"TableSizeBytes", &table.size_bytes},
               {"DeletionProtectionEnabled", &table.deletion_protection}});
}

// Answers that tell of an error.

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
  std::vector<CancellationReason> cancellation_reasons;
};

// Takes a member's text; anything but a string is passed over.
bool took_text(JsonReader& reader, std::string& text) {
  return reader.peek() == JsonReader::Kind::string && took_value(reader, text);
}

// Reads each element of an array as an object; anything else is passed over. `read_one` reads it by `read_object`.
template <typename ReadOne>
bool took_objects(JsonReader& reader, ReadOne read_one) {
  return reader.peek() == JsonReader::Kind::array && read_elements(reader, read_one);
}
template <typename Read>
bool read_object(JsonReader& reader, Read read) {
  return reader.peek() == JsonReader::Kind::object ? read_members(reader, read) : reader.skip();
}

bool took_throttling_reasons(JsonReader& reader, ErrorBody& body) {
  return took_objects(reader, [&] {
    return read_object(reader, [&](std::string_view name) {
      if (name == "reason" || name == "Reason") {
        return took_text(reader, body.throttling_reasons.emplace_back());
      }
      return (name == "resource" || name == "Resource") && took_text(reader, body.throttled_resources.emplace_back());
    });
  });
}

// One for each action, in their order.
bool took_cancellation_reasons(JsonReader& reader, std::vector<CancellationReason>& reasons) {
  return took_objects(reader, [&] {
    CancellationReason& reason = reasons.emplace_back();
    const bool fine = read_object(reader, [&](std::string_view name) {
      return (name == "Code" && took_text(reader, reason.code)) ||
             (name == "Message" && took_text(reader, reason.message));
    });
    reason.message = one_line(reason.message);
    return fine;
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
           took_cancellation_reasons(reader, body.cancellation_reasons);
  });
  body.throttling_reasons.resize(std::min(body.throttling_reasons.size(), kMaxReasons));
  body.cancellation_reasons.resize(std::min(body.cancellation_reasons.size(), kMaxReasons));
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
  const std::string text(cut_utf8(one_line(without_tags(body)), kMaxForeignText));
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
ErrorKind cancellation_kind(const std::vector<CancellationReason>& reasons) {
  ErrorKind kind = ErrorKind::validation;
  for (const CancellationReason& reason : reasons) {
    if (!reason.stood_in_the_way()) {
      continue;
    }
    const ErrorKind why = error_kind(reason.code, 0);
    if (why == ErrorKind::conditional_check_failed) {
      return why;
    }
    if (why == ErrorKind::throttled || (why == ErrorKind::server && kind == ErrorKind::validation)) {
      kind = why;
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
  if (!body.cancellation_reasons.empty()) {
    text += " (reasons: " + joined(mapped(body.cancellation_reasons, &CancellationReason::code)) + ")";
  }
  return one_line(text);
}

Error dynamodb_error(int status, ErrorBody body) {
  std::string name = bare_name(body.type);
  const bool cancelled = name == "TransactionCanceledException";
  Error error(cancelled ? cancellation_kind(body.cancellation_reasons) : error_kind(name, status),
              describe(body, name));
  error.outcome_unknown = may_have_taken_effect(name, status);
  error.exception_name = std::move(name);
  error.throttling_reasons = mapped(body.throttling_reasons, &one_line);
  if (cancelled) {
    error.cancellation_reasons = std::move(body.cancellation_reasons);
  }
  return error;
}

long retry_after(const Headers& headers) {
  constexpr long kLongest = 24L * 3600 * 1000;
  const std::string* value = find_header(headers, "x-amz-retry-after");
  const long milliseconds = value == nullptr ? -1 : parse_number<long>(*value).value_or(-1);
  return std::clamp(milliseconds, -1L, kLongest);
}

struct NamedKind {
  std::string_view name;
  ErrorKind kind;
};

// Names without "Exception" or "Error" at the end: AWS spells many both ways, the codes of PartiQL statements a third.
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

std::string_view stem(std::string_view name) {
  for (const std::string_view ending : {std::string_view("Exception"), std::string_view("Error")}) {
    if (name.size() > ending.size() && name.ends_with(ending)) {
      name.remove_suffix(ending.size());
    }
  }
  return name;
}

const NamedKind* lookup(std::string_view name) {
  return find_where(kKinds, [wanted = stem(name)](const NamedKind& known) { return known.name == wanted; });
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

Result<Page> decode_page(std::string_view body) {
  return decode_response<Page>(body, "page of items", [](JsonReader& reader, Page& page, std::string_view name) {
    return took(reader, name, {{"Items", &page.items}, {"LastEvaluatedKey", &page.last_evaluated_key}}) ||
           (name == "ConsumedCapacity" && took_capacity(reader, Usage::read, page.capacity));
  });
}

Result<ItemOutput> decode_item_output(std::string_view body, Usage usage) {
  return decode_response<ItemOutput>(
      body, "answer", [usage](JsonReader& reader, ItemOutput& output, std::string_view name) {
        return took(reader, name, {{"Item", &output.item}, {"Attributes", &output.item}}) ||
               (name == "ConsumedCapacity" && took_capacity(reader, usage, output.capacity));
      });
}

Result<BatchStatementOutput> decode_batch_execute(std::string_view body, std::size_t statements) {
  constexpr std::string_view kWhat = "answer to a batch of statements";
  auto output = decode_response<BatchStatementOutput>(
      body, kWhat, [](JsonReader& reader, BatchStatementOutput& batch, std::string_view name) {
        if (name == "Responses") {
          read_elements(reader, [&] { return read_statement_result(reader, batch.results.emplace_back()); });
          return true;
        }
        return name == "ConsumedCapacity" && took_capacity(reader, Usage::write, batch.capacity);
      });
  if (output && output->results.size() != statements) {
    return unreadable(kWhat, "it holds " + std::to_string(output->results.size()) + " results for " +
                                 std::to_string(statements) + " statements");
  }
  return output;
}

Result<BatchGetOutput> decode_batch_get(std::string_view body) {
  return decode_response<BatchGetOutput>(
      body, "answer to BatchGetItem", [](JsonReader& reader, BatchGetOutput& output, std::string_view name) {
        if (name == "Responses") {
          return took_tables(reader, output.items);
        }
        if (name == "UnprocessedKeys") {
          return took_unprocessed(reader, output.unread);
        }
        return name == "ConsumedCapacity" && took_capacity(reader, Usage::read, output.capacity);
      });
}

Result<TableDescription> decode_table(std::string_view body) {
  constexpr std::string_view kWhat = "description of a table";
  auto table = decode_response<TableDescription>(
      body, kWhat, [](JsonReader& reader, TableDescription& output, std::string_view name) {
        if (name != "Table" && name != "TableDescription") {
          return false;
        }
        read_members(reader, [&](std::string_view inner) { return took_table_member(reader, inner, output); });
        return true;
      });
  if (table && table->name.empty()) {
    return unreadable(kWhat, "it names no table");
  }
  if (table && table->billing_mode.empty()) {
    // AWS leaves the summary out for a table that never was on demand.
    table->billing_mode = "PROVISIONED";
  }
  return table;
}

Result<TimeToLive> decode_time_to_live(std::string_view body) {
  return decode_response<TimeToLive>(
      body, "description of a table's TTL", [](JsonReader& reader, TimeToLive& output, std::string_view name) {
        return name == "TimeToLiveDescription" &&
               took_inside(reader, {{"TimeToLiveStatus", &output.status}, {"AttributeName", &output.attribute}});
      });
}

std::string one_line(std::string_view text) {
  constexpr std::string_view kEllipsis = "...";
  const std::string line =
      boost::algorithm::trim_fill_copy_if(clean_utf8(text, std::string_view::npos), " ",
                                          [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F; });
  return line.size() <= kMaxErrorText ? line
                                      : std::string(cut_utf8(line, kMaxErrorText - kEllipsis.size())).append(kEllipsis);
}

Error decode_error(int status, const Headers& headers, std::string_view body) {
  ErrorBody parsed;
  const bool readable = read_error_body(body, parsed) && !bare_name(parsed.type).empty();
  Error error = readable ? dynamodb_error(status, std::move(parsed)) : foreign_error(status, body);
  error.retry_after_ms = retry_after(headers);
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
  const std::uint32_t actual = crc32(body);
  if (parse_number<std::uint32_t>(*header) == actual) {
    return std::nullopt;
  }
  Error error(ErrorKind::malformed_response, "the response is damaged: its CRC-32 is " + std::to_string(actual) +
                                                 ", announced was " + header->substr(0, 20));
  error.outcome_unknown = true;
  return error;
}

ErrorKind error_kind(std::string_view name, int status) {
  const NamedKind* known = lookup(name);
  return known != nullptr ? known->kind : kind_of_status(status);
}

bool says_expired(std::string_view exception_name) {
  constexpr std::string_view kNames[] = {"ExpiredTokenException", "ExpiredToken", "UnrecognizedClientException",
                                         "InvalidClientTokenId"};
  return std::find(std::begin(kNames), std::end(kNames), exception_name) != std::end(kNames);
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
