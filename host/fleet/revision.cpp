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
    const auto found = board.list(topic, deadline);
    if (!found) {
      return found.error();
    }
    queue::Notice notice = found->empty() ? queue::Notice() : found->front();
    auto text = revise(notice.text);
    if (!text) {
      return text.error();
    }
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
