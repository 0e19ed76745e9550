#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::queue::sqlite {

/// Remembers hashes of 48 bits in two bytes each, so that it forgets none and takes about one of two hundred others for
/// one of them: a Bloom filter, all bits of a hash in one word. Beyond `room` it is wrong more often.
class HashFilter {
 public:
  /// Forgets all; there is room for so many, as far as memory allows it.
  void reset(std::size_t room);
  void add(std::int64_t hash) {
    words_[word_of(hash)] |= bits_of(hash);
    ++added_;
  }
  /// False: it was not added.
  bool may_have(std::int64_t hash) const {
    const std::uint64_t bits = bits_of(hash);
    return (words_[word_of(hash)] & bits) == bits;
  }
  /// Has the processor read already what `may_have` and `add` look at.
  void prefetch(std::int64_t hash) const { __builtin_prefetch(&words_[word_of(hash)]); }
  bool full() const { return added_ >= room_; }

 private:
  // The lower bits of a hash choose the word, and the upper ones the bits in it.
  std::size_t word_of(std::int64_t hash) const { return static_cast<std::size_t>(hash) & (words_.size() - 1); }
  static std::uint64_t bits_of(std::int64_t hash) {
    const auto value = static_cast<std::uint64_t>(hash);
    return one_bit(value >> 24U) | one_bit(value >> 30U) | one_bit(value >> 36U) | one_bit(value >> 42U);
  }
  static std::uint64_t one_bit(std::uint64_t number) { return std::uint64_t{1} << (number & 63U); }

  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(1);
  std::size_t room_ = 0;
  std::size_t added_ = 0;
};

}  // namespace sluice::queue::sqlite
