#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/queue/message.hpp"

/// What operators do to messages that nobody hands them: by id, in batches. Values.
namespace sluice::queue {

enum class ChangeAction {
  remove,          ///< delete the record
  set_visibility,  ///< visible again after `after` (at once when it is zero or negative); nothing else moves. Any state
  delay,           ///< put back as if it had been sent with the delay `after`; its receive count stays
  move_to_front,   ///< visible now, and the oldest of its half: the next to be claimed
  dead_letter,     ///< to the DLQ with `failure` (empty: what the record says stays). There already: applied, unchanged
  redrive,         ///< from the DLQ back, as newly sent, receive count zero. Elsewhere, or in flight there: conflict
  reset,           ///< as if it had just been sent: standard half, receive count zero, all times now, no failure
};

/// One change of one message. Each is conditional on `version` where that is given, and then fails as a conflict when
/// anybody has changed the record since it was read; without it the record is changed as it stands.
/// A change never rewrites the content: every digit, set, binary and unknown attribute stays as it is.
/// The version grows by one with each change, `reset` included, so that a stale holder can never settle.
struct Change {
  std::string id;
  ChangeAction action = ChangeAction::remove;
  /// The version as `StoredMessage` gave it. 0 stands for a record that has none, or one that is no whole number.
  std::optional<std::int64_t> version;
  Duration after{};  ///< set_visibility and delay
  Failure failure;   ///< dead_letter
};

enum class ChangeStatus {
  applied,
  not_found,  ///< no message of that id
  conflict,   ///< not of that version any more, or its state forbids the change; see `error` for which
  failed,     ///< see `error`; nothing is known to have been written unless its code is unknown_outcome
};

struct ChangeResult {
  ChangeStatus status = ChangeStatus::applied;
  std::int64_t version = 0;  ///< of the record after the change; 0 when it was removed or is not known
  Error error;               ///< for every status but applied: one line for a person
};

/// One step into a JSON document: a key of an object, or an index of an array.
using PathStep = std::variant<std::string, std::size_t>;

/// One edit of a message's content. The path begins with "data" (the body), "attributes" (then the attribute's name),
/// "content_type" or "group"; what lies beside the path keeps every digit and type it has.
///
/// `json` is the new value as JSON text, or nothing to take the value away. Objects on the way must exist; an index may
/// be the array's length, which appends. The whole body (path "data" alone) may be replaced whatever it was: a JSON
/// string becomes text where the message is text/plain, everything else JSON.
struct ContentEdit {
  std::vector<PathStep> path;
  std::optional<std::string> json;
};

enum class PutMode {
  insert,   ///< only where the id is free
  replace,  ///< whatever is there under that id goes
};

enum class PutStatus { written, exists, failed };

struct PutResult {
  PutStatus status = PutStatus::written;
  Error error;
};

}  // namespace sluice::queue
