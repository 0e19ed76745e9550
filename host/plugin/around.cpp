#include "host/plugin/around.hpp"

#include <algorithm>

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

bool AroundPass::enter() {
  // What one of them sees stays where it is until it is left.
  layers_.reserve(chain_.size());
  return std::all_of(chain_.begin(), chain_.end(), [this](const Around& around) { return enter_one(around); });
}

bool AroundPass::enter_one(const Around& around) {
  const sluice_message& seen = message();
  sluice_around_call call{sizeof(sluice_around_call), 0, nullptr, seen.body, seen.content_type, seen.attributes,
                          seen.attribute_count};
  sluice_around_answer answer = SLUICE_AROUND_ANSWERED;
  if (const auto thrown = thrown_by([&] { answer = around.table->enter(around.object, &seen, &context_, &call); })) {
    call_.fail(*thrown, Breach::exception);
    return false;
  }
  // What it reported where the call goes on all the same is no answer.
  const bool reported = call_.take_report();
  if (answer != SLUICE_AROUND_GO_ON) {
    if (!reported) {
      call_.fail("what goes around the handler ended the call without an outcome: a defect of the plugin",
                 Breach::no_outcome);
    }
    return false;
  }
  layers_.push_back({call.cookie, seen});
  if (!is_sound(call)) {
    call_.fail("what goes around the handler left a size without bytes: a defect of the plugin",
               Breach::illegal_outcome);
    return false;
  }
  sluice_message& inner = layers_.back().inner;
  inner.body = call.body;
  inner.content_type = call.content_type;
  inner.attributes = call.attributes;
  inner.attribute_count = call.attribute_count;
  return true;
}

void AroundPass::leave() {
  for (; !layers_.empty(); layers_.pop_back()) {
    const Around& around = chain_[layers_.size() - 1];
    const sluice_message& seen = inner(layers_.size() - 1);
    // What is reported takes its place while it is still looked at.
    const Outcome so_far = call_.outcome();
    const sluice_outcome raw = raw_of(so_far);
    if (const auto thrown =
            thrown_by([&] { around.table->leave(around.object, layers_.back().cookie, &seen, &context_, &raw); })) {
      call_.fail(*thrown, Breach::exception);
    } else {
      call_.take_report();
    }
  }
}

}  // namespace sluice::plugin
