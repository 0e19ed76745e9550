#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "host/stores/sqlite/store_lock_file.hpp"

namespace sluice::queue::sqlite {

/// The file behind a store: makes connections to it, and notices when it, or its log, or the log's index, is taken away
/// from under them. What it makes is for this user alone.
class StoreFile {
 public:
  explicit StoreFile(const SqliteOptions& options);

  /// Makes folder, file and tables where they are absent, and returns the connection that writes.
  Result<std::unique_ptr<Connection>> open_writer();
  /// One that writes pages from the log to their places. After `open_writer`.
  Result<std::unique_ptr<Connection>> open_checkpointer();
  /// A connection for operators' reads, which holds up no writer. After `open_writer`, unless this user cannot write.
  Result<std::unique_ptr<Connection>> open_reader();

  /// The store is there, and its log is not: nobody has it open, or the log was taken away from those who have.
  bool lacks_log() const;
  /// What lies at the store's path; nothing: no file.
  std::optional<std::uint64_t> number_at_path() const;
  /// What was opened, as other processes tell it from what has taken its place.
  FileNumbers numbers() const { return {files_[0].inode, files_[1].inode, files_[2].inode}; }
  /// An error when the paths no longer lead to the files that were opened: what is written now would be lost with the
  /// process.
  Result<void> check() const;
  /// Returns when all that was committed before is on the disk. An error once is an error for good: the system forgets
  /// what it could not write.
  Result<void> flush_log() const;

  const std::string& path() const { return path_; }

 private:
  /// A file by what it is, not by its name.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  static std::optional<Identity> look(const std::string& path);
  Result<std::unique_ptr<Connection>> connect(Connection::Access access) const;

  Result<void> make_folder() const;
  Result<void> make_file() const;
  Result<void> configure(Connection& connection) const;
  Result<void> remember();
  Result<std::unique_ptr<Connection>> open_reader_without_writing() const;

  const SqliteOptions options_;
  const std::string path_;  ///< absolute, so that SQLite never takes it for a URI or a special name
  std::array<Identity, 3> files_;
  bool opened_ = false;  ///< for writing
  Descriptor log_;
};

}  // namespace sluice::queue::sqlite
