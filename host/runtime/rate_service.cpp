#include "host/runtime/rate_service.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "host/runtime/service.hpp"

namespace sluice::runtime {
namespace {

// Beside schedules and moves: notices that are read one by one.
constexpr auto kTopic = queue::Topic::schedules;
/// A job that has taken another one's place waits so long at most to be seen.
constexpr Duration kLook = std::chrono::milliseconds(200);
/// After a board has not done what was asked of it.
constexpr Duration kRetry = std::chrono::seconds(2);
constexpr int kMostTries = 8;

void tell(const fleet::RateShare& share, work::Job& job) {
  const fleet::RateShare::Lease& lease = share.lease();
  job.share_rate({lease.rate, lease.credit, lease.until});
}

}  // namespace

void RateService::end() {
  for (const bool troubled : {false, true}) {
    for (auto& [name, limit] : limits_) {
      if (limit.troubled == troubled) {
        give_back(limit, Deadline::at(end_by()));
      }
    }
  }
}

SteadyTime RateService::step(const std::stop_token& stop) {
  // Asked first: who takes another one's place is among the members before that one counts as gone.
  const bool exchanging = parts_.jobs.exchanging();
  const bool troubled = !take_members();
  renew_due(stop);
  SteadyTime next = exchanging || troubled ? parts_.clock.steady_now() + kLook : SteadyTime::max();
  for (const auto& [name, limit] : limits_) {
    next = std::min(next, limit.due());
  }
  return next;
}

bool RateService::take_members() {
  bool all_known = true;
  std::set<Name> wanted;
  for (const JobSet::Member& member : parts_.jobs.members()) {
    const config::JobConfig& job = member.plan.config;
    if (job.rate_limit <= 0 || job.rate_per_host) {
      continue;
    }
    const Name name{std::string(queue::kLimitPrefix) + job.queue + "/" + job.name, job.rate_limit};
    auto found = limits_.find(name);
    if (found == limits_.end()) {
      auto board = parts_.queues.open_board(job.queue);
      if (!board) {
        all_known = false;  // The job of that queue says why.
        continue;
      }
      const auto& pace = (*board)->traits().billed ? fleet::RateShare::kBilled : fleet::RateShare::kFree;
      found = limits_.emplace(name, Limit{{host_, job.rate_limit, pace}, std::move(*board), {.key = name.first}}).first;
    }
    wanted.insert(name);
    Limit& limit = found->second;
    if (limit.job.lock() != member.job) {
      limit.job = member.job;
      limit.claimed = member.job->ledger().claimed;
      tell(limit.share, *member.job);
    }
  }
  for (auto limit = limits_.begin(); limit != limits_.end();) {
    if (wanted.contains(limit->first)) {
      ++limit;
      continue;
    }
    give_back(limit->second, Deadline::after(parts_.clock, limit->second.troubled ? kFarewellTime : kCallTime));
    limit = limits_.erase(limit);
  }
  return all_known;
}

void RateService::renew_due(const std::stop_token& stop) {
  std::vector<Limit*> due;
  due.reserve(limits_.size());
  for (auto& [name, limit] : limits_) {
    if (parts_.clock.steady_now() >= limit.due()) {
      due.push_back(&limit);
    }
  }
  // A store that does not answer keeps those of others waiting as little as can be.
  std::sort(due.begin(), due.end(), [](const Limit* a, const Limit* b) {
    return std::pair(a->troubled, a->due()) < std::pair(b->troubled, b->due());
  });
  for (Limit* const limit : due) {
    const bool last = limit->troubled;
    const auto job = limit->job.lock();
    if (stop.stop_requested()) {
      return;
    }
    if (job) {
      renew(*job, *limit);
    }
    if (last) {
      return;
    }
  }
}

fleet::RateShare::Use RateService::use_of(const work::Job& job, Limit& limit, SteadyTime now) {
  const work::JobActivity activity = job.activity();
  const double seconds = std::chrono::duration<double>(now - std::exchange(limit.asked, now)).count();
  const std::uint64_t before = std::exchange(limit.claimed, activity.ledger.claimed);
  const std::uint64_t claimed = activity.ledger.claimed - std::min(before, activity.ledger.claimed);
  return {.rate = seconds > 0 ? static_cast<double>(claimed) / seconds : 0, .short_of = activity.short_of_rate};
}

void RateService::renew(work::Job& job, Limit& limit) {
  const auto done = post(job, limit, use_of(job, limit, parts_.clock.steady_now()));
  limit.retry_at = done ? SteadyTime::min() : parts_.clock.steady_now() + kRetry;
  if (done) {
    limit.troubled = false;
  } else if (!std::exchange(limit.troubled, true)) {
    parts_.log.warn(
        "this host's part of the rate limit cannot be leased, trying again",
        {{"job", job.config().name}, {"place", limit.board->traits().place}, {"why", done.error().message()}});
  }
}

Result<void> RateService::post(work::Job& job, Limit& limit, const fleet::RateShare::Use& use) {
  Error last;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const Deadline deadline = Deadline::after(parts_.clock, kCallTime);
    SLUICE_PASS_ON(limit.known ? Result<void>() : read(limit, deadline));
    const SteadyTime asked = parts_.clock.steady_now();
    limit.notice.text = limit.share.revise(limit.notice.text, use, limit.board->now(), asked);
    tell(limit.share, job);
    const auto posted = limit.board->post(kTopic, limit.notice, deadline);
    if (posted) {
      limit.notice.version = *posted;
      limit.known = limit.share.alone();
      limit.share.posted(asked);
      tell(limit.share, job);
      return {};
    }
    limit.known = false;
    last = posted.error();
    if (last.code() != ErrorCode::conflict) {
      break;
    }
  }
  return last;
}

Result<void> RateService::read(Limit& limit, Deadline deadline) {
  SLUICE_TRY(found, limit.board->read(kTopic, limit.notice.key, deadline));
  found->key = std::move(limit.notice.key);
  limit.notice = std::move(*found);
  limit.known = true;
  return {};
}

void RateService::give_back(Limit& limit, Deadline deadline) {
  if (const auto left = limit.job.lock()) {
    left->share_rate({});
  }
  for (int tries = 0; tries < kMostTries && (limit.known || read(limit, deadline)); ++tries) {
    limit.notice.text = limit.share.without_this_host(limit.notice.text);
    limit.known = false;
    const auto posted = limit.board->post(kTopic, limit.notice, deadline);
    if (posted || posted.error().code() != ErrorCode::conflict) {
      break;
    }
  }
}

}  // namespace sluice::runtime
