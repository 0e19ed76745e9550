#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/detail/effect_limits.hpp"
#include "sluice/effects.hpp"

namespace sluice::testing {

/// A message that a handler wants sent.
struct StagedMessage {
  std::string queue;
  std::string body;
  std::string id;            ///< empty: the host makes one
  std::string content_type;  ///< empty: "text/plain"
  std::string group;
  std::string dedup_id;
  std::chrono::nanoseconds delay{};
  Priority priority = Priority::normal;
  std::map<std::string, std::string> attributes;
};

/// A write that a handler wants made: an item's or a statement's members count.
struct StagedWrite {
  enum class Kind : std::uint8_t { put, update, remove, check, sql };
  Kind kind = Kind::sql;
  std::string label;
  bool otherwise_reject = false;

  std::string table;
  std::string item;  ///< DynamoDB JSON: the item of a put, the key of the others
  std::string update;
  std::string condition;
  std::map<std::string, std::string> names;
  std::string values;  ///< DynamoDB JSON

  std::string statement;
  std::vector<std::string> parameters;  ///< as text: NULL, 10, 0.5, 'a', x'00ff'
  std::optional<std::int64_t> rows;
};

struct StagedEffects {
  std::vector<StagedMessage> messages;
  std::vector<StagedWrite> writes;
  std::string result;  ///< of `done().result(bytes)`

  bool empty() const { return messages.empty() && writes.empty() && result.empty(); }
  /// The first message to this queue, and the write of this label. Throws when there is none.
  const StagedMessage& message_to(std::string_view queue) const {
    return find(
        messages, [queue](const auto& message) { return message.queue == queue; }, queue);
  }
  const StagedWrite& write(std::string_view label) const {
    return find(
        writes, [label](const auto& write) { return write.label == label; }, label);
  }

 private:
  template <typename T, typename Is>
  static const T& find(const std::vector<T>& all, Is is, std::string_view name) {
    const auto found = std::find_if(all.begin(), all.end(), is);
    if (found == all.end()) {
      throw std::out_of_range("nothing was staged for \"" + std::string(name) + "\"");
    }
    return *found;
  }
};

}  // namespace sluice::testing

namespace sluice::detail {

inline std::string text_of(const sluice_sql_value& value) {
  switch (value.type) {
    case SLUICE_SQL_INTEGER:
      return std::to_string(value.integer);
    case SLUICE_SQL_REAL:
      return std::to_string(value.real);
    case SLUICE_SQL_TEXT:
      return "'" + std::string(view(value.bytes)) + "'";
    case SLUICE_SQL_BLOB: {
      std::string text = "x'";
      for (const char byte : view(value.bytes)) {
        text += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4U];
        text += "0123456789abcdef"[static_cast<unsigned char>(byte) & 0xFU];
      }
      return text + "'";
    }
    default:
      return "NULL";
  }
}

inline std::map<std::string, std::string> map_of(const sluice_attribute* pairs, std::size_t count) {
  std::map<std::string, std::string> map;
  for (std::size_t i = 0; i < count; ++i) {
    map.insert_or_assign(std::string(view(pairs[i].name)), std::string(view(pairs[i].value)));
  }
  return map;
}

/// "sluice.effects/1" for one attempt, with the host's own limits.
class TestEffects {
 public:
  TestEffects(Store store, bool keeps_keys, const std::optional<std::string>& first_result)
      : keeps_keys_(keeps_keys), first_result_(first_result) {
    table_.store = store == Store::dynamodb ? SLUICE_STORE_DYNAMODB
                   : store == Store::sqlite ? SLUICE_STORE_SQLITE
                                            : SLUICE_STORE_NONE;
    begin();
  }
  TestEffects(const TestEffects&) = delete;
  TestEffects& operator=(const TestEffects&) = delete;

  const sluice_effects* table() const { return &table_; }
  const testing::StagedEffects& staged() const { return staged_; }
  /// Why `done()` would be a fault; empty: it would not.
  const std::string& refusal() const { return refusal_; }

 private:
  static TestEffects& of(const sluice_effects* effects) { return *static_cast<TestEffects*>(effects->host); }

  void begin() {
    limits_.emplace(table_.store, keeps_keys_);
    staged_ = {};
    refusal_.clear();
  }
  const char* judge(std::string why) {
    last_ = std::move(why);
    if (refusal_.empty()) {
      refusal_ = last_;
    }
    return last_.empty() ? nullptr : last_.c_str();
  }

  static const char* send(const sluice_effects* effects, const sluice_effect_message* message) {
    TestEffects& self = of(effects);
    std::string why = self.limits_->admit(*message);
    if (why.empty()) {
      self.staged_.messages.push_back(
          {std::string(view(message->queue)), std::string(view(message->body)), std::string(view(message->id)),
           std::string(view(message->content_type)), std::string(view(message->group)),
           std::string(view(message->dedup_id)), std::chrono::nanoseconds(message->delay),
           static_cast<Priority>(message->priority), map_of(message->attributes, message->attribute_count)});
    }
    return self.judge(std::move(why));
  }

  static const char* write_item(const sluice_effects* effects, const sluice_effect_item* item) {
    TestEffects& self = of(effects);
    std::string why = self.limits_->admit(*item);
    if (why.empty()) {
      testing::StagedWrite write;
      write.kind = static_cast<testing::StagedWrite::Kind>(item->action - SLUICE_ITEM_PUT);
      write.label = view(item->label);
      write.otherwise_reject = item->on_refusal == SLUICE_REFUSED_REJECT;
      write.table = view(item->table);
      write.item = view(item->item);
      write.update = view(item->update);
      write.condition = view(item->condition);
      write.names = map_of(item->names, item->name_count);
      write.values = view(item->values);
      self.staged_.writes.push_back(std::move(write));
    }
    return self.judge(std::move(why));
  }

  static const char* run_sql(const sluice_effects* effects, const sluice_effect_sql* sql) {
    TestEffects& self = of(effects);
    std::string why = self.limits_->admit(*sql);
    if (why.empty()) {
      testing::StagedWrite write;
      write.label = view(sql->label);
      write.otherwise_reject = sql->on_refusal == SLUICE_REFUSED_REJECT;
      write.statement = view(sql->statement);
      for (std::size_t i = 0; i < sql->parameter_count; ++i) {
        write.parameters.push_back(text_of(sql->parameters[i]));
      }
      write.rows = sql->rows >= 0 ? std::optional(sql->rows) : std::nullopt;
      self.staged_.writes.push_back(std::move(write));
    }
    return self.judge(std::move(why));
  }

  static const char* set_result(const sluice_effects* effects, sluice_string result) {
    TestEffects& self = of(effects);
    std::string why = self.limits_->admit_result(result.size);
    if (why.empty()) {
      self.staged_.result = view(result);
    }
    return self.judge(std::move(why));
  }

  static std::int32_t get_first_result(const sluice_effects* effects, sluice_string* result) {
    const TestEffects& self = of(effects);
    if (self.first_result_) {
      *result = borrow(*self.first_result_);
    }
    return self.first_result_ ? 1 : 0;
  }

  static void clear(const sluice_effects* effects) { of(effects).begin(); }

  const bool keeps_keys_;
  const std::optional<std::string> first_result_;
  sluice_effects table_{sizeof(sluice_effects),
                        SLUICE_STORE_NONE,
                        this,
                        &send,
                        &write_item,
                        &run_sql,
                        &set_result,
                        &get_first_result,
                        &clear};
  std::optional<EffectLimits> limits_;
  testing::StagedEffects staged_;
  std::string refusal_;
  std::string last_;
};

}  // namespace sluice::detail
