#include "host/stores/sqlite/store_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/guard.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/schema.hpp"
#include "host/stores/sqlite/store_thread.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr std::int64_t kPageBytes = 4096;
// The page cache of the writer: the heads and tails of the tables and what a batch touches. Whatever the backlog is.
constexpr int kWriterCacheKib = 16 * 1024;
constexpr int kReaderCacheKib = 1024;
// Opening waits so long for another process that is opening the same file.
constexpr Duration kOpenPatience = std::chrono::seconds(5);

constexpr mode_t kFolderMode = 0700;
constexpr mode_t kFileMode = 0600;

// The store itself, its log, and the index of the log: without any of the three, what was committed is not found.
constexpr std::array<const char*, 3> kSuffixes{"", "-wal", "-shm"};

std::string absolute(const std::string& path) {
  std::error_code failed;
  const auto whole = std::filesystem::absolute(path, failed);
  return failed ? path : whole.string();
}

bool is_locked(const Connection& connection) {
  return connection.failed() && connection.state().error().code() == ErrorCode::timeout;
}

Error cannot_make(const std::string& what, int error) {
  const bool no_room = error == ENOSPC || error == EDQUOT;
  const bool broken = error == EIO;
  const ErrorCode code = no_room ? ErrorCode::full : broken ? ErrorCode::unavailable : ErrorCode::denied;
  return {code, "cannot make " + what + " for the store: " + std::system_category().message(error) +
                    (no_room ? "; free some space" : "; make it, or name another path in [store]")};
}

}  // namespace

StoreFile::StoreFile(const SqliteOptions& options) : options_(options), path_(absolute(options.path)) {}

Result<void> StoreFile::make_folder() const {
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  std::filesystem::path made;
  for (const auto& part : folder) {
    made /= part;
    if (::mkdir(made.c_str(), kFolderMode) != 0 && errno != EEXIST) {
      const int error = errno;
      // On a read-only file system even what is there cannot be "made".
      std::error_code failed;
      if (!std::filesystem::is_directory(made, failed)) {
        return cannot_make("folder \"" + made.string() + "\"", error);
      }
    }
  }
  std::error_code failed;
  if (!std::filesystem::is_directory(folder, failed)) {
    return Error(ErrorCode::denied, "cannot make folder \"" + folder.string() +
                                        "\" for the store: something else has this name; name another path in [store]");
  }
  // SQLite keeps two files beside the store, so that a file that can be written in a folder that cannot is no use.
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return Error(ErrorCode::denied, "folder \"" + folder.string() +
                                        "\" of the store cannot be written: " + std::system_category().message(errno) +
                                        "; let this user write it, or name another path in [store]");
  }
  return {};
}

Result<void> StoreFile::make_file() const {
  // SQLite gives the files beside it the same rights. One that is there keeps what its owner gave it.
  const Descriptor file(
      ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, SLUICE_GUARD(file_modes) ? kFileMode : 0644));
  if (!file.open() && (errno == ENOSPC || errno == EDQUOT || errno == EIO)) {
    return cannot_make("file \"" + path_ + "\"", errno);
  }
  return {};
}

Result<void> StoreFile::configure(Connection& connection) const {
  // In WAL mode readers and the writer do not hold each other up. The switch is made once in the life of a file.
  std::string mode = connection.text("PRAGMA journal_mode = WAL");
  // While another process makes the switch SQLite does not wait, it gives up at once.
  for (int tries = 0; is_locked(connection) && connection.wait_for_lock(tries); ++tries) {
    connection.clear();
    mode = connection.text("PRAGMA journal_mode = WAL");
  }
  if (!connection.failed() && mode != "wal") {
    return Error(ErrorCode::unavailable, "store \"" + path_ + "\" cannot use a write-ahead log (journal mode " + mode +
                                             "); put it on a local disk");
  }
  // Debian's SQLite zeroes what is deleted, which doubles the pages that a settlement writes.
  connection.execute("PRAGMA secure_delete = OFF");
  // Checkpoints flush. A commit does not: its log is flushed after the lock of the file has been given back, before
  // anybody is told that it is done.
  connection.execute(SLUICE_GUARD(sqlite_checkpoint_flush) ? "PRAGMA synchronous = NORMAL"
                                                           : "PRAGMA synchronous = OFF");
  connection.execute("PRAGMA temp_store = MEMORY");
  connection.execute("PRAGMA cell_size_check = ON");
  // A log that grew while a reader was slow shrinks again.
  connection.execute("PRAGMA journal_size_limit = 67108864");
  if (options_.max_file_bytes > 0) {
    const auto pages = std::max<std::int64_t>(1, static_cast<std::int64_t>(options_.max_file_bytes) / kPageBytes);
    connection.execute(("PRAGMA max_page_count = " + std::to_string(pages)).c_str());
  }
  return connection.state();
}

Result<std::unique_ptr<Connection>> StoreFile::connect(Connection::Access access) const {
  auto connection = std::make_unique<Connection>(path_);
  connection->wait_for_locks_until(machine_after(kOpenPatience));
  SLUICE_PASS_ON(connection->open(access));
  return connection;
}

Result<std::unique_ptr<Connection>> StoreFile::open_writer() {
  if (options_.path.empty()) {
    return Error(ErrorCode::invalid, "the store has no path; name a file in [store]");
  }
  SLUICE_PASS_ON(make_folder());
  SLUICE_PASS_ON(make_file());
  SLUICE_TRY(connection, connect(Connection::Access::write));
  if ((*connection)->read_only()) {
    return Error(ErrorCode::denied, "store \"" + path_ + "\" cannot be written; let this user write the file");
  }
  // First of all: a file that is not ours is left as it is.
  SLUICE_PASS_ON(check_schema(**connection));
  SLUICE_PASS_ON(configure(**connection));
  SLUICE_PASS_ON(make_schema(**connection));
  (*connection)->execute(("PRAGMA cache_size = -" + std::to_string(kWriterCacheKib)).c_str());
  SLUICE_PASS_ON(remember());
  opened_ = true;
  return connection;
}

Result<void> StoreFile::remember() {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    files_[i] = look(path_ + kSuffixes[i]).value_or(Identity());
  }
  // Not by SQLite's own descriptor, which is its own affair. No lock of SQLite's lies on the log, so that closing this
  // one takes none away.
  log_ = Descriptor(::open((path_ + "-wal").c_str(), O_RDWR | O_CLOEXEC));
  if (!log_.open()) {
    return explain_system(errno, path_);
  }
  return {};
}

std::optional<StoreFile::Identity> StoreFile::look(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return std::nullopt;
  }
  return Identity{status.st_dev, status.st_ino};
}

Result<std::unique_ptr<Connection>> StoreFile::open_checkpointer() {
  SLUICE_TRY(connection, connect(Connection::Access::write));
  SLUICE_PASS_ON(configure(**connection));
  return connection;
}

Result<std::unique_ptr<Connection>> StoreFile::open_reader() {
  if (!opened_) {
    return open_reader_without_writing();
  }
  SLUICE_TRY(connection, open_checkpointer());
  (*connection)->execute(("PRAGMA cache_size = -" + std::to_string(kReaderCacheKib)).c_str());
  (*connection)->execute("PRAGMA query_only = ON");
  SLUICE_PASS_ON((*connection)->state());
  return connection;
}

Result<std::unique_ptr<Connection>> StoreFile::open_reader_without_writing() const {
  // Beside a host that works, its log can be read with it. With nobody there, nothing may be made that reading a log
  // takes; then there must not be one with anything in it either.
  std::error_code failed;
  const bool log = std::filesystem::file_size(path_ + "-wal", failed) > 0 && !failed;
  SLUICE_TRY(connection, connect(log ? Connection::Access::read : Connection::Access::read_alone));
  SLUICE_PASS_ON(check_schema(**connection, SchemaUse::read));
  return connection;
}

std::optional<std::uint64_t> StoreFile::number_at_path() const {
  const auto seen = look(path_);
  return seen ? std::optional<std::uint64_t>(seen->inode) : std::nullopt;
}

bool StoreFile::lacks_log() const {
  struct stat status {};
  return ::stat(path_.c_str(), &status) == 0 && status.st_size > 0 && !look(path_ + "-wal");
}

Result<void> StoreFile::check() const {
  const std::size_t watched = SLUICE_GUARD(log_watched) ? files_.size() : 1;
  for (std::size_t i = 0; opened_ && i < watched; ++i) {
    if (look(path_ + kSuffixes[i]) != files_[i]) {
      const std::string mend = i == 0 ? "put the file back, or restart to use what is there now"
                                      : "it holds what was accepted last: end this process by SIGTERM, which saves "
                                        "that, before anything else opens the store";
      return Error(ErrorCode::queue_missing, "store \"" + path_ + "\": \"" + path_ + kSuffixes[i] +
                                                 "\" was removed or replaced while in use; " + mend);
    }
  }
  return {};
}

Result<void> StoreFile::flush_log() const {
  int result = 0;
  do {
    result = ::fdatasync(log_.get());
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    return explain_system(errno, path_);
  }
  return {};
}

}  // namespace sluice::queue::sqlite
