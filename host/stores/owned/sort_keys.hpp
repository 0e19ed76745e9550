#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/queue/message.hpp"

/// Keys by which messages lie in a part: 27 characters that sort by priority and then by time, the rest chance. Pure
/// functions.
namespace sluice::queue::owned {

// Crockford's base32: its characters sort as their values do.
inline constexpr std::string_view kBase32Digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
inline constexpr std::size_t kTimeDigits = 10;
inline constexpr std::size_t kChanceDigits = 16;
inline constexpr std::size_t kSortBytes = 1 + kTimeDigits + kChanceDigits;

/// What moved to the front lies below this time, which nothing that is sent ever does.
inline constexpr WallTime kFrontEnd{std::chrono::seconds(946'684'800)};  // 2000-01-01

void append_digits(std::string& out, std::uint64_t value, std::size_t digits);
/// Nothing for what holds anything else.
std::optional<std::uint64_t> read_digits(std::string_view text);

/// Times as keys have them: whole ms, from 1970 on to where times end.
std::int64_t millis_of(WallTime time);
WallTime time_of_millis(std::int64_t millis);
WallTime whole_milliseconds(WallTime time);

std::string sort_key_of(Priority priority, WallTime due, Random& random);
/// The same with the chance given: twice 40 bits.
std::string sort_key_of(Priority priority, WallTime due, std::uint64_t high, std::uint64_t low);
/// The lowest key of that priority and time, and the highest.
std::string first_sort_key(Priority priority, WallTime due);
std::string last_sort_key(Priority priority, WallTime due);
/// The lowest key beyond that one: keys are of one length, and nothing sorts before their digits.
inline std::string beyond(const std::string& key) { return key + '0'; }
/// The key by which a message of whatever priority goes before all others, those moved so earlier too.
std::string front_sort_key(WallTime now, Random& random);

/// The locator of a receipt: a number that tells deliveries of one half apart where it has to, and in 31 bits a mark of
/// the sort key, which tells the message from a later one that was sent under the same id.
std::int64_t locator_of(std::uint32_t number, std::string_view sort);
/// False: its receipt is of a message that lay elsewhere.
bool may_be_at(std::int64_t locator, std::string_view sort);

bool is_sort_key(std::string_view sort);
/// Of what is no such key: the epoch.
WallTime due_of(std::string_view sort);
/// The priority that the key sorts by, which is the message's own unless it was moved to the front.
Priority priority_of(std::string_view sort);

}  // namespace sluice::queue::owned
