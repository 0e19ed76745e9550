#include "host/plugin/around.hpp"

#include "host/plugin/thrown_by.hpp"

namespace sluice::plugin {
namespace {

sluice_outcome raw_of(const Outcome& outcome) {
  return {sizeof(sluice_outcome),
          static_cast<sluice_status>(outcome.status),
          outcome.delay ? outcome.delay->count() : -1,
          {outcome.reason.data(), outcome.reason.size()}};
}

bool is_sound(const sluice_around_call& call) {
  return (call.body.data != nullptr || call.body.size == 0) &&
         (call.content_type.data != nullptr || call.content_type.size == 0) &&
         (call.attributes != nullptr || call.attribute_count == 0);
}

}  // namespace

const sluice_around* around_of(const sluice_handler& handler) {
  const auto* const around = feature_of<sluice_around>(handler, SLUICE_AROUND_1);
  const bool sound = around != nullptr && around->enter != nullptr && around->leave != nullptr;
  return sound ? around : nullptr;
}

Result<AroundChain> make_arounds(const HandlerSurroundings& surroundings, const std::string& job,
                                 std::span<const AroundSpec> specs, const AroundChain& known) {
  AroundChain chain;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (!known.empty() && is_concurrent(*specs[i].handler)) {
      chain.push_back(known[i]);
      continue;
    }
    SLUICE_TRY(made, HandlerInstance::create(surroundings, *specs[i].handler, job, specs[i].options));
    void* const object = (*made)->object();
    chain.push_back({around_of(*specs[i].handler), object, std::move(*made)});
  }
  return chain;
}

Result<std::unique_ptr<HandlerInstance>> make_within(HandlerSurroundings surroundings, const sluice_handler& handler,
                                                     const std::string& job, const OptionValues& options,
                                                     std::span<const AroundSpec> arounds) {
  SLUICE_TRY(chain, make_arounds(surroundings, job, arounds, {}));
  surroundings.around = std::move(*chain);
  return HandlerInstance::create(std::move(surroundings), handler, job, options);
}

std::optional<Outcome> AroundPass::enter() {
  // What one of them sees stays where it is until it is left.
  layers_.reserve(chain_.size());
  for (const Around& around : chain_) {
    if (auto outcome = enter_one(around)) {
      return outcome;
    }
  }
  return std::nullopt;
}

std::optional<Outcome> AroundPass::enter_one(const Around& around) {
  const sluice_message& seen = message();
  sluice_around_call call{sizeof(sluice_around_call), 0, nullptr, seen.body, seen.content_type, seen.attributes,
                          seen.attribute_count};
  sluice_around_answer answer = SLUICE_AROUND_ANSWERED;
  if (const auto thrown = thrown_by([&] { answer = around.table->enter(around.object, &seen, &context_, &call); })) {
    return call_.fail(*thrown, Breach::exception);
  }
  if (answer != SLUICE_AROUND_GO_ON) {
    auto outcome = call_.take_report();
    return outcome
               ? std::move(outcome)
               : call_.fail("what goes around the handler ended the call without an outcome: a defect of the plugin",
                            Breach::no_outcome);
  }
  // What it reported all the same is no answer.
  static_cast<void>(call_.take_report());
  layers_.push_back({call.cookie, seen});
  if (!is_sound(call)) {
    return call_.fail("what goes around the handler left a size without bytes: a defect of the plugin",
                      Breach::illegal_outcome);
  }
  sluice_message& inner = layers_.back().inner;
  inner.body = call.body;
  inner.content_type = call.content_type;
  inner.attributes = call.attributes;
  inner.attribute_count = call.attribute_count;
  return std::nullopt;
}

Outcome AroundPass::leave(Outcome outcome) {
  for (; !layers_.empty(); layers_.pop_back()) {
    const Around& around = chain_[layers_.size() - 1];
    const sluice_message& seen = inner(layers_.size() - 1);
    const sluice_outcome raw = raw_of(outcome);
    if (const auto thrown =
            thrown_by([&] { around.table->leave(around.object, layers_.back().cookie, &seen, &context_, &raw); })) {
      outcome = call_.fail(*thrown, Breach::exception);
    } else if (auto replaced = call_.take_report()) {
      outcome = *std::move(replaced);
    }
  }
  return outcome;
}

}  // namespace sluice::plugin
