#include "host/fleet/revision.hpp"

#include <utility>

namespace sluice::fleet {
namespace {

// Operators are few; whoever meets so many others in a row is told instead.
constexpr int kMostTries = 20;

}  // namespace

Result<std::int64_t> revise_notice(queue::NoticeBoard& board, queue::Topic topic, const Revise& revise,
                                   Deadline deadline) {
  Error last;
  for (int tries = 0; tries < kMostTries; ++tries) {
    SLUICE_TRY(found, board.list(topic, deadline));
    queue::Notice notice = found->empty() ? queue::Notice() : found->front();
    SLUICE_TRY(text, revise(notice.text));
    if (!*text) {
      return notice.version;
    }
    notice.text = std::move(**text);
    auto posted = board.post(topic, notice, deadline);
    if (posted) {
      return posted;
    }
    last = posted.error();
    if (last.code() != ErrorCode::conflict && last.code() != ErrorCode::unknown_outcome) {
      break;
    }
  }
  return last;
}

}  // namespace sluice::fleet
