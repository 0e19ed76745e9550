#include "host/cli/batch_committer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice::cli {

namespace {

constexpr Duration kProgressInterval = std::chrono::milliseconds(200);

}  // namespace

BatchCommitter::BatchCommitter(Options options, queue::Sender& sender, QueueSession& session, Console& console)
    : options_(options),
      sender_(sender),
      session_(session),
      console_(console),
      started_(session.clock().steady_now()),
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
    const bool going = commit(batch);
    const MutexLock lock(mutex_);
    sending_ = false;
    stopped_ = !going;
    changed_.notify_all();
    if (stopped_) {
      return;
    }
  }
}

bool BatchCommitter::commit(const Batch& batch) {
  const auto results = sender_.send(batch.messages, session_.deadline());
  std::vector<Refusal> refusals = batch.refusals;
  ids_.clear();
  for (std::size_t index = 0; index < results.size(); ++index) {
    const queue::SendResult& result = results[index];
    if (result.status == queue::SendStatus::failed) {
      refusals.push_back({batch.lines[index], session_.explained(result.error)});
      continue;
    }
    ++sent_;
    existing_ += result.status == queue::SendStatus::duplicate_id ? 1 : 0;
    ids_ += result.status == queue::SendStatus::deduplicated ? result.id : batch.messages[index].id;
    ids_ += '\n';
  }
  std::sort(refusals.begin(), refusals.end(),
            [](const Refusal& left, const Refusal& right) { return left.line < right.line; });
  bool going = true;
  for (const Refusal& refusal : refusals) {
    going = refuse(refusal) && going;
  }
  committed_ = batch.last_line;
  console_.out(ids_);
  console_.flush();
  show_progress();
  return going && console_.writable();
}

bool BatchCommitter::refuse(const Refusal& refusal) {
  ++refused_;
  missing_.add(refusal.line);
  if (options_.keep_going) {
    console_.note("sluice send: line " + std::to_string(refusal.line) + ": " + refusal.why);
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
  return texts;
}

void BatchCommitter::show_progress() {
  const SteadyTime now = session_.clock().steady_now();
  if (now - shown_ < kProgressInterval) {
    return;
  }
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  console_.progress(std::to_string(sent_) + " sent, " +
                    std::to_string(static_cast<std::uint64_t>(static_cast<double>(sent_) / seconds)) + " a second");
}

}  // namespace sluice::cli
