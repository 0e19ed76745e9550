// What a handler's process tells the host, into whose memory the handler may have written anything: effects come out
// again as they were, metrics are counted, and nothing is read beyond its end.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "host/isolation/runner_memory.hpp"
#include "host/plugin/metric_board.hpp"

namespace {

namespace isolation = sluice::isolation;

void read_effects(std::string_view bytes) {
  const auto effects = isolation::unpack_effects(bytes);
  if (effects != nullptr && isolation::unpack_effects(isolation::pack_effects(*effects)) == nullptr) {
    std::abort();
  }
}

void read_changes(std::string_view bytes) {
  sluice::plugin::MetricBoard board("job", {});
  std::vector<sluice::plugin::ToldSeries> series;
  if (const auto changes = isolation::unpack_changes(bytes)) {
    for (const auto& change : *changes) {
      static_cast<void>(board.apply(change, series));
    }
  }
  static_cast<void>(board.figures());
  static_cast<void>(isolation::pack_changes(board.take_changes()));
}

// The bytes are those of the ring, its end wherever they end.
void read_events(std::string_view bytes) {
  const auto control = std::make_unique<isolation::RunnerControl>();
  bytes.copy(control->room.data(), control->room.size());
  control->produced.store(static_cast<std::uint32_t>(bytes.size()));
  isolation::EventRing ring(*control);
  isolation::EventHead head{};
  std::string text;
  while (ring.read(head, text) == isolation::EventRing::Found::event) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_effects(bytes);
  read_changes(bytes);
  read_events(bytes);
  return 0;
}
