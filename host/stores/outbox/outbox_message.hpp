#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "host/queue/source.hpp"
#include "host/stores/outbox/row_scheduler.hpp"
#include "host/stores/outbox/rows.hpp"

/// How rows and messages stand for each other.
namespace sluice::queue::outbox {

/// Where a row comes from, as it goes out with it.
struct Origin {
  std::string producer;
  std::string source_id;  ///< of its table, by which brokers know a row again; empty: not known for certain
};
/// `producer` as it is configured, or empty.
Origin origin_of(const std::string& producer, const SourceId& source);
/// The row as a handler is given it. `now` is its `sent_at` where the table does not say.
Message message_of(Row&& row, const Origin& origin, WallTime now);

/// Why a row failed, as every database can keep it: UTF-8 without NUL, and no longer than this many bytes.
inline constexpr std::size_t kLongestReason = 4096;
std::string reason_of(std::string_view error);

/// What a completion writes about the row that its receipt names; nothing where nothing is written: a release.
std::optional<Mark> mark_of(const Completion& completion, const RowKey& key, std::uint32_t retry_limit);

/// What becomes of the row in memory once the mark is written.
Fate fate_of(const Completion& completion);

}  // namespace sluice::queue::outbox
