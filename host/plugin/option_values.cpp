#include <array>
#include <charconv>
#include <cstring>

#include "base/text/joined.hpp"
#include "host/plugin/handler_instance.hpp"
#include "sluice/options.hpp"

namespace sluice::plugin {
namespace {

using config::ConfigError;
using Value = OptionValues::Value;

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string number_text(double number) {
  std::array<char, 64> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), result.ptr};
}

/// The value as TOML has it, with the type that follows from that.
Value plain_value(const std::string& name, const config::OptionValue& configured) {
  Value value;
  value.name = name;
  if (const auto* boolean = std::get_if<bool>(&configured)) {
    value.type = SLUICE_OPTION_BOOLEAN;
    value.integer = *boolean ? 1 : 0;
    value.string = *boolean ? "true" : "false";
  } else if (const auto* integer = std::get_if<std::int64_t>(&configured)) {
    value.type = SLUICE_OPTION_INTEGER;
    value.integer = *integer;
    value.number = static_cast<double>(*integer);
    value.string = std::to_string(*integer);
  } else if (const auto* number = std::get_if<double>(&configured)) {
    value.type = SLUICE_OPTION_NUMBER;
    value.number = *number;
    value.string = number_text(*number);
  } else if (const auto* text = std::get_if<std::string>(&configured)) {
    value.type = SLUICE_OPTION_STRING;
    value.string = *text;
  } else if (const auto* list = std::get_if<std::vector<std::string>>(&configured)) {
    value.type = SLUICE_OPTION_LIST;
    value.items = *list;
  } else {
    value.type = SLUICE_OPTION_MAP;
    for (const auto& [key, item] : std::get<std::map<std::string, std::string>>(configured)) {
      value.items.push_back(key);
      value.items.push_back(item);
    }
  }
  return value;
}

/// A value written as text: a default, or a duration. Nothing when the text is none of that type.
std::optional<Value> text_value(const sluice_option& declared, const std::string& text) {
  std::optional<detail::TextValue> parsed = detail::parse_value_text(declared.type, text);
  if (!parsed) {
    return std::nullopt;
  }
  return Value{declared.name, declared.type, text, parsed->integer, parsed->number, std::move(parsed->items)};
}

/// The configured value as the declaration wants it; nothing when it is of another type.
std::optional<Value> declared_value(const sluice_option& declared, const config::OptionValue& configured) {
  Value value = plain_value(declared.name, configured);
  if (declared.type == SLUICE_OPTION_DURATION && value.type == SLUICE_OPTION_STRING) {
    return text_value(declared, value.string);
  }
  if (declared.type == SLUICE_OPTION_NUMBER && value.type == SLUICE_OPTION_INTEGER) {
    value.type = SLUICE_OPTION_NUMBER;
  }
  return value.type == declared.type ? std::optional(std::move(value)) : std::nullopt;
}

/// Binds the options of one job, and gathers everything that is wrong with them.
class Binder {
 public:
  Binder(const sluice_handler& handler, const OptionsOf& given) : handler_(handler), given_(given) {}

  config::Parsed<OptionValues> bind() {
    if ((handler_.flags & SLUICE_HANDLER_OPEN_OPTIONS) != 0) {
      for (const auto& [name, option] : given_.options) {
        values_.add(plain_value(name, option.value));
      }
      return std::move(values_);
    }
    for (const auto& [name, option] : given_.options) {
      check_known(name, option.place);
    }
    for (std::size_t i = 0; i < handler_.option_count; ++i) {
      bind_one(*handler_.options[i]);
    }
    if (!errors_.empty()) {
      return std::move(errors_);
    }
    return std::move(values_);
  }

 private:
  void check_known(const std::string& name, const config::Place& place) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < handler_.option_count; ++i) {
      names.emplace_back(handler_.options[i]->name);
      if (names.back() == name) {
        return;
      }
    }
    std::string text = "the handler " + quoted(handler_.name) + " has no option " + quoted(name);
    if (const auto near = config::nearest(name, names)) {
      text += "; did you mean " + quoted(*near) + "?";
    } else if (names.empty()) {
      text += "; it has none";
    } else {
      text += "; it has: " + joined(names);
    }
    errors_.push_back({place, std::move(text)});
  }

  void bind_one(const sluice_option& declared) {
    const std::string name = declared.name;
    if (const auto configured = given_.options.find(name); configured != given_.options.end()) {
      if (auto value = declared_value(declared, configured->second.value)) {
        values_.add(*std::move(value));
      } else {
        errors_.push_back({configured->second.place, "the option " + quoted(name) + " of the handler " +
                                                         quoted(handler_.name) + " must be " +
                                                         detail::describe(declared.type)});
      }
    } else if (declared.default_value != nullptr) {
      bind_default(declared);
    } else if ((declared.flags & SLUICE_OPTION_REQUIRED) != 0) {
      std::string text = "the handler " + quoted(handler_.name) + " needs the option " + quoted(name) + ", " +
                         detail::describe(declared.type) + ": set it in " + std::string(given_.section);
      if (declared.help != nullptr && *declared.help != '\0') {
        text += " (" + std::string(declared.help, strnlen(declared.help, 200)) + ")";
      }
      errors_.push_back({given_.place, std::move(text)});
    }
  }

  void bind_default(const sluice_option& declared) {
    if (auto value = text_value(declared, declared.default_value)) {
      values_.add(*std::move(value));
      return;
    }
    errors_.push_back({given_.place, "the handler " + quoted(handler_.name) + " declares the default " +
                                         quoted(declared.default_value) + " for its option " + quoted(declared.name) +
                                         ", which must be " + detail::describe(declared.type) +
                                         ": a defect of the plugin; until it is mended, set the option"});
  }

  const sluice_handler& handler_;
  const OptionsOf& given_;
  OptionValues values_;
  std::vector<ConfigError> errors_;
};

}  // namespace

config::Parsed<OptionValues> bind_options(const sluice_handler& handler, const config::JobConfig& job) {
  const config::Place place = job.handler_place.file.empty() ? config::Place{job.file, 0, 0} : job.handler_place;
  return bind_options(handler, {job.options, place, "[job.options]"});
}

config::Parsed<OptionValues> bind_options(const sluice_handler& handler, const OptionsOf& given) {
  return Binder(handler, given).bind();
}

}  // namespace sluice::plugin
