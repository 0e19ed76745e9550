#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/random.hpp"

namespace sluice::queue::table {

/// Makes the nonces that a store leaves on what it writes. After a lost answer it finds its own write by them; and they
/// tell which other hosts are at work on the same table. Sixteen characters: five for the host, eleven at random.
/// Thread-safe.
class NonceSource {
 public:
  /// Two sources are told apart by host name and by one draw from `random`, which must outlive the source.
  NonceSource(std::string_view host, Random& random);

  /// For the writes of a host at work: claims, and what comes of them.
  std::string next();
  /// For a write after which the record has to have room for others: longer by so much, which the next write of a host
  /// gives back. It says no host.
  std::string padded(std::size_t bytes);
  /// For everything else, with the eleven characters alone: who sends or edits a message does not work on the queue,
  /// and hosts must not leave a share of it to him.
  std::string anonymous();
  /// What all nonces of this source start with.
  const std::string& tag() const { return tag_; }

  /// The host's part of a nonce; empty for what is none of ours.
  static std::string_view tag_of(std::string_view nonce);

 private:
  Random& random_;
  std::string tag_;
};

/// A stable 64-bit hash (FNV-1a), alike on every host.
std::uint64_t stable_hash(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325U);

}  // namespace sluice::queue::table
