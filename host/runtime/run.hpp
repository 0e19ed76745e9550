#pragma once

#include "base/descriptor.hpp"
#include "host/runtime/host.hpp"
#include "host/runtime/host_queues.hpp"

namespace sluice::runtime {

/// Who spent it, and by which prices that is money. A value.
struct BookedCost {
  cost::CostView view;
  cost::Prices prices;

  bool none() const;
  /// "cost: $0.0012; orders of orders: 12 requests, ...": a job's work on a queue, and the dearest values.
  std::string text() const;
  /// {"currency": "USD", "as_of": "2026-11-01", "money": ..., "jobs": [...], "attribute": "tenant", "values": [...]}
  std::string json() const;
};

/// What became of every message that a host claimed. A value.
struct DrainCertificate {
  std::map<std::string, work::LedgerSnapshot> jobs;
  Duration took{};    ///< from the end of claiming to the end of the drain
  bool clean = true;  ///< nothing stranded or left undone for want of rights, and no handler was given up
  std::vector<std::string> left_behind{};  ///< why it is not clean
  std::optional<cost::Spent> dynamodb;
  std::optional<BookedCost> cost;  ///< of which job, and for whom; told where anything was spent

  work::LedgerSnapshot total() const {
    work::LedgerSnapshot sum;
    for (const auto& [name, ledger] : jobs) {
      sum += ledger;
    }
    return sum;
  }

  /// One line for people.
  std::string text() const;
  /// The shape that scripts rely on: total, jobs, seconds, clean.
  std::string json() const;
};

/// Where the certificate goes as JSON. Opened before the host starts, so that a wrong path is known then.
class DrainReportFile {
 public:
  /// An empty path: no report. ErrorCode::invalid when the file cannot be written.
  static Result<DrainReportFile> open(const std::string& path);

  /// Replaces the file's content.
  Result<void> write(const DrainCertificate& certificate);

 private:
  DrainReportFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  Descriptor file_;  ///< none: no report
};

/// Who works beside a host in its process and hears what happens in it, instead of whoever reads standard error. A tap
/// of its log.
class Companion : public observe::LogTap {
 public:
  /// Each message's end. As AttemptWatch.
  virtual void ended(const work::AttemptEnd& end) = 0;
  /// What came of a reload. On a thread of the host's.
  virtual void reloaded(const ReloadNews& result) = 0;
  /// The host works. `queues` and `events` live until `host_ends` has returned. On the main thread; returns at once.
  virtual void host_runs(HostQueues& queues, HostEvents& events) = 0;
  /// The host has ended its jobs. On the main thread; uses nothing of the host's when it returns.
  virtual void host_ends(const DrainCertificate& certificate) = 0;
};

/// What `sluice run` was asked for.
struct RunOptions {
  std::string config_file;
  ExplainQueue explain = [](const std::string&, const Error& error) { return error.message(); };
  bool until_empty = false;           ///< end once every queue has nothing due and nothing in flight
  bool progress = false;              ///< a line of totals on stderr each second; rewritten in place on a terminal
  bool allow_insecure_files = false;  ///< use plugins and configuration that others may write
  std::string drain_report;           ///< file for the drain certificate as JSON; empty: none
  Companion* companion = nullptr;     ///< null: nobody; otherwise it outlives the run, and hears of it alone
};

/// Runs a host until it is signalled or its queues are empty. Returns the process's exit code: 0 clean, 75 work was
/// abandoned, 78 configuration. Writes to stderr only, the drain certificate as its last line.
/// To be called on the main thread before any other thread exists: it blocks the signals it watches.
int run_host(const RunOptions& options);

}  // namespace sluice::runtime
