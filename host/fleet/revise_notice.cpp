#include "host/fleet/revise_notice.hpp"

#include <utility>

namespace sluice::fleet {
namespace {

// Operators are few; whoever meets so many others in a row is told instead.
constexpr int kMostTries = 50;

}  // namespace

Result<std::int64_t> revise_notice(queue::NoticeBoard& board, queue::Topic topic, const Revise& revise,
                                   Deadline deadline) {
  Error last;
  for (int tries = 0; tries < kMostTries; ++tries) {
    SLUICE_TRY(found, board.list(topic, deadline));
    queue::Notice notice = found->empty() ? queue::Notice() : std::move(found->front());
    auto text = revise(notice.text);
    if (text && !*text) {
      return notice.version;
    }
    Result<std::int64_t> posted = text.has_error() ? Result<std::int64_t>(text.error()) : [&] {
      notice.text = std::move(**text);
      return board.post(topic, notice, deadline);
    }();
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
