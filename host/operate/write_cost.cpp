#include "host/operate/write_cost.hpp"

#include <algorithm>
#include <string>

#include "host/operate/json_value.hpp"

namespace sluice::operate {

namespace {

constexpr double kChangesPerRequest = 25;
constexpr std::size_t kWriteUnit = 1024;
constexpr std::size_t kReadUnit = 4096;
// "2026-11-20T23:14:00.906192364Z"
constexpr std::size_t kTimeBytes = 30;
// The names of DynamoMQ's ten attributes, and one byte more for each of the small numbers.
constexpr std::size_t kNameBytes = std::string_view(
                                       "id"
                                       "data"
                                       "receive_count"
                                       "queue_type"
                                       "version"
                                       "created_at"
                                       "updated_at"
                                       "sent_at"
                                       "received_at"
                                       "invisible_until_at")
                                       .size();
// What the store adds to recognise its own writes.
constexpr std::size_t kNonceBytes = std::string_view("sluice_nonce").size() + 20;

std::size_t number_bytes(std::string_view text) {
  const std::size_t mantissa = std::min(text.find_first_of("eE"), text.size());
  const auto digits =
      static_cast<std::size_t>(std::count_if(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(mantissa),
                                             [](char byte) { return byte >= '0' && byte <= '9'; }));
  return (digits + 1) / 2 + 1 + (text.starts_with('-') ? 1 : 0);
}

std::size_t json_bytes(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::null:
    case JsonValue::Kind::boolean:
      return 1;
    case JsonValue::Kind::number:
      return number_bytes(value.text);
    case JsonValue::Kind::string:
      return value.text.size();
    case JsonValue::Kind::array:
    case JsonValue::Kind::object:
      break;
  }
  std::size_t bytes = 3;
  for (const std::string& key : value.keys) {
    bytes += key.size();
  }
  for (const JsonValue& item : value.items) {
    bytes += json_bytes(item) + 1;
  }
  return bytes;
}

std::size_t body_bytes(const queue::Message& message) {
  if (message.content_type == queue::kJson) {
    if (const auto body = parse_json(message.body)) {
      return json_bytes(*body);
    }
  }
  return message.body.size();
}

std::size_t failure_bytes(const queue::Failure& failure) {
  if (failure.empty()) {
    return 0;
  }
  return std::string_view("sluice_failure").size() + 3 + failure.error.size() + failure.handler.size() +
         failure.host.size() + kTimeBytes + 40;
}

double units(std::size_t bytes, std::size_t unit) {
  const std::size_t begun = (bytes + unit - 1) / unit;
  return static_cast<double>(begun);
}

}  // namespace

WriteCost& WriteCost::operator+=(const WriteCost& other) {
  requests += other.requests;
  read_units += other.read_units;
  write_units += other.write_units;
  return *this;
}

std::size_t item_bytes(const queue::StoredMessage& stored) {
  const queue::Message& message = stored.message;
  std::size_t bytes = kNameBytes + message.id.size() + body_bytes(message);
  bytes += queue::to_string(stored.half).size() + number_bytes(std::to_string(message.attempt)) +
           number_bytes(std::to_string(stored.version));
  bytes += 3 * kTimeBytes + (stored.received_at ? kTimeBytes : 0) + (stored.invisible_until ? kTimeBytes : 0);
  bytes += kNonceBytes + failure_bytes(stored.failure);
  if (!message.attributes.empty()) {
    bytes += std::string_view("sluice_attributes").size() + 3;
    for (const auto& [name, value] : message.attributes) {
      bytes += name.size() + value.size() + 1;
    }
  }
  if (!message.group.empty()) {
    bytes += std::string_view("sluice_group").size() + message.group.size();
  }
  return bytes;
}

WriteCost change_cost(const queue::StoredMessage& message, queue::ChangeAction action) {
  const bool keeps_index_key = action == queue::ChangeAction::remove || action == queue::ChangeAction::set_visibility;
  return {.requests = 1 / kChangesPerRequest,
          .read_units = 0,
          .write_units = (keeps_index_key ? 2 : 3) * units(item_bytes(message), kWriteUnit)};
}

WriteCost edit_cost(const queue::StoredMessage& message) {
  const std::size_t bytes = item_bytes(message);
  return {.requests = 2, .read_units = units(bytes, kReadUnit), .write_units = 2 * units(bytes, kWriteUnit)};
}

}  // namespace sluice::operate
