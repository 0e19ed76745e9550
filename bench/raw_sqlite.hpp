#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sluice::bench {

/// What a settlement does beside removing: a row of the user's is changed by its key with a statement of its own, and a
/// message goes to another queue, each with a statement of its own or all of a batch with one.
enum class RawEffects { none, each, together };

/// What SQLite itself does: the plain way to keep a queue in a table (an index over queue and due time; a claim updates
/// the row, a settlement deletes it), with nothing around it. The measure that the store is held against.
class RawSqlite {
 public:
  /// A new file with `messages` messages of 100 bytes. Throws std::runtime_error.
  RawSqlite(const std::string& path, std::size_t messages);
  ~RawSqlite();
  RawSqlite(const RawSqlite&) = delete;
  RawSqlite& operator=(const RawSqlite&) = delete;

  /// One transaction each. `claim` returns the rows claimed; `remove` deletes those of the last claim, of which there
  /// are a thousand at most where they have effects.
  std::size_t claim(std::size_t max);
  void remove(RawEffects effects = RawEffects::none);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

/// A table of the user's in a store's file: accounts by number, from 0 on.
class UserTable {
 public:
  /// Throws std::runtime_error.
  UserTable(const std::string& path, std::int64_t accounts);
};

}  // namespace sluice::bench
