#pragma once

#include <memory>
#include <string>

#include "tests/stores/dynamomq/emulated_tables.hpp"
#include "tests/support/dynamodb_model/model.hpp"
#include "tests/support/dynamodb_model/transport.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {

/// Where requests go.
class Wire {
 public:
  Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  virtual ~Wire() = default;
  virtual dynamo::HttpTransport& transport() = 0;
  virtual std::string endpoint() const { return {}; }
};

class EmulatorWire final : public Wire {
 public:
  explicit EmulatorWire(FakeClock& clock) : transport_(clock), undated_(transport_) {
    // Waits for the emulator are on the machine's clock: the fake one stands still at the present.
    clock.set_steady(SystemClock().steady_now());
    transport_.start();
  }
  dynamo::HttpTransport& transport() override { return undated_; }
  std::string endpoint() const override { return shared_emulator()->endpoint(); }

 private:
  dynamo::CurlTransport transport_;
  FaultyTransport undated_;  ///< the emulator's time is not the test's
};

class ModelWire final : public Wire {
 public:
  explicit ModelWire(FakeClock& clock) : model_(clock, 1), transport_(model_, clock) {}
  dynamo::HttpTransport& transport() override { return transport_; }

 private:
  model::Model model_;
  model::ModelTransport transport_;
};

inline std::unique_ptr<Wire> make_wire(bool on_emulator, FakeClock& clock) {
  return on_emulator ? std::unique_ptr<Wire>(std::make_unique<EmulatorWire>(clock))
                     : std::make_unique<ModelWire>(clock);
}

}  // namespace sluice::test
