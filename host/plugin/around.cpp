#include "host/plugin/around.hpp"

#include "host/plugin/thrown_by.hpp"

namespace sluice::plugin {

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

}  // namespace sluice::plugin
