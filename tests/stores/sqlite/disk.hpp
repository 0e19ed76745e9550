#pragma once

#include <string>

namespace sluice::test {

/// The disk below this process, as far as flushes go: `fdatasync` and `fsync` of everybody in it, SQLite included, come
/// here first. One at a time; the last one to go gives the calls back to the system.
class Disk {
 public:
  Disk();
  /// Lets all go that hang.
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  /// Flushes of files whose name ends so.
  int flushes(const std::string& suffix) const;
  /// From now on flushes fail with this errno; 0: no more.
  void fail(int error);
  /// Reads of files whose name ends so fail, after so many that do not.
  void fail_reads(const std::string& suffix, int good_reads, int error);
  /// Whether one has failed since.
  bool failed_reads() const;
  /// From now on flushes do not return until `let_go`.
  void hang();
  void let_go();
  /// Returns when one hangs.
  void wait_until_one_hangs();
  /// Flushes that have not returned.
  int hanging() const;
};

}  // namespace sluice::test
