#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"

namespace sluice::queue {

/// What notices are about. Of `hosts` and `schedules` there are many, one for each host or schedule; of the others one,
/// whose key is empty, and beside it the audit's older chapters. These and schedules are read one by one and not
/// listed.
enum class Topic {
  hosts,      ///< what a host tells about itself
  steering,   ///< what operators want of hosts; who watches a board is told when it changes
  audit,      ///< what operators did
  schedules,  ///< what hosts tell each other about messages that are sent by the clock, moves and shared limits
};

/// Of the keys of schedules that are shared limits: hosts write these anew every few seconds, and go by what is there.
inline constexpr std::string_view kLimitPrefix = "limit/";

inline bool is_limit(Topic topic, std::string_view key) {
  return topic == Topic::schedules && key.starts_with(kLimitPrefix);
}

/// A small text that hosts and operators leave for each other. A value.
struct Notice {
  std::string key;
  std::string text;
  std::int64_t version = 0;  ///< grows by one each time it is posted; 0: it is not there
  WallTime posted_at{};      ///< by the board's clock
};

/// What a board is like. A value; the same for the board's whole life.
struct BoardTraits {
  /// Names the file or table that it lies in, for people; boards of one Queues are the same one where it is the same.
  std::string place;
  /// A post to `steering` reaches those who watch, from other processes too. False: they have to look.
  bool tells = false;
  /// Each look and each post costs money, by the size of the text.
  bool billed = false;
  /// The longest text that it takes, in bytes.
  std::size_t most_bytes = 0;
};

/// A board that all who work on a queue share, beside its messages: one for each SQLite file, one for each table.
/// Nothing that counts messages or reads them, ours or DynamoMQ's, takes a notice for one.
///
/// Thread-safe. Each call blocks and has returned by its deadline. Losing what is on it loses no message.
class NoticeBoard : boost::noncopyable {
 public:
  /// While it lives, who watches is told. Its destruction waits for a call under way.
  class Watch : boost::noncopyable {
   public:
    virtual ~Watch() = default;
  };

  virtual ~NoticeBoard() = default;

  virtual const BoardTraits& traits() const = 0;
  /// The time by which notices are dated.
  virtual WallTime now() const = 0;

  /// One notice; version 0 where there is none. It may be some milliseconds old.
  virtual Result<Notice> read(Topic topic, const std::string& key, Deadline deadline) = 0;
  /// All of a topic, by key. Not older than what anybody has been told to be posted.
  virtual Result<std::vector<Notice>> list(Topic topic, Deadline deadline) = 0;
  /// Posts what `notice` says if the board still has its `version`, 0 meaning that there is none; returns the new
  /// version. ErrorCode::conflict otherwise, `invalid` for a text that is too long, unknown_outcome when it may have
  /// been posted.
  virtual Result<std::int64_t> post(Topic topic, const Notice& notice, Deadline deadline) = 0;
  /// Takes it down if it still has that version; done as well when it is not there. ErrorCode::conflict otherwise.
  virtual Result<void> take_down(Topic topic, const std::string& key, std::int64_t version, Deadline deadline) = 0;

  /// `changed` is called, from any thread, when something may have been posted to `steering`; it must return at once
  /// and call nothing of the board. Null where the board does not tell.
  virtual std::unique_ptr<Watch> watch(std::function<void()> changed) = 0;
};

}  // namespace sluice::queue
