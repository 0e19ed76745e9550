#include "dynamo/credentials/credentials_json.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/text/json_reader.hpp"
#include "base/timestamp.hpp"
#include "dynamo/credentials/text.hpp"

namespace sluice::dynamo {
namespace {

constexpr std::size_t kMaxDepth = 8;

/// A member of an object that is text or a whole number; anything else has no text.
struct Field {
  std::string name;
  JsonReader::Kind kind = JsonReader::Kind::nothing;
  std::string text;
};

template <typename Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

Field read_field(JsonReader& reader, std::string_view name) {
  Field field{std::string(name), reader.peek(), {}};
  if (field.kind == JsonReader::Kind::string) {
    reader.read_string(field.text);
  } else if (field.kind == JsonReader::Kind::number) {
    std::string_view text;
    reader.read_number(text);
    if (whole_number<std::int64_t>(text) || whole_number<std::uint64_t>(text)) {
      field.text = text;
    }
  } else {
    reader.skip();
  }
  return field;
}

std::vector<Field> read_object(JsonReader& reader) {
  std::vector<Field> fields;
  std::string_view name;
  reader.begin_object();
  while (reader.next_member(name)) {
    fields.push_back(read_field(reader, name));
  }
  return fields;
}

/// The members of the object `member` of `text`, or of `text` itself; nothing when there is no such object.
std::optional<std::vector<Field>> fields_of(std::string_view text, std::string_view member) {
  JsonReader reader(text, kMaxDepth, JsonReader::BadText::refuse);
  std::optional<std::vector<Field>> fields;
  if (member.empty()) {
    fields = read_object(reader);
    return reader.finish() ? fields : std::nullopt;
  }
  std::string_view name;
  reader.begin_object();
  while (reader.next_member(name)) {
    const bool wanted = name == member;
    if (wanted && reader.peek() == JsonReader::Kind::object) {
      fields = read_object(reader);
      continue;
    }
    if (wanted) {
      fields.reset();
    }
    reader.skip();
  }
  return reader.finish() ? fields : std::nullopt;
}

/// RFC 3339 text, or milliseconds since 1970 as Identity Center gives them.
std::optional<WallTime> expiry(const Field& field) {
  const auto milliseconds = whole_number<std::int64_t>(field.text);
  if (field.kind == JsonReader::Kind::number && milliseconds) {
    constexpr std::int64_t kMost = 9'000'000'000'000;  // the year 2255; nanoseconds end soon after
    if (*milliseconds < 0) {
      return std::nullopt;
    }
    return *milliseconds > kMost ? kEndOfTime : WallTime(std::chrono::milliseconds(*milliseconds));
  }
  return parse_timestamp_or_end(field.text);
}

}  // namespace

Result<Credentials> credentials_from_json(std::string_view text, std::string_view member, const std::string& source) {
  const auto unusable = [&](const std::string& what) {
    return Error(ErrorKind::no_credentials, source + " gave an answer that cannot be used: " + what);
  };
  const auto fields = fields_of(text, member);
  if (!fields) {
    return unusable("it is not the JSON that was expected");
  }
  Credentials out;
  out.source = source;
  for (const Field& field : *fields) {
    const std::string name = lower_case(field.name);
    if (name == "accesskeyid") {
      out.access_key_id = field.text;
    } else if (name == "secretaccesskey") {
      out.secret_access_key = field.text;
    } else if (name == "sessiontoken" || name == "token") {
      out.session_token = field.text;
    } else if (name == "accountid") {
      out.account_id = field.text;
    } else if (name == "expiration" && field.kind != JsonReader::Kind::null) {
      out.expires_at = expiry(field);
      if (!out.expires_at) {
        return unusable("its expiration is not a time");
      }
    }
  }
  if (out.access_key_id.empty() || out.secret_access_key.empty()) {
    return unusable("it has no access key");
  }
  return out;
}

std::string json_member(std::string_view text, std::string_view name) {
  std::string found;
  for (Field& field : fields_of(text, {}).value_or(std::vector<Field>())) {
    if (field.name == name) {
      found = std::move(field.text);
    }
  }
  return found;
}

}  // namespace sluice::dynamo
