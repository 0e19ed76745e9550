#include <algorithm>
#include <charconv>
#include <limits>

#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"
#include "dynamo/item_reading.hpp"
#include "dynamo/signing/digest.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/made_ids.hpp"
#include "host/stores/table/nonce.hpp"

namespace sluice::queue::leased {
namespace {

constexpr std::size_t kMostGroupInAKey = 512;
constexpr std::int64_t kMostMark = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t kMostMillis = (std::uint64_t{1} << (5 * kTimeDigits)) - 1;
// What is moved to the front goes below all that was moved so before: the keys count backwards from 2000, by the ms
// since 2020. They last until 2049, and what is moved later lies at their end.
constexpr WallTime kFrontBegins{std::chrono::seconds(1'577'836'800)};  // 2020-01-01

void append_digits(std::string& out, std::uint64_t value, std::size_t digits) {
  for (std::size_t left = digits; left > 0; --left) {
    out += kBase32Digits[(value >> (5 * (left - 1))) & 31U];
  }
}

std::string key_prefix(Priority priority, WallTime due) {
  std::string key(1, static_cast<char>('0' + static_cast<int>(priority)));
  append_digits(key, static_cast<std::uint64_t>(millis_of(due)), kTimeDigits);
  return key;
}

std::string text(std::string_view queue, std::string_view mark, std::string_view rest) {
  std::string whole(queue);
  whole += mark;
  whole += rest;
  return whole;
}

// Without zeros in front, so that no shard has two names.
std::optional<std::uint32_t> shard_number(std::string_view digits) {
  std::uint32_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, failure] = std::from_chars(digits.data(), end, number);
  if (failure != std::errc() || stop != end || number >= kMostShards || (digits.size() > 1 && digits.front() == '0')) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

std::int64_t mark_of(const Place& place) {
  return static_cast<std::int64_t>(table::stable_hash(place.sort) % kMostMark) + 1;
}

bool may_be_at(const Receipt& receipt, const Place& place) {
  return receipt.locator <= 0 || receipt.locator > kMostMark || receipt.locator == mark_of(place);
}

dynamo::Item Place::key() const {
  return {{std::string(attribute::kPartition), partition}, {std::string(attribute::kSort), sort}};
}

Place Place::of(const dynamo::Item& item) {
  return {dynamo::text_of(item, attribute::kPartition), dynamo::text_of(item, attribute::kSort)};
}

std::string partition_of(std::string_view queue, Half half, std::uint32_t shard) {
  return text(queue, half == Half::dlq ? "!" : "#", std::to_string(shard));
}

std::optional<Partition> parse_partition(std::string_view partition) {
  const auto mark = partition.find_last_of("#!");
  if (mark == std::string_view::npos || mark == 0) {
    return std::nullopt;
  }
  const auto shard = shard_number(partition.substr(mark + 1));
  if (!shard) {
    return std::nullopt;
  }
  return Partition{.queue = std::string(partition.substr(0, mark)),
                   .half = partition[mark] == '!' ? Half::dlq : Half::standard,
                   .shard = *shard};
}

Half half_of(const dynamo::Item& item) {
  const auto partition = parse_partition(Place::of(item).partition);
  return partition ? partition->half : Half::standard;
}

std::string ownership_partition(std::string_view queue, Half half) {
  return text(queue, half == Half::dlq ? "@dlq" : "@", "");
}

std::string ownership_sort(std::uint32_t shard) {
  std::string digits = std::to_string(shard);
  return digits.insert(0, digits.size() < 4 ? 4 - digits.size() : 0, '0');
}

std::optional<std::uint32_t> shard_of_ownership(std::string_view sort) {
  if (sort.size() != 4) {
    return std::nullopt;
  }
  const auto first = std::min(sort.find_first_not_of('0'), sort.size() - 1);
  return shard_number(sort.substr(first));
}

std::string half_name(std::string_view queue, Half half) { return text(queue, half == Half::dlq ? "!" : "", ""); }

std::string hold_partition_of(std::string_view queue, std::uint32_t shard) {
  return text(queue, "%", std::to_string(shard));
}

Place hold_place(std::string_view queue, std::uint32_t shard, std::string_view group) {
  return {hold_partition_of(queue, shard), group.size() <= kMostGroupInAKey
                                               ? text("g", group, "")
                                               : text("h", dynamo::to_hex(dynamo::sha256(group)), "")};
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

std::optional<KeyParts> parts_of_key(std::string_view sort) {
  if (!is_sort_key(sort)) {
    return std::nullopt;
  }
  const auto digits = [sort](std::size_t from, std::size_t count) {
    return read_digits(sort.substr(from, count)).value_or(0);
  };
  return KeyParts{.priority = static_cast<Priority>(sort.front() - '0'),
                  .millis = digits(1, kTimeDigits),
                  .high = digits(1 + kTimeDigits, kChanceDigits / 2),
                  .low = digits(1 + kTimeDigits + kChanceDigits / 2, kChanceDigits / 2)};
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

std::string front_sort_key(WallTime now, Random& random) {
  const Duration since = std::clamp<Duration>(now - kFrontBegins, Duration::zero(), kFrontEnd.time_since_epoch());
  return sort_key_of(Priority::critical, kFrontEnd - std::chrono::milliseconds(1) - since, random);
}

std::string made_id(std::string_view sort, std::uint32_t shard) {
  std::string id(sort);
  append_digits(id, shard, kShardDigits);
  return id;
}

std::string spelt_moment(const Moment& moment) {
  std::string text;
  append_digits(text, static_cast<std::uint64_t>(millis_of(moment.time)), kTimeDigits);
  append_digits(text, moment.shards - 1, kShardDigits);
  return text;
}

std::optional<Moment> read_moment(std::string_view text) {
  const auto millis = read_digits(text.substr(0, kTimeDigits));
  const auto shards = text.size() == kTimeDigits + kShardDigits ? read_digits(text.substr(kTimeDigits)) : std::nullopt;
  if (!millis || !shards) {
    return std::nullopt;
  }
  return Moment{.time = time_of_millis(static_cast<std::int64_t>(*millis)),
                .shards = static_cast<std::uint32_t>(*shards) + 1};
}

std::optional<std::pair<std::string, std::uint32_t>> listed_keys(std::string_view id) {
  if (id.size() <= kShardDigits) {
    return std::nullopt;
  }
  const std::size_t sort_bytes = id.size() - kShardDigits;
  const auto shard = read_digits(id.substr(sort_bytes));
  if (!shard) {
    return std::nullopt;
  }
  return std::pair(std::string(id.substr(0, sort_bytes)), static_cast<std::uint32_t>(*shard));
}

std::optional<std::pair<std::string, std::uint32_t>> place_of_made_id(std::string_view id) {
  auto keys = listed_keys(id);
  return keys && is_sort_key(keys->first) ? std::move(keys) : std::nullopt;
}

std::optional<Place> made_place(std::string_view queue, std::string_view id) {
  auto made = place_of_made_id(id);
  if (!made) {
    return std::nullopt;
  }
  return Place{partition_of(queue, Half::standard, made->second), std::move(made->first)};
}

std::string alias_partition_of(std::string_view queue, std::string_view id) { return text(queue, "#id/", id); }

Place alias_place(std::string_view queue, std::string_view id) {
  return {alias_partition_of(queue, id), std::string(kAlone)};
}

Place alias_target(const dynamo::Item& alias) {
  return {dynamo::text_of(alias, attribute::kTarget), dynamo::text_of(alias, attribute::kTargetSort)};
}

std::size_t most_id_bytes(std::string_view queue) {
  const std::size_t taken = alias_partition_of(queue, "").size();
  return taken < table::kMaxIdBytes ? table::kMaxIdBytes - taken : 0;
}

bool is_storable_id(std::string_view queue, std::string_view id) {
  return !id.empty() && id.size() <= most_id_bytes(queue) && is_utf8(id);
}

std::string unstorable_id(std::string_view queue) {
  return "a message id must be 1 to " + std::to_string(most_id_bytes(queue)) + " bytes of UTF-8 in a leased queue";
}

}  // namespace sluice::queue::leased
