#include "host/isolation/parcel.hpp"

#include <utility>

#include "host/isolation/packing.hpp"

namespace sluice::isolation {
namespace {

template <typename Sink>
void put_start(Sink& sink, const RunnerStart& start) {
  sink.text(start.job);
  sink.text(start.plugin);
  sink.text(start.handler);
  sink.number(start.memory);
  sink.number(start.effects);
  sink.number(start.keeps_key);
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
void put_message(Sink& sink, const queue::Message& message, const MessageFacts& facts) {
  sink.text(facts.queue);
  sink.number(facts.max_attempts);
  sink.number(facts.first_result != nullptr);
  sink.text(facts.first_result != nullptr ? std::string_view(*facts.first_result) : std::string_view());
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
  start.effects = from.number<sluice_store>();
  start.keeps_key = from.number<bool>();
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

std::size_t packed_size(const queue::Message& message, const MessageFacts& facts) {
  Measure measure;
  put_message(measure, message, facts);
  return measure.size();
}

void pack_message(const queue::Message& message, const MessageFacts& facts, char* bytes) {
  Packer packer(bytes);
  put_message(packer, message, facts);
}

bool unpack_message(std::string_view bytes, WireMessage& parcel) {
  Unpacker from(bytes);
  queue::Message& message = parcel.message;
  parcel.queue = from.text();
  parcel.max_attempts = from.number<std::uint32_t>();
  const auto duplicate = from.number<bool>();
  const std::string_view first_result = from.text();
  parcel.first_result = duplicate ? std::make_shared<const std::string>(first_result) : nullptr;
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
