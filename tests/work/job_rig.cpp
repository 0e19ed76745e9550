#include "tests/work/job_rig.hpp"

#include <atomic>
#include <stdexcept>

namespace sluice::work {
namespace {

Mutex rigs_mutex;
std::map<std::string, JobRig*> rigs SLUICE_GUARDED_BY(rigs_mutex);
std::atomic<int> next_rig{0};

JobRig& rig_of(const std::string& job) {
  const MutexLock lock(rigs_mutex);
  return *rigs.at(job);
}

/// Keys of a queue that count the calls which ask for them.
class CountedKeys final : public queue::IdempotencyKeys {
 public:
  CountedKeys(std::unique_ptr<queue::IdempotencyKeys> keys, std::atomic<int>& asked)
      : keys_(std::move(keys)), asked_(asked) {}

  std::vector<queue::KeyAnswer> begin(std::span<const queue::KeyClaim> claims, Deadline deadline) override {
    ++asked_;
    return keys_->begin(claims, deadline);
  }
  Result<void> release(std::span<const queue::KeyClaim> claims, Deadline deadline) override {
    return keys_->release(claims, deadline);
  }
  Result<queue::KeyPage> list(const std::string& job, std::size_t limit, const std::string& cursor,
                              Deadline deadline) override {
    return keys_->list(job, limit, cursor, deadline);
  }
  Result<std::optional<queue::StoredKey>> get(const std::string& job, const std::string& key,
                                              Deadline deadline) override {
    return keys_->get(job, key, deadline);
  }
  Result<bool> forget(const std::string& job, const std::string& key, Deadline deadline) override {
    return keys_->forget(job, key, deadline);
  }

 private:
  const std::unique_ptr<queue::IdempotencyKeys> keys_;
  std::atomic<int>& asked_;
};

}  // namespace

void Gate::open() {
  const MutexLock lock(mutex_);
  open_ = true;
  changed_.notify_all();
}

void Gate::pass() {
  const MutexLock lock(mutex_);
  ++arrivals_;
  changed_.notify_all();
  changed_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_REQUIRES(mutex_) { return open_; });
}

bool Gate::await_arrivals(int count) {
  const SystemClock clock;
  const MutexLock lock(mutex_);
  return changed_.wait_until(mutex_, clock.steady_now() + kPatience,
                             [&]() SLUICE_REQUIRES(mutex_) { return arrivals_ >= count; });
}

void CountingMetrics::add(const observe::JobCounts& counts) {
  const MutexLock lock(mutex_);
  counts_["claimed"] += counts.claimed;
  for (std::size_t i = 0; i < counts.outcomes.size(); ++i) {
    counts_[std::string(queue::core::kOutcomeRules[i].name)] += counts.outcomes[i];
  }
  counts_["exhausted"] += counts.exhausted;
  counts_["settle_failed"] += counts.settle_failed;
  counts_["lost"] += counts.lost;
  counts_["claim_failed"] += counts.claim_failed;
  for (const auto& [each, count] : counts.handler_times) {
    counts_["handled"] += count;
  }
  ++changes_;
  changed_.notify_all();
}
bool CountingMetrics::await(const std::function<bool()>& condition) {
  constexpr Duration kLookEvery = std::chrono::milliseconds(5);
  const SystemClock clock;
  const SteadyTime end = clock.steady_now() + kPatience;
  while (true) {
    if (condition()) {
      return true;
    }
    const SteadyTime now = clock.steady_now();
    if (now >= end) {
      return false;
    }
    const MutexLock lock(mutex_);
    const std::uint64_t seen = changes_;
    changed_.wait_until(mutex_, now + kLookEvery, [&]() SLUICE_REQUIRES(mutex_) { return changes_ != seen; });
  }
}
void CountingMetrics::workers(std::uint64_t configured, std::uint64_t stuck) {
  const MutexLock lock(mutex_);
  counts_["concurrency"] = configured;
  counts_["stuck"] = stuck;
  ++changes_;
  changed_.notify_all();
}
std::uint64_t CountingMetrics::count(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = counts_.find(name);
  return found == counts_.end() ? 0 : found->second;
}

// The functions of the C table. An instance is the rig with its number.
struct RigTable {
  struct Instance {
    JobRig* rig;
    std::atomic<int> inside{0};
  };

  static int32_t create(const sluice_host* host, const sluice_option_value* const*, size_t, void** instance,
                        void (*fail)(void*, sluice_string), void* sink) {
    const std::string job(host->job.data, host->job.size);
    JobRig& rig = rig_of(job);
    int number = 0;
    {
      const MutexLock lock(rig.mutex_);
      number = rig.record_.instances;
    }
    if (rig.script.create && !rig.script.create(job, number)) {
      const std::string why = "no instance for you";
      fail(sink, {why.data(), why.size()});
      return 1;
    }
    const MutexLock lock(rig.mutex_);
    ++rig.record_.instances;
    *instance = new Instance{&rig};
    return 0;
  }

  static void destroy(void* instance) {
    auto* own = static_cast<Instance*>(instance);
    {
      const MutexLock lock(own->rig->mutex_);
      ++own->rig->record_.destroyed;
    }
    delete own;
  }

  static void handle(void* instance, const sluice_message* message, const sluice_context* context) {
    auto* own = static_cast<Instance*>(instance);
    const std::string id(message->id.data, message->id.size);
    const int inside = ++own->inside;
    {
      const MutexLock lock(own->rig->mutex_);
      ++own->rig->record_.started[id];
      own->rig->record_.most_in_one_instance = std::max(own->rig->record_.most_in_one_instance, inside);
    }
    sluice_outcome outcome{sizeof(sluice_outcome), SLUICE_DONE, -1, {nullptr, 0}};
    if (own->rig->script.handle) {
      outcome.status = own->rig->script.handle(id, *context);
    }
    {
      const MutexLock lock(own->rig->mutex_);
      own->rig->record_.finished.insert(id);
    }
    --own->inside;
    context->report(context, &outcome);
  }
};

JobRig::JobRig(Script wanted, const std::function<void(JobSpec&)>& adapt) : script(std::move(wanted)) {
  make([](auto simulated) { return simulated; }, adapt);
}

JobRig::JobRig(Script wanted, const MakeSource& make_source, const std::function<void(JobSpec&)>& adapt)
    : script(std::move(wanted)) {
  make(make_source, adapt);
}

void JobRig::make(const MakeSource& make_source, const std::function<void(JobSpec&)>& adapt) {
  table_.struct_size = sizeof(sluice_handler);
  table_.flags = script.concurrent ? static_cast<std::uint32_t>(SLUICE_HANDLER_CONCURRENT) : 0U;
  table_.name = "scripted";
  table_.create = &RigTable::create;
  table_.destroy = &RigTable::destroy;
  table_.handle = &RigTable::handle;
  spec_.config.name = "job-" + std::to_string(next_rig++);
  spec_.config.queue = "orders";
  spec_.config.handler = "scripted";
  spec_.config.concurrency = 4;
  spec_.config.retry = {.max_attempts = 3,
                        .backoff = config::Backoff::constant,
                        .base = std::chrono::milliseconds(1),
                        .max = std::chrono::milliseconds(2),
                        .jitter = config::Jitter::none};
  spec_.handler = &table_;
  spec_.host = "worker-a";
  if (adapt) {
    adapt(spec_);
  }
  {
    const MutexLock lock(rigs_mutex);
    rigs[spec_.config.name] = this;
  }
  JobSeams seams{clock, random, log, metrics};
  seams.keys = [this](const std::string& queue) -> Result<std::unique_ptr<queue::IdempotencyKeys>> {
    return std::unique_ptr<queue::IdempotencyKeys>(std::make_unique<CountedKeys>(*sim.open_keys(queue), keys_asked));
  };
  auto made = Job::create(spec_, make_source(open_source()), seams);
  if (!made) {
    error = made.error().message();
    return;
  }
  job = std::move(*made);
}

std::unique_ptr<queue::Source> JobRig::open_source() {
  const bool dead = spec_.config.source == config::Source::dlq;
  return *sim.open_source({spec_.config.queue, dead ? queue::Half::dlq : queue::Half::standard});
}

JobRig::~JobRig() {
  job.reset();
  const MutexLock lock(rigs_mutex);
  rigs.erase(spec_.config.name);
}

void JobRig::send(const std::vector<std::string>& ids, Duration delay) {
  std::vector<queue::NewMessage> messages;
  for (const std::string& id : ids) {
    queue::NewMessage message;
    message.id = id;
    message.body = "{}";
    message.delay = delay;
    messages.push_back(std::move(message));
  }
  for (const queue::SendResult& result : desk.send(spec_.config.queue, messages, Deadline::never())) {
    if (result.status != queue::SendStatus::sent) {
      throw std::runtime_error("the rig cannot send");
    }
  }
}

void JobRig::send_many(int count) {
  std::vector<std::string> ids;
  ids.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    ids.push_back("m-" + std::to_string(i));
  }
  send(ids);
}

bool JobRig::await(const std::function<bool(const LedgerSnapshot&)>& condition) {
  return await_that([&] { return condition(job->ledger()); });
}

queue::QueueStats JobRig::stats(queue::Half half) { return *desk.stats({spec_.config.queue, half}, Deadline::never()); }

Script::Record JobRig::record() const {
  const MutexLock lock(mutex_);
  return record_;
}

}  // namespace sluice::work
