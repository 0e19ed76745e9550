#include "base/text/plain_json.hpp"

#include <algorithm>
#include <cstdint>

#include "base/text/json_string.hpp"

namespace sluice {

namespace {

constexpr std::size_t kMostDepth = 64;

/// Passes over one value. What returns false ends the scan.
class PlainScan {
 public:
  PlainScan(std::string_view text, std::size_t max_depth)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), max_depth_(std::min(max_depth, kMostDepth)) {}

  std::size_t length() {
    do {
      begun_ = false;
      if (!value()) {
        return 0;
      }
    } while (begun_);
    return static_cast<std::size_t>(at_ - begin_);
  }

 private:
  char peek() {
    while (at_ != end_ && *at_ <= ' ' && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) {
      ++at_;
    }
    return at_ != end_ ? *at_ : '\0';
  }
  bool pass(char wanted) {
    const bool found = peek() == wanted;
    at_ += found ? 1 : 0;
    return found;
  }
  bool is_object() const { return (objects_ & 1U) != 0; }

  // A value that holds none, or the beginning of one that holds some; then what ends those that end behind it.
  bool value() {
    const char first = peek();
    if (first == '{' || first == '[') {
      return begin(first == '{');
    }
    return scalar(first) && close();
  }
  bool begin(bool object) {
    if (depth_ == max_depth_) {
      return false;
    }
    ++at_;
    ++depth_;
    objects_ = objects_ << 1U | (object ? 1U : 0U);
    if (peek() == (object ? '}' : ']')) {
      return close();
    }
    begun_ = true;
    return !object || name();
  }
  // Up to where another value begins, or the outermost one has ended.
  bool close() {
    while (depth_ > 0) {
      const char next = peek();
      if (next == ',') {
        ++at_;
        begun_ = true;
        return !is_object() || name();
      }
      if (next != (is_object() ? '}' : ']')) {
        return false;
      }
      ++at_;
      --depth_;
      objects_ >>= 1U;
    }
    return true;
  }
  bool name() { return peek() == '"' && string() && pass(':'); }
  bool scalar(char first) {
    switch (first) {
      case '"':
        return string();
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }
  bool string() {
    ++at_;
    at_ += plain_run({at_, static_cast<std::size_t>(end_ - at_)});
    return at_ != end_ && *at_++ == '"';
  }
  bool word(std::string_view wanted) {
    const bool found = std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(wanted);
    at_ += found ? wanted.size() : 0;
    return found;
  }
  bool digits() {
    const char* const first = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') {
      ++at_;
    }
    return at_ != first;
  }
  bool one_of(char one, char other) {
    const bool found = at_ != end_ && (*at_ == one || *at_ == other);
    at_ += found ? 1 : 0;
    return found;
  }
  bool number() {
    one_of('-', '-');
    const char* const first = at_;
    if (!digits() || (*first == '0' && at_ - first > 1)) {
      return false;
    }
    if (one_of('.', '.') && !digits()) {
      return false;
    }
    if (one_of('e', 'E')) {
      one_of('+', '-');
      return digits();
    }
    return true;
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  const std::size_t max_depth_;
  std::size_t depth_ = 0;
  std::uint64_t objects_ = 0;  ///< which of those that are open are objects, the innermost one lowest
  bool begun_ = false;         ///< a value is due
};

}  // namespace

std::size_t plain_json(std::string_view text, std::size_t max_depth) { return PlainScan(text, max_depth).length(); }

}  // namespace sluice
