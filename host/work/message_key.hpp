#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "config/config.hpp"
#include "host/queue/message.hpp"

namespace sluice::work {

/// A longer key stands as its first bytes and its SHA-256, so that a store's index and an operator's screen stay small.
inline constexpr std::size_t kLongestKey = 1024;

/// What one message's key is. A value.
struct FoundKey {
  std::string key{};
  std::string missing{};  ///< not empty: there is none, and this says why
};

/// Reads messages' idempotency keys as the job says. Thread-safe.
class MessageKey {
 public:
  explicit MessageKey(config::IdempotencyConfig config) : config_(std::move(config)) {}

  /// Every delivery of one message has the same. Reads the body where the key lies there.
  FoundKey of(const queue::Message& message) const;
  /// The key is the message's own id.
  bool own_id() const { return config_.kind == config::IdempotencyConfig::Kind::message; }

 private:
  const config::IdempotencyConfig config_;
};

/// The string or number that an RFC 6901 pointer names in a JSON text: a string's characters, a number as it is
/// written.
FoundKey key_in_json(const std::string& json, const std::string& pointer);

/// A key as it is kept: itself, or what stands for one that is longer than kLongestKey.
std::string kept_key(std::string key);

}  // namespace sluice::work
