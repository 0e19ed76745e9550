#include "host/stores/sqlite/message_record.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/fnv1a.hpp"
#include "base/text/number.hpp"
#include "base/text/utf8.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr std::size_t kIdLimit = 2'048;
constexpr std::size_t kQueueNameLimit = 1'024;

void write(std::string& out, std::string_view text) {
  out += std::to_string(text.size());
  out += ':';
  out += text;
  out += ',';
}

std::optional<std::string_view> read(std::string_view& in) {
  std::size_t size = 0;
  const auto number = std::from_chars(in.data(), in.data() + in.size(), size);
  const auto start = static_cast<std::size_t>(number.ptr - in.data()) + 1;
  if (number.ec != std::errc() || start > in.size() || in[start - 1] != ':' || size >= in.size() - start ||
      in[start + size] != ',') {
    return std::nullopt;
  }
  const std::string_view text = in.substr(start, size);
  in.remove_prefix(start + size + 1);
  return text;
}

/// The fields of a failure, and of an attempt before it, in the order in which they are stored.
template <typename Stored>
auto fields_of(Stored& of) {
  if constexpr (std::is_same_v<std::remove_const_t<Stored>, Failure>) {
    return std::tie(of.error, of.handler, of.host, of.attempts, of.failed_at, of.wait, of.took);
  } else {
    return std::tie(of.error, of.host, of.attempt, of.wait, of.took, of.failed_at);
  }
}

std::string text_of(std::uint32_t number) { return std::to_string(number); }
std::string text_of(Duration span) { return std::to_string(span.count()); }
std::string text_of(WallTime time) { return std::to_string(stored(time)); }

/// Texts are cut to `limit`.
template <typename Stored>
void write_fields(std::string& out, const Stored& of, std::size_t limit) {
  const auto one = [&](const auto& field) {
    if constexpr (std::is_same_v<decltype(field), const std::string&>) {
      write(out, cut_utf8(field, limit));
    } else {
      write(out, text_of(field));
    }
  };
  std::apply([&](const auto&... fields) { (one(fields), ...); }, fields_of(of));
}

template <typename Value>
bool read_field(std::string_view& in, Value& value) {
  const auto text = read(in);
  if constexpr (std::is_same_v<Value, std::string>) {
    value = text.value_or(std::string_view());
    return text.has_value();
  } else {
    using Number = std::conditional_t<std::is_integral_v<Value>, Value, Duration::rep>;
    const auto number = text ? parse_number<Number>(*text) : std::nullopt;
    if constexpr (std::is_integral_v<Value>) {
      value = number.value_or(0);
    } else {
      value = Value(Duration(number.value_or(0)));
    }
    return number.has_value();
  }
}

template <typename Stored>
bool read_fields(std::string_view& in, Stored& of) {
  return std::apply([&](auto&... fields) { return (read_field(in, fields) && ...); }, fields_of(of));
}

/// A positive number from any.
std::int64_t mixed(std::uint64_t value) {
  value ^= value >> 33U;
  value *= 0xFF51AFD7ED558CCDULL;
  value ^= value >> 33U;
  return static_cast<std::int64_t>((value >> 2U) | 1U);
}

}  // namespace

std::string encode_attributes(const Attributes& attributes) {
  std::string out;
  for (const auto& [name, value] : attributes) {
    write(out, name);
    write(out, value);
  }
  return out;
}

std::optional<Attributes> decode_attributes(std::string_view bytes) {
  Attributes attributes;
  while (!bytes.empty()) {
    const auto name = read(bytes);
    const auto value = name ? read(bytes) : std::nullopt;
    if (!value) {
      return std::nullopt;
    }
    attributes.emplace_hint(attributes.end(), *name, *value);
  }
  return attributes;
}

std::string encode_failure(const Failure& failure) {
  std::string out;
  write_fields(out, failure, kErrorLimit);
  for (const FailedAttempt& attempt : failure.earlier) {
    write_fields(out, attempt, kEarlierErrorLimit);
  }
  return out;
}

Failure decode_failure(std::string_view bytes) {
  Failure failure;
  if (!bytes.empty() && !read_fields(bytes, failure)) {
    return {.error = "(the stored reason cannot be read)", .handler = {}, .host = {}};
  }
  // What cannot be read of the earlier ones is left out.
  FailedAttempt attempt;
  while (!bytes.empty() && failure.earlier.size() < kEarlierFailures && read_fields(bytes, attempt)) {
    failure.earlier.push_back(attempt);
  }
  return failure;
}

MessageRecord read_record(const Statement& row, std::int64_t seq) {
  const std::int64_t half = row.integer(0);
  MessageRecord record{.seq = seq, .queue = half / 2, .id = std::string(row.bytes(2)), .state = {}};
  core::MessageState& state = record.state;
  state.half = (half & 1) != 0 ? Half::dlq : Half::standard;
  state.sent_at = loaded(row.integer(1));
  state.group = row.bytes(3);
  state.priority = stored_priority(row.optional_integer(4));
  if (!row.is_null(5)) {
    state.version = row.integer(5);
    state.receives = loaded_count(row.integer(6));
    state.hidden_until = loaded(row.optional_integer(7));
    state.received_at = loaded(row.optional_integer(8));
    state.failure = decode_failure(row.bytes(9));
    state.marks = loaded_count(row.integer(10));
    state.checkpoint = row.bytes(11);
  }
  return record;
}

bool read_content(const Statement& row, int column, Message& message) {
  if (!row.is_null(column)) {
    message.content_type = row.bytes(column);
  }
  auto attributes = decode_attributes(row.bytes(column + 1));
  message.body = row.bytes(column + 2);
  if (attributes) {
    message.attributes = std::move(*attributes);
  }
  return attributes.has_value();
}

std::optional<Delivery> read_delivery(const Statement& row, const Lease& lease) {
  Delivery delivery;
  Message& message = delivery.message;
  if (!read_content(row, 5, message)) {
    return std::nullopt;
  }
  message.sent_at = loaded(row.integer(1));
  message.id = row.bytes(2);
  message.group = row.bytes(3);
  message.priority = stored_priority(row.optional_integer(4));
  const bool again = !row.is_null(kDeliveryVersion);
  message.attempt = again ? loaded_count(row.integer(9) + 1) : 1;
  message.checkpoint = row.bytes(10);
  delivery.receipt = {
      .id = message.id, .version = again ? row.integer(kDeliveryVersion) + 1 : kFirstLease, .locator = row.integer(0)};
  delivery.leased_until = lease.held_until;
  delivery.invisible_until = lease.until;
  return delivery;
}

std::int64_t group_id(std::int64_t half, std::string_view group) {
  const std::int64_t name = group.empty() ? 0 : mixed(fnv1a(group));
  return mixed(static_cast<std::uint64_t>(half) * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(name));
}

std::optional<Error> refused_name(const std::string& queue) {
  if (queue.empty() || queue.size() > kQueueNameLimit) {
    return Error(ErrorCode::invalid, "a queue name has 1 to " + std::to_string(kQueueNameLimit) +
                                         " bytes, this one has " + std::to_string(queue.size()) + "; choose another");
  }
  return std::nullopt;
}

std::optional<Error> refused_message(const std::string& id, std::size_t bytes, std::size_t most_bytes) {
  if (id.size() > kIdLimit) {
    return Error(ErrorCode::invalid, "a message id has at most " + std::to_string(kIdLimit) + " bytes, this one has " +
                                         std::to_string(id.size()) + "; make it shorter");
  }
  if (bytes > most_bytes) {
    return Error(ErrorCode::invalid, "a message has at most " + std::to_string(most_bytes) + " bytes, this one has " +
                                         std::to_string(bytes) + "; keep the data elsewhere and send its place");
  }
  return std::nullopt;
}

}  // namespace sluice::queue::sqlite
