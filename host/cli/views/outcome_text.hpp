#pragma once

#include <string>

#include "host/observe/log.hpp"
#include "host/operate/describe.hpp"
#include "host/work/account.hpp"

/// How commands that run a handler by themselves show what it says and what comes of it.
namespace sluice::cli {

/// "done", "retried", ...
std::string_view ending_name(work::Ending ending);
/// The outcome's name, or where no handler came to one what became of the message.
std::string outcome_name(const work::AttemptEnd& end);
/// "again in 3s" of a message that stays, "dead-lettered" of one that does not; empty where the outcome says it all.
std::string ending_remark(const work::AttemptEnd& end);
/// Green where it worked, yellow where it is handed out again, red otherwise.
operate::Colour colour_of(work::Ending ending);
/// A line that the handler has logged: its level, five wide, and its text. Control characters are shown escaped.
std::string handler_line(observe::LogLevel level, std::string_view text, bool colours);

}  // namespace sluice::cli
