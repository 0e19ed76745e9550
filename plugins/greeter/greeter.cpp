#include <sluice/handler.hpp>

struct Greeter {
  explicit Greeter(const sluice::Options& options) : greeting(options.get("greeting", "hello")) {}
  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    context.info(greeting + ", " + std::string(message.body()));
    return sluice::done();
  }
  std::string greeting;
};
SLUICE_PLUGIN("greeter", "1.0.0", Greeter)
