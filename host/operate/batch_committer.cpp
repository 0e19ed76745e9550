#include "host/operate/batch_committer.hpp"

#include <algorithm>
#include <iterator>
#include <span>

namespace sluice::operate {

namespace {

constexpr Duration kProgressInterval = std::chrono::milliseconds(200);

}  // namespace

BatchCommitter::BatchCommitter(Options options, const SendRun& input, queue::Sender& sender, const Clock& clock,
                               Listener listener)
    : options_(options),
      run_(input),
      sender_(sender),
      clock_(clock),
      listener_(std::move(listener)),
      started_(clock.steady_now()),
      shown_(started_),
      thread_([this] { run(); }) {}

BatchCommitter::~BatchCommitter() { finish(false); }

bool BatchCommitter::pass_on(Batch batch) {
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_REQUIRES(mutex_) { return stopped_ || !waiting_; });
  if (stopped_) {
    return false;
  }
  waiting_ = std::move(batch);
  changed_.notify_all();
  return true;
}

bool BatchCommitter::drain() {
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, SteadyTime::max(),
                      [this]() SLUICE_REQUIRES(mutex_) { return !sending_ && (stopped_ || !waiting_); });
  return !stopped_;
}

void BatchCommitter::finish(bool send_rest) {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    if (!send_rest) {
      waiting_.reset();
    }
    changed_.notify_all();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

void BatchCommitter::run() {
  while (true) {
    Batch batch;
    {
      const MutexLock lock(mutex_);
      changed_.wait_until(mutex_, SteadyTime::max(),
                          [this]() SLUICE_REQUIRES(mutex_) { return waiting_.has_value() || closed_; });
      if (!waiting_) {
        return;
      }
      batch = std::move(*waiting_);
      waiting_.reset();
      sending_ = true;
      changed_.notify_all();
    }
    const bool going = commit(std::move(batch));
    const MutexLock lock(mutex_);
    sending_ = false;
    stopped_ = !going;
    changed_.notify_all();
    if (stopped_) {
      return;
    }
  }
}

bool BatchCommitter::commit(Batch batch) {
  auto results = send(std::move(batch.messages), batch.lines);
  std::vector<Refusal> refusals = std::move(batch.refusals);
  ids_.clear();
  for (std::size_t index = 0; index < results.size(); ++index) {
    note(batch.lines[index], results[index], refusals);
  }
  std::sort(refusals.begin(), refusals.end(),
            [](const Refusal& left, const Refusal& right) { return left.line < right.line; });
  bool going = true;
  for (const Refusal& refusal : refusals) {
    going = refuse(refusal) && going;
  }
  committed_ = batch.last_line;
  listener_.stored(ids_);
  show_progress();
  return going && !too_many() && listener_.listens();
}

void BatchCommitter::note(std::uint64_t line, queue::SendResult& result, std::vector<Refusal>& refusals) {
  if (result.status != queue::SendStatus::failed) {
    ++sent_;
    existing_ += result.status == queue::SendStatus::duplicate_id ? 1 : 0;
    ids_.append(result.id).append("\n");
    return;
  }
  // Nothing that is refused now has gone away if an earlier run has stored it.
  if (const std::string before = run_.unsure().moment_of(line); !before.empty()) {
    unsure_.add(before, line);
  } else if (!moment_.empty() && result.error.code() == ErrorCode::unknown_outcome) {
    unsure_.add(moment_, line);
  }
  refusals.push_back({line, listener_.explained(result.error)});
}

bool BatchCommitter::may_be_stored(std::uint64_t line) const {
  return run_.repeats() && (moment_.empty() || !run_.unsure().moment_of(line).empty());
}

Result<std::string> BatchCommitter::id_of(const queue::NewMessage& message, std::uint64_t line) const {
  if (moment_.empty()) {
    return run_.id(line);
  }
  const std::string before = run_.unsure().moment_of(line);
  const auto id = sender_.id_at(before.empty() ? moment_ : before, run_.name(), line, message);
  if (!id) {
    return Error(ErrorCode::invalid,
                 "--resume names the moment \"" + before +
                     "\", which this queue's store has not made; give what a run on this queue said");
  }
  return *id;
}

std::vector<queue::SendResult> BatchCommitter::send(std::vector<queue::NewMessage> messages,
                                                    const std::vector<std::uint64_t>& lines) {
  const auto all_failed = [&messages](const Error& error) {
    return std::vector<queue::SendResult>(messages.size(), {queue::SendStatus::failed, {}, error});
  };
  auto moment = sender_.moment(deadline());
  if (!moment) {
    return all_failed(moment.error());
  }
  moment_ = std::move(*moment);
  std::size_t repeated = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto id = id_of(messages[i], lines[i]);
    if (!id) {
      return all_failed(id.error());
    }
    messages[i].id = std::move(*id);
    repeated += may_be_stored(lines[i]) ? 1 : 0;
  }
  if (repeated == 0 || repeated == messages.size()) {
    return send(std::move(messages), repeated == 0);
  }
  std::vector<queue::SendResult> results;
  for (std::size_t from = 0, end = 0; from < messages.size(); from = end) {
    const bool fresh = !may_be_stored(lines[from]);
    while (end < messages.size() && may_be_stored(lines[end]) != fresh) {
      ++end;
    }
    const auto stretch = std::span(messages).subspan(from, end - from);
    auto some = send({std::move_iterator(stretch.begin()), std::move_iterator(stretch.end())}, fresh);
    results.insert(results.end(), std::move_iterator(some.begin()), std::move_iterator(some.end()));
  }
  return results;
}

std::vector<queue::SendResult> BatchCommitter::send(std::vector<queue::NewMessage> messages, bool fresh) {
  return fresh ? sender_.send_fresh(std::move(messages), deadline()) : sender_.send(messages, deadline());
}

// What is stored must not be among what is sent again where only moments tell it.
bool BatchCommitter::too_many() const {
  return !moment_.empty() && std::max(missing_.count(), unsure_.count()) >= SendRun::kMostRanges;
}

LineRanges BatchCommitter::missing(bool at_end) const {
  LineRanges missing = missing_;
  if (!at_end) {
    missing.add(run_.rest(committed_));
  }
  return missing;
}

std::string BatchCommitter::token(bool at_end) const {
  LineRanges missing_lines = missing(at_end);
  UnsureLines unsure = unsure_;
  if (!at_end) {
    unsure.add(run_.unsure().behind(committed_));
  }
  return run_.token(moment_.empty() ? missing_lines.at_most(SendRun::kMostRanges) : missing_lines, unsure);
}

bool BatchCommitter::refuse(const Refusal& refusal) {
  ++refused_;
  missing_.add(refusal.line);
  if (options_.keep_going) {
    listener_.passed_over(refusal);
    return true;
  }
  const auto same = std::find_if(reasons_.begin(), reasons_.end(),
                                 [&refusal](const auto& reason) { return reason.first == refusal.why; });
  auto& lines = same != reasons_.end() ? same->second : reasons_.emplace_back(refusal.why, LineRanges{}).second;
  lines.add(refusal.line);
  return false;
}

std::vector<std::string> BatchCommitter::stopped_by() const {
  std::vector<std::string> texts;
  for (const auto& [why, lines] : reasons_) {
    const std::string text = lines.text();
    texts.push_back((text.find_first_of(",-") == std::string::npos ? "line " : "lines ") + text + ": " + why);
  }
  if (too_many()) {
    texts.emplace_back(
        "what was not stored lies in so many places of the input that --resume can name no more; mend what is wrong "
        "with it before the rest is sent");
  }
  return texts;
}

void BatchCommitter::show_progress() {
  const SteadyTime now = clock_.steady_now();
  if (now - shown_ < kProgressInterval) {
    return;
  }
  shown_ = now;
  listener_.progress(sent_, std::chrono::duration<double>(now - started_).count());
}

}  // namespace sluice::operate
