#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/abi.h"
#include "sluice/around.h"
#include "sluice/detail/bound_options.hpp"
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

template <typename Feature>
const Feature* feature_of(const sluice_handler& handler, const char* id) {
  return handler.extension == nullptr ? nullptr : static_cast<const Feature*>(handler.extension(id));
}

/// An instance of a handler, with options that are checked as the host checks them.
class TestInstance {
 public:
  TestInstance(const sluice_handler& handler, const testing::OptionMap& options, const sluice_host& host)
      : handler_(handler) {
    const std::vector<BoundOption> bound = bind_options(
        handler, options, [](const testing::OptionValue& value) { return value.value(); },
        [this](OptionProblem problem, const std::string& name, const sluice_option* declared) {
          errors_.push_back(problem == OptionProblem::unknown ? "the handler has no option \"" + name + "\""
                            : problem == OptionProblem::missing
                                ? "the option \"" + name + "\" is missing"
                                : "the option \"" + name + "\" must be " + describe(declared->type));
        });
    if (!errors_.empty()) {
      return;
    }
    const BoundOptionTable table(bound);
    const auto fail = [](void* sink, sluice_string why) {
      static_cast<std::vector<std::string>*>(sink)->emplace_back(view(why));
    };
    created_ = handler.create(&host, table.data(), table.size(), &object_, fail, &errors_) == 0;
    if (!created_ && errors_.empty()) {
      errors_.emplace_back("the handler could not be created and did not say why");
    }
  }
  ~TestInstance() {
    if (created_) {
      handler_.destroy(object_);
    }
  }
  TestInstance(const TestInstance&) = delete;
  TestInstance& operator=(const TestInstance&) = delete;

  bool created() const { return created_; }
  /// Why it was not.
  const std::vector<std::string>& errors() const { return errors_; }
  void* object() const { return object_; }

 private:
  const sluice_handler& handler_;
  std::vector<std::string> errors_;
  bool created_ = false;
  void* object_ = nullptr;
};

/// A handler that goes around the one that is tested.
struct TestAround {
  const sluice_around* table;
  void* object;
  std::unique_ptr<TestInstance> instance;
};

/// Throws with the reason when the host would not start the job.
inline TestAround make_around(const sluice_handler& handler, const testing::OptionMap& options,
                              const sluice_host& host) {
  const auto* const table = feature_of<sluice_around>(handler, SLUICE_AROUND_1);
  if (table == nullptr) {
    throw std::invalid_argument("\"" + std::string(handler.name) + "\" goes around no other handler");
  }
  auto instance = std::make_unique<TestInstance>(handler, options, host);
  if (!instance->created()) {
    throw std::invalid_argument("\"" + std::string(handler.name) + "\" cannot be made: " + instance->errors().front());
  }
  void* const object = instance->object();
  return {table, object, std::move(instance)};
}

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

/// What a test sees of effects: all of each.
struct TestKeeper {
  using Effects = testing::StagedEffects;

  sluice_store store;
  bool keeps_key;

  void keep(const sluice_effect_message& message, Effects& staged) const {
    staged.messages.push_back({std::string(view(message.queue)), std::string(view(message.body)),
                               std::string(view(message.id)), std::string(view(message.content_type)),
                               std::string(view(message.group)), std::string(view(message.dedup_id)),
                               std::chrono::nanoseconds(message.delay), static_cast<Priority>(message.priority),
                               map_of(message.attributes, message.attribute_count)});
  }
  void keep(const sluice_effect_item& item, Effects& staged) const {
    testing::StagedWrite& write = staged.writes.emplace_back();
    write.kind = static_cast<testing::StagedWrite::Kind>(item.action - SLUICE_ITEM_PUT);
    write.label = view(item.label);
    write.otherwise_reject = item.on_refusal == SLUICE_REFUSED_REJECT;
    write.table = view(item.table);
    write.item = view(item.item);
    write.update = view(item.update);
    write.condition = view(item.condition);
    write.names = map_of(item.names, item.name_count);
    write.values = view(item.values);
  }
  void keep(const sluice_effect_sql& sql, Effects& staged) const {
    testing::StagedWrite& write = staged.writes.emplace_back();
    write.label = view(sql.label);
    write.otherwise_reject = sql.on_refusal == SLUICE_REFUSED_REJECT;
    write.statement = view(sql.statement);
    std::transform(sql.parameters, sql.parameters + sql.parameter_count, std::back_inserter(write.parameters),
                   &text_of);
    write.rows = sql.rows >= 0 ? std::optional(sql.rows) : std::nullopt;
  }
  void keep(sluice_string result, Effects& staged) const { staged.result = view(result); }
  static std::string& result_of(Effects& staged) { return staged.result; }
  static std::string words(std::string why) { return why; }
};

}  // namespace sluice::detail
