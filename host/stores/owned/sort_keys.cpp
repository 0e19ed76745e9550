#include "host/stores/owned/sort_keys.hpp"

#include <algorithm>

#include "base/fnv1a.hpp"

namespace sluice::queue::owned {
namespace {

constexpr std::uint64_t kMostMillis = (std::uint64_t{1} << (5 * kTimeDigits)) - 1;
// What is moved to the front goes below all that was moved so before: the keys count backwards from 2000, by the ms
// since 2020. They last until 2049, and what is moved later lies at their end.
constexpr WallTime kFrontBegins{std::chrono::seconds(1'577'836'800)};  // 2020-01-01

constexpr int kMarkBits = 31;
constexpr std::int64_t kMostMark = (std::int64_t{1} << kMarkBits) - 1;

// What each character stands for; kNoDigit: it is none of them. Every message's key is read several times.
constexpr std::uint8_t kNoDigit = 32;
constexpr auto kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::size_t value = 0; value < kBase32Digits.size(); ++value) {
    values[static_cast<unsigned char>(kBase32Digits[value])] = static_cast<std::uint8_t>(value);
  }
  return values;
}();

std::string key_prefix(Priority priority, WallTime due) {
  std::string key(1, static_cast<char>('0' + static_cast<int>(priority)));
  append_digits(key, static_cast<std::uint64_t>(millis_of(due)), kTimeDigits);
  return key;
}

}  // namespace

void append_digits(std::string& out, std::uint64_t value, std::size_t digits) {
  for (std::size_t left = digits; left > 0; --left) {
    out += kBase32Digits[(value >> (5 * (left - 1))) & 31U];
  }
}

std::optional<std::uint64_t> read_digits(std::string_view text) {
  std::uint64_t value = 0;
  for (const char digit : text) {
    const std::uint8_t read = kValues[static_cast<unsigned char>(digit)];
    if (read == kNoDigit) {
      return std::nullopt;
    }
    value = value << 5U | read;
  }
  return value;
}

std::int64_t millis_of(WallTime time) {
  const auto millis = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
  return std::max<std::int64_t>(millis, 0);
}

WallTime time_of_millis(std::int64_t millis) {
  constexpr std::int64_t kEnd = std::chrono::milliseconds(std::chrono::seconds(9'214'646'399)).count();
  static_assert(kEnd < static_cast<std::int64_t>(kMostMillis));
  return WallTime(std::chrono::milliseconds(std::clamp<std::int64_t>(millis, 0, kEnd)));
}

WallTime whole_milliseconds(WallTime time) { return time_of_millis(millis_of(time)); }

std::string sort_key_of(Priority priority, WallTime due, Random& random) {
  const std::uint64_t high = random.next();
  return sort_key_of(priority, due, high, random.next());
}

std::string sort_key_of(Priority priority, WallTime due, std::uint64_t high, std::uint64_t low) {
  std::string key = key_prefix(priority, due);
  append_digits(key, high, kChanceDigits / 2);
  append_digits(key, low, kChanceDigits / 2);
  return key;
}

std::string first_sort_key(Priority priority, WallTime due) {
  return key_prefix(priority, due) + std::string(kChanceDigits, kBase32Digits.front());
}

std::string last_sort_key(Priority priority, WallTime due) {
  return key_prefix(priority, due) + std::string(kChanceDigits, kBase32Digits.back());
}

std::string front_sort_key(WallTime now, Random& random) {
  const Duration since = std::clamp<Duration>(now - kFrontBegins, Duration::zero(), kFrontEnd.time_since_epoch());
  return sort_key_of(Priority::critical, kFrontEnd - std::chrono::milliseconds(1) - since, random);
}

std::int64_t locator_of(std::uint32_t number, std::string_view sort) {
  return static_cast<std::int64_t>(number) << kMarkBits | static_cast<std::int64_t>(fnv1a(sort) % kMostMark + 1);
}

bool may_be_at(std::int64_t locator, std::string_view sort) {
  const std::int64_t mark = locator & kMostMark;
  return mark == 0 || mark == (locator_of(0, sort) & kMostMark);
}

bool is_sort_key(std::string_view sort) {
  return sort.size() == kSortBytes && sort.front() >= '0' && sort.front() < '0' + static_cast<int>(kPriorities) &&
         read_digits(sort.substr(1)).has_value();
}

WallTime due_of(std::string_view sort) {
  if (!is_sort_key(sort)) {
    return {};
  }
  return time_of_millis(static_cast<std::int64_t>(read_digits(sort.substr(1, kTimeDigits)).value_or(0)));
}

Priority priority_of(std::string_view sort) {
  return is_sort_key(sort) ? static_cast<Priority>(sort.front() - '0') : Priority::normal;
}

}  // namespace sluice::queue::owned
