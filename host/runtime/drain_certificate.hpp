#pragma once

#include "host/runtime/host_queues.hpp"
#include "host/work/account.hpp"

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
  std::optional<DynamoDbCost> dynamodb;
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

}  // namespace sluice::runtime
