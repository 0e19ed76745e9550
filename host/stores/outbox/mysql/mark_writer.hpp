#pragma once

#include <span>
#include <string>
#include <vector>

#include "host/stores/outbox/mysql/rows_sql.hpp"
#include "host/stores/outbox/mysql/session.hpp"

namespace sluice::queue::outbox::mysql {

/// Writes marks on a session that holds the locks. `session` and `sql` outlive it.
class MarkWriter {
 public:
  MarkWriter(Session& session, const RowsSql& sql) : session_(session), sql_(sql) {}

  /// `heartbeat`: empty, or a statement of the same transaction; where it touches no row nothing is written, and
  /// ErrorCode::unavailable says that the writer's name is gone.
  Result<std::vector<MarkStatus>> write(std::span<const Mark> marks, Deadline deadline,
                                        const std::string& heartbeat = {});

 private:
  Result<std::vector<MarkStatus>> transaction(std::span<const Mark> marks, const std::string& heartbeat,
                                              Deadline deadline);
  /// Locks the rows that nobody else has locked, and says what becomes of each mark.
  Result<std::vector<MarkStatus>> examine(std::span<const Mark> marks, Deadline deadline);
  Result<std::vector<Cells>> lock_rows(const std::string& ids, Deadline deadline);
  Result<void> update(std::span<const Mark> marks, const std::vector<MarkStatus>& statuses, Deadline deadline);
  std::string sent_update(const std::string& ids) const;
  std::string failed_update(const std::vector<const Mark*>& marks) const;
  void roll_back(Deadline deadline);

  Session& session_;
  const RowsSql& sql_;
  bool skips_locked_ = true;  ///< until the server turns out not to know how
};

}  // namespace sluice::queue::outbox::mysql
