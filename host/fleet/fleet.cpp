#include "host/fleet/fleet.hpp"

#include "base/process_mark.hpp"
#include "base/uuid.hpp"
#include "host/fleet/revise_notice.hpp"

namespace sluice::fleet {
namespace {

using queue::NoticeBoard;
using queue::Topic;

constexpr std::array<std::string_view, 3> kPulses{"fresh", "late", "silent"};
// Of a host that does not say how often it writes.
constexpr Duration kUsualInterval = std::chrono::minutes(1);
// A record may be so much later than announced: its store, or the clocks.
constexpr Duration kLateSlack = std::chrono::seconds(3);
constexpr Duration kSilentSlack = std::chrono::seconds(10);
constexpr std::size_t kShortId = 13;

/// What a record of that age tells of a host that writes one `every` so often.
Pulse pulse_of(Duration age, Duration every) {
  const Duration interval = every > Duration::zero() ? every : kUsualInterval;
  if (age <= interval + interval / 2 + kLateSlack) {
    return Pulse::fresh;
  }
  return age <= 3 * interval + kSilentSlack ? Pulse::late : Pulse::silent;
}

KnownHost known_host(const NoticeBoard& board, const queue::Notice& notice, HostRecord record) {
  KnownHost host{.record = std::move(record), .place = board.traits().place};
  host.record.instance = notice.key;
  host.age = std::max(Duration::zero(), Duration(board.now() - notice.posted_at));
  const ProcessLife life = life_of(host.record.pid, host.record.process);
  if (host.record.state == HostState::ended) {
    host.pulse = Pulse::silent;
  } else if (life == ProcessLife::gone) {
    host.pulse = Pulse::silent;  // however young its record
    host.silence = "its process is gone";
  } else {
    const Pulse last = life == ProcessLife::alive ? Pulse::late : Pulse::silent;
    host.pulse = std::min(pulse_of(host.age, host.record.every), last);
  }
  return host;
}

/// Drops orders that are over.
void drop_void(Steering& steering, WallTime now) {
  std::erase_if(steering.directives, [now](const Directive& directive) {
    return !stands(directive.wish) && now - directive.at > kOrderLife;
  });
}

/// What stands there; nothing where nobody can read it, so that the next wish mends it.
Steering steering_of(const std::string& text) {
  auto steering = read_steering(text);
  return steering ? std::move(*steering) : Steering();
}

/// Changes what stands on a board, as `revise_notice` does; `change` says whether anything is to be written. What makes
/// it longer has to fit.
Result<std::int64_t> revise_steering(NoticeBoard& board, const std::function<bool(Steering&)>& change,
                                     Deadline deadline) {
  return revise_notice(
      board, Topic::steering,
      [&](const std::string& text) -> Result<std::optional<std::string>> {
        Steering steering = steering_of(text);
        if (!change(steering)) {
          return std::optional<std::string>();
        }
        std::string revised = write_steering(steering);
        if (revised.size() > text.size() &&
            (steering.directives.size() > kMaxDirectives || revised.size() > board.traits().most_bytes)) {
          return Error(ErrorCode::full,
                       "there are too many wishes in " + board.traits().place + "; take some back first");
        }
        return std::optional(std::move(revised));
      },
      deadline);
}

AuditEntry deed_of(const Directive& directive, std::string what, std::string queue, const std::string& who) {
  return {.id = directive.id, .who = who, .what = std::move(what), .queue = std::move(queue)};
}

/// Notes what is done already.
std::optional<Error> why_unnoted(NoticeBoard& board, AuditEntry deed, Deadline deadline) {
  const auto noted = note_deed(board, std::move(deed), deadline);
  return noted ? std::nullopt : std::optional(noted.error());
}

bool knows(const HostRecord& host, const Directive& directive) {
  return directive.target == Target::host ? host.is_called(directive.name)
                                          : std::any_of(host.jobs.begin(), host.jobs.end(), [&](const JobRecord& job) {
                                              return directive.is_about(job.name, job.queue);
                                            });
}

}  // namespace

std::string_view to_string(Pulse pulse) { return kPulses.at(static_cast<std::size_t>(pulse)); }

Result<void> note_end(NoticeBoard& board, const HostEnd& end, Deadline deadline) {
  SLUICE_TRY(notice, board.read(Topic::hosts, end.instance, deadline));
  auto record = read_record(notice->text);
  if (notice->version == 0 || !record || record->state == HostState::ended) {
    return {};
  }
  record->state = HostState::ended;
  record->left_behind = end.why;
  record->running_total = 0;
  record->running.clear();
  const std::string text = write_record(*record, board.traits().most_bytes);
  const auto posted =
      board.post(Topic::hosts, {.key = end.instance, .text = text, .version = notice->version}, deadline);
  // Whoever else has found its ledger, or swept, was quicker.
  return posted || posted.error().code() == ErrorCode::conflict ? Result<void>() : posted.error();
}

Result<std::unique_ptr<Fleet>> Fleet::open(queue::Queues& queues, const std::vector<std::string>& names,
                                           Random& random) {
  std::unique_ptr<Fleet> fleet(new Fleet(random));
  for (const std::string& name : names) {
    SLUICE_TRY(opened, queues.open_board(name));
    const auto is_same = [&](const Post& post) { return post.board->traits().place == (*opened)->traits().place; };
    if (Post* const same = find_where(fleet->posts_, is_same)) {
      same->queues.push_back(name);
    } else {
      fleet->posts_.push_back({{name}, std::move(*opened)});
    }
  }
  return fleet;
}

Result<FleetView> Fleet::hosts(Deadline deadline) {
  FleetView view;
  std::optional<Error> unread;
  bool any = posts_.empty();
  for (const Post& post : posts_) {
    const auto notices = post.board->list(Topic::hosts, deadline);
    if (!notices) {
      unread = notices.error();
      view.troubles.push_back({post.board->traits().place, notices.error()});
      continue;
    }
    any = true;
    for (const queue::Notice& notice : *notices) {
      auto record = read_record(notice.text);
      if (!record) {
        view.troubles.push_back(
            {post.board->traits().place,
             Error(record.error().code(), "host '" + notice.key + "': " + record.error().message())});
        continue;
      }
      view.sightings.push_back(known_host(*post.board, notice, std::move(*record)));
    }
  }
  if (!any) {
    return *unread;
  }
  std::map<std::string, const KnownHost*> youngest;
  for (const KnownHost& host : view.sightings) {
    const KnownHost*& best = youngest[host.record.instance];
    if (best == nullptr || host.age < best->age) {
      best = &host;
    }
  }
  for (const auto& [instance, host] : youngest) {
    view.hosts.push_back(*host);
  }
  std::stable_sort(view.hosts.begin(), view.hosts.end(),
                   [](const KnownHost& a, const KnownHost& b) { return a.record.label() < b.record.label(); });
  return view;
}

Result<SteeringView> Fleet::steering(Deadline deadline) {
  SteeringView view;
  for (const Post& post : posts_) {
    const std::string& place = post.board->traits().place;
    const auto notices = post.board->list(Topic::steering, deadline);
    if (!notices) {
      view.troubles.push_back({place, notices.error()});
      continue;
    }
    for (const queue::Notice& notice : *notices) {
      auto steering = read_steering(notice.text);
      if (!steering) {
        view.troubles.push_back({place, steering.error()});
        continue;
      }
      drop_void(*steering, post.board->now());
      for (Directive& directive : steering->directives) {
        view.given.push_back({std::move(directive), place, notice.version});
      }
    }
  }
  if (!posts_.empty() && view.troubles.size() == posts_.size() && view.given.empty()) {
    return view.troubles.front().error;
  }
  return view;
}

Result<AuditView> Fleet::audit(const AuditQuery& query, Deadline deadline) {
  AuditView all;
  for (const Post& post : posts_) {
    SLUICE_TRY(view, read_deeds(*post.board, query, deadline));
    std::move(view->deeds.begin(), view->deeds.end(), std::back_inserter(all.deeds));
    const bool may_lack = query.names.empty() || post.serves(query.names.front());
    all.kept_since = may_lack ? std::max(all.kept_since, view->kept_since) : all.kept_since;
  }
  all.deeds = merge_audits(std::move(all.deeds), query);
  all.deeds.resize(std::min(all.deeds.size(), query.limit));
  return all;
}

std::string Fleet::make_id() { return make_uuid(random_).substr(0, kShortId); }

Result<void> Fleet::watch(Duration span, Deadline deadline) {
  std::optional<Error> failed;
  for (const Post& post : posts_) {
    const NoticeBoard& board = *post.board;
    const auto done = revise_steering(
        *post.board,
        [&board, span](Steering& steering) {
          const WallTime now = board.now();
          // Somebody has said so just now.
          if (steering.watched_until && *steering.watched_until > now + span / 2) {
            return false;
          }
          steering.watched_until = now + span;
          return true;
        },
        deadline);
    if (!done) {
      failed = done.error();
    }
  }
  return failed ? Result<void>(*failed) : Result<void>();
}

std::vector<Fleet::Post*> Fleet::posts_for(const Directive& directive, const std::string& queue, Deadline deadline) {
  const auto those = [this](const auto& wanted) {
    std::vector<Post*> some;
    for (Post& post : posts_) {
      if (wanted(post)) {
        some.push_back(&post);
      }
    }
    return some;
  };
  const std::string& name = directive.target == Target::queue ? directive.name : queue;
  auto meant = those([&name](const Post& post) { return !name.empty() && post.serves(name); });
  if (meant.empty() && posts_.size() > 1 && directive.target != Target::all) {
    if (const auto view = hosts(deadline)) {
      meant = those([&](const Post& post) {
        return std::any_of(view->sightings.begin(), view->sightings.end(), [&](const KnownHost& host) {
          return host.place == post.board->traits().place && knows(host.record, directive);
        });
      });
    }
  }
  return meant.empty() ? those([](const Post&) { return true; }) : meant;
}

Result<std::vector<Given>> Fleet::give(const Directive& directive, const std::string& queue, const std::string& who,
                                       Deadline deadline) {
  if (const auto flaw = flaw_of(directive)) {
    return Error(ErrorCode::invalid, *flaw);
  }
  Directive given = directive;
  given.id = make_id();
  given.by = who;
  const std::string& name = directive.target == Target::queue ? directive.name : queue;
  std::vector<Given> all;
  for (Post* post : posts_for(directive, queue, deadline)) {
    SLUICE_TRY(done, give_on(*post, given, deadline));
    done->unnoted = why_unnoted(*post->board, deed_of(given, given.text(), name, who), deadline);
    all.push_back(std::move(*done));
  }
  return all;
}

Result<Given> Fleet::give_on(Post& post, Directive directive, Deadline deadline) {
  const NoticeBoard& board = *post.board;
  directive.at = board.now();
  const auto add = [&board, &directive](Steering& steering) {
    auto& directives = steering.directives;
    if (has_directive(directives, directive.id)) {
      return false;
    }
    drop_void(steering, board.now());
    if (stands(directive.wish)) {
      std::erase_if(directives, [&](const Directive& other) { return other.same_thing(directive); });
    }
    directives.push_back(directive);
    return true;
  };
  SLUICE_TRY(version, revise_steering(*post.board, add, deadline));
  return Given{std::move(directive), board.traits().place, *version};
}

Result<std::vector<Given>> Fleet::reset(std::optional<Wish> wish, const std::string& name, const std::string& who,
                                        Deadline deadline) {
  const auto meant = [&](const Directive& directive) {
    return stands(directive.wish) && (!wish || directive.wish == *wish) && (name.empty() || directive.name == name);
  };
  std::vector<Given> all;
  for (Post& post : posts_) {
    std::vector<Directive> gone;
    const auto take_back = [&](Steering& steering) {
      for (const Directive& directive : steering.directives) {
        // One that an earlier try has taken back already counts too.
        if (meant(directive) && !has_directive(gone, directive.id)) {
          gone.push_back(directive);
        }
      }
      return std::erase_if(steering.directives, meant) > 0;
    };
    SLUICE_TRY(version, revise_steering(*post.board, take_back, deadline));
    for (Directive& directive : gone) {
      const std::string queue = directive.target == Target::queue ? directive.name : std::string();
      AuditEntry deed = deed_of(directive, "reset: " + directive.text(), queue, who);
      // The directive itself is a deed too.
      deed.id += "-reset";
      all.push_back({std::move(directive), post.board->traits().place, *version,
                     why_unnoted(*post.board, std::move(deed), deadline)});
    }
  }
  return all;
}

Result<void> Fleet::note(const Directive& directive, const std::string& queue, const std::string& who,
                         Deadline deadline) {
  AuditEntry deed = deed_of(directive, directive.text(), queue, who);
  deed.id = make_id();
  std::optional<Error> unnoted;
  for (Post& post : posts_) {
    if (queue.empty() || post.serves(queue)) {
      const auto why = why_unnoted(*post.board, deed, deadline);
      unnoted = unnoted ? unnoted : why;
    }
  }
  return unnoted ? Result<void>(*unnoted) : Result<void>();
}

Obedience Fleet::obedience(const std::vector<Given>& all, const FleetView& view) {
  Obedience obedience;
  std::set<std::string> seen;
  std::set<std::string> missing;
  for (const Given& given : all) {
    for (const KnownHost& host : view.sightings) {
      if (host.place != given.place) {
        continue;
      }
      const std::string label = host.record.label();
      for (const Answer& answer : host.record.answers) {
        const auto said = obedience.answers.find(label);
        // On another board the message was another one's.
        const bool tells_more = said == obedience.answers.end() || (answer.done && !said->second.done);
        if (answer.directive == given.directive.id && tells_more) {
          obedience.answers.insert_or_assign(label, answer);
        }
      }
      if (host.record.seen >= given.version) {
        seen.insert(label);
      } else if (host.pulse != Pulse::silent) {
        missing.insert(label);
      }
    }
  }
  obedience.waited_for.assign(missing.begin(), missing.end());
  std::set_difference(seen.begin(), seen.end(), missing.begin(), missing.end(), std::back_inserter(obedience.seen_by));
  for (const KnownHost& host : view.hosts) {
    if (missing.contains(host.record.label()) && !host.answers()) {
      obedience.quiet.emplace(host.record.label(), host.age);
    }
  }
  return obedience;
}

bool Obedience::done_by_somebody() const {
  return std::any_of(answers.begin(), answers.end(), [](const auto& said) { return said.second.done; });
}

}  // namespace sluice::fleet
