#include "host/operate/compliance.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace sluice::operate {

bool Compliance::look(const fleet::FleetView& view, SteadyTime now) {
  std::set<std::string> seen;
  std::set<std::string> missing;
  answers_.clear();
  for (const fleet::Given& given : given_) {
    const fleet::Obedience so_far = fleet::Fleet::obedience(given, view);
    seen.insert(so_far.seen_by.begin(), so_far.seen_by.end());
    missing.insert(so_far.waited_for.begin(), so_far.waited_for.end());
    for (const auto& answered : so_far.answers) {
      add(answered);
    }
  }
  waited_for_.assign(missing.begin(), missing.end());
  obeyed_.clear();
  std::set_difference(seen.begin(), seen.end(), missing.begin(), missing.end(), std::back_inserter(obeyed_));
  return waited_for_.empty() || now >= until_;
}

void Compliance::add(const fleet::Obedience::Answered& answered) {
  const auto said = std::find_if(answers_.begin(), answers_.end(),
                                 [&answered](const auto& before) { return before.host == answered.host; });
  if (said == answers_.end()) {
    answers_.push_back(answered);
  } else if (answered.answer.done && !said->answer.done) {
    *said = answered;  // on another board the message was another one's
  }
}

bool Compliance::done_by_somebody() const {
  return std::any_of(answers_.begin(), answers_.end(), [](const auto& answered) { return answered.answer.done; });
}

}  // namespace sluice::operate
