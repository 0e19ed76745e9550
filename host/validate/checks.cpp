#include <algorithm>
#include <deque>
#include <latch>
#include <map>
#include <system_error>
#include <thread>

#include "base/text/decimal.hpp"
#include "host/validate/probe.hpp"
#include "host/validate/resources.hpp"
#include "sluice/options.hpp"

namespace sluice::validate {
namespace {

using Level = Finding::Level;

constexpr std::size_t kThreads = 16;
constexpr std::size_t kCycles = 1000;
constexpr std::size_t kCalls = 2000;
/// The first part is not counted, and of fewer than 20 repetitions nothing is said.
constexpr std::size_t kLeastCalls = 40;
constexpr std::size_t kInFlight = 1000;
constexpr std::size_t kRandomMessages = 300;

/// Repeats something and measures now and then: after a few times already, because a process that is full of threads
/// cannot go on. What the first times take, such as caches, is not counted.
class Repetition {
 public:
  Repetition(Probe& probe, std::size_t times) : probe_(probe), parts_{20, 40, 60, times / 2 - 120, times / 2} {}

  template <typename Body>
  void run(Body body) {
    samples_.reserve(parts_.size());
    for (std::size_t part = 0; part < parts_.size() && !is_full(); ++part) {
      probe_.begin_repeating(parts_.size());
      for (std::size_t i = 0; i < parts_[part] && probe_.has_time(); ++i) {
        body();
        ++done_;
      }
      samples_.push_back({done_, measure_resources()});
    }
  }

  std::size_t done() const { return done_; }
  std::vector<Growth> growth() const { return leaks(samples_); }
  /// Whether half of what grew is there still.
  bool holds(const Growth& growth) const {
    const auto left = static_cast<double>(measure_resources().*growth.resource) -
                      static_cast<double>(samples_.front().held.*growth.resource);
    const auto counted = static_cast<double>(done_ - samples_.front().repetitions);
    return left >= growth.for_each * counted / 2;
  }

 private:
  bool is_full() const {
    constexpr std::size_t kEnough = 100;
    return samples_.size() > 2 && std::max(samples_.back().held.threads, samples_.back().held.descriptors) > kEnough;
  }

  Probe& probe_;
  const std::array<std::size_t, 5> parts_;
  std::size_t done_ = 0;
  std::vector<Sample> samples_;
};

/// A plain message to repeat.
OddMessage plain_message() { return odd_messages().front(); }

/// An instance with the job's options; null, and a note, when there is none to be had.
Probe::Instance make(Probe& probe) {
  Result<Probe::Instance> instance = probe.create();
  if (!instance) {
    probe.note("not tried: " + instance.error().message());
    return nullptr;
  }
  return std::move(*instance);
}

void check_create(Probe& probe) {
  std::optional<Error> refusal;
  Repetition cycles(probe, kCycles);
  cycles.run([&] {
    Result<Probe::Instance> instance = probe.create();
    if (instance) {
      probe.destroy(std::move(*instance));
    } else if (!refusal) {
      refusal = instance.error();
    }
  });
  if (refusal) {
    probe.hinder("no instance can be made");
  }
  if (refusal && refusal->code() != ErrorCode::corrupt) {
    probe.find({"", Level::warning, "it refuses the options: " + refusal->message(), "",
                "nothing that needs an instance could be tried",
                "give options that it takes: --options FILE with what stands in [job.options], or --job FILE"});
  }
  for (const Growth& growth : cycles.growth()) {
    probe.find({"", Level::error, "each create and destroy leaves " + growth.text() + " behind", "",
                "a host makes an instance for each worker, and anew at every reload, until it runs out of them",
                growth.is_memory()
                    ? "free in `destroy` what `create` takes; a build with -fsanitize=leak names the place"
                    : "end, join and close in the destructor what the constructor begins"});
  }
  if (!refusal) {
    probe.note(std::to_string(cycles.done()) + " times created and destroyed");
    probe.figure("cycles", static_cast<std::int64_t>(cycles.done()));
  }
}

/// Options of this name and value, among the job's.
config::JobConfig with_option(const Probe& probe, const std::string& name, const config::OptionValue& value) {
  config::JobConfig job = probe.job();
  job.options.insert_or_assign(name, config::Option{value, {}});
  return job;
}

/// The option that is tried, with each type that it may have.
struct TriedOption {
  std::string name;
  std::vector<sluice_option_type> types;
};

std::vector<TriedOption> tried_options(const Probe& probe) {
  std::vector<TriedOption> tried;
  const sluice_handler& handler = probe.handler();
  for (std::size_t i = 0; i < handler.option_count; ++i) {
    tried.push_back({handler.options[i]->name, {handler.options[i]->type}});
  }
  if ((handler.flags & SLUICE_HANDLER_OPEN_OPTIONS) != 0) {
    // Nobody but the handler looks at types.
    const std::vector<sluice_option_type> all{SLUICE_OPTION_STRING,  SLUICE_OPTION_INTEGER, SLUICE_OPTION_NUMBER,
                                              SLUICE_OPTION_BOOLEAN, SLUICE_OPTION_LIST,    SLUICE_OPTION_MAP};
    tried.push_back({"nobody-declares-this", all});
    for (const auto& [name, option] : probe.job().options) {
      tried.push_back({name, all});
    }
  }
  return tried;
}

/// Defaults that are none of their option's type, which SDKs other than the C++ one let pass.
void check_defaults(Probe& probe) {
  for (std::size_t i = 0; i < probe.handler().option_count; ++i) {
    const sluice_option& option = *probe.handler().options[i];
    if (option.default_value != nullptr && !detail::is_value_text(option.type, option.default_value)) {
      probe.find({"", Level::error,
                  "the default of the option \"" + std::string(option.name) + "\" is \"" + option.default_value +
                      "\", and not " + detail::describe(option.type),
                  "", "no job can leave the option out", "write the default as TOML has it, a string without quotes"});
    }
  }
}

void check_options(Probe& probe) {
  check_defaults(probe);
  std::size_t taken = 0;
  std::size_t refused = 0;
  for (const TriedOption& option : tried_options(probe)) {
    for (const sluice_option_type type : option.types) {
      for (const OddValue& odd : odd_values(type)) {
        const std::string what = option.name + " = " + odd.what;
        Result<Probe::Instance> instance = probe.create(with_option(probe, option.name, odd.value), what);
        instance ? ++taken : ++refused;
        if (instance) {
          probe.destroy(std::move(*instance));
        }
      }
    }
  }
  probe.note(std::to_string(taken + refused) + " odd values: " + std::to_string(taken) + " taken, " +
             std::to_string(refused) + " refused");
}

/// Calls with a message for each element, while there is time.
void call_with(Probe& probe, plugin::HandlerInstance& instance, const std::vector<OddMessage>& messages) {
  plugin::Attempt attempt(probe.clock());
  probe.begin_repeating();
  std::size_t calls = 0;
  for (const OddMessage& odd : messages) {
    if (!probe.has_time()) {
      break;
    }
    probe.step("handle " + odd.what);
    probe.call(instance, odd, attempt);
    ++calls;
  }
  probe.note(std::to_string(calls) + " of " + std::to_string(messages.size()) + " messages" +
             (calls < messages.size() ? ", since a call takes long" : ""));
}

void check_bodies(Probe& probe, plugin::HandlerInstance& instance) { call_with(probe, instance, odd_messages()); }

void check_random(Probe& probe, plugin::HandlerInstance& instance) {
  SeededRandom random(probe.seed());
  std::vector<OddMessage> messages;
  for (std::size_t i = 0; i < kRandomMessages; ++i) {
    messages.push_back(random_message(random, i));
  }
  call_with(probe, instance, messages);
}

/// Sets an attempt's stop after a while, unless the call has returned before.
class Stopper {
 public:
  Stopper(const Clock& clock, plugin::Attempt& attempt, Duration after, bool lease_lost)
      : thread_([this, &clock, &attempt, after, lease_lost](const std::stop_token& returned) {
          const SteadyTime at = clock.steady_now() + after;
          MutexLock lock(mutex_);
          condition_.wait_until(mutex_, returned, at, [] { return false; });
          if (returned.stop_requested()) {
            return;
          }
          lease_lost ? attempt.lose_lease() : attempt.request_stop(clock.steady_now() + after);
        }) {}

 private:
  Mutex mutex_;
  Condition condition_;
  std::jthread thread_;
};

void check_stop(Probe& probe, plugin::HandlerInstance& instance) {
  const OddMessage message = plain_message();
  std::size_t slow = 0;
  Duration longest{};
  for (const bool lease_lost : {false, true}) {
    for (const Duration after :
         {Duration::zero(), Duration(std::chrono::microseconds(100)), probe.call_timeout() / 4}) {
      probe.step("handle a plain message, which is asked to stop");
      plugin::Attempt attempt(probe.clock());
      const SteadyTime began = probe.clock().steady_now();
      probe.arm(attempt);  // before the stop, which it would take back
      const Stopper stopper(probe.clock(), attempt, after, lease_lost);
      probe.call_armed(instance, message, attempt);
      const Duration took = probe.clock().steady_now() - began;
      slow += took >= probe.call_timeout() / 4 ? 1 : 0;
      longest = std::max(longest, took - after);
    }
  }
  const auto late = std::chrono::duration_cast<std::chrono::milliseconds>(longest);
  probe.note(slow == 0 ? "it returns before it can be asked to stop"
             : longest < probe.call_timeout() / 4
                 ? "it returns when it is asked to"
                 : "once it is asked to stop, it returns within " + std::to_string(late.count()) + "ms");
}

void check_concurrency(Probe& probe) {
  const bool shared = plugin::is_concurrent(probe.handler()) && !probe.is_async();
  std::vector<Probe::Instance> instances;
  for (std::size_t i = 0; i < (shared ? 1 : kThreads); ++i) {
    if (!instances.emplace_back(make(probe))) {
      return;
    }
  }
  probe.note(shared ? "one instance serves all workers of a job"
             : probe.is_async()
                 ? "each instance begins with messages on one thread, whatever its flags"
                 : "each worker of a job has an instance of its own, one call at a time; where `handle` is const, "
                   "one instance serves all of them (SLUICE_HANDLER_CONCURRENT)");
  const std::vector<OddMessage> messages = odd_messages();
  probe.begin_repeating();
  probe.step(shared ? "handle messages in 16 threads, in one instance"
                    : "handle messages in 16 threads, each in an instance of its own");
  std::atomic<std::size_t> calls{0};
  {
    std::vector<std::jthread> threads;
    const auto call_often = [&](std::size_t i) {
      plugin::Attempt attempt(probe.clock());
      SeededRandom random(probe.seed() + i);
      plugin::HandlerInstance& instance = *instances[shared ? 0 : i];
      // Enough for a race, and soon over for a handler that is quick.
      constexpr std::size_t kMost = 500;
      for (std::size_t call = 0; call < kMost && probe.has_time(); ++call) {
        probe.call(instance, messages[random.below(messages.size())], attempt);
        ++calls;
      }
    };
    try {
      for (std::size_t i = 0; i < kThreads; ++i) {
        threads.emplace_back(call_often, i);
      }
    } catch (const std::system_error&) {
      // Calls that leave threads behind have taken all that there were. It is said of them what they leave.
    }
  }
  probe.note(std::to_string(calls.load()) + " calls from 16 threads");
  for (Probe::Instance& instance : instances) {
    probe.destroy(std::move(instance));
  }
}

/// Many messages at once: each with an attempt of its own.
class Crowd {
 public:
  Crowd(const Probe& probe, const std::vector<OddMessage>& messages) {
    for (const OddMessage& odd : messages) {
      plugin::Attempt& attempt = attempts_.emplace_back(probe.clock());
      probe.arm(attempt);
      works_.push_back({odd.message, probe.job().queue, probe.job().retry.max_attempts, attempt});
    }
  }
  const std::vector<plugin::Work>& works() const { return works_; }

 private:
  std::deque<plugin::Attempt> attempts_;
  std::vector<plugin::Work> works_;
};

void check_batch(Probe& probe, plugin::HandlerInstance& instance) {
  const std::vector<OddMessage> messages = odd_messages();
  // The largest, and all smaller ones to one.
  for (std::size_t size = messages.size(); size > 0; size /= 2) {
    const std::vector<OddMessage> some(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(size));
    const Crowd crowd(probe, some);
    std::vector<plugin::Outcome> outcomes(size);
    probe.step("handle a batch of " + std::to_string(size) + " odd messages");
    instance.handle_batch(crowd.works(), outcomes);
    for (std::size_t i = 0; i < size; ++i) {
      probe.judge(outcomes[i], some[i].what + ", in a batch of " + std::to_string(size));
    }
  }
  probe.note("batches of 1 to " + std::to_string(messages.size()));
}

/// Waits until each of many messages has been completed.
class Turnstile final : public plugin::Completer {
 public:
  Turnstile(Probe& probe, std::size_t count) : probe_(probe), left_(static_cast<std::ptrdiff_t>(count)) {}

  void completed(plugin::Outcome&& outcome) noexcept override {
    probe_.judge(outcome, "one of many messages in flight");
    left_.count_down();
  }
  /// The step limit is the parent's.
  void wait() { left_.wait(); }

 private:
  Probe& probe_;
  std::latch left_;
};

void check_in_flight(Probe& probe, plugin::HandlerInstance& instance) {
  std::vector<OddMessage> messages(kInFlight, plain_message());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    messages[i].message.id = "validate-" + std::to_string(i);
  }
  const Crowd crowd(probe, messages);
  Turnstile turnstile(probe, messages.size());
  probe.step("handle 1,000 messages in flight at once");
  for (const plugin::Work& work : crowd.works()) {
    instance.begin(work, turnstile);
  }
  turnstile.wait();
  probe.note("1,000 messages in flight at once");
}

void check_leaks(Probe& probe) {
  Probe::Instance instance = make(probe);
  if (!instance) {
    return;
  }
  const OddMessage message = plain_message();
  plugin::Attempt attempt(probe.clock());
  Repetition calls(probe, kCalls);
  calls.run([&] {
    probe.step("handle a plain message, again and again");
    probe.call(*instance, message, attempt);
  });
  const std::vector<Growth> found = calls.growth();
  probe.destroy(std::move(instance));
  for (const Growth& growth : found) {
    const bool lost = calls.holds(growth);
    // What it remembers of messages until it ends may be meant.
    probe.find({"", growth.is_memory() && !lost ? Level::warning : Level::error,
                "each call of `handle` leaves " + growth.text() + " behind" + (lost ? "" : ", until destroy"), "",
                "a host runs for months, and handles millions of messages",
                growth.is_memory() ? "free it before `handle` returns; a build with -fsanitize=leak names the place"
                                   : "end, join or close it before `handle` returns, or keep a fixed number of them"});
  }
  probe.note(std::to_string(calls.done()) + " calls" +
             (calls.done() < kLeastCalls ? ", too few to tell what they leave behind" : ""));
}

void check_time(Probe& probe, plugin::HandlerInstance& instance) {
  const OddMessage message = plain_message();
  plugin::Attempt attempt(probe.clock());
  std::vector<Duration> times;
  std::map<std::string, std::size_t, std::less<>> fates;
  probe.begin_repeating();
  do {
    probe.step("handle a plain message, and take its time");
    const SteadyTime began = probe.clock().steady_now();
    const plugin::Outcome outcome = probe.call(instance, message, attempt);
    times.push_back(probe.clock().steady_now() - began);
    ++fates[std::string(queue::core::rule_of(outcome.status).name)];
  } while (times.size() < kCalls && probe.has_time());
  std::sort(times.begin(), times.end());
  const Duration median = times[times.size() / 2];
  const auto micros = [](Duration time) { return fixed_decimal(static_cast<double>(time.count()) / 1000, 1) + " us"; };
  std::string ends;
  for (const auto& [fate, count] : fates) {
    ends += (ends.empty() ? "" : ", ") + fate + " " + std::to_string(count);
  }
  probe.note("p50 " + micros(median) + ", max " + micros(times.back()) + " in " + std::to_string(times.size()) +
             " calls (" + ends + ")");
  probe.figure("calls", static_cast<std::int64_t>(times.size()));
  probe.figure("p50_ns", median.count());
  probe.figure("max_ns", times.back().count());
}

/// A check of one instance, as far as there is one to be had.
template <void (*body)(Probe&, plugin::HandlerInstance&)>
void of_one(Probe& probe) {
  if (Probe::Instance instance = make(probe)) {
    body(probe, *instance);
    probe.destroy(std::move(instance));
  }
}

}  // namespace

const std::vector<Check>& handler_checks() {
  static const std::vector<Check> kChecks{
      {"create", false, check_create},
      {"options", false, check_options},
      {"stop", true, of_one<check_stop>},
      {"bodies", true, of_one<check_bodies>},
      {"random", true, of_one<check_random>},
      {"concurrency", true, check_concurrency},
      {"batch", true, of_one<check_batch>, plugin::HandlerKind::batch},
      {"in-flight", true, of_one<check_in_flight>, plugin::HandlerKind::async},
      {"leaks", true, check_leaks},
      {"time", true, of_one<check_time>},
  };
  return kChecks;
}

}  // namespace sluice::validate
