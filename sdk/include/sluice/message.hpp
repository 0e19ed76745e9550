#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "sluice/abi.h"

namespace sluice {

namespace detail {
/// Empty where it has no address, whatever size it says.
inline std::string_view view(sluice_string text) {
  return text.data == nullptr ? std::string_view() : std::string_view(text.data, text.size);
}
inline sluice_string borrow(std::string_view text) { return {text.data(), text.size()}; }
}  // namespace detail

/// One attribute of a message.
struct Attribute {
  std::string_view name;
  std::string_view value;
};

/// The attributes of a message, for a range-for: `for (auto [name, value] : message.attributes())`.
class Attributes {
 public:
  class Iterator {
   public:
    using value_type = Attribute;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using pointer = void;
    using reference = Attribute;

    Iterator() = default;
    explicit Iterator(const sluice_attribute* at) : at_(at) {}
    Attribute operator*() const { return {detail::view(at_->name), detail::view(at_->value)}; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    const sluice_attribute* at_ = nullptr;
  };

  Attributes(const sluice_attribute* first, std::size_t count) : first_(first), count_(count) {}
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(count_ == 0 ? first_ : first_ + count_); }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }

 private:
  const sluice_attribute* first_;
  std::size_t count_;
};

/// The message a handler works on. Everything it answers is valid until `handle` returns; copy what is to be kept.
class Message {
 public:
  explicit Message(const sluice_message& message) : message_(message) {}
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  std::string_view id() const { return detail::view(message_.id); }
  std::string_view queue() const { return detail::view(message_.queue); }
  /// The bytes as the queue holds them; text that is stored as text is UTF-8.
  std::string_view body() const { return detail::view(message_.body); }
  /// "text/plain", "application/json", "application/octet-stream", or what the sender named.
  std::string_view content_type() const { return detail::view(message_.content_type); }
  /// Empty: the message belongs to no group.
  std::string_view group() const { return detail::view(message_.group); }

  /// 1 at the first delivery.
  std::uint32_t attempt() const { return message_.attempt; }
  /// 0: there is no limit.
  std::uint32_t max_attempts() const { return message_.max_attempts; }
  bool last_attempt() const { return max_attempts() != 0 && attempt() >= max_attempts(); }

  std::chrono::sys_time<std::chrono::nanoseconds> sent_at() const {
    return std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(message_.sent_at));
  }

  Attributes attributes() const { return {message_.attributes, message_.attribute_count}; }
  /// The value of an attribute; nothing when the message has none of that name.
  std::optional<std::string_view> attribute(std::string_view name) const {
    for (const Attribute& attribute : attributes()) {
      if (attribute.name == name) {
        return attribute.value;
      }
    }
    return std::nullopt;
  }
  std::string_view attribute(std::string_view name, std::string_view fallback) const {
    return attribute(name).value_or(fallback);
  }

 private:
  const sluice_message& message_;
};

}  // namespace sluice
