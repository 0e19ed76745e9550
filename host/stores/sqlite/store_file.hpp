#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"

namespace sluice::queue::sqlite {

/// The file behind a store: makes connections to it, and notices when it is taken away from under them.
class StoreFile {
 public:
  explicit StoreFile(const SqliteOptions& options);

  /// Makes folder, file and tables where they are absent, and returns the connection that writes.
  Result<std::unique_ptr<Connection>> open_writer();
  /// A connection for operators' reads, which holds up no writer. After `open_writer`.
  Result<std::unique_ptr<Connection>> open_reader();

  /// An error when the path no longer leads to the file that was opened: what is written now would be lost with the
  /// process.
  Result<void> check() const;

  const std::string& path() const { return path_; }

 private:
  Result<void> make_folder() const;
  Result<void> configure(Connection& connection) const;

  const SqliteOptions options_;
  const std::string path_;  ///< absolute, so that SQLite never takes it for a URI or a special name
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace sluice::queue::sqlite
