#include "host/stores/sqlite/key_batch.hpp"

#include "host/stores/sqlite/hash_rows.hpp"

namespace sluice::queue::sqlite {

namespace {

// A record is a number, its head, and then the key, the owner and the result with their lengths, the last two where the
// head says that they are there. Numbers are of seven bits a byte, the lowest first. A head is never 0: so many zeros
// stand in the place of a record that is gone.
constexpr std::uint64_t kHasOwner = 1;
constexpr std::uint64_t kHasResult = 2;
constexpr std::uint64_t kThere = 4;
constexpr unsigned kLengthShift = 3;
// What a record may take beside its bytes.
constexpr std::size_t kMostHead = 12;

void append_number(std::string& batch, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7U) {
    batch += static_cast<char>(0x80U | (number & 0x7FU));
  }
  batch += static_cast<char>(number);
}

/// Up to eight bytes as a number, the first one lowest.
std::uint64_t word_of(const char* bytes, std::size_t count) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < count; ++i) {
    word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return word;
}

}  // namespace

std::int64_t key_hash(std::int64_t job, std::string_view key) {
  // A word at a time, as every message's key is hashed twice. The steps can be
  // turned back, so that two keys of one length and one difference never meet before the end, where 16 bits go.
  constexpr std::uint64_t kFirst = 0x9E3779B97F4A7C15ULL;
  constexpr std::uint64_t kSecond = 0xFF51AFD7ED558CCDULL;
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  std::uint64_t value = (static_cast<std::uint64_t>(job) + kFirst) * kSecond + key.size();
  const auto mix = [&value](std::uint64_t word) {
    value = (value ^ word) * kFirst;
    value ^= value >> 32U;
  };
  for (; key.size() >= kWord; key.remove_prefix(kWord)) {
    mix(word_of(key.data(), kWord));
  }
  mix(word_of(key.data(), key.size()));
  value *= kSecond;
  value ^= value >> 33U;
  return static_cast<std::int64_t>(value >> (64U - kHashBits));
}

void append_key(std::string& batch, std::string_view key, std::string_view owner, std::string_view result) {
  const bool named = owner != key;
  append_number(batch, (std::uint64_t{key.size()} << kLengthShift) | kThere | (named ? kHasOwner : 0) |
                           (result.empty() ? 0 : kHasResult));
  batch += key;
  if (named) {
    append_number(batch, owner.size());
    batch += owner;
  }
  if (!result.empty()) {
    append_number(batch, result.size());
    batch += result;
  }
}

bool key_fits(const std::string& batch, std::string_view key, std::string_view owner, std::string_view result) {
  return batch.size() + key.size() + (owner == key ? 0 : owner.size()) + result.size() + kMostHead <= kBatchBytes;
}

std::string without_key(std::string_view batch, const BatchedKey& record) {
  KeyBatchReader reader(batch, record.from);
  reader.next();
  const auto after = reader.next();
  const std::size_t end = after ? after->from : batch.size();
  std::string rest(batch);
  rest.replace(record.from, end - record.from, end - record.from, '\0');
  return rest;
}

std::optional<BatchedKey> KeyBatchReader::next() {
  while (at_ < batch_.size() && batch_[at_] == '\0') {
    ++at_;
  }
  BatchedKey record{.key = {}, .owner = {}, .result = {}, .from = at_};
  std::uint64_t head = 0;
  std::uint64_t length = 0;
  if (at_ == batch_.size() || !read_number(head) || !read_bytes(head >> kLengthShift, record.key)) {
    return std::nullopt;
  }
  record.owner = record.key;
  if ((head & kHasOwner) != 0 && !(read_number(length) && read_bytes(length, record.owner))) {
    return std::nullopt;
  }
  if ((head & kHasResult) != 0 && !(read_number(length) && read_bytes(length, record.result))) {
    return std::nullopt;
  }
  return record;
}

bool KeyBatchReader::read_number(std::uint64_t& number) {
  number = 0;
  for (unsigned shift = 0; at_ < batch_.size() && shift < 63; shift += 7) {
    const auto byte = static_cast<unsigned char>(batch_[at_++]);
    number |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) {
      return true;
    }
  }
  return false;
}

bool KeyBatchReader::read_bytes(std::uint64_t count, std::string_view& bytes) {
  if (count > batch_.size() - at_) {
    return false;
  }
  bytes = batch_.substr(at_, count);
  at_ += count;
  return true;
}

std::optional<BatchedKey> find_in_batch(std::string_view batch, std::string_view key) {
  std::optional<BatchedKey> found;
  KeyBatchReader reader(batch);
  while (const auto record = reader.next()) {
    if (record->key == key) {
      found = record;
    }
  }
  return found;
}

}  // namespace sluice::queue::sqlite
