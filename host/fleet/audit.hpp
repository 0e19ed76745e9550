#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/queue/notice_board.hpp"

namespace sluice::fleet {

/// How far a deed has come. One that stays `begun` was cut off: its process was killed, or lost the store.
enum class DeedState { done, begun, stopped };

std::string_view to_string(DeedState state);  // "done", "begun", "stopped"

/// One deed of an operator. A value.
struct AuditEntry {
  std::string id;      ///< the same on every board that has it, and before and after it is done
  WallTime at{};       ///< when it began, by the board's clock; none: now
  std::string who;     ///< as Directive::by
  std::string what;    ///< "pause job mailer", "purge queue orders"
  std::string queue;   ///< empty: of no queue, or of several
  std::string to{};    ///< of a move: the other queue
  std::string filter;  ///< which messages, as it was typed; empty: all that `what` says
  std::string reason;  ///< as the operator gave it
  DeedState state = DeedState::done;
  // Of changes of messages, once it is not `begun` any more.
  std::optional<WallTime> ended_at{};
  std::uint64_t changed = 0;
  std::uint64_t skipped = 0;
  std::uint64_t failed = 0;
  std::string stopped_by;  ///< why it has not come to its end
  std::string place;       ///< the board's; filled when it is read
};

/// The audit of a board is a book: its newest chapter is the notice without a key, and is turned over once it has
/// kChapterBytes; of those before it the last kChapters are kept, some 5,000 deeds. No deed makes a notice too long.
inline constexpr std::size_t kChapterBytes = std::size_t{8} * 1024;
inline constexpr std::int64_t kChapters = 128;
/// Of texts that people type no more than this is kept; one that was cut ends in "…".
inline constexpr std::size_t kMostTyped = 500;

/// Which deeds are wanted. A value.
struct AuditQuery {
  std::size_t limit = 50;
  std::vector<std::string> names{};  ///< of one queue: its own and its table's; empty: of all
  /// Under way then, or begun later. What goes on is told as far back as chapters are read for the others.
  std::optional<WallTime> since{};

  /// It is about one of the names.
  bool names_it(const AuditEntry& entry) const;
  bool wants(const AuditEntry& entry) const;
};

/// What boards tell of deeds. A value.
struct AuditView {
  std::vector<AuditEntry> deeds;
  /// All that is kept was read, and there was more: what was done before this time is not known any more.
  std::optional<WallTime> kept_since{};
};

/// What several boards tell and is wanted, the newest first. A deed that several have, or one twice, appears once, as
/// it ended, with all its places.
std::vector<AuditEntry> merge_audits(std::vector<AuditEntry> entries, const AuditQuery& query = {});

/// Notes a deed on the board, or what has become of the one of the same id.
Result<void> note_deed(queue::NoticeBoard& board, AuditEntry deed, Deadline deadline);

/// The newest of the board's deeds by these names, as many as it takes until so many are wanted; no more chapters are
/// read than that takes. What another board tells may show that one is not wanted. In no order.
Result<AuditView> read_deeds(queue::NoticeBoard& board, const AuditQuery& query, Deadline deadline);

}  // namespace sluice::fleet
