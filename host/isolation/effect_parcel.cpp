#include "host/isolation/effect_parcel.hpp"

#include <utility>
#include <variant>

#include "host/isolation/packing.hpp"

namespace sluice::isolation {
namespace {

using queue::EffectWrite;
using queue::EmittedMessage;
using queue::ItemWrite;
using queue::SqlValue;
using queue::SqlWrite;

template <typename Number>
Number enumerator(Unpacker& from, Number last, bool& good) {
  const auto value = from.number<std::uint8_t>();
  good = good && value <= static_cast<std::uint8_t>(last);
  return static_cast<Number>(value);
}
template <typename Sink, typename Enum>
void put_enumerator(Sink& sink, Enum value) {
  sink.number(static_cast<std::uint8_t>(value));
}

template <typename Sink, typename Map>
void put_map(Sink& sink, const Map& map) {
  sink.number(static_cast<std::uint64_t>(map.size()));
  for (const auto& [name, value] : map) {
    sink.text(name);
    sink.text(value);
  }
}
template <typename Map>
void take_map(Unpacker& from, Map& map) {
  const auto size = from.number<std::uint64_t>();
  for (std::uint64_t i = 0; i < size && from.good(); ++i) {
    std::string name(from.text());
    map.insert_or_assign(std::move(name), std::string(from.text()));
  }
}

template <typename Sink>
void put_message(Sink& sink, const EmittedMessage& emitted) {
  const queue::NewMessage& message = emitted.message;
  for (const std::string* text :
       {&emitted.queue, &message.id, &message.body, &message.content_type, &message.group, &message.dedup_id}) {
    sink.text(*text);
  }
  put_map(sink, message.attributes);
  sink.number(static_cast<std::int64_t>(message.delay.count()));
  sink.number(static_cast<std::int64_t>(message.dedup_window.count()));
  put_enumerator(sink, message.priority);
  sink.number(emitted.made_id);
}
EmittedMessage take_message(Unpacker& from, bool& good) {
  EmittedMessage emitted;
  queue::NewMessage& message = emitted.message;
  for (std::string* text :
       {&emitted.queue, &message.id, &message.body, &message.content_type, &message.group, &message.dedup_id}) {
    *text = from.text();
  }
  take_map(from, message.attributes);
  message.delay = Duration(from.number<std::int64_t>());
  message.dedup_window = Duration(from.number<std::int64_t>());
  message.priority = enumerator(from, queue::Priority::low, good);
  emitted.made_id = from.number<bool>();
  good = good && message.delay >= Duration::zero() && message.dedup_window >= Duration::zero();
  return emitted;
}

template <typename Sink>
void put_item(Sink& sink, const ItemWrite& item) {
  put_enumerator(sink, item.action);
  for (const std::string* text : {&item.table, &item.item, &item.update, &item.condition, &item.values}) {
    sink.text(*text);
  }
  put_map(sink, item.names);
}
ItemWrite take_item(Unpacker& from, bool& good) {
  ItemWrite item;
  item.action = enumerator(from, queue::ItemAction::check, good);
  for (std::string* text : {&item.table, &item.item, &item.update, &item.condition, &item.values}) {
    *text = from.text();
  }
  take_map(from, item.names);
  return item;
}

template <typename Sink>
void put_value(Sink& sink, const SqlValue& value) {
  sink.number(static_cast<std::uint8_t>(value.index()));
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    sink.number(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    sink.number(*real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    sink.text(*text);
  } else if (const auto* blob = std::get_if<queue::SqlBlob>(&value)) {
    sink.text(blob->bytes);
  }
}
SqlValue take_value(Unpacker& from, bool& good) {
  switch (from.number<std::uint8_t>()) {
    case 0:
      return std::monostate();
    case 1:
      return from.number<std::int64_t>();
    case 2:
      return from.number<double>();
    case 3:
      return std::string(from.text());
    case 4:
      return queue::SqlBlob{std::string(from.text())};
    default:
      good = false;
      return std::monostate();
  }
}

template <typename Sink>
void put_sql(Sink& sink, const SqlWrite& sql) {
  sink.text(sql.statement);
  sink.number(static_cast<std::int64_t>(sql.rows.value_or(-1)));
  sink.number(static_cast<std::uint64_t>(sql.parameters.size()));
  for (const SqlValue& value : sql.parameters) {
    put_value(sink, value);
  }
}
SqlWrite take_sql(Unpacker& from, bool& good) {
  SqlWrite sql;
  sql.statement = from.text();
  const auto rows = from.number<std::int64_t>();
  sql.rows = rows >= 0 ? std::optional(rows) : std::nullopt;
  const auto parameters = from.number<std::uint64_t>();
  for (std::uint64_t i = 0; i < parameters && from.good() && good; ++i) {
    sql.parameters.push_back(take_value(from, good));
  }
  return sql;
}

template <typename Sink>
void put_effects(Sink& sink, const queue::Effects& effects) {
  sink.number(effects.key.has_value());
  sink.text(effects.key ? std::string_view(effects.key->result) : std::string_view());
  sink.number(static_cast<std::uint64_t>(effects.messages.size()));
  for (const EmittedMessage& message : effects.messages) {
    put_message(sink, message);
  }
  sink.number(static_cast<std::uint64_t>(effects.writes.size()));
  for (const EffectWrite& write : effects.writes) {
    sink.text(write.label);
    put_enumerator(sink, write.on_refusal);
    const auto* item = std::get_if<ItemWrite>(&write.write);
    sink.number(item != nullptr);
    if (item != nullptr) {
      put_item(sink, *item);
    } else {
      put_sql(sink, std::get<SqlWrite>(write.write));
    }
  }
}

}  // namespace

std::string pack_effects(const queue::Effects& effects) {
  Measure measure;
  put_effects(measure, effects);
  std::string bytes(measure.size(), '\0');
  Packer packer(bytes.data());
  put_effects(packer, effects);
  return bytes;
}

std::shared_ptr<const queue::Effects> unpack_effects(std::string_view bytes) {
  auto effects = std::make_shared<queue::Effects>();
  Unpacker from(bytes);
  bool good = true;
  const auto has_key = from.number<bool>();
  const std::string_view result = from.text();
  if (has_key) {
    effects->key = queue::KeyRecord{{}, {}, std::string(result), {}};
  }
  const auto messages = from.number<std::uint64_t>();
  good = messages < queue::kMostEffects;
  for (std::uint64_t i = 0; i < messages && good && from.good(); ++i) {
    effects->messages.push_back(take_message(from, good));
  }
  const auto writes = from.number<std::uint64_t>();
  good = good && messages + writes < queue::kMostEffects;
  for (std::uint64_t i = 0; i < writes && good && from.good(); ++i) {
    EffectWrite write;
    write.label = from.text();
    write.on_refusal = enumerator(from, queue::OnRefusal::reject, good);
    if (from.number<bool>()) {
      write.write = take_item(from, good);
    } else {
      write.write = take_sql(from, good);
    }
    effects->writes.push_back(std::move(write));
  }
  return good && from.complete() ? effects : nullptr;
}

}  // namespace sluice::isolation
