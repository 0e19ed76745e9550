#include "host/isolation/parcel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sluice::isolation {
namespace {

/// Writes numbers as they lie in memory, and text behind its length.
class Packer {
 public:
  explicit Packer(char* at) : at_(at) {}

  template <typename Number>
  void number(Number value) {
    std::memcpy(at_, &value, sizeof(value));
    at_ += sizeof(value);
  }
  void text(std::string_view value) {
    number(static_cast<std::uint64_t>(value.size()));
    at_ = std::copy_n(value.data(), value.size(), at_);
  }

 private:
  char* at_;
};

/// As Packer, and counts only.
class Measure {
 public:
  template <typename Number>
  void number(Number) {
    size_ += sizeof(Number);
  }
  void text(std::string_view value) { size_ += sizeof(std::uint64_t) + value.size(); }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

  template <typename Number>
  Number number() {
    Number value{};
    if (bytes_.size() < sizeof(value)) {
      good_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(value));
    bytes_.remove_prefix(sizeof(value));
    return value;
  }
  std::string_view text() {
    const auto size = number<std::uint64_t>();
    if (size > bytes_.size()) {
      good_ = false;
      return {};
    }
    const std::string_view value = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return value;
  }
  bool good() const { return good_; }
  bool complete() const { return good_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

template <typename Sink>
void put_start(Sink& sink, const RunnerStart& start) {
  sink.text(start.job);
  sink.text(start.plugin);
  sink.text(start.handler);
  sink.number(start.memory);
  sink.number(static_cast<std::uint64_t>(start.options.values().size()));
  for (const plugin::OptionValues::Value& value : start.options.values()) {
    sink.text(value.name);
    sink.number(value.type);
    sink.text(value.string);
    sink.number(value.integer);
    sink.number(value.number);
    sink.number(static_cast<std::uint64_t>(value.items.size()));
    for (const std::string& item : value.items) {
      sink.text(item);
    }
  }
}

template <typename Sink>
void put_message(Sink& sink, const queue::Message& message, std::string_view queue, std::uint32_t max_attempts) {
  sink.text(queue);
  sink.number(max_attempts);
  sink.number(message.attempt);
  sink.number(static_cast<std::int64_t>(message.sent_at.time_since_epoch().count()));
  sink.text(message.id);
  sink.text(message.content_type);
  sink.text(message.group);
  sink.number(static_cast<std::uint64_t>(message.attributes.size()));
  for (const auto& [name, value] : message.attributes) {
    sink.text(name);
    sink.text(value);
  }
  sink.text(message.body);
}

}  // namespace

std::string pack_start(const RunnerStart& start) {
  Measure measure;
  put_start(measure, start);
  std::string bytes(measure.size(), '\0');
  Packer packer(bytes.data());
  put_start(packer, start);
  return bytes;
}

std::optional<RunnerStart> unpack_start(std::string_view bytes) {
  Unpacker from(bytes);
  RunnerStart start;
  start.job = from.text();
  start.plugin = from.text();
  start.handler = from.text();
  start.memory = from.number<std::uint64_t>();
  const auto options = from.number<std::uint64_t>();
  for (std::uint64_t i = 0; i < options && from.good(); ++i) {
    plugin::OptionValues::Value value;
    value.name = from.text();
    value.type = from.number<sluice_option_type>();
    value.string = from.text();
    value.integer = from.number<std::int64_t>();
    value.number = from.number<double>();
    const auto items = from.number<std::uint64_t>();
    for (std::uint64_t j = 0; j < items && from.good(); ++j) {
      value.items.emplace_back(from.text());
    }
    start.options.add(std::move(value));
  }
  return from.complete() ? std::optional(std::move(start)) : std::nullopt;
}

std::size_t packed_size(const queue::Message& message, std::string_view queue) {
  Measure measure;
  put_message(measure, message, queue, 0);
  return measure.size();
}

void pack_message(const queue::Message& message, std::string_view queue, std::uint32_t max_attempts, char* bytes) {
  Packer packer(bytes);
  put_message(packer, message, queue, max_attempts);
}

bool unpack_message(std::string_view bytes, MessageParcel& parcel) {
  Unpacker from(bytes);
  queue::Message& message = parcel.message;
  parcel.queue = from.text();
  parcel.max_attempts = from.number<std::uint32_t>();
  message.attempt = from.number<std::uint32_t>();
  message.sent_at = WallTime(Duration(from.number<std::int64_t>()));
  message.id = from.text();
  message.content_type = from.text();
  message.group = from.text();
  message.attributes.clear();
  const auto attributes = from.number<std::uint64_t>();
  for (std::uint64_t i = 0; i < attributes && from.good(); ++i) {
    const std::string_view name = from.text();
    message.attributes.emplace_hint(message.attributes.end(), name, from.text());
  }
  message.body = from.text();
  return from.complete();
}

}  // namespace sluice::isolation
