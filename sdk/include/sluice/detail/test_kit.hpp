#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/abi.h"
#include "sluice/checkpoint.h"
#include "sluice/detail/bound_options.hpp"
#include "sluice/detail/effect_limits.hpp"
#include "sluice/effects.hpp"
#include "sluice/message.hpp"
#include "sluice/options.hpp"

namespace sluice::testing {

/// The value of an option as a job file would have it: text (durations too: "30s"), a number, a boolean, a list or a
/// table.
class OptionValue {
 public:
  using List = std::vector<std::string>;
  using Map = std::map<std::string, std::string>;

  OptionValue(std::same_as<bool> auto value) : value_(value) {}
  OptionValue(std::integral auto value) requires(!std::same_as<decltype(value), bool>)
      : value_(static_cast<std::int64_t>(value)) {}
  OptionValue(std::floating_point auto value) : value_(static_cast<double>(value)) {}
  OptionValue(const char* value) : value_(std::string(value)) {}
  OptionValue(std::string value) : value_(std::move(value)) {}
  OptionValue(List value) : value_(std::move(value)) {}
  OptionValue(Map value) : value_(std::move(value)) {}

  const detail::TomlValue& value() const { return value_; }

 private:
  detail::TomlValue value_;
};

using OptionMap = std::map<std::string, OptionValue>;

}  // namespace sluice::testing

namespace sluice::detail {

/// The options of a job, checked against a handler's declaration as the host checks them, in the form `create` takes.
class TestOptions {
 public:
  TestOptions(const sluice_handler& handler, const testing::OptionMap& configured) {
    if ((handler.flags & SLUICE_HANDLER_OPEN_OPTIONS) != 0) {
      for (const auto& [name, value] : configured) {
        bound_.push_back(plain_option(name, value.value()));
      }
    } else {
      bind_declared(handler, configured);
    }
    table_.emplace(bound_);
  }
  TestOptions(const TestOptions&) = delete;
  TestOptions& operator=(const TestOptions&) = delete;

  /// What the host would refuse the job for; empty when all is well.
  const std::vector<std::string>& errors() const { return errors_; }
  const sluice_option_value* const* data() const { return table_->data(); }
  std::size_t size() const { return table_->size(); }

 private:
  void bind_declared(const sluice_handler& handler, const testing::OptionMap& configured) {
    testing::OptionMap unknown = configured;
    for (std::size_t i = 0; i < handler.option_count; ++i) {
      const sluice_option& declared = *handler.options[i];
      unknown.erase(declared.name);
      if (const auto found = configured.find(declared.name); found != configured.end()) {
        bind(declared, declared_option(declared, found->second.value()));
      } else if (declared.default_value != nullptr) {
        bind(declared, text_option(declared, declared.default_value));
      } else if ((declared.flags & SLUICE_OPTION_REQUIRED) != 0) {
        errors_.push_back("the option \"" + std::string(declared.name) + "\" is missing");
      }
    }
    for (const auto& [name, value] : unknown) {
      errors_.push_back("the handler has no option \"" + name + "\"");
    }
  }

  void bind(const sluice_option& declared, std::optional<BoundOption> value) {
    if (value) {
      bound_.push_back(*std::move(value));
    } else {
      errors_.push_back("the option \"" + std::string(declared.name) + "\" must be " + describe(declared.type));
    }
  }

  std::vector<BoundOption> bound_;
  std::optional<BoundOptionTable> table_;
  std::vector<std::string> errors_;
};

}  // namespace sluice::detail

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

/// Progress that a handler has stored.
struct StoredCheckpoint {
  std::string bytes;
  StagedEffects effects;  ///< what was committed with it
};

}  // namespace sluice::testing

namespace sluice::detail {

inline std::string text_of(const sluice_sql_value& value) {
  switch (value.type) {
    case SLUICE_SQL_INTEGER:
      return std::to_string(value.integer);
    case SLUICE_SQL_REAL:
      return number_text(value.real);
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
    table_.store = static_cast<sluice_store>(store);
    begin();
  }
  TestEffects(const TestEffects&) = delete;
  TestEffects& operator=(const TestEffects&) = delete;

  const sluice_effects* table() const { return &table_; }
  const testing::StagedEffects& staged() const { return staged_; }
  /// Why `done()` would be a fault; empty: it would not.
  std::string refusal() const {
    return refusal_.empty() ? std::string() : "nothing can be committed, because an effect was refused: " + refusal_;
  }
  void discard() { begin(); }
  /// A checkpoint has committed what was staged: all but the result.
  void committed() {
    std::string result = std::move(staged_.result);
    begin();
    staged_.result = std::move(result);
  }

 private:
  static TestEffects& of(const sluice_effects* effects) { return *static_cast<TestEffects*>(effects->host); }

  void begin() {
    limits_.emplace(table_.store, keeps_keys_);
    staged_ = {};
    refusal_.clear();
  }
  /// Has `keep` keep what the limits admit.
  template <typename Effect, typename Keep>
  static const char* stage(const sluice_effects* effects, const Effect& effect, Keep keep) {
    TestEffects& self = of(effects);
    self.last_ = self.limits_->admit(effect);
    if (self.last_.empty()) {
      keep(self.staged_);
      return nullptr;
    }
    if (self.refusal_.empty()) {
      self.refusal_ = self.last_;
    }
    return self.last_.c_str();
  }

  static const char* send(const sluice_effects* effects, const sluice_effect_message* message) {
    return stage(effects, *message, [message](testing::StagedEffects& staged) {
      staged.messages.push_back({std::string(view(message->queue)), std::string(view(message->body)),
                                 std::string(view(message->id)), std::string(view(message->content_type)),
                                 std::string(view(message->group)), std::string(view(message->dedup_id)),
                                 std::chrono::nanoseconds(message->delay), static_cast<Priority>(message->priority),
                                 map_of(message->attributes, message->attribute_count)});
    });
  }

  static const char* write_item(const sluice_effects* effects, const sluice_effect_item* item) {
    return stage(effects, *item, [item](testing::StagedEffects& staged) {
      testing::StagedWrite& write = staged.writes.emplace_back();
      write.kind = static_cast<testing::StagedWrite::Kind>(item->action - SLUICE_ITEM_PUT);
      write.label = view(item->label);
      write.otherwise_reject = item->on_refusal == SLUICE_REFUSED_REJECT;
      write.table = view(item->table);
      write.item = view(item->item);
      write.update = view(item->update);
      write.condition = view(item->condition);
      write.names = map_of(item->names, item->name_count);
      write.values = view(item->values);
    });
  }

  static const char* run_sql(const sluice_effects* effects, const sluice_effect_sql* sql) {
    return stage(effects, *sql, [sql](testing::StagedEffects& staged) {
      testing::StagedWrite& write = staged.writes.emplace_back();
      write.label = view(sql->label);
      write.otherwise_reject = sql->on_refusal == SLUICE_REFUSED_REJECT;
      write.statement = view(sql->statement);
      std::transform(sql->parameters, sql->parameters + sql->parameter_count, std::back_inserter(write.parameters),
                     &text_of);
      write.rows = sql->rows >= 0 ? std::optional(sql->rows) : std::nullopt;
    });
  }

  static const char* set_result(const sluice_effects* effects, sluice_string result) {
    return stage(effects, result, [result](testing::StagedEffects& staged) { staged.result = view(result); });
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

/// "sluice.checkpoint/1" for one attempt, with the host's own limit.
class TestCheckpoints {
 public:
  /// Why the store does not take it, asked before each; empty: it does.
  using Refuse = std::function<std::string(const testing::StagedEffects&)>;
  /// `effects` outlives it.
  TestCheckpoints(TestEffects& effects, std::optional<std::string> last, Refuse refuse)
      : effects_(effects), last_(std::move(last)), refuse_(std::move(refuse)) {}
  TestCheckpoints(const TestCheckpoints&) = delete;
  TestCheckpoints& operator=(const TestCheckpoints&) = delete;

  const sluice_checkpoint* table() const { return &table_; }
  const std::vector<testing::StoredCheckpoint>& stored() const { return stored_; }
  const std::optional<std::string>& last() const { return last_; }

 private:
  static TestCheckpoints& of(const sluice_checkpoint* table) { return *static_cast<TestCheckpoints*>(table->host); }
  static std::int32_t get_last(const sluice_checkpoint* table, sluice_string* bytes) {
    const std::optional<std::string>& last = of(table).last_;
    if (last) {
      *bytes = borrow(*last);
    }
    return last ? 1 : 0;
  }
  static const char* store(const sluice_checkpoint* table, sluice_string bytes, std::int32_t with_effects) {
    TestCheckpoints& self = of(table);
    self.why_ = self.judge(bytes.size, with_effects != 0);
    if (!self.why_.empty()) {
      return self.why_.c_str();
    }
    testing::StoredCheckpoint& stored = self.stored_.emplace_back();
    stored.bytes = view(bytes);
    self.last_ = stored.bytes.empty() ? std::nullopt : std::optional(stored.bytes);
    if (with_effects != 0) {
      stored.effects = self.effects_.staged();
      stored.effects.result.clear();
      self.effects_.committed();
    }
    return nullptr;
  }
  std::string judge(std::size_t size, bool with_effects) const {
    if (size > SLUICE_CHECKPOINT_LIMIT) {
      return "a checkpoint has at most " + std::to_string(SLUICE_CHECKPOINT_LIMIT) + " bytes, this one has " +
             std::to_string(size) + "; store where the work stands, and keep the data elsewhere";
    }
    const std::string refusal = with_effects ? effects_.refusal() : std::string();
    return refusal.empty() ? refuse_(with_effects ? effects_.staged() : testing::StagedEffects()) : refusal;
  }

  TestEffects& effects_;
  std::optional<std::string> last_;
  const Refuse refuse_;
  sluice_checkpoint table_{sizeof(sluice_checkpoint), 0, this, &get_last, &store};
  std::vector<testing::StoredCheckpoint> stored_;
  std::string why_;
};

}  // namespace sluice::detail
