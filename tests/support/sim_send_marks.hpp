#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "host/queue/stored_message.hpp"

namespace sluice::test {

/// What has been sent to one queue lately, and who has which unique key, in memory. Not thread-safe.
class SimSendMarks {
 public:
  /// The record of that id, or null.
  using Find = std::function<const queue::StoredMessage*(const std::string& id)>;

  /// The id of the message because of which this one is not to be sent; nothing: it may be.
  std::optional<std::string> first_of(const queue::NewMessage& message, WallTime now, const Find& find);
  /// It has been sent.
  void note(const queue::NewMessage& message, const queue::StoredMessage& stored);

 private:
  struct Sent {
    std::string id;
    WallTime until{};
  };
  struct Holder {
    std::string id;
    WallTime created_at{};
    queue::UniqueUntil until = queue::UniqueUntil::done;
  };

  WallTime now_{};  ///< never goes back
  Duration ahead_{};
  std::map<std::string, Sent> sent_;
  std::map<std::string, Holder> holders_;
};

}  // namespace sluice::test
