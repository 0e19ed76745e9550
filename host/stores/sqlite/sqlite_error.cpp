#include "host/stores/sqlite/sqlite_error.hpp"

#include <sqlite3.h>

#include <cerrno>
#include <system_error>

#include "host/stores/sqlite/schema.hpp"

namespace sluice::queue::sqlite {

namespace {

std::string quoted(const std::string& path) { return "store \"" + path + "\""; }

std::string reason(int system_errno, const std::string& text) {
  return system_errno == 0 ? text : std::system_category().message(system_errno);
}

bool no_room(int system_errno) { return system_errno == ENOSPC || system_errno == EDQUOT || system_errno == EFBIG; }

constexpr const char* kMoreDescriptors = "; raise the limit on open files (ulimit -n)";
bool no_descriptors(int system_errno) { return system_errno == EMFILE || system_errno == ENFILE; }

Error full(const std::string& path) {
  return {ErrorCode::full, "no room left for " + quoted(path) +
                               ": the disk is full, or the file has reached its size limit; free some space, nothing "
                               "that was accepted is lost"};
}

Error cannot_read_or_write(int system_errno, const std::string& text, const std::string& path) {
  if (no_room(system_errno)) {
    return full(path);
  }
  return {ErrorCode::unavailable,
          "cannot read or write " + quoted(path) + ": " + reason(system_errno, text) +
              (no_descriptors(system_errno) ? kMoreDescriptors : "; look at the disk and its log")};
}

Error cannot_open(int system_errno, const std::string& text, const std::string& path) {
  if (no_room(system_errno) || system_errno == EIO) {
    return cannot_read_or_write(system_errno, text, path);
  }
  const bool denied = system_errno == EACCES || system_errno == EPERM || system_errno == EROFS;
  if (system_errno == EISDIR) {
    return {ErrorCode::invalid, "cannot open " + quoted(path) + ": it is a folder; name a file"};
  }
  if (system_errno == ENOENT) {
    return {ErrorCode::queue_missing,
            "cannot open " + quoted(path) + ": it is not there; put it back, or restart for a new one"};
  }
  return {denied ? ErrorCode::denied : ErrorCode::unavailable,
          "cannot open " + quoted(path) + " or the files beside it: " + reason(system_errno, text) +
              (no_descriptors(system_errno) ? kMoreDescriptors : "; let this user write the file and its folder")};
}

}  // namespace

Error explain(int code, int system_errno, const std::string& text, const std::string& path) {
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return full(path);
    case SQLITE_IOERR:
      return cannot_read_or_write(system_errno, text, path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      if (system_errno == EIO || system_errno == ENXIO) {
        return cannot_read_or_write(system_errno, text, path);
      }
      return {
          ErrorCode::corrupt,
          quoted(path) + " is damaged or not a SQLite file (" + text +
              "); move it away and restore a backup, or rescue what can be read, with no process using it: sqlite3 " +
              path + " '.clone NEW', then sqlite3 NEW 'PRAGMA application_id=" + std::to_string(kApplicationId) +
              "; PRAGMA user_version=" + std::to_string(kSchemaVersion) + "', and put NEW in its place"};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {ErrorCode::denied,
              quoted(path) + " cannot be written (" + text + "); let this user write the file and its folder"};
    case SQLITE_CANTOPEN:
      return cannot_open(system_errno, text, path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return {ErrorCode::unavailable, "another process holds the lock on " + quoted(path) +
                                          "; try again, or see who has it open with: fuser FILE"};
    case SQLITE_INTERRUPT:
      return {ErrorCode::timeout, "the deadline passed while reading " + quoted(path) + "; allow more time"};
    case SQLITE_TOOBIG:
      return {ErrorCode::invalid, "a value is too large for " + quoted(path) + "; send a smaller message"};
    case SQLITE_NOMEM:
      return {ErrorCode::unavailable,
              "out of memory while using " + quoted(path) + "; give the process more, or smaller claims"};
    default:
      return {ErrorCode::internal, quoted(path) + ": " + text + " (SQLite " + std::to_string(code) + ")"};
  }
}

Error explain_system(int system_errno, const std::string& path) { return cannot_read_or_write(system_errno, {}, path); }

}  // namespace sluice::queue::sqlite
