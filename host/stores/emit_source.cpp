#include "host/stores/emit_source.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/effects.hpp"

namespace sluice::queue {

namespace {

bool emits(const Completion& completion) { return completion.effects && !completion.effects->messages.empty(); }

/// A source that looks at completions which send, before they are settled.
class EmittingSource : public Source {
 public:
  const SourceTraits& traits() const override { return source_->traits(); }
  void start(SourceEvents events) override { source_->start(std::move(events)); }
  void stop() override { source_->stop(); }
  void handled(std::span<const Receipt> receipts) override { source_->handled(receipts); }
  SendOrder send_order(std::span<const Receipt> receipts) override { return source_->send_order(receipts); }
  bool holds(std::uint32_t part) override { return source_->holds(part); }
  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline) override {
    return source_->claim(request, deadline);
  }
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline) override {
    return source_->extend(receipts, visibility, deadline);
  }

  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline) override {
    if (std::none_of(completions.begin(), completions.end(), emits)) {
      return source_->settle(completions, deadline);
    }
    std::vector<Completion> ready(completions.begin(), completions.end());
    Ends ends(completions.size());
    prepare(ready, ends, deadline);
    std::vector<Completion> allowed;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if (!ends[i]) {
        allowed.push_back(std::move(ready[i]));
      }
    }
    auto settled = allowed.empty() ? std::vector<SettleResult>() : source_->settle(allowed, deadline);
    fill_up(settled, allowed.size());
    auto next = settled.begin();
    std::vector<SettleResult> results;
    results.reserve(ends.size());
    for (std::optional<SettleResult>& end : ends) {
      results.push_back(end ? std::move(*end) : std::move(*next++));
    }
    return results;
  }

 protected:
  /// Why completions are not settled, by their places.
  using Ends = std::vector<std::optional<SettleResult>>;

  explicit EmittingSource(std::unique_ptr<Source> source) : source_(std::move(source)) {}
  /// Some of the completions send.
  virtual void prepare(std::vector<Completion>& completions, Ends& ends, Deadline deadline) = 0;

 private:
  const std::unique_ptr<Source> source_;
};

class RuledSource final : public EmittingSource {
 public:
  RuledSource(std::unique_ptr<Source> source, EmitRules rules)
      : EmittingSource(std::move(source)), rules_(std::move(rules)) {}

 private:
  void prepare(std::vector<Completion>& completions, Ends& ends, Deadline deadline) override {
    Refusals refusals;
    for (std::size_t i = 0; i < completions.size(); ++i) {
      if (!emits(completions[i])) {
        continue;
      }
      ends[i] = refusal(*completions[i].effects, refusals, deadline);
      if (!ends[i]) {
        fill_in_all(completions[i]);
      }
    }
  }

  /// Why messages to a queue are refused; nothing: they are not. Each queue is asked about once in a call.
  using Refusals = std::map<std::string, std::optional<SettleResult>>;

  std::optional<SettleResult> refusal_of(const std::string& queue, Deadline deadline) const {
    const auto refused = rules_.refused(queue);
    const auto why = refused ? refused : rules_.unknown(queue, deadline);
    return why ? std::optional(SettleResult{SettleStatus::refused, *why, !refused}) : std::nullopt;
  }

  std::optional<SettleResult> refusal(const Effects& effects, Refusals& refusals, Deadline deadline) const {
    for (const EmittedMessage& emitted : effects.messages) {
      if (!refusals.contains(emitted.queue)) {
        refusals.emplace(emitted.queue, refusal_of(emitted.queue, deadline));
      }
      if (std::optional<SettleResult> refusal = refusals.at(emitted.queue)) {
        refusal->error = Error(refusal->error.code(), name_of(emitted) + " was refused: " + refusal->error.message());
        return refusal;
      }
    }
    return std::nullopt;
  }

  void fill_in_all(Completion& completion) const {
    const auto& sent = completion.effects->messages;
    const bool any = std::any_of(sent.begin(), sent.end(),
                                 [this](const EmittedMessage& emitted) { return rules_.dedup(emitted.queue).any(); });
    if (any) {
      auto effects = std::make_shared<Effects>(*completion.effects);
      for (EmittedMessage& emitted : effects->messages) {
        fill_in(emitted.message, rules_.dedup(emitted.queue));
      }
      completion.effects = std::move(effects);
    }
  }

  const EmitRules rules_;
};

class SendingSource final : public EmittingSource {
 public:
  using Warn = std::function<void(const std::string& warning)>;

  SendingSource(std::unique_ptr<Source> source, OpenSender open_sender, const Clock& clock, Warn warn)
      : EmittingSource(std::move(source)),
        open_sender_(std::move(open_sender)),
        clock_(clock),
        warn_(std::move(warn)) {}

 private:
  /// What goes to one queue, and which completion each of it is of.
  struct Load {
    std::vector<NewMessage> messages;
    std::vector<std::size_t> places;
    std::vector<const EmittedMessage*> emitted;
  };
  using Senders = std::map<std::string, Result<Sender*>>;
  using Places = std::vector<std::size_t>;

  void prepare(std::vector<Completion>& completions, Ends& ends, Deadline deadline) override {
    // What is left is for the settlement, which a queue that does not answer is not to prevent.
    const SteadyTime now = clock_.steady_now();
    const Deadline half = Deadline::after(clock_, deadline.left(now) / 2);
    const Senders senders = senders_of(completions, ends);
    std::vector<Receipt> sent;
    std::vector<Places> groups = order_of(completions, ends);
    while (!groups.empty()) {
      std::vector<Places> round;
      for (Places& group : groups) {
        const auto end = end_of_run(completions, group);
        round.emplace_back(group.begin(), end);
        group.erase(group.begin(), end);
      }
      send(completions, round, senders, ends, half);
      std::vector<Places> going;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        const auto failed = std::find_if(round[i].begin(), round[i].end(),
                                         [&ends](std::size_t place) { return ends[place].has_value(); });
        std::transform(round[i].begin(), failed, std::back_inserter(sent),
                       [&completions](std::size_t place) { return completions[place].receipt; });
        if (failed == round[i].end() && !groups[i].empty()) {
          going.push_back(std::move(groups[i]));
        }
      }
      groups = std::move(going);
    }
    handled(sent);
    for (Completion& completion : completions) {
      completion.effects.reset();
    }
  }

  // Those that send, in their order by group. They are behind others until they are sent.
  std::vector<Places> order_of(std::span<const Completion> completions, Ends& ends) {
    std::vector<Receipt> receipts;
    Places places;
    for (std::size_t i = 0; i < completions.size(); ++i) {
      if (emits(completions[i]) && !ends[i]) {
        receipts.push_back(completions[i].receipt);
        places.push_back(i);
        ends[i] = its_turn_comes();
      }
    }
    SendOrder order = send_order(receipts);
    for (const std::size_t late : order.never) {
      const Error why(ErrorCode::conflict, "one before it in its group has failed, and goes first");
      ends[places[late]] = SettleResult{.status = SettleStatus::refused, .error = why, .wait = Duration::zero()};
    }
    for (Places& group : order.now) {
      std::transform(group.begin(), group.end(), group.begin(), [&places](std::size_t at) { return places[at]; });
    }
    return std::move(order.now);
  }

  /// Empty: it sends to several.
  static std::string_view only_queue(const Completion& completion) {
    const auto& messages = completion.effects->messages;
    const std::string& first = messages.front().queue;
    const bool one = std::all_of(messages.begin(), messages.end(),
                                 [&first](const EmittedMessage& emitted) { return emitted.queue == first; });
    return one ? std::string_view(first) : std::string_view();
  }

  // What can be sent at once of a group: what goes to one queue, or the first one where that goes to several.
  static Places::iterator end_of_run(std::span<const Completion> completions, Places& group) {
    const std::string_view queue = only_queue(completions[group.front()]);
    return std::find_if(std::next(group.begin()), group.end(),
                        [&](std::size_t place) { return queue.empty() || only_queue(completions[place]) != queue; });
  }

  void send(std::span<const Completion> completions, const std::vector<Places>& groups, const Senders& senders,
            Ends& ends, Deadline deadline) {
    for (const Places& group : groups) {
      std::for_each(group.begin(), group.end(), [&ends](std::size_t place) { ends[place].reset(); });
    }
    for (const auto& [queue, load] : loads_of(completions, groups)) {
      const auto results = (*senders.at(queue))->send_in_order(load.messages, deadline);
      for (std::size_t i = 0; i < results.size(); ++i) {
        std::optional<SettleResult>& end = ends[load.places[i]];
        auto failure = failure_of(results[i], *load.emitted[i]);
        if (failure && (!end || end->wait)) {
          end = std::move(failure);
        }
      }
    }
  }

  static SettleResult its_turn_comes() {
    return {.status = SettleStatus::failed, .error = left_behind({}).error, .wait = kTurnWait, .left = true};
  }

  // Where one of a completion's queues is not there nothing of it is sent: the rest would go out again with each try.
  Senders senders_of(std::span<const Completion> completions, Ends& ends) {
    Senders senders;
    for (std::size_t i = 0; i < completions.size(); ++i) {
      if (!emits(completions[i])) {
        continue;
      }
      for (const EmittedMessage& emitted : completions[i].effects->messages) {
        if (!senders.contains(emitted.queue)) {
          senders.emplace(emitted.queue, sender_of(emitted.queue));
        }
        const Result<Sender*>& sender = senders.at(emitted.queue);
        if (!sender && !ends[i]) {
          ends[i] = failure_of({SendStatus::failed, {}, sender.error()}, emitted);
        }
      }
    }
    return senders;
  }

  static std::map<std::string, Load> loads_of(std::span<const Completion> completions, std::span<const Places> groups) {
    std::map<std::string, Load> loads;
    for (const Places& group : groups) {
      for (const std::size_t place : group) {
        for (const EmittedMessage& emitted : completions[place].effects->messages) {
          add_to(loads[emitted.queue], emitted, place);
        }
      }
    }
    return loads;
  }

  static void add_to(Load& load, const EmittedMessage& emitted, std::size_t place) {
    load.messages.push_back(emitted.message);
    if (emitted.made_id) {
      // A settlement that is tried again is not to store another one.
      if (load.messages.back().dedup_id.empty()) {
        load.messages.back().dedup_id = emitted.message.id;
      }
      load.messages.back().id.clear();  // the queue's store makes one, which it need not look for
    }
    load.places.push_back(place);
    load.emitted.push_back(&emitted);
  }

  Result<Sender*> sender_of(const std::string& queue) {
    {
      const MutexLock lock(mutex_);
      if (const auto found = senders_.find(queue); found != senders_.end()) {
        return found->second.get();
      }
    }
    SLUICE_TRY(opened, open_sender_(queue));
    const MutexLock lock(mutex_);
    return senders_.try_emplace(queue, *std::move(opened)).first->second.get();
  }

  // What may pass by itself is waited for, and so is a queue that is not there: the message can do nothing about it. Of
  // the rest the job's policy decides, as for a transaction's refusal.
  std::optional<SettleResult> failure_of(const SendResult& result, const EmittedMessage& emitted) {
    if (result.status == SendStatus::sent || result.status == SendStatus::deduplicated) {
      return std::nullopt;
    }
    if (result.left) {
      return its_turn_comes();
    }
    const Error why = result.status == SendStatus::duplicate_id ? taken_id() : result.error;
    if (why.code() == ErrorCode::queue_missing || why.code() == ErrorCode::not_found) {
      warn_of(emitted.queue, why.message());
      return SettleResult{.status = SettleStatus::refused, .error = why, .wait = kMissingWait};
    }
    const bool waits = why.transient();
    // Whatever became of the message, the settlement itself has not been tried.
    const bool unknown = why.code() == ErrorCode::unknown_outcome || why.code() == ErrorCode::timeout;
    return SettleResult{waits ? SettleStatus::failed : SettleStatus::refused,
                        Error(unknown ? ErrorCode::unavailable : why.code(),
                              name_of(emitted) + " could not be sent: " + why.message())};
  }

  void warn_of(const std::string& queue, const std::string& why) {
    const SteadyTime now = clock_.steady_now();
    {
      const MutexLock lock(mutex_);
      const auto [due, first] = warn_again_at_.try_emplace(queue);
      if (!first && now < due->second) {
        return;
      }
      due->second = now + kWarnAgain;
    }
    warn_("messages to queue " + queue + " wait, and no attempt is counted: " + why);
  }

  /// What is before it in its group has come to its end or will any moment, as handlers that only send are quick.
  static constexpr Duration kTurnWait = std::chrono::milliseconds(1);
  static constexpr Duration kMissingWait = std::chrono::seconds(5);
  static constexpr Duration kWarnAgain = std::chrono::minutes(10);

  // Fixed after construction.
  const OpenSender open_sender_;
  const Clock& clock_;
  const Warn warn_;

  Mutex mutex_;
  std::map<std::string, std::unique_ptr<Sender>> senders_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::string, SteadyTime> warn_again_at_ SLUICE_GUARDED_BY(mutex_);  ///< by queue
};

}  // namespace

std::unique_ptr<Source> emitting(std::unique_ptr<Source> source, EmitRules rules) {
  return std::make_unique<RuledSource>(std::move(source), std::move(rules));
}

std::unique_ptr<Source> sending_first(std::unique_ptr<Source> source, OpenSender open_sender, const Clock& clock,
                                      std::function<void(const std::string& warning)> warn) {
  return std::make_unique<SendingSource>(std::move(source), std::move(open_sender), clock, std::move(warn));
}

}  // namespace sluice::queue
