#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/random.hpp"
#include "tests/simulation/backend.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/desk.hpp"

namespace sluice::simulation {

/// The product's embedded store on a file of its own. Each host opens it for itself, as processes do.
///
/// Its threads wait by the machine's clock, but each call is answered before the next one is made, so that the run
/// stays that of its seed.
class SqliteBackend final : public StoreBackend {
 public:
  SqliteBackend(const Clock& clock, Random& random);

  queue::Queues& queues_of(Truth::Host host) override;
  queue::Queues& outside() override { return outside_.queues(); }
  void take_away(const queue::QueueAddress& address) override;
  bool is_real() const override { return false; }
  void set_faults(const FaultMix&) override {}
  bool waits_for_machine() const override { return true; }

  void begin_trade(Stored stored) override;
  queue::EffectWrite add_one(const std::string& account) override;
  queue::EffectWrite never() override;
  std::map<std::string, std::int64_t> accounts() override;
  std::string damage() override;

 private:
  /// One process, as far as its store goes.
  struct Party {
    Party(const std::string& file, const Clock& clock, std::uint64_t seed);
    SeededRandom random;
    std::unique_ptr<queue::Queues> queues;
  };

  const Clock& clock_;
  Random& random_;
  const test::TempFolder folder_;
  const std::string file_;
  Party own_;
  test::Desk outside_;
  std::map<Truth::Host, std::unique_ptr<Party>> parties_;
};

}  // namespace sluice::simulation
