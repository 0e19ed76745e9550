#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"

/// Idempotency keys: of the messages with one key, a job works on one. Values, and the role that keeps them.
namespace sluice::queue {

/// A message about to be worked on claims its key.
struct KeyClaim {
  std::string job;
  std::string key;
  std::string owner;  ///< the message's id: it may claim again what it holds already
  /// The mark is void after that, whatever has become of who made it. Zero: it is only asked whether the key is done,
  /// because the key is the message's own id, and its lease keeps everybody else from it.
  Duration hold_for{};
  /// Of the owner's delivery: its receipt's version when it was claimed. A mark is released by the delivery alone that
  /// made it last, so that whoever is late does not take it from the next one.
  std::int64_t fence = 0;
};

enum class KeyState {
  ours,     ///< nobody else has the key: it is marked as in progress for the owner, until `until`
  running,  ///< another message with this key is being worked on; `until` says until when at most
  done,     ///< a message with this key was done; `result` is what it gave back
  failed,   ///< see `error`
};

struct KeyAnswer {
  KeyState state = KeyState::ours;
  std::string owner{};  ///< the message that has or had it
  std::string result{};
  WallTime until{};  ///< of the mark or the record
  Error error{};
};

/// A key as it stands in the store, for operators.
struct StoredKey {
  std::string job;
  std::string key;
  std::string owner;
  bool done = false;  ///< false: in progress
  std::string result;
  WallTime until{};
};

struct KeyPage {
  std::vector<StoredKey> keys;
  std::string next;  ///< empty: this was the last page
};

/// The keys of the jobs that work on one queue. Thread-safe; each method blocks and has returned by its deadline.
class IdempotencyKeys : boost::noncopyable {
 public:
  virtual ~IdempotencyKeys() = default;

  /// Marks keys as in progress where nobody else has them; one answer each, in their order. The record of one that is
  /// done is written with its completion (Effects::key).
  virtual std::vector<KeyAnswer> begin(std::span<const KeyClaim> claims, Deadline deadline) = 0;
  /// Takes the marks of these deliveries away, so that the next message need not wait for them to end. A mark that is
  /// another's by now, or done, stays.
  virtual Result<void> release(std::span<const KeyClaim> claims, Deadline deadline) = 0;

  // For operators.

  /// Of one job, or of all where `job` is empty.
  virtual Result<KeyPage> list(const std::string& job, std::size_t limit, const std::string& cursor,
                               Deadline deadline) = 0;
  virtual Result<std::optional<StoredKey>> get(const std::string& job, const std::string& key, Deadline deadline) = 0;
  /// Forgets a key, done or in progress. False: there was none.
  virtual Result<bool> forget(const std::string& job, const std::string& key, Deadline deadline) = 0;
};

}  // namespace sluice::queue
