#include "host/fleet/directive_resolver.hpp"

#include <algorithm>
#include <utility>

namespace sluice::fleet {
namespace {

bool is_in(const std::vector<Directive>& directives, const std::string& id) {
  return std::any_of(directives.begin(), directives.end(),
                     [&id](const Directive& directive) { return directive.id == id; });
}

bool concerns(const Directive& directive, const JobRecord& job) {
  return directive.target == Target::queue ? draws_from(job.queue, directive.name) : job.name == directive.name;
}

}  // namespace

bool DirectiveResolver::means_us(const Directive& directive) const {
  switch (directive.target) {
    case Target::host:
      return names_.include(directive.name);
    case Target::all:
    case Target::message:
      return true;
    case Target::queue:
    case Target::job:
      break;
  }
  return false;
}

std::vector<Directive> DirectiveResolver::read(const std::string& place, Steering steering) {
  const auto known = boards_.find(place);
  const bool first_look = known == boards_.end();
  Board& board = boards_[place];
  std::vector<Directive> orders;
  for (const Directive& directive : steering.directives) {
    const bool order = !stands(directive.wish) && means_us(directive) && !flaw_of(directive);
    if (order && !first_look && !is_in(board.directives, directive.id)) {
      orders.push_back(directive);
    }
  }
  board.directives = std::move(steering.directives);
  std::erase_if(board.answers, [&board](const Answer& answer) { return !is_in(board.directives, answer.directive); });
  add_up();
  return orders;
}

void DirectiveResolver::add_up() {
  std::vector<const Directive*> all;
  for (const auto& [place, board] : boards_) {
    for (const Directive& directive : board.directives) {
      if (stands(directive.wish) && !flaw_of(directive)) {
        all.push_back(&directive);
      }
    }
  }
  // The later one wins; boards have clocks of their own, which differ by little.
  std::stable_sort(all.begin(), all.end(), [](const Directive* a, const Directive* b) { return a->at < b->at; });
  standing_ = {};
  for (const Directive* directive : all) {
    if (directive->wish == Wish::pause) {
      (directive->target == Target::queue ? standing_.paused_queues : standing_.paused_jobs).insert(directive->name);
    } else if (directive->wish == Wish::scale) {
      standing_.workers[directive->name] = *workers_of(*directive);
    } else if (means_us(*directive)) {
      standing_.log_level = directive->value;
    }
  }
}

std::vector<Answer> DirectiveResolver::answers(const std::string& place, const std::vector<JobRecord>& jobs) const {
  const auto found = boards_.find(place);
  if (found == boards_.end()) {
    return {};
  }
  std::vector<Answer> all;
  for (const Directive& directive : found->second.directives) {
    if (const auto flaw = flaw_of(directive)) {
      all.push_back({directive.id, false, *flaw});
    } else if (stands(directive.wish) &&
               (means_us(directive) ||
                std::any_of(jobs.begin(), jobs.end(), [&](const auto& job) { return concerns(directive, job); }))) {
      all.push_back({directive.id, true, directive.text()});
    }
  }
  all.insert(all.end(), found->second.answers.begin(), found->second.answers.end());
  return all;
}

void DirectiveResolver::answered(const std::string& place, Answer answer) {
  boards_[place].answers.push_back(std::move(answer));
}

}  // namespace sluice::fleet
