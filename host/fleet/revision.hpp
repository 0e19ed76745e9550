#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/notice_board.hpp"

namespace sluice::fleet {

/// What a notice shall say instead of what it says; nothing: it stays. May be asked several times.
using Revise = std::function<Result<std::optional<std::string>>(const std::string& text)>;

/// Changes the one notice of a topic by what it says at that moment, and again from the begin when somebody else was in
/// between; so no one's change is lost. Returns the version that it has then. `revise` has to recognise what it made
/// itself, for an answer may be lost.
Result<std::int64_t> revise_notice(queue::NoticeBoard& board, queue::Topic topic, const Revise& revise,
                                   Deadline deadline);

}  // namespace sluice::fleet
