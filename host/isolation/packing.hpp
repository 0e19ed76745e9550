#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace sluice::isolation {

/// Writes numbers as they lie in memory, and text behind its length.
class Packer {
 public:
  explicit Packer(char* at) : at_(at) {}

  template <typename Number>
  void number(Number value) {
    std::memcpy(at_, &value, sizeof(value));
    at_ += sizeof(value);
  }
  void text(std::string_view value) {
    number(static_cast<std::uint64_t>(value.size()));
    at_ = std::copy_n(value.data(), value.size(), at_);
  }

 private:
  char* at_;
};

/// As Packer, and counts only.
class Measure {
 public:
  template <typename Number>
  void number(Number) {
    size_ += sizeof(Number);
  }
  void text(std::string_view value) { size_ += sizeof(std::uint64_t) + value.size(); }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

  template <typename Number>
  Number number() {
    Number value{};
    if (bytes_.size() < sizeof(value)) {
      good_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(value));
    bytes_.remove_prefix(sizeof(value));
    return value;
  }
  std::string_view text() {
    const auto size = number<std::uint64_t>();
    if (size > bytes_.size()) {
      good_ = false;
      return {};
    }
    const std::string_view value = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return value;
  }
  bool good() const { return good_; }
  bool complete() const { return good_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

}  // namespace sluice::isolation
