#include "environment.hpp"

#include <unistd.h>

#include <stdexcept>

namespace {

constexpr std::string_view kAttributePrefix = "SLUICE_ATTR_";
constexpr std::string_view kAwsPrefix = "AWS_";

bool begins_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

/// Variables end at a zero byte; a longer value is cut there, as the child would see it anyway.
std::string until_zero(std::string_view text) { return std::string(text.substr(0, text.find('\0'))); }

}  // namespace

Variables base_environment(Inherited inherited, const Variables& extra) {
  Variables variables;
  for (char** entry = inherited == Inherited::nothing ? nullptr : environ; entry != nullptr && *entry != nullptr;
       ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    const bool secret =
        inherited == Inherited::all_but_aws && begins_with(text, kAwsPrefix) && SLUICE_GUARD(exec_keeps_keys);
    const bool withheld = secret || begins_with(text, kAttributePrefix);
    if (equals != std::string_view::npos && !withheld) {
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  for (const auto& [name, value] : extra) {
    if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos) {
      throw std::invalid_argument("the option \"env\" has \"" + name + "\", which cannot be the name of a variable");
    }
    variables[name] = until_zero(value);
  }
  return variables;
}

std::string attribute_variable(std::string_view name) {
  std::string variable(kAttributePrefix);
  for (const char c : name) {
    const bool lower = c >= 'a' && c <= 'z';
    const bool kept = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    variable += lower ? static_cast<char>(c - 'a' + 'A') : kept ? c : '_';
  }
  return variable;
}

std::vector<std::string> message_environment(const Variables& base, const sluice::Message& message) {
  Variables variables = base;
  for (const auto [name, value] : message.attributes()) {
    variables[attribute_variable(name)] = until_zero(value);
  }
  variables["SLUICE_MESSAGE_ID"] = until_zero(message.id());
  variables["SLUICE_QUEUE"] = until_zero(message.queue());
  variables["SLUICE_ATTEMPT"] = std::to_string(message.attempt());
  variables["SLUICE_MAX_ATTEMPTS"] = std::to_string(message.max_attempts());
  variables["SLUICE_CONTENT_TYPE"] = until_zero(message.content_type());
  variables["SLUICE_GROUP"] = until_zero(message.group());
  std::vector<std::string> entries;
  entries.reserve(variables.size());
  for (const auto& [name, value] : variables) {
    entries.push_back(name + "=" + value);
  }
  return entries;
}
