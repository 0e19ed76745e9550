#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The records of keys as they lie in one row of `key_batches`, one behind the other.
namespace sluice::queue::sqlite {

/// Bytes that a batch may have beyond its first record: with them a row fills one page of the file.
inline constexpr std::size_t kBatchBytes = 4'000;

/// One record, as bytes of a batch that outlives it.
struct BatchedKey {
  std::string_view key;
  std::string_view owner;
  std::string_view result;
  std::size_t from = 0;  ///< where it begins in its batch
};

/// Where a job's key is found, in 48 bits. Stored: it must never change.
std::int64_t key_hash(std::int64_t job, std::string_view key);

/// Adds a record at the end. An owner who is the key itself takes no room.
void append_key(std::string& batch, std::string_view key, std::string_view owner, std::string_view result);
/// Whether a record of these would still fit behind what is there.
bool key_fits(const std::string& batch, std::string_view key, std::string_view owner, std::string_view result);
/// Leaves a record out of what is read from now on; the places of the others stay.
std::string without_key(std::string_view batch, const BatchedKey& record);

/// Reads a batch from the first record to the last one. One that is cut off, as in a damaged file, ends there.
class KeyBatchReader {
 public:
  explicit KeyBatchReader(std::string_view batch, std::size_t from = 0) : batch_(batch), at_(from) {}
  std::optional<BatchedKey> next();

 private:
  bool read_number(std::uint64_t& number);
  bool read_bytes(std::uint64_t count, std::string_view& bytes);

  std::string_view batch_;
  std::size_t at_;
};

/// The last record of this key in a batch: the youngest one.
std::optional<BatchedKey> find_in_batch(std::string_view batch, std::string_view key);

}  // namespace sluice::queue::sqlite
