#include "host/fleet/steering.hpp"

#include <array>

#include "base/ranges.hpp"
#include "host/fleet/notice_json.hpp"

namespace sluice::fleet {
namespace {

constexpr std::array<std::string_view, 6> kWishes{"pause", "scale", "log-level", "drain", "reload", "cancel-running"};
constexpr std::array<std::string_view, 5> kTargets{"queue", "job", "host", "all", "message"};

/// What each can be wanted of.
constexpr std::array<std::pair<Wish, Target>, 9> kMeaning{{{Wish::pause, Target::queue},
                                                           {Wish::pause, Target::job},
                                                           {Wish::scale, Target::job},
                                                           {Wish::log_level, Target::host},
                                                           {Wish::log_level, Target::all},
                                                           {Wish::drain, Target::host},
                                                           {Wish::reload, Target::host},
                                                           {Wish::reload, Target::all},
                                                           {Wish::cancel_running, Target::message}}};

/// The number of a scale; nothing where it is none that a job can have.
std::optional<std::uint32_t> workers_of(const Directive& directive) {
  const auto workers = parse_number<std::uint32_t>(directive.value);
  return workers >= 1U && workers <= kMostWorkers ? workers : std::nullopt;
}

}  // namespace

bool read_into(JsonReader& json, Wish& wish) { return read_word(json, kWishes, wish); }
bool read_into(JsonReader& json, Target& target) { return read_word(json, kTargets, target); }

template <Described<Directive> Record, typename Visit>
void describe(Record& directive, Visit visit) {
  visit("id", directive.id);
  visit("wish", directive.wish);
  visit("target", directive.target);
  visit("name", directive.name);
  visit("value", directive.value);
  visit("by", directive.by);
  visit("at", directive.at);
}

/// Passes over those that only newer commands know.
bool read_into(JsonReader& json, std::vector<Directive>& all) {
  constexpr auto kNoWish = static_cast<Wish>(kWishes.size());
  constexpr auto kNoTarget = static_cast<Target>(kTargets.size());
  return read_elements(json, [&] {
    Directive directive{.wish = kNoWish, .target = kNoTarget};
    read_members(json, [&](const std::string& name) { read_described_member(json, name, directive); });
    if (directive.wish != kNoWish && directive.target != kNoTarget) {
      all.push_back(std::move(directive));
    }
  });
}

template <Described<Steering> Record, typename Visit>
void describe(Record& steering, Visit visit) {
  visit("watched_until", steering.watched_until);
  visit("directives", steering.directives);
}

std::string_view to_string(Wish wish) { return kWishes.at(static_cast<std::size_t>(wish)); }
std::string_view to_string(Target target) { return kTargets.at(static_cast<std::size_t>(target)); }

bool stands(Wish wish) { return wish == Wish::pause || wish == Wish::scale || wish == Wish::log_level; }

std::string Directive::text() const {
  const std::string whom = target == Target::all ? "all hosts" : std::string(to_string(target)) + " " + name;
  return wish == Wish::scale       ? "scale " + whom + " to " + value
         : wish == Wish::log_level ? "log-level of " + whom + " is " + value
                                   : std::string(to_string(wish)) + " " + whom;
}

bool Directive::is_about(const std::string& job, const std::string& queues) const {
  return target == Target::job ? name == job : target == Target::queue && draws_from(queues, name);
}

bool has_directive(const std::vector<Directive>& directives, const std::string& id) {
  return std::any_of(directives.begin(), directives.end(),
                     [&id](const Directive& directive) { return directive.id == id; });
}

std::optional<std::string> flaw_of(const Directive& directive) {
  if (!contains(kMeaning, std::pair(directive.wish, directive.target))) {
    return std::string(to_string(directive.wish)) + " means no " + std::string(to_string(directive.target));
  }
  if (directive.target != Target::all && directive.name.empty()) {
    return std::string(to_string(directive.wish)) + " needs the name of a " + std::string(to_string(directive.target));
  }
  if (directive.name.size() > kMaxTargetBytes) {
    return "a name has at most " + std::to_string(kMaxTargetBytes) + " bytes";
  }
  if (directive.wish == Wish::scale && !workers_of(directive)) {
    return "a job has 1 to " + std::to_string(kMostWorkers) + " workers, not \"" + directive.value +
           "\"; to have nothing started, pause it";
  }
  if (directive.wish == Wish::log_level && !contains(kLogLevels, directive.value)) {
    return "a log level is trace, debug, info, warn or error, not \"" + directive.value + "\"";
  }
  return std::nullopt;
}

std::string write_steering(const Steering& steering) {
  return steering.directives.empty() && !steering.watched_until ? std::string() : write_described(steering);
}

Result<Steering> read_steering(std::string_view text) {
  return text.empty() ? Steering() : read_described<Steering>(text, "what operators want");
}

bool DirectiveResolver::means_us(const Directive& directive) const {
  return directive.target == Target::host ? identity_.is_called(directive.name)
                                          : directive.target == Target::all || directive.target == Target::message;
}

std::vector<Directive> DirectiveResolver::read(const std::string& place, Steering steering) {
  const auto known = boards_.find(place);
  const bool first_look = known == boards_.end();
  Board& board = boards_[place];
  std::vector<Directive> orders;
  for (const Directive& directive : steering.directives) {
    const bool order = !stands(directive.wish) && means_us(directive) && !flaw_of(directive);
    if (order && !first_look && !has_directive(board.directives, directive.id)) {
      orders.push_back(directive);
    }
  }
  board.directives = std::move(steering.directives);
  std::erase_if(board.answers,
                [&board](const Answer& answer) { return !has_directive(board.directives, answer.directive); });
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
               (means_us(directive) || std::any_of(jobs.begin(), jobs.end(), [&](const auto& job) {
                  return directive.is_about(job.name, job.queue);
                }))) {
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
