#pragma once

#include <functional>
#include <optional>
#include <string>

#include "host/queue/notice_board.hpp"

namespace sluice::fleet {

/// What a notice shall say instead of what it says; nothing: it stays. May be asked several times, and has to recognise
/// what it made itself, for an answer may be lost.
using Revise = std::function<Result<std::optional<std::string>>(const std::string& text)>;

/// Changes the one notice of a topic, or the first of it, again from the start when somebody was in between, so that no
/// change is lost. Returns its version then.
Result<std::int64_t> revise_notice(queue::NoticeBoard& board, queue::Topic topic, const Revise& revise,
                                   Deadline deadline);

}  // namespace sluice::fleet
