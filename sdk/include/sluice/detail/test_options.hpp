#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/abi.h"
#include "sluice/detail/option_text.hpp"
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

  template <typename T>
  const T* get() const {
    return std::get_if<T>(&value_);
  }

 private:
  std::variant<bool, std::int64_t, double, std::string, List, Map> value_;
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
        bind(name, own_type(value), value);
      }
    } else {
      bind_declared(handler, configured);
    }
    make_view();
  }
  TestOptions(const TestOptions&) = delete;
  TestOptions& operator=(const TestOptions&) = delete;

  /// What the host would refuse the job for; empty when all is well.
  const std::vector<std::string>& errors() const { return errors_; }
  const sluice_option_value* const* data() const { return pointers_.data(); }
  std::size_t size() const { return pointers_.size(); }

 private:
  struct Bound {
    std::string name;
    sluice_option_type type = 0;
    std::string text{};
    TextValue value{};
    std::vector<sluice_string> items{};
    sluice_option_value view{};
  };

  void bind_declared(const sluice_handler& handler, const testing::OptionMap& configured) {
    testing::OptionMap unknown = configured;
    for (std::size_t i = 0; i < handler.option_count; ++i) {
      const sluice_option& declared = *handler.options[i];
      unknown.erase(declared.name);
      if (const auto found = configured.find(declared.name); found != configured.end()) {
        bind(declared.name, declared.type, found->second);
      } else if (declared.default_value != nullptr) {
        bind_text(declared.name, declared.type, declared.default_value);
      } else if ((declared.flags & SLUICE_OPTION_REQUIRED) != 0) {
        errors_.push_back("the option \"" + std::string(declared.name) + "\" is missing");
      }
    }
    for (const auto& [name, value] : unknown) {
      errors_.push_back("the handler has no option \"" + name + "\"");
    }
  }

  static sluice_option_type own_type(const testing::OptionValue& value) {
    if (value.get<bool>() != nullptr) {
      return SLUICE_OPTION_BOOLEAN;
    }
    if (value.get<std::int64_t>() != nullptr) {
      return SLUICE_OPTION_INTEGER;
    }
    if (value.get<double>() != nullptr) {
      return SLUICE_OPTION_NUMBER;
    }
    if (value.get<std::string>() != nullptr) {
      return SLUICE_OPTION_STRING;
    }
    return value.get<testing::OptionValue::List>() != nullptr ? SLUICE_OPTION_LIST : SLUICE_OPTION_MAP;
  }

  void bind(const std::string& name, sluice_option_type type, const testing::OptionValue& value) {
    const sluice_option_type own = own_type(value);
    if (type == SLUICE_OPTION_DURATION && own == SLUICE_OPTION_STRING) {
      return bind_text(name, type, *value.get<std::string>());
    }
    if (own != type && !(type == SLUICE_OPTION_NUMBER && own == SLUICE_OPTION_INTEGER)) {
      errors_.push_back("the option \"" + name + "\" must be " + describe(type));
      return;
    }
    Bound bound{.name = name, .type = type};
    if (const auto* boolean = value.get<bool>()) {
      bound.value.integer = *boolean ? 1 : 0;
    } else if (const auto* integer = value.get<std::int64_t>()) {
      bound.value.integer = *integer;
      bound.value.number = static_cast<double>(*integer);
      bound.text = std::to_string(*integer);
    } else if (const auto* number = value.get<double>()) {
      bound.value.number = *number;
      bound.text = std::to_string(*number);
    } else if (const auto* text = value.get<std::string>()) {
      bound.text = *text;
    } else if (const auto* list = value.get<testing::OptionValue::List>()) {
      bound.value.items = *list;
    } else {
      for (const auto& [key, item] : *value.get<testing::OptionValue::Map>()) {
        bound.value.items.push_back(key);
        bound.value.items.push_back(item);
      }
    }
    bound_.push_back(std::move(bound));
  }

  void bind_text(const std::string& name, sluice_option_type type, const std::string& text) {
    if (auto value = parse_value_text(type, text)) {
      bound_.push_back({.name = name, .type = type, .text = text, .value = *std::move(value)});
    } else {
      errors_.push_back("the option \"" + name + "\" must be " + describe(type));
    }
  }

  void make_view() {
    for (Bound& bound : bound_) {
      for (const std::string& item : bound.value.items) {
        bound.items.push_back(borrow(item));
      }
      bound.view = {sizeof(sluice_option_value), bound.type,         borrow(bound.name), borrow(bound.text),
                    bound.value.integer,         bound.value.number, bound.items.data(), bound.items.size()};
      pointers_.push_back(&bound.view);
    }
  }

  std::vector<Bound> bound_;
  std::vector<const sluice_option_value*> pointers_;
  std::vector<std::string> errors_;
};

}  // namespace sluice::detail
