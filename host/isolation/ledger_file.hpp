#pragma once

#include "host/isolation/crash_ledger.hpp"
#include "host/isolation/crash_report.hpp"
#include "host/isolation/state_folder.hpp"

/// Crash ledgers as those see them who read them: the next host, and `sluice crashes`.
namespace sluice::isolation {

/// A message that a host held when it ended. A value.
struct HeldMessage {
  std::string job;
  queue::QueueAddress address;
  queue::Receipt receipt;
  std::uint32_t attempt = 0;
  bool suspect = false;   ///< as it was claimed
  bool running = false;   ///< its handler was at work
  bool blamed = false;    ///< the crash record names it
  bool finished = false;  ///< its handler had come back, and it was to be removed
  Committing committing = Committing::no;
};

/// What was done about the messages that a host left. A value.
struct LedgerSettlement : format::SettledCounts {
  WallTime time{};  ///< WallTime{}: nothing yet
  std::string by;   ///< the host that did it
};

/// A value.
struct LedgerContents {
  std::string file;
  std::string host;
  std::string config;  ///< its host file
  std::int32_t process = 0;
  WallTime started{};
  std::string incarnation;          ///< as an owner of parts of queues; empty: it owned none
  std::vector<std::string> queues;  ///< that its jobs worked on
  bool complete = true;             ///< it held nothing that is not among `held`
  std::vector<HeldMessage> held;
  std::optional<CrashReport> crash;
  LedgerSettlement settlement;
  std::size_t unreadable = 0;  ///< slots that make no sense, and are passed over
};

/// Reads a ledger as it is at this moment, whoever has it. `corrupt` for a file that is none, is cut off, or comes from
/// another version of the format; `not_found` when it is gone.
Result<LedgerContents> read_ledger(const std::string& file);

/// True while a process lives that keeps this ledger, or settles it.
bool has_owner(const std::string& file);

/// A ledger without a living owner, locked: nobody else settles it meanwhile. A resource, of one thread.
class OrphanLedger {
 public:
  /// Null when its owner lives, somebody else has it, or it is gone. Errors as read_ledger's.
  static Result<std::unique_ptr<OrphanLedger>> take(const std::string& file);
  ~OrphanLedger() { ::close(descriptor_); }
  OrphanLedger(const OrphanLedger&) = delete;
  OrphanLedger& operator=(const OrphanLedger&) = delete;

  const LedgerContents& contents() const { return contents_; }

  /// Notes what was done and gives the file the name under which it is history, without its empty room.
  Result<void> archive(const LedgerSettlement& settlement);
  /// For one that has nothing to tell.
  void remove() { ::unlink(contents_.file.c_str()); }

 private:
  OrphanLedger(int descriptor, LedgerContents contents) : descriptor_(descriptor), contents_(std::move(contents)) {}

  const int descriptor_;
  LedgerContents contents_;
};

/// The folder of ledgers. Used by one thread at a time; a folder that is not there is empty.
class LedgerFolder {
 public:
  explicit LedgerFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// Of hosts that live, and of those that nobody has settled yet; oldest first.
  std::vector<std::string> open_ledgers() const { return files_in(path_, ".ledger"); }
  /// Of hosts that ended in a crash and were settled; oldest first.
  std::vector<std::string> history() const { return files_in(path_, ".done"); }
  /// Keeps the newest of the history.
  void forget_all_but(std::size_t kept) const {
    const std::vector<std::string> done = history();
    for (std::size_t i = 0; i + kept < done.size(); ++i) {
      ::unlink(done[i].c_str());
    }
  }
  /// Gives a file that cannot be read a name that nobody looks for; the new name.
  std::string set_aside(const std::string& file) const {
    const std::string aside = file + ".unreadable";
    return ::rename(file.c_str(), aside.c_str()) == 0 ? aside : file;
  }

 private:
  std::string path_;
};

}  // namespace sluice::isolation
