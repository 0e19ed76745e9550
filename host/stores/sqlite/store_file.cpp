#include "host/stores/sqlite/store_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "host/stores/sqlite/schema.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr std::int64_t kPageBytes = 4096;
// The page cache of the writer: the heads and tails of the tables and what a batch touches. Whatever the backlog is.
constexpr int kWriterCacheKib = 16 * 1024;
constexpr int kReaderCacheKib = 1024;
// Opening waits so long for another process that is opening the same file.
constexpr Duration kOpenPatience = std::chrono::seconds(5);

std::string absolute(const std::string& path) {
  std::error_code failed;
  const auto whole = std::filesystem::absolute(path, failed);
  return failed ? path : whole.string();
}

SteadyTime open_limit() {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()) + kOpenPatience;
}

bool is_locked(const Connection& connection) {
  return connection.failed() && connection.failure().code() == ErrorCode::timeout;
}

}  // namespace

StoreFile::StoreFile(const SqliteOptions& options) : options_(options), path_(absolute(options.path)) {}

Result<void> StoreFile::make_folder() const {
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed || !std::filesystem::is_directory(folder, failed)) {
    const std::string why = failed ? failed.message() : "something else has this name";
    return Error(ErrorCode::denied, "cannot make folder \"" + folder.string() + "\" for the store: " + why +
                                        "; make it, or name another path in [store]");
  }
  // SQLite keeps two files beside the store, so that a file that can be written in a folder that cannot is no use.
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return Error(ErrorCode::denied, "folder \"" + folder.string() +
                                        "\" of the store cannot be written: " + std::system_category().message(errno) +
                                        "; let this user write it, or name another path in [store]");
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
  connection.execute(options_.durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
  connection.execute("PRAGMA temp_store = MEMORY");
  connection.execute("PRAGMA cell_size_check = ON");
  // A log that grew while a reader was slow shrinks again.
  connection.execute("PRAGMA journal_size_limit = 67108864");
  if (options_.max_file_bytes > 0) {
    const auto pages = std::max<std::int64_t>(1, static_cast<std::int64_t>(options_.max_file_bytes) / kPageBytes);
    connection.execute(("PRAGMA max_page_count = " + std::to_string(pages)).c_str());
  }
  if (connection.failed()) {
    return connection.failure();
  }
  return {};
}

Result<std::unique_ptr<Connection>> StoreFile::open_writer() {
  if (options_.path.empty()) {
    return Error(ErrorCode::invalid, "the store has no path; name a file in [store]");
  }
  if (auto made = make_folder(); !made) {
    return made.error();
  }
  auto connection = std::make_unique<Connection>(path_);
  connection->wait_for_locks_until(open_limit());
  if (auto opened = connection->open(true); !opened) {
    return opened.error();
  }
  if (connection->read_only()) {
    return Error(ErrorCode::denied, "store \"" + path_ + "\" cannot be written; let this user write the file");
  }
  // First of all: a file that is not ours is left as it is.
  if (auto checked = check_schema(*connection); !checked) {
    return checked.error();
  }
  if (auto configured = configure(*connection); !configured) {
    return configured.error();
  }
  if (auto made = make_schema(*connection); !made) {
    return made.error();
  }
  connection->execute(("PRAGMA cache_size = -" + std::to_string(kWriterCacheKib)).c_str());
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
  return connection;
}

Result<std::unique_ptr<Connection>> StoreFile::open_reader() {
  auto connection = std::make_unique<Connection>(path_);
  connection->wait_for_locks_until(open_limit());
  if (auto opened = connection->open(false); !opened) {
    return opened.error();
  }
  if (auto configured = configure(*connection); !configured) {
    return configured.error();
  }
  connection->execute(("PRAGMA cache_size = -" + std::to_string(kReaderCacheKib)).c_str());
  connection->execute("PRAGMA query_only = ON");
  if (connection->failed()) {
    return connection->failure();
  }
  return connection;
}

Result<void> StoreFile::check() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_) {
    return {};
  }
  return Error(ErrorCode::queue_missing,
               "store \"" + path_ +
                   "\" was removed or replaced while in use; put the file back, or restart to "
                   "use what is there now");
}

}  // namespace sluice::queue::sqlite
