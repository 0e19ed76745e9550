#pragma once

#include <cstddef>

/// What an item and a request may hold, and what of a failure is kept.
namespace sluice::queue::table {

/// DynamoDB's limits.
inline constexpr std::size_t kMaxItemBytes = 400 * 1024;
inline constexpr std::size_t kMaxIdBytes = 2048;
inline constexpr std::size_t kMaxStatementsPerBatch = 25;
/// Of values in one batch: a request holds 16 MB, and JSON may write a byte as six.
inline constexpr std::size_t kMaxBatchBytes = 2'500'000;
inline constexpr std::size_t kMaxKeysPerBatchGet = 100;

/// Longest failure text that is kept with a message, in bytes.
inline constexpr std::size_t kMaxFailureBytes = 1024;
/// The same of an attempt before the last one: four of them and their names stay within a write unit.
inline constexpr std::size_t kMaxEarlierFailureBytes = 120;

}  // namespace sluice::queue::table
