// A handler that does nothing, so that what is left is the way to it and back.
#include <sluice/handler.hpp>

struct Noop {
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) const { return sluice::done(); }
};

/// Looks at everything that a usual handler looks at.
struct Reader {
  static constexpr const char* name = "dispatch_reader";
  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    if (message.body().empty() || message.attribute("colour") != "red" || context.stop_requested()) {
      return sluice::release();
    }
    return sluice::done();
  }
};
SLUICE_PLUGIN("dispatch_noop", "1.0.0", Noop, Reader)
