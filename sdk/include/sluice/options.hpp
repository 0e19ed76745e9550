#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/abi.h"
#include "sluice/detail/option_text.hpp"
#include "sluice/message.hpp"

namespace sluice {

namespace detail {

template <typename T>
struct IsDuration : std::false_type {};
template <typename Rep, typename Period>
struct IsDuration<std::chrono::duration<Rep, Period>> : std::true_type {};

/// The option type that holds a T; 0 for a T that no option can be.
template <typename T>
constexpr sluice_option_type option_type() {
  if constexpr (std::same_as<T, std::string>) {
    return SLUICE_OPTION_STRING;
  } else if constexpr (std::same_as<T, bool>) {
    return SLUICE_OPTION_BOOLEAN;
  } else if constexpr (std::integral<T>) {
    return SLUICE_OPTION_INTEGER;
  } else if constexpr (std::floating_point<T>) {
    return SLUICE_OPTION_NUMBER;
  } else if constexpr (IsDuration<T>::value) {
    return SLUICE_OPTION_DURATION;
  } else if constexpr (std::same_as<T, std::vector<std::string>>) {
    return SLUICE_OPTION_LIST;
  } else if constexpr (std::same_as<T, std::map<std::string, std::string>>) {
    return SLUICE_OPTION_MAP;
  } else {
    return 0;
  }
}

/// "a string", "an integer", as errors speak of it.
constexpr const char* describe(sluice_option_type type) {
  switch (type) {
    case SLUICE_OPTION_STRING:
      return "a string";
    case SLUICE_OPTION_INTEGER:
      return "an integer";
    case SLUICE_OPTION_NUMBER:
      return "a number";
    case SLUICE_OPTION_BOOLEAN:
      return "true or false";
    case SLUICE_OPTION_DURATION:
      return "a duration such as \"30s\"";
    case SLUICE_OPTION_LIST:
      return "a list of strings";
    case SLUICE_OPTION_MAP:
      return "a table of strings";
    default:
      return "of an unknown type";
  }
}

constexpr bool is_value_text(sluice_option_type type, std::string_view text) {
  const auto ignore = [](Discard) {};
  switch (type) {
    case SLUICE_OPTION_STRING:
      return true;
    case SLUICE_OPTION_INTEGER:
      return parse_integer(text).has_value();
    case SLUICE_OPTION_NUMBER:
      return is_number(text);
    case SLUICE_OPTION_BOOLEAN:
      return parse_boolean(text).has_value();
    case SLUICE_OPTION_DURATION:
      return parse_duration_text(text).has_value();
    case SLUICE_OPTION_LIST:
      return TextReader(text).list<Discard>(ignore);
    case SLUICE_OPTION_MAP:
      return TextReader(text).map<Discard>(ignore);
    default:
      return false;
  }
}

}  // namespace detail

/// A type that an option can have: std::string, bool, an integer, a floating-point number, a std::chrono duration,
/// std::vector<std::string>, or std::map<std::string, std::string>.
template <typename T>
concept OptionType = detail::option_type<T>()
!= 0;

/// The declaration of one option. A handler lists its options in a static member:
///
///     static constexpr sluice::OptionSpec options[] = {
///         sluice::option<std::string>("greeting", "hello", "What to say."),
///         sluice::option<std::chrono::seconds>("pause", "How long to wait before; default: not at all."),
///         sluice::required<std::string>("token", "The password of the service.").secret(),
///     };
///
/// The host checks a job's options against the list, fills in the defaults, and shows the list to people. The list is
/// public; `static constexpr std::array<sluice::OptionSpec, 0> options{};` says that there are none. (Call the
/// constructor's parameter something else, such as `values`, or -Wshadow complains.)
struct OptionSpec {
  sluice_option_type type = 0;
  std::uint32_t flags = 0;
  const char* name = nullptr;
  const char* default_value = nullptr;
  const char* help = nullptr;

  /// The same, and the host never prints its value.
  constexpr OptionSpec secret() const { return {type, flags | SLUICE_OPTION_SECRET, name, default_value, help}; }
};

/// An option with a default, written as in TOML but without the quotes of a string: "hello", "5", "true", "30s",
/// R"(["a", "b"])", R"({name = "value"})". A default that is no T does not compile.
template <OptionType T>
constexpr OptionSpec option(const char* name, const char* default_value, const char* help) {
  if (!detail::is_value_text(detail::option_type<T>(), default_value)) {
    throw "the default of this option is not of the option's type";
  }
  return {detail::option_type<T>(), 0, name, default_value, help};
}

/// An option without a default: the handler asks `has`, or names a fallback in `get`.
template <OptionType T>
constexpr OptionSpec option(const char* name, const char* help) {
  return {detail::option_type<T>(), 0, name, nullptr, help};
}

/// An option that a job must set.
template <OptionType T>
constexpr OptionSpec required(const char* name, const char* help) {
  return {detail::option_type<T>(), SLUICE_OPTION_REQUIRED, name, nullptr, help};
}

/// What a job configures for its handler, defaults included. Only within the handler's constructor; copy what is kept.
///
/// A wrong type or a missing option throws std::invalid_argument with a sentence for the user, to ask for one that the
/// handler does not declare std::logic_error with one for the author; leave it uncaught and the job does not start.
class Options {
 public:
  /// `declared`: the options that the handler lists; nothing when it takes any.
  Options(const sluice_option_value* const* values, std::size_t count,
          std::optional<std::span<const OptionSpec>> declared = std::nullopt)
      : values_(values), count_(count), declared_(declared) {}
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  bool has(std::string_view name) const { return value_of(name) != nullptr; }

  /// The value of an option that must be there.
  template <OptionType T>
  T get(std::string_view name) const {
    if (const sluice_option_value* value = value_of(name)) {
      return convert<T>(*value);
    }
    missing(name);
  }

  /// The value of an option, or the fallback when it is not configured and has no default.
  template <OptionType T>
  T get(std::string_view name, T fallback) const {
    const sluice_option_value* value = value_of(name);
    return value == nullptr ? std::move(fallback) : convert<T>(*value);
  }
  std::string get(std::string_view name, const char* fallback) const { return get<std::string>(name, fallback); }

  /// The value of an option that may be absent.
  template <OptionType T>
  std::optional<T> find(std::string_view name) const {
    const sluice_option_value* value = value_of(name);
    return value == nullptr ? std::nullopt : std::optional<T>(convert<T>(*value));
  }

  std::chrono::nanoseconds duration(std::string_view name) const { return get<std::chrono::nanoseconds>(name); }
  std::chrono::nanoseconds duration(std::string_view name, std::chrono::nanoseconds fallback) const {
    return get<std::chrono::nanoseconds>(name, fallback);
  }
  /// Empty when the option is absent.
  std::vector<std::string> list(std::string_view name) const { return get<std::vector<std::string>>(name, {}); }
  std::map<std::string, std::string> map(std::string_view name) const {
    return get<std::map<std::string, std::string>>(name, {});
  }

  /// The names of all options that have a value.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count_; ++i) {
      names.emplace_back(detail::view(values_[i]->name));
    }
    return names;
  }

 private:
  /// A job cannot set an option that is not declared, so that the author is told and not whoever writes the job.
  const sluice_option_value* value_of(std::string_view name) const {
    if (declared_ && std::none_of(declared_->begin(), declared_->end(),
                                  [name](const OptionSpec& spec) { return spec.name == name; })) {
      throw std::logic_error("the option \"" + std::string(name) +
                             "\" is read and not declared, a defect of the plugin: add sluice::option<...>(\"" +
                             std::string(name) + "\", ...) to the handler's `options`");
    }
    for (std::size_t i = 0; i < count_; ++i) {
      if (detail::view(values_[i]->name) == name) {
        return values_[i];
      }
    }
    return nullptr;
  }

  [[noreturn]] static void missing(std::string_view name) {
    throw std::invalid_argument("the option \"" + std::string(name) + "\" is missing: set it in [job.options]");
  }

  [[noreturn]] static void wrong_type(const sluice_option_value& value, sluice_option_type wanted) {
    throw std::invalid_argument("the option \"" + std::string(detail::view(value.name)) + "\" must be " +
                                detail::describe(wanted));
  }

  template <typename T>
  static T convert(const sluice_option_value& value) {
    constexpr sluice_option_type kWanted = detail::option_type<T>();
    if constexpr (kWanted == SLUICE_OPTION_DURATION) {
      return duration_of<T>(value);
    } else if constexpr (kWanted == SLUICE_OPTION_NUMBER) {
      return static_cast<T>(number(value));
    } else {
      if (value.type != kWanted) {
        wrong_type(value, kWanted);
      }
      if constexpr (kWanted == SLUICE_OPTION_STRING) {
        return std::string(detail::view(value.string));
      } else if constexpr (kWanted == SLUICE_OPTION_BOOLEAN) {
        return value.integer != 0;
      } else if constexpr (kWanted == SLUICE_OPTION_INTEGER) {
        return integer<T>(value);
      } else {
        return items<T>(value);
      }
    }
  }

  static double number(const sluice_option_value& value) {
    if (value.type == SLUICE_OPTION_INTEGER) {
      return static_cast<double>(value.integer);
    }
    if (value.type != SLUICE_OPTION_NUMBER) {
      wrong_type(value, SLUICE_OPTION_NUMBER);
    }
    return value.number;
  }

  template <typename T>
  static T integer(const sluice_option_value& value) {
    if (!std::in_range<T>(value.integer)) {
      throw std::invalid_argument("the option \"" + std::string(detail::view(value.name)) +
                                  "\" is out of range: from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
                                  std::to_string(std::numeric_limits<T>::max()));
    }
    return static_cast<T>(value.integer);
  }

  /// What T counts, and no less: "500ms" are not no seconds.
  template <typename T>
  static T duration_of(const sluice_option_value& value) {
    const std::chrono::nanoseconds given(nanoseconds(value));
    const T taken = std::chrono::duration_cast<T>(given);
    if constexpr (std::integral<typename T::rep>) {
      if (std::chrono::duration_cast<std::chrono::nanoseconds>(taken) != given) {
        throw std::invalid_argument(
            "the option \"" + std::string(detail::view(value.name)) + "\" is \"" +
            std::string(detail::view(value.string)) + "\", and its handler counts in steps of " +
            std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(T(1)).count()) + "ns");
      }
    }
    return taken;
  }

  /// Options that no handler declares arrive as TOML has them, and TOML has durations as strings.
  static std::int64_t nanoseconds(const sluice_option_value& value) {
    if (value.type == SLUICE_OPTION_DURATION) {
      return value.integer;
    }
    if (value.type == SLUICE_OPTION_STRING) {
      if (const auto parsed = detail::parse_duration_text(detail::view(value.string))) {
        return *parsed;
      }
    }
    wrong_type(value, SLUICE_OPTION_DURATION);
  }

  template <typename T>
  static T items(const sluice_option_value& value) {
    T result;
    if constexpr (std::same_as<T, std::vector<std::string>>) {
      for (std::size_t i = 0; i < value.item_count; ++i) {
        result.emplace_back(detail::view(value.items[i]));
      }
    } else {
      for (std::size_t i = 0; i + 1 < value.item_count; i += 2) {
        result.emplace(detail::view(value.items[i]), detail::view(value.items[i + 1]));
      }
    }
    return result;
  }

  const sluice_option_value* const* values_;
  std::size_t count_;
  std::optional<std::span<const OptionSpec>> declared_;
};

}  // namespace sluice
