#include "host/stores/emit_source.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "host/queue/effects.hpp"

namespace sluice::queue {

namespace {

bool emits(const Completion& completion) { return completion.effects && !completion.effects->messages.empty(); }

class EmitSource final : public Source {
 public:
  EmitSource(std::unique_ptr<Source> source, EmitRules rules) : source_(std::move(source)), rules_(std::move(rules)) {}

  const SourceTraits& traits() const override { return source_->traits(); }
  void start(SourceEvents events) override { source_->start(std::move(events)); }
  void stop() override { source_->stop(); }
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
    std::vector<SettleResult> results(completions.size());
    std::vector<Completion> allowed;
    std::vector<std::size_t> places;
    Refusals refusals;
    for (std::size_t i = 0; i < completions.size(); ++i) {
      if (auto refused = refusal(completions[i], refusals, deadline)) {
        results[i] = std::move(*refused);
      } else {
        allowed.push_back(filled(completions[i]));
        places.push_back(i);
      }
    }
    auto settled = allowed.empty() ? std::vector<SettleResult>() : source_->settle(allowed, deadline);
    for (std::size_t i = 0; i < settled.size(); ++i) {
      results[places[i]] = std::move(settled[i]);
    }
    return results;
  }

 private:
  /// Why a message to a queue is refused, if it is; each queue is asked about once in a call.
  struct Refusal {
    std::optional<Error> why;
    bool reject = false;
  };
  using Refusals = std::map<std::string, Refusal>;

  std::optional<SettleResult> refusal(const Completion& completion, Refusals& refusals, Deadline deadline) const {
    if (!emits(completion)) {
      return std::nullopt;
    }
    for (const EmittedMessage& emitted : completion.effects->messages) {
      const auto [known, fresh] = refusals.try_emplace(emitted.queue);
      Refusal& refusal = known->second;
      if (fresh) {
        refusal.why = rules_.refused(emitted.queue);
      }
      if (fresh && !refusal.why) {
        refusal = {rules_.unknown(emitted.queue, deadline), true};
      }
      if (refusal.why) {
        const std::string text = name_of(emitted) + " was refused: " + refusal.why->message();
        return SettleResult{SettleStatus::refused, Error(refusal.why->code(), text), refusal.reject};
      }
    }
    return std::nullopt;
  }

  Completion filled(Completion completion) const {
    if (!emits(completion)) {
      return completion;
    }
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
    return completion;
  }

  const std::unique_ptr<Source> source_;
  const EmitRules rules_;
};

}  // namespace

std::unique_ptr<Source> emitting(std::unique_ptr<Source> source, EmitRules rules) {
  return std::make_unique<EmitSource>(std::move(source), std::move(rules));
}

}  // namespace sluice::queue
