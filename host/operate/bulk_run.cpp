#include "host/operate/bulk_run.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/ranges.hpp"
#include "base/text/number.hpp"
#include "base/text/percent.hpp"
#include "base/timestamp.hpp"
#include "host/queue/operator.hpp"

namespace sluice::operate {

namespace {

using Fate = BulkOutcome::Fate;

// Before a page's cursor: "rest=37;...".
constexpr std::string_view kRest = "rest=";
constexpr char kEndOfRest = ';';
constexpr std::string_view kAfter = "after=";
constexpr Duration kAtWorkAgain = std::chrono::seconds(1);

bool is_dead_already(const queue::StoredMessage& message, const BulkWork& work) {
  const auto* change = std::get_if<queue::Change>(&work);
  return change != nullptr && change->action == queue::ChangeAction::dead_letter && message.half == queue::Half::dlq;
}

Error elsewhere(queue::Half half) {
  return {ErrorCode::conflict, half == queue::Half::dlq ? "lies in the dead-letter half" : "lies in the standard half"};
}

/// Of the store as a whole: the next message would fail in the same way.
bool is_of_the_store(ErrorCode code) {
  switch (code) {
    case ErrorCode::queue_missing:
    case ErrorCode::denied:
    case ErrorCode::throttled:
    case ErrorCode::unavailable:
    case ErrorCode::full:
    case ErrorCode::corrupt:
    case ErrorCode::timeout:
    case ErrorCode::cancelled:
      return true;
    default:
      return false;
  }
}

queue::ChangeResult result_of(const Result<queue::StoredMessage>& edited) {
  using Status = queue::ChangeStatus;
  if (edited) {
    return {.status = Status::applied, .version = edited->version, .error = {}};
  }
  const ErrorCode code = edited.error().code();
  const bool gone = code == ErrorCode::not_found;
  return {.status = gone                          ? Status::not_found
                    : code == ErrorCode::conflict ? Status::conflict
                                                  : Status::failed,
          .version = 0,
          .error = edited.error()};
}

BulkRun::Step failed(const Error& error) {
  return {.state = BulkRun::Step::State::failed, .until = {}, .error = error, .outcomes = {}};
}

bool stops_the_run(const std::vector<queue::ChangeResult>& results) {
  return !results.empty() && std::all_of(results.begin(), results.end(), [](const queue::ChangeResult& result) {
    return result.status == queue::ChangeStatus::failed && is_of_the_store(result.error.code());
  });
}

}  // namespace

std::optional<Error> in_flight(const queue::StoredMessage& message, const AtWork& at_work, WallTime now) {
  if (message.state(now) == queue::MessageState::in_flight) {
    return Error(ErrorCode::conflict, "is in flight until " + format_timestamp(*message.invisible_until));
  }
  const auto holder = at_work.find({message.half, message.message.id});
  return holder == at_work.end()
             ? std::nullopt
             : std::optional(Error(ErrorCode::conflict, "is in flight: host " + holder->second + " has it at work"));
}

BulkPlan BulkPlan::removal_of_all(queue::Half half) {
  BulkPlan plan;
  plan.half = half;
  plan.work = queue::Change{.id = {}, .action = queue::ChangeAction::remove};
  plan.unconditional = true;
  return plan;
}

Result<void> BulkPlan::resume_at(const std::string& token) {
  const auto end = token.find(kEndOfRest);
  const auto rest = token.starts_with(kRest) && end != std::string::npos
                        ? parse_number<std::size_t>(token.substr(kRest.size(), end - kRest.size()))
                        : std::nullopt;
  cursor = rest ? token.substr(end + 1) : token;
  if (const auto mark = cursor.find(kEndOfRest); cursor.starts_with(kAfter) && mark != std::string::npos) {
    after = percent_decoded_loosely(std::string_view(cursor).substr(kAfter.size(), mark - kAfter.size()));
    cursor.erase(0, mark + 1);
  }
  if (rest == 0U) {
    return Error(ErrorCode::invalid, "says that nothing is left to be done; give it as a run has printed it");
  }
  if (rest) {
    limit = limit == 0 ? *rest : std::min(limit, *rest);
  }
  return {};
}

std::string BulkRun::resume_token() const {
  std::string cursor = next_ < found_.size() ? page_cursor_ : list_cursor_;
  const bool has_rest = plan_.limit > 0 && !limit_reached() && plan_.ids.empty();
  // What was edited or given back stays where it was, and would count once more. Everything else has moved, also behind
  // what is left.
  const auto* const change = std::get_if<queue::Change>(&plan_.work);
  const bool stays = change == nullptr || change->action == queue::ChangeAction::set_visibility;
  if (has_rest && stays && next_ > 0 && next_ < found_.size()) {
    cursor.insert(0, std::string(kAfter) + percent_encoded(found_[next_ - 1].message.id) + kEndOfRest);
  }
  return has_rest ? std::string(kRest) + std::to_string(plan_.limit - count_.done) + kEndOfRest + cursor : cursor;
}

BulkRun::BulkRun(queue::Operator& queue, const Clock& clock, BulkPlan plan)
    : queue_(queue),
      clock_(clock),
      plan_(std::move(plan)),
      after_(plan_.after),
      began_(clock.wall_now()),
      pace_(plan_.rate),
      list_cursor_(plan_.cursor) {}

BulkRun::Step BulkRun::step() {
  if (limit_reached() || complete()) {
    return {.state = Step::State::finished, .until = {}, .error = {}, .outcomes = {}};
  }
  if (next_ < found_.size()) {
    return apply();
  }
  return plan_.ids.empty() ? list() : find();
}

/// What was sent or put back after the beginning; without this a run with a producer beside it would not end, and one
/// that delays messages would meet them again.
bool BulkRun::arrived_later(const queue::StoredMessage& message) const {
  return message.message.sent_at > began_ && message.updated_at >= began_;
}

/// Where everything matches, no more is read than is wanted; a batch at least, for what is left alone.
std::size_t BulkRun::page_size() const {
  if (plan_.limit == 0 || !plan_.filter.empty()) {
    return plan_.page;
  }
  return std::min(plan_.page, std::max<std::size_t>(plan_.batch, plan_.limit - count_.done));
}

BulkRun::Step BulkRun::list() {
  Step step;
  const bool content = plan_.dry_run || plan_.filter.reads_content();
  auto page = queue_.list({.half = plan_.half,
                           .limit = page_size(),
                           .cursor = list_cursor_,
                           .content = content,
                           .consistent = plan_.consistent},
                          deadline());
  if (!page) {
    return failed(page.error());
  }
  page_cursor_ = std::exchange(list_cursor_, page->next);
  found_.clear();
  next_ = 0;
  const WallTime now = clock_.wall_now();
  std::size_t later = 0;
  for (queue::StoredMessage& message : page->messages) {
    if (arrived_later(message)) {
      ++later;
    } else {
      ++count_.seen;
      if (plan_.filter.matches(message, now)) {
        found_.push_back(std::move(message));
      }
    }
  }
  const auto done = std::find_if(found_.begin(), found_.end(),
                                 [this](const queue::StoredMessage& message) { return message.message.id == after_; });
  found_.erase(found_.begin(), done == found_.end() ? found_.begin() : std::next(done));
  after_.clear();
  count_.matched += found_.size();
  // A consistent look may come without order, so that an old message may follow new ones.
  const bool only_later = !plan_.consistent && later > 0 && later == page->messages.size();
  listed_all_ = list_cursor_.empty() || only_later;
  return step;
}

/// The next of the ids: a batch of messages, each read by itself.
BulkRun::Step BulkRun::find() {
  Step step;
  found_.clear();
  next_ = 0;
  const WallTime now = clock_.wall_now();
  while (next_id_ < plan_.ids.size() && found_.size() < plan_.batch) {
    const std::string& id = plan_.ids[next_id_];
    auto message = queue_.get(id, deadline());
    if (!message && is_of_the_store(message.error().code())) {
      return failed(message.error());
    }
    ++next_id_;
    ++count_.seen;
    if (!message) {
      ++count_.matched;
      tell(step, id, Fate::failed, message.error());
    } else if (plan_.this_half_only && message->half != plan_.half) {
      tell(step, id, Fate::skipped, elsewhere(message->half));
    } else if (is_dead_already(*message, plan_.work)) {
      tell(step, id, Fate::skipped, Error(ErrorCode::conflict, "lies in the dead-letter half already"));
    } else if (!plan_.filter.matches(*message, now)) {
      tell(step, id, Fate::skipped, Error(ErrorCode::conflict, "does not match"));
    } else {
      ++count_.matched;
      found_.push_back(std::move(*message));
    }
  }
  listed_all_ = next_id_ == plan_.ids.size();
  return step;
}

// A host takes what it owns without a word to its store, so that this is as it was a moment ago.
void BulkRun::learn_what_is_at_work(SteadyTime now) {
  if (plan_.at_work && now >= at_work_again_) {
    at_work_ = plan_.at_work();
    at_work_again_ = now + kAtWorkAgain;
  }
}

bool BulkRun::is_at_work(const queue::StoredMessage& message) const {
  return in_flight(message, at_work_, clock_.wall_now()).has_value();
}

std::vector<const queue::StoredMessage*> BulkRun::take_batch(Step& step) {
  std::size_t most = pace_.batch(plan_.batch);
  if (plan_.limit > 0) {
    most = std::min<std::size_t>(most, plan_.limit - count_.done);
  }
  const bool spares = !plan_.force && !plan_.unconditional && !plan_.any_state;
  std::vector<const queue::StoredMessage*> batch;
  const WallTime now = clock_.wall_now();
  while (next_ < found_.size() && batch.size() < most) {
    const queue::StoredMessage& message = found_[next_++];
    auto why = spares ? in_flight(message, at_work_, now) : std::nullopt;
    if (why) {
      tell(step, message.message.id, Fate::skipped, *std::move(why), true);
    } else {
      batch.push_back(&message);
    }
  }
  return batch;
}

BulkRun::Step BulkRun::apply() {
  Step step;
  const SteadyTime now = clock_.steady_now();
  if (pace_.next() > now) {
    step.state = Step::State::wait;
    step.until = pace_.next();
    return step;
  }
  learn_what_is_at_work(now);
  const std::size_t first = next_;
  const std::uint64_t skipped = count_.skipped;
  const auto batch = take_batch(step);
  if (plan_.dry_run || batch.empty()) {
    const auto* change = std::get_if<queue::Change>(&plan_.work);
    for (const queue::StoredMessage* message : batch) {
      planned_ += change != nullptr ? plan_.tariff.change(*message, change->action) : plan_.tariff.edit(*message);
      tell(step, message->message.id, Fate::planned, {}, is_at_work(*message));
    }
    return step;
  }
  const auto results = std::holds_alternative<queue::Change>(plan_.work) ? change(batch) : edit(batch);
  if (stops_the_run(results)) {
    next_ = first;
    count_.skipped = skipped;
    return failed(results.front().error);
  }
  pace_.took(batch.size(), now);
  for (std::size_t index = 0; index < batch.size(); ++index) {
    put_down(step, *batch[index], results[index]);
  }
  return step;
}

std::vector<queue::ChangeResult> BulkRun::change(std::span<const queue::StoredMessage* const> batch) {
  auto changes = mapped(batch, [this](const queue::StoredMessage* message) {
    queue::Change change = std::get<queue::Change>(plan_.work);
    change.id = message->message.id;
    change.version = plan_.any_state ? change.version : message->version;
    return change;
  });
  auto results = plan_.unconditional ? queue::remove_from_half(queue_, plan_.half, std::move(changes), deadline())
                                     : queue_.change(changes, deadline());
  queue::fill_up(results, batch.size());
  return results;
}

std::vector<queue::ChangeResult> BulkRun::edit(std::span<const queue::StoredMessage* const> batch) {
  const auto& edits = std::get<std::vector<queue::ContentEdit>>(plan_.work);
  return mapped(batch, [&](const queue::StoredMessage* message) {
    return result_of(queue_.edit(message->message.id, message->version, edits, deadline()));
  });
}

void BulkRun::put_down(Step& step, const queue::StoredMessage& message, const queue::ChangeResult& result) {
  using Status = queue::ChangeStatus;
  const bool applied = result.status == Status::applied;
  // Of messages that were named each one matters; of a half, one that is gone or changed is not meant any more.
  const bool failed = result.status == Status::failed || (!applied && !plan_.ids.empty());
  Error error = result.error;
  if (applied) {
    error = {};
  } else if (!failed && result.status == Status::not_found) {
    error = Error(ErrorCode::not_found, "gone meanwhile");
  } else if (!failed && !plan_.unconditional && !plan_.any_state) {
    error = Error(ErrorCode::conflict, "changed meanwhile");
  }
  tell(step, message.message.id,
       applied  ? Fate::done
       : failed ? Fate::failed
                : Fate::skipped,
       std::move(error), is_at_work(message));
}

void BulkRun::tell(Step& step, std::string id, Fate fate, Error error, bool was_in_flight) {
  ++(fate == Fate::skipped ? count_.skipped : fate == Fate::failed ? count_.failed : count_.done);
  step.outcomes.push_back(
      {.id = std::move(id), .fate = fate, .was_in_flight = was_in_flight, .error = std::move(error)});
}

}  // namespace sluice::operate
