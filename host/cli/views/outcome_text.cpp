#include "host/cli/views/outcome_text.hpp"

#include "base/text/visible.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::cli {

using work::Ending;

std::string_view ending_name(Ending ending) { return queue::core::kEndingNames[static_cast<std::size_t>(ending)]; }

std::string outcome_name(const work::AttemptEnd& end) {
  return std::string(end.outcome ? queue::core::rule_of(end.outcome->status).name : ending_name(end.ending));
}

std::string ending_remark(const work::AttemptEnd& end) {
  switch (end.ending) {
    case Ending::retried:
    case Ending::snoozed:
      return end.delay > Duration::zero() ? "again in " + time_text(end.delay) : "again at once";
    case Ending::rejected:
      return "dead-lettered";
    case Ending::lost:
      return "lost";
    case Ending::done:
    case Ending::discarded:
    case Ending::released:
      break;
  }
  return {};
}

Colour colour_of(Ending ending) {
  return ending == Ending::done || ending == Ending::discarded                                  ? Colour::green
         : ending == Ending::retried || ending == Ending::snoozed || ending == Ending::released ? Colour::yellow
                                                                                                : Colour::red;
}

std::string handler_line(observe::LogLevel level, std::string_view text, bool colours) {
  std::string name(observe::name_of(level));
  name.resize(5, ' ');
  const Colour colour = level >= observe::LogLevel::error  ? Colour::red
                        : level == observe::LogLevel::warn ? Colour::yellow
                                                           : Colour::dim;
  return tinted(name, colour, colours) + " " + visible(text);
}

}  // namespace sluice::cli
