#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace sluice {

/// Something that cannot be committed with a message: what, and what to do about it. Out of `handle` it is a fault.
class EffectError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Item;

namespace detail {

/// Appends it as a JSON string. Throws EffectError for what is not UTF-8.
inline void append_json_string(std::string_view text, std::string& json) {
  json += '"';
  std::size_t tail = 0;  // bytes of a character that are still to come
  unsigned char least = 0x80;
  unsigned char most = 0xBF;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (tail > 0 ? byte < least || byte > most : byte >= 0x80 && (byte < 0xC2 || byte > 0xF4)) {
      throw EffectError("a text that is not UTF-8: make it a sluice::binary");
    }
    if (tail > 0) {
      --tail;
      least = 0x80;
      most = 0xBF;
    } else if (byte >= 0x80) {
      tail = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
      // No character has two spellings, none is half a surrogate pair, none lies beyond the last.
      least = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
      most = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    }
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (byte < 0x20) {
      json += "\\u00";
      json += "0123456789abcdef"[byte >> 4U];
      json += "0123456789abcdef"[byte & 0xFU];
    } else {
      json += c;
    }
  }
  if (tail > 0) {
    throw EffectError("a text that ends within a character of UTF-8: make it a sluice::binary");
  }
  json += '"';
}

inline std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = bytes.size() - at < 3 ? bytes.size() - at : 3;
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8U | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= count ? kDigits[group >> (18 - 6 * i) & 63U] : '=';
    }
  }
  return text;
}

template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;

}  // namespace detail

/// A value of DynamoDB's: made from texts, numbers, true and false, nullptr, an Item (a map), or by the functions
/// below. What it holds is DynamoDB JSON. A value.
class Value {
 public:
  Value(const char* text) : Value(std::string_view(text)) {}
  Value(const std::string& text) : Value(std::string_view(text)) {}
  Value(std::string_view text) : json_("{\"S\":") {
    detail::append_json_string(text, json_);
    json_ += '}';
  }
  Value(std::same_as<bool> auto truth) : json_(truth ? "{\"BOOL\":true}" : "{\"BOOL\":false}") {}
  Value(std::nullptr_t) : json_("{\"NULL\":true}") {}
  Value(detail::Integer auto number) : json_("{\"N\":\"" + std::to_string(number) + "\"}") {}
  /// In the fewest digits that mean this very number; sums of money are better off as integers or `number("0.10")`.
  Value(std::floating_point auto number) {
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof(digits), number);
    if (!std::isfinite(number) || end.ec != std::errc()) {
      throw EffectError("a number that is not finite: DynamoDB has none");
    }
    json_ = "{\"N\":\"" + std::string(digits, end.ptr) + "\"}";
  }
  Value(const Item& map);

  const std::string& json() const { return json_; }

  /// A value from its DynamoDB JSON, {"S": "a"}, as it is; it is judged when it is staged.
  static Value from_json(std::string json) {
    Value value(nullptr);
    value.json_ = std::move(json);
    return value;
  }

 private:
  std::string json_;
};

/// An item, or its key: names and values, `{{"id", "a"}, {"balance", 5}}`. A value.
class Item {
 public:
  struct Member {
    std::string_view name;
    Value value;
  };

  Item() = default;
  Item(std::initializer_list<Member> members) {
    for (const Member& member : members) {
      set(member.name, member.value);
    }
  }

  Item& set(std::string_view name, const Value& value) {
    json_.erase(std::min(json_.find_last_of('}'), json_.size()));
    json_ += json_.find_first_not_of(" \t\r\n{") == std::string::npos ? "" : ",";
    detail::append_json_string(name, json_);
    json_ += ':' + value.json() + '}';
    return *this;
  }

  std::string json() const { return json_; }
  /// Without members.
  bool empty() const { return json_ == "{}"; }

  /// An item from its DynamoDB JSON, {"id": {"S": "a"}}, as it is; it is judged when it is staged.
  static Item from_json(std::string json) {
    Item item;
    item.json_ = json.empty() ? "{}" : std::move(json);
    return item;
  }

 private:
  std::string json_ = "{}";
};

inline Value::Value(const Item& map) : json_("{\"M\":" + map.json() + "}") {}

namespace detail {

template <typename Range, typename Write>
Value collection(const char* type, const Range& elements, Write write) {
  std::string json = std::string("{\"") + type + "\":[";
  bool first = true;
  for (const auto& element : elements) {
    json += first ? "" : ",";
    first = false;
    write(element, json);
  }
  return Value::from_json(json + "]}");
}

}  // namespace detail

/// A number by its digits, up to 38 of them: nothing is rounded.
inline Value number(std::string_view digits) {
  std::string json = "{\"N\":";
  detail::append_json_string(digits, json);
  return Value::from_json(json + "}");
}
inline Value binary(std::string_view bytes) { return Value::from_json("{\"B\":\"" + detail::base64(bytes) + "\"}"); }
inline Value list(std::initializer_list<Value> values) {
  return detail::collection("L", values, [](const Value& value, std::string& json) { json += value.json(); });
}
/// Of any range of values.
template <typename Range>
Value list_of(const Range& values) {
  return detail::collection("L", values, [](const auto& value, std::string& json) { json += Value(value).json(); });
}
inline Value string_set(std::initializer_list<std::string_view> texts) {
  return detail::collection("SS", texts, &detail::append_json_string);
}
inline Value number_set(std::initializer_list<std::string_view> digits) {
  return detail::collection("NS", digits, &detail::append_json_string);
}
inline Value binary_set(std::initializer_list<std::string_view> values) {
  return detail::collection(
      "BS", values, [](std::string_view bytes, std::string& json) { json += '"' + detail::base64(bytes) + '"'; });
}

}  // namespace sluice
