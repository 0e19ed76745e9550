#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/abi.h"
#include "sluice/detail/option_text.hpp"
#include "sluice/message.hpp"

/// The options of a job as a handler's `create` is given them, for the host and for the test kit.
namespace sluice::detail {

/// An option with its value; which members count follows from the type, as in sluice_option_value. A value.
struct BoundOption {
  std::string name;
  sluice_option_type type = SLUICE_OPTION_STRING;
  std::string string{};
  std::int64_t integer = 0;
  double number = 0;
  std::vector<std::string> items{};  ///< of a table: names and values alternate
};

/// A value as a job file has it. Tables are tables of strings.
using TomlValue =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>, std::map<std::string, std::string>>;

inline std::string number_text(double number) {
  std::array<char, 64> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

/// The value as it is, with the type that follows from that.
inline BoundOption plain_option(const std::string& name, const TomlValue& value) {
  BoundOption bound{.name = name};
  if (const auto* boolean = std::get_if<bool>(&value)) {
    bound.type = SLUICE_OPTION_BOOLEAN;
    bound.integer = *boolean ? 1 : 0;
    bound.string = *boolean ? "true" : "false";
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    bound.type = SLUICE_OPTION_INTEGER;
    bound.integer = *integer;
    bound.number = static_cast<double>(*integer);
    bound.string = std::to_string(*integer);
  } else if (const auto* number = std::get_if<double>(&value)) {
    bound.type = SLUICE_OPTION_NUMBER;
    bound.number = *number;
    bound.string = number_text(*number);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    bound.string = *text;
  } else if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    bound.type = SLUICE_OPTION_LIST;
    bound.items = *list;
  } else {
    bound.type = SLUICE_OPTION_MAP;
    for (const auto& [key, item] : std::get<std::map<std::string, std::string>>(value)) {
      bound.items.push_back(key);
      bound.items.push_back(item);
    }
  }
  return bound;
}

/// A value written as text: a default, or a duration. Nothing when the text is none of the option's type.
inline std::optional<BoundOption> text_option(const sluice_option& declared, const std::string& text) {
  BoundOption bound{.name = declared.name, .type = declared.type, .string = text};
  const auto store = [](auto& member, auto parsed) {
    if (!parsed) {
      return false;
    }
    member = std::move(*parsed);
    return true;
  };
  const auto good = [&] {
    switch (declared.type) {
      case SLUICE_OPTION_STRING:
        return true;
      case SLUICE_OPTION_INTEGER:
        return store(bound.integer, parse_integer(text));
      case SLUICE_OPTION_NUMBER:
        return store(bound.number, parse_number(text));
      case SLUICE_OPTION_BOOLEAN:
        return store(bound.integer, parse_boolean(text));
      case SLUICE_OPTION_DURATION:
        return store(bound.integer, parse_duration_text(text));
      case SLUICE_OPTION_LIST:
        return store(bound.items, parse_list(text));
      case SLUICE_OPTION_MAP:
        return store(bound.items, parse_map(text));
      default:
        return false;
    }
  };
  return good() ? std::optional(std::move(bound)) : std::nullopt;
}

/// The configured value as the declaration wants it; nothing when it is of another type.
inline std::optional<BoundOption> declared_option(const sluice_option& declared, const TomlValue& configured) {
  BoundOption bound = plain_option(declared.name, configured);
  if (declared.type == SLUICE_OPTION_DURATION && bound.type == SLUICE_OPTION_STRING) {
    return text_option(declared, bound.string);
  }
  if (declared.type == SLUICE_OPTION_NUMBER && bound.type == SLUICE_OPTION_INTEGER) {
    bound.type = SLUICE_OPTION_NUMBER;
  }
  return bound.type == declared.type ? std::optional(std::move(bound)) : std::nullopt;
}

/// What may be wrong with the options of a job. The words are those of who asks.
enum class OptionProblem : std::uint8_t { unknown, missing, wrong_type, wrong_default };

/// The options of a handler by what is configured and what it declares. `configured` is a map of names, to something of
/// which `value_of` makes a TomlValue; `complain(problem, name, declared)` hears of all that is wrong, of an unknown
/// one without a declaration. A handler with open options takes everything as it is.
template <typename Configured, typename ValueOf, typename Complain>
std::vector<BoundOption> bind_options(const sluice_handler& handler, const Configured& configured, ValueOf value_of,
                                      Complain complain) {
  std::vector<BoundOption> bound;
  const bool open = (handler.flags & SLUICE_HANDLER_OPEN_OPTIONS) != 0;
  const std::span<const sluice_option* const> declared(handler.options, open ? 0 : handler.option_count);
  for (const auto& [name, entry] : configured) {
    if (open) {
      bound.push_back(plain_option(name, value_of(entry)));
    } else if (std::none_of(declared.begin(), declared.end(),
                            [&name = name](const sluice_option* one) { return name == one->name; })) {
      complain(OptionProblem::unknown, name, nullptr);
    }
  }
  for (const sluice_option* const option : declared) {
    const std::string name = option->name;
    const auto entry = configured.find(name);
    const bool given = entry != configured.end();
    if (!given && option->default_value == nullptr) {
      if ((option->flags & SLUICE_OPTION_REQUIRED) != 0) {
        complain(OptionProblem::missing, name, option);
      }
    } else if (auto value = given ? declared_option(*option, value_of(entry->second))
                                  : text_option(*option, option->default_value)) {
      bound.push_back(*std::move(value));
    } else {
      complain(given ? OptionProblem::wrong_type : OptionProblem::wrong_default, name, option);
    }
  }
  return bound;
}

/// Options in the form `create` takes them. Borrows from them.
class BoundOptionTable {
 public:
  explicit BoundOptionTable(std::span<const BoundOption> options) : items_(options.size()) {
    entries_.reserve(options.size());
    for (std::size_t i = 0; i < options.size(); ++i) {
      const BoundOption& option = options[i];
      for (const std::string& item : option.items) {
        items_[i].push_back(borrow(item));
      }
      entries_.push_back({sizeof(sluice_option_value), option.type, borrow(option.name), borrow(option.string),
                          option.integer, option.number, items_[i].data(), items_[i].size()});
      pointers_.push_back(&entries_.back());
    }
  }
  BoundOptionTable(const BoundOptionTable&) = delete;
  BoundOptionTable& operator=(const BoundOptionTable&) = delete;

  const sluice_option_value* const* data() const { return pointers_.data(); }
  std::size_t size() const { return pointers_.size(); }

 private:
  std::vector<std::vector<sluice_string>> items_;
  std::vector<sluice_option_value> entries_;
  std::vector<const sluice_option_value*> pointers_;
};

}  // namespace sluice::detail
